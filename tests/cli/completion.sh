#!/usr/bin/env bash
# What bash offers after umrt: the subcommands and flags that this build has, without a list of its own.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"
# shellcheck source=tools/umrt.bash
. "$UM_SRCDIR/tools/umrt.bash"

# offers WANTED WORD...: with the last word being typed, WANTED is among the completions.
offers() {
    local want=$1
    shift
    COMP_WORDS=("$umrt" "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _umrt 2>/dev/null
    printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$want" || { echo "offered: ${COMPREPLY[*]}"; return 1; }
}
offers_nothing_else() {
    offers "$@" || return 1
    [ ${#COMPREPLY[@]} = 1 ] || { echo "offered: ${COMPREPLY[*]}"; return 1; }
}

# offers_none WORD...: there is no completion
offers_none() {
    offers "" "$@" && [ ${#COMPREPLY[@]} = 0 ]
}

touch trace.umt
ok "a subcommand" offers_nothing_else record rec
ok "a subcommand to get help for" offers_nothing_else info help inf
ok "a setting" offers_nothing_else --piece-bytes= record --piec
ok "a flag of its own" offers --output= record --
ok "a flag of another subcommand" offers_nothing_else --type= dump --t
ok "no flag that help only speaks of" offers_none replay --adv
ok "a pattern to generate" offers_nothing_else ping-pong gen ping
ok "a file to generate into" offers trace.umt gen stream -o tr
ok "a file" offers trace.umt info tr
ok "a program" offers printf record print
# Whichever flag has a value: as the next word it is no program, and behind it a program comes, no file.
for command in run record top; do
    for flag in $("$umrt" $command --help | sed -nE 's/^ +((-[a-zA-Z]), )?(--[a-z-]+)=.*/\2 \3/p'); do
        ok "$command $flag: its value" offers_nothing_else trace.umt $command "$flag" trace.u
        ok "$command $flag VALUE: a program" offers printf $command "$flag" trace.umt print
        ok "$command $flag VALUE: a file as a program" offers trace.umt $command "$flag" trace.umt trace
    done
done
ok "a value behind =" offers_nothing_else trace.umt run --profile = trace.u
ok "nothing yet behind =" offers trace.umt run --profile =
ok "a program behind =" offers printf run --profile = trace.umt print
ok "a program behind a flag without a value" offers printf run --quiet print
ok "a program behind --" offers printf run --profile trace.umt -- print
ok "a program after the flags" offers printf record -o t.umt --quiet print
finish
