#!/bin/sh
# quickstart shows the commands it runs; the output of a command that is kept must be its own alone.
. "$UM_SRCDIR/tests/meta/tap.sh"

# output_of_run FILE: what `run`, as FILE defines it, adds to the output of a command.
output_of_run() {
    (
        eval "$(sed -n '/^run()/p' "$1")"
        run printf '' 2>/dev/null
    )
}
# shows FILE: complains when `run` shows nothing at all.
shows() {
    [ -n "$(eval "$(sed -n '/^run()/p' "$1")" && run printf '' 2>&1)" ] || echo "nothing is shown"
}

plan 3
ok "what is shown stays out of the command's output" output_of_run "$UM_SRCDIR/quickstart"
ok "the command is shown" shows "$UM_SRCDIR/quickstart"
# shellcheck disable=SC2016 # another script's own dollars
printf '%s\n' 'run() { printf "shown\n"; "$@"; }' >quickstart.planted
caught "a line that mixes with the output" output_of_run quickstart.planted
rm -f quickstart.planted
