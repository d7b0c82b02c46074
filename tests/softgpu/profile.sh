#!/usr/bin/env bash
# What one run has learned the next one begins with: on the software GPU, from the command line.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
export UMRT_ADVISORS=first_touch,ahead,readback UMRT_GUARD_PER_MILLE=0
unhurried

# hinted N OPTION...: a run of N rounds with a trace.
hinted() {
    local rounds=$1
    shift
    rm -f t.umt
    "$umrt" run -t t.umt "$@" -- "$programs/back_and_forth" 8 "$rounds" >now 2>said
}
at_the_first_wait() { # of the run in t.umt: a readback for the wait before the second launch, whenever it was done
    "$umrt" dump -t launch,sync,hint t.umt | awk '
        function value(key,   i) {
            for (i = 1; i <= NF; i++)
                if (index($i, key "=") == 1)
                    return substr($i, length(key) + 2)
        }
        $2 == "launch" { launches++ }
        $2 == "sync" && launches == 1 { first = value("sync") }
        /who="readback"/ && value("correlation") == first { found = 1 }
        END { exit !found }'
}
field() { "$umrt" profile show --json "$1" | python3 -c "import json, sys; d = json.load(sys.stdin); print($2)"; }
runs() { field "$1.ump" 'd["runs"]'; }
says_line() { grep -qE -- "$1" said || { cat said; return 1; }; }
not() { ! "$@"; }
silent() { ! grep -v 'prefetched' said; }

"$programs/back_and_forth" 8 6 >alone
hinted 6
ok "without a profile the first waits are not known" not at_the_first_wait
ok "a run with a profile that is not there yet" hinted 6 --profile a.ump
ok "prints what the program prints" cmp alone now
ok "makes the file" test -s a.ump
ok "and says nothing of it" silent
ok "begins like one without" not at_the_first_wait
ok "what it learned can be shown" gives 0 "$umrt" profile show a.ump
ok "with its GPU" prints '^on Software GPU$'
ok "and who learned it" prints '^  readback +read '
ok "as JSON, too" [ "$(field a.ump 'd["schema"], d["schema_version"], d["runs"], next(f for f in d["facts"] if f["who"] == "readback")["values"]["period"]')" = "umrt-profile 1 1 1" ]
ok "the second run" hinted 6 --profile a.ump
ok "hints from the first wait on" at_the_first_wait
ok "prints the same" cmp alone now
ok "its trace says what it was told" grep -q ' learned who="readback"' <("$umrt" dump -t learned t.umt)
ok "the profile may come from the environment" env UMRT_PROFILE="$tmp/a.ump" "$umrt" run -t e.umt -- "$programs/back_and_forth" 8 6
ok "and is used as well" grep -q 'who="readback"' <("$umrt" dump -t hint e.umt)

# Ranks share one file.
rm -f many.ump
for i in 1 2 3 4; do
    "$umrt" run --profile many.ump -- "$programs/back_and_forth" 8 24 >many.$i 2>&1 &
done
wait
ok "four at once leave one profile" [ "$(field many.ump 'len(d["facts"]) >= 1')" = True ]
ok "in which more than one counts" [ "$(field many.ump 'next(f for f in d["facts"] if f["who"] == "readback")["count"] >= 8')" = True ] # one alone: 6

# A program that dies keeps what there was.
cp a.ump before.ump
"$umrt" run -q --profile a.ump -- "$programs/life" kill >/dev/null 2>&1
ok "a killed program leaves the profile as it was" cmp a.ump before.ump

# Another GPU model.
export SOFTGPU_MEMORY=2G
ok "another GPU" hinted 6 --profile a.ump
ok "is not hinted at once by what this one taught" not at_the_first_wait
ok "prints the same" cmp alone now
unset SOFTGPU_MEMORY
ok "both are in the profile" [ "$(field a.ump 'len(d["gpus"])')" = 2 ]

# Files that are not what they should be.
head -c 300 before.ump >cut.ump
ok "a profile cut short" hinted 6 --profile cut.ump
ok "is told in one line" says_line '^umrt: the profile is not used: .*cut.ump'
ok "and does not matter" cmp alone now
size=$(stat -c %s before.ump)
for at in 100 $((size / 2)) $((size - 60)); do
    cp before.ump damaged.ump
    printf 'x' | dd of=damaged.ump bs=1 seek="$at" conv=notrunc 2>/dev/null
    ok "a profile damaged at $at" hinted 6 --profile damaged.ump
    ok "does not matter" cmp alone now
done
echo 'int main(void) { return 0; }' >main.c
cp main.c same.c
: >empty.ump
ok "an empty profile" hinted 6 --profile empty.ump
ok "is told in one line" says_line '^umrt: the profile is not used: .*empty.ump: is empty; it is made anew'
ok "and made anew" gives 0 "$umrt" profile show empty.ump
ok "what is no profile" hinted 6 --profile main.c
ok "is told in one line" says_line '^umrt: the profile is not used: .*main.c'
ok "and is not touched" cmp main.c same.c
ok "nor locked" [ ! -e main.c.lock ]
ok "a trace is no profile" hinted 6 --profile e.umt
ok "and stays one" grep -q ' launch ' <("$umrt" dump e.umt)
ok "a directory that is not there is 1" gives 1 "$umrt" run --profile no/where/a.ump -- true
ok "which is said" says '^umrt: .*no/where: No such file or directory$'

# The command.
ok "merge" gives 0 "$umrt" profile merge -o all.ump a.ump before.ump many.ump
ok "adds up runs" [ "$(field all.ump 'd["runs"]')" = "$(($(runs a) + $(runs before) + $(runs many)))" ]
ok "in any order" gives 0 "$umrt" profile merge -o other.ump many.ump before.ump a.ump
ok "to the same" gives 0 "$umrt" profile diff all.ump other.ump
ok "says diff" prints '^0 gone, 0 added, 0 with other values$'
"$umrt" profile merge -o none.ump many.ump 2>/dev/null
ok "diff as JSON" gives 0 "$umrt" profile diff --json none.ump all.ump
ok "with its schema" prints '"schema": "umrt-profile-diff"'
ok "merge does not overwrite what is no profile" gives 2 "$umrt" profile merge -o main.c a.ump
ok "which stays" cmp main.c same.c
for wrong in "show" "show a.ump b.ump" "diff a.ump" "merge a.ump" "merge -o x.ump" "burn a.ump" ""; do
    # shellcheck disable=SC2086 # words
    ok "profile $wrong: 2" gives 2 "$umrt" profile $wrong
    ok "in one line" one_line
done
ok "show of a trace is 2" gives 2 "$umrt" profile show e.umt
ok "with the reason" says 'a trace, not a profile'
ok "a profile is a trace file" gives 0 "$umrt" info a.ump

# What was done and why.
export UMRT_GUARD_PER_MILLE=10
ok "a report" hinted 12 --mode trial --report r.json --profile a.ump
ok "is JSON" [ "$(python3 -c "import json; d = json.load(open('r.json')); print(d['schema'], d['mode'])")" = "umrt-run trial" ]
ok "counts what each advisor did" [ "$(python3 -c "import json; d = json.load(open('r.json'));
print(sum(a['pieces_applied'] for a in d['advisors']) == d['hints']['applied'] > 0)")" = True ]
ok "says what was withheld" [ "$(python3 -c "import json; d = json.load(open('r.json')); print(d['guard']['withheld'] > 1)")" = True ]
ok "and what the line said" grep -qF "$(sed -n 's/^umrt: //p' said)" r.json
ok "it is replaced by the next" hinted 6 --report r.json
ok "of which it tells" grep -q '"mode": "hint"' r.json
ok "a report as text" hinted 6 --report r.txt
ok "begins with the line at exit" [ "$(head -1 r.txt)" = "umrt run: $(sed -n 's/^umrt: //p' said)" ]
ok "has the advisors" grep -q '^  ahead  *proposed' r.txt
ok "a file that is no report is 2" gives 2 "$umrt" run --report main.c -- true
ok "and stays" cmp main.c same.c
for off in off 0 false no; do
    UMRT_MODE=$off CUDA_INJECTION64_PATH="$UM_BUILDDIR/.libs/libumrt.so" \
        "$programs/back_and_forth" 8 6 >now 2>said
    ok "UMRT_MODE=$off: the program alone, nothing said" cmp alone now
    ok "UMRT_MODE=$off: really" [ ! -s said ]
done

# Trial.
ok "trial" "$umrt" run --mode trial -- "$programs/back_and_forth" 8 6
finish
