#!/usr/bin/env bash
# What names, labels and command lines hold reaches no terminal raw: no control character but the
# newlines of umrt's own lines, in text and in JSON, on stdout and on stderr.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

evil=$'\e]0;x\a\e[31m\xc2\x9b31m\rb'
log=$evil$'\n.log' umt=$evil$'\n.umt'
sed "s/application: /&$evil/; s/^hello/alloc a$evil\nin api range: 0x7f0000000000 0x7f0000400000/; s/void step/&$evil/" \
    "$UM_SRCDIR/tests/data/import/every-row.log" >"$log"

harmless() { # STATUS COMMAND...
    gives "$@" || return 1
    if LC_ALL=C grep -anP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$out" "$err"; then
        echo "a control character came through"
        return 1
    fi
}

ok "import" harmless 0 "$umrt" import "$log"
traced() { [ "$("$umrt" dump "$umt" | LC_ALL=C grep -acE '^# process.command=.*\\x1b|name=.*\\x1b|label=.*\\x1b')" = 3 ]; }
ok "all three are in the trace" traced
ok "report" harmless 0 "$umrt" report "$umt"
ok "report in JSON" harmless 0 "$umrt" report --json "$umt"
ok "report of two" harmless 0 "$umrt" report "$umt" "$umt"
ok "report of the log" harmless 0 "$umrt" report "$log"
ok "info" harmless 0 "$umrt" info "$umt"
ok "info in JSON" harmless 0 "$umrt" info --json "$umt"
ok "dump" harmless 0 "$umrt" dump "$umt"
for command in report info dump import; do
    ok "$command: a missing file" harmless 2 "$umrt" $command "no$evil"$'\n'
    ok "$command: in one line" one_line
    ok "$command: an unknown option" harmless 2 "$umrt" $command "--$evil"
    ok "$command: in one line, too" one_line
done
ok "an unknown command" harmless 2 "$umrt" "$evil"
for command in run record; do
    ok "$command: no such program" harmless 127 "$umrt" $command -- "no$evil"
done
finish
