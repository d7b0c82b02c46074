#!/usr/bin/env bash
# umrt gen.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

same() { cmp "$1" "$2"; }
differ() { ! cmp -s "$1" "$2"; }
gone() { [ -z "$(find . -name '*.part')" ]; }

ok "--list: 0" gives 0 "$umrt" gen --list
ok "--list: patterns with what they do" prints '^ping-pong +CPU and GPU '
ok "--list: defaults" prints '--size=1G --iterations=10 --compute=1\)$'
"$umrt" gen --list | awk '/^[a-z]/ { print $1 }' >patterns
ok "fourteen patterns and more" test "$(wc -l <patterns)" -ge 14

while read -r pattern; do
    ok "$pattern: 0" gives 0 "$umrt" gen "$pattern" -s 16M -n 2 -o "$pattern.umt"
    ok "$pattern: twice the same file" gives 0 "$umrt" gen "$pattern" -s 16M -n 2 -o again.umt
    ok "$pattern: to the byte" same "$pattern.umt" again.umt
    ok "$pattern: whole" gives 0 "$umrt" info "$pattern.umt"
    ok "$pattern: accesses in it" prints '^  access +[0-9]'
    ok "$pattern: a report" gives 0 "$umrt" report "$pattern.umt"
    ok "$pattern: that claims no fault" prints 'recording +none: a made-up program'
    ok "$pattern: and names the next thing to do" prints "^Next: umrt replay $pattern.umt"
done <patterns

ok "another seed" gives 0 "$umrt" gen gather -s 16M -n 2 --seed 5 -o again.umt
ok "another file" differ gather.umt again.umt
"$umrt" gen stream -s 16M -n 2 -o drawn-1.umt >/dev/null
ok "a seed where nothing is drawn by lot" gives 0 "$umrt" gen stream -s 16M -n 2 --seed 5 -o drawn-2.umt
ok "changes nothing" cmp drawn-1.umt drawn-2.umt
echo 'a letter' >letter.txt
cp letter.txt kept.txt
ok "what is no trace is not written over: 2" gives 2 "$umrt" gen stream -s 16M -n 2 -o letter.txt
ok "says so" says 'letter\.txt is not a trace; it is not overwritten'
# A profile has the format of a trace, and is none.
"$bin/sample" none.ump profile
profile() { gives 0 "$umrt" profile merge -o known.ump none.ump && [ -s known.ump ] && cp known.ump kept.ump; }
ok "a profile" profile
over_profile() {
    gives 2 "$umrt" gen stream -s 4M -o known.ump && says 'known\.ump is not a trace; it is not overwritten' && cmp known.ump kept.ump
}
ok "a profile is not overwritten by a trace" over_profile
over_trace() {
    gives 0 "$umrt" gen stream -s 4M -o over.umt && cp over.umt kept.umt &&
        gives 2 "$umrt" profile merge -o over.umt none.ump && says 'over\.umt is not a profile; it is not overwritten' && cmp over.umt kept.umt
}
ok "nor a trace by a profile" over_trace
ok "and is as it was" cmp letter.txt kept.txt
"$umrt" gen halo -s 16M --gpus 4 -o halo4.umt >/dev/null
ok "several GPUs" gives 0 "$umrt" info halo4.umt
ok "are all there" prints '^GPU 3$'
ok "what made it is in it" prints 'umrt gen halo --size=16777216 --iterations=20 --compute=1 --gpus=4'

refused() { # NAME PATTERN ARGUMENT...
    local name=$1 line=$2
    shift 2
    ok "$name: 2" gives 2 "$umrt" gen "$@"
    ok "$name: says why" says "$line"
    ok "$name: in one line" one_line
}
refused "no pattern" 'no pattern given'
refused "no output" '-o FILE.umt is missing' stream
refused "two patterns" 'one pattern at a time' stream pool -o x.umt
refused "an unknown one" "did you mean 'stream'\\? see 'umrt gen --help'\$" streams -o x.umt
refused "one of the wrong case" "did you mean 'ping-pong'\\?" PING_PONG -o x.umt
refused "the beginning of one" "did you mean 'partial-update'\\?" partial -o x.umt
refused "one that is like none" "there is no pattern 'xyzzy'; umrt gen --list has them" xyzzy -o x.umt
refused "no size" "'much' is no size" stream -s much -o x.umt
refused "too small a size" 'stream takes 1 MiB to 64 TiB' stream -s 4k -o x.umt
refused "GPUs that mean nothing" 'stream runs on one GPU' stream -g 2 -o x.umt
refused "too many GPUs" 'at most 8 GPUs' halo -g 9 -o x.umt
refused "no factor" "'-1' is no factor" stream -c -1 -o x.umt
ok "nowhere to write: 1" gives 1 "$umrt" gen stream -o /nowhere/x.umt
ok "nowhere to write: says so" says '/nowhere/x.umt: No such file'
ok "a directory: 2" gives 2 "$umrt" gen stream -o .
ok "a directory: says so" says 'is not a trace; it is not overwritten'
ok "nothing half written is left" gone
finish
