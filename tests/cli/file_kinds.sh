#!/usr/bin/env bash
# A profile for a trace, a trace for a profile, a trace of umrt run where faults are wanted, a damaged one: each
# command says in one line what the file is and what to do; none gives a result of nothing.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

# refuses PATTERN COMMAND...: 2, one line, no result.
refuses() {
    local pattern=$1
    shift
    gives 2 timeout 300 "$@" && one_line && says "$pattern" && nothing_printed
}
nothing_written() { [ ! -e x.umt ] && [ ! -e x.db ] && [ ! -e x.html ]; }
nothing_printed() { [ ! -s "$out" ] || { echo "printed:"; head -3 "$out"; return 1; }; }

"$bin/sample" good.umt
"$bin/sample" blind.umt blind
"$bin/sample" a.ump profile
: >empty.ump
echo 'a letter' >letter.txt

profile='a\.ump: is a profile, not a trace; read it with: umrt profile show a\.ump$'
for command in report "report --json" "report --perfetto" "report --csv um_sum" "report --html x.html" \
    "report --patch" replay "replay --open" dump "export --sqlite x.db" "import -o x.umt" "diff good.umt"; do
    # shellcheck disable=SC2086 # words
    ok "$command of a profile" refuses "^umrt: ([a-z]+: )?$profile" "$umrt" $command a.ump
done
ok "and nothing is written" nothing_written
ok "the facts of a profile" gives 0 "$umrt" info a.ump

for command in show "diff a.ump" "merge -o x.ump"; do
    # shellcheck disable=SC2086 # words
    {
        ok "profile $command of a trace" \
            refuses '^umrt: good\.umt: is a trace, not a profile; read it with: umrt report good\.umt$' \
            "$umrt" profile $command good.umt
        ok "profile $command of an empty file" refuses '^umrt: empty\.ump: offset 0: file is empty, not a profile$' \
            "$umrt" profile $command empty.ump
        ok "profile $command of a text" refuses '^umrt: letter\.txt: offset 0: not a profile$' \
            "$umrt" profile $command letter.txt
    }
done
for log in "$UM_SRCDIR"/tests/data/import/*.log; do break; done
ok "profile show of a profiler's log" refuses 'is of nvprof text, not a profile$' "$umrt" profile show "$log"
ok "profile show of a profile" gives 0 "$umrt" profile show a.ump

for command in "record -o" "run -t"; do
    # shellcheck disable=SC2086 # words
    ok "$command does not overwrite a profile" refuses 'a\.ump is not a trace; it is not overwritten$' \
        "$umrt" $command a.ump true
done
ok "gen does not overwrite a profile" \
    refuses 'a\.ump is not a trace; it is not overwritten$' "$umrt" gen stream -o a.ump
ok "which is as it was" gives 0 "$umrt" profile show a.ump

ok "replay of a trace without faults and migrations, with what makes one" \
    refuses "^umrt: blind\\.umt: has no faults and no migrations, .*'umrt record'" "$umrt" replay blind.umt
ok "also among others" refuses "^umrt: blind\\.umt: has no faults" "$umrt" replay good.umt blind.umt
ok "what advisors say to it needs none" gives 0 "$umrt" replay --open blind.umt
ok "report says that they were not recorded" gives 0 "$umrt" report blind.umt
ok "not that there were none" prints 'recording +off: faults and migrations were not recorded'
ok "and it is a finding" prints '^1\. Faults or migrations were not recorded'

# The reader's own line, whoever asks.
size=$(stat -c %s good.umt)
head -c $((size / 2)) good.umt >cut.umt
{ head -c $((size / 3)) good.umt; printf 'damaged!'; tail -c "+$((size / 3 + 9))" good.umt; } >flipped.umt
for file in cut.umt flipped.umt; do
    gives 2 "$umrt" dump "$file" && one_line
    line=$(cat "$err")
    ok "dump tells the damage of $file" says "^umrt: $file: offset [0-9]+: "
    for command in info report "report --json" "report --perfetto" replay "replay --json" "replay --open" \
        "replay --open --json" "export --sqlite x.db"; do
        # shellcheck disable=SC2086 # words
        ok "$command the same of $file" gives 2 timeout 300 "$umrt" $command $file
        ok "$command: in one line" [ "$(cat "$err")" = "$line" ]
    done
done
finish
