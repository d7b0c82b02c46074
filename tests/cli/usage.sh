#!/usr/bin/env bash
# The command line of umrt itself.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

commands=$("$umrt" help | awk '/^  [a-z]/ { print $1 }')

each_has_a_manual_entry() {
    local c
    for c in $commands; do
        grep -q "^\.It Cm $c" "$UM_SRCDIR/tools/umrt.1" || { echo "no entry for $c"; return 1; }
    done
}

version_is_configured() {
    prints "^umrt $(sed -n 's/^VERSION = //p' "$UM_BUILDDIR/Makefile" | sed 's/\./\\./g')\$"
}

full_disk() { # a result that cannot be written is a failure, said in one line
    "$umrt" info --config >/dev/full 2>"$err"
    [ $? = 1 ] && says '^umrt: standard output: No space left on device$'
}

ok "without arguments: usage on stderr, 2" gives 2 "$umrt"
ok "and nothing on stdout" [ ! -s "$out" ]
for option in help --help -h; do
    ok "$option: the subcommands, 0" gives 0 "$umrt" $option
    ok "$option: on stdout" prints '^  record '
done
for option in version --version -V; do
    ok "$option: 0" gives 0 "$umrt" $option
    ok "$option: the configured version" version_is_configured
done
for c in $commands; do
    ok "$c --help: 0" gives 0 "$umrt" "$c" --help
    ok "$c --help: usage on stdout" prints '^usage: umrt '
    ok "$c --help: nothing on stderr" [ ! -s "$err" ]
    ok "help $c: 0" gives 0 "$umrt" help "$c"
    case $c in help | version) continue ;; esac
    ok "$c: a misspelt option is 2" gives 2 "$umrt" "$c" --Helpp
    ok "$c: the nearest is named" says "unknown option --Helpp, did you mean --help\\? see 'umrt $c --help'\$"
done
for c in run record info dump; do
    ok "$c: an unknown option is 2" gives 2 "$umrt" "$c" --no-such-option x
    ok "$c: with one line that names it" one_line
    ok "$c: and where to look" says "^umrt: $c: unknown option --no-such-option.*; see 'umrt $c --help'\$"
    ok "$c: a value too many is 2" gives 2 "$umrt" "$c" --help=me x
    ok "$c: and said to be" says "option --help takes no value"
    ok "$c: an unknown letter is 2" gives 2 "$umrt" "$c" -Z x
    ok "$c: which is named" says "unknown option -Z"
done
ok "an event type that there is not is 2" gives 2 "$umrt" dump -t gpu_fualt x
ok "and the nearest is named" says "there is no event type 'gpu_fualt', did you mean 'gpu_fault'\\?"
ok "every subcommand is in the manual" each_has_a_manual_entry
ok "an unknown subcommand is 2" gives 2 "$umrt" rceord
ok "the nearest one is suggested" says "^umrt: there is no subcommand 'rceord'; did you mean 'record'\\?$"
ok "an unknown subcommand like none is 2" gives 2 "$umrt" xyzzyplugh
ok "without a guess" says "^umrt: there is no subcommand 'xyzzyplugh'; see 'umrt help'$"
ok "help for an unknown subcommand is 2" gives 2 "$umrt" help rceord
ok "dump without a file is 2" gives 2 "$umrt" dump
ok "dump with two files is 2" gives 2 "$umrt" dump a b
ok "dump with an unknown type is 2" gives 2 "$umrt" dump -t fault a
ok "info --config with a file is 2" gives 2 "$umrt" info --config a
ok "a full disk is 1" full_disk
finish
