#!/usr/bin/env bash
# umrt record: where the trace goes, and what is said about it.
# shellcheck disable=SC2016 # other shells expand it
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

sees_out() { # WANTED OPTIONS...
    local want=$1
    shift
    try "$umrt" record -q "$@" -- printenv UMRT_OUT
    [ "$(cat "$out")" = "$want" ] || { echo "UMRT_OUT is '$(cat "$out")', wanted '$want'"; cat "$err"; return 1; }
}

# What the library would do: a trace and a note. $1 = end or start, $2 = the file.
cat >app <<'APP'
#!/bin/sh
cd /
"$SAMPLE" "$2" $3
printf '%d\tstart\trecord\t\t%s\n' $$ "$2" >>"$UMRT_SUMMARY_TO"
[ "$1" != end ] || printf '%d\tend\trecord\tdone\t%s\n' $$ "$2" >>"$UMRT_SUMMARY_TO"
APP
chmod +x app
export SAMPLE=$bin/sample

# -- the name
ok "a relative name becomes absolute" sees_out "$tmp/t.umt" -o t.umt
ok "--output is -o" sees_out "$tmp/t.umt" --output=t.umt
ok "an absolute name stays" sees_out "$tmp/x.umt" -o "$tmp/x.umt"
ok "the default has the process id" sees_out "$tmp/umrt-%p.umt"
ok "UMRT_OUT is the default when set" env UMRT_OUT=mine.umt bash -c "$(declare -f sees_out try)
    umrt=$umrt out=$out err=$err tmp=$tmp; sees_out $tmp/mine.umt"
mkdir '50%p'
in_percent() (cd '50%p' && sees_out "$tmp/50%%p/t.umt" -o t.umt)
ok "a percent sign in the directory is no pattern" in_percent
in_rank() (export OMPI_COMM_WORLD_RANK=3 && sees_out "$1" -o "$2")
ok "a rank gets a name of its own" in_rank "$tmp/t.%r.umt" t.umt
ok "unless the name has it" in_rank "$tmp/t-%r.umt" t-%r.umt
mkdir t.d
ok "the extension is the name's, not the directory's" in_rank "$tmp/t.d/x.%r" t.d/x

# -- what is there already
"$SAMPLE" old.umt
ok "an old trace is removed before the start" gives 0 "$umrt" record -q -o old.umt -- test ! -e old.umt
echo precious >notes.txt
ok "a file that is no trace is refused" gives 2 "$umrt" record -o notes.txt -- echo ran
ok "with a line" says '^umrt: .*notes.txt is not a trace; it is not overwritten$'
ok "and kept" grep -q precious notes.txt
ok "and nothing ran" [ ! -s "$out" ]
ok "a directory is refused" gives 2 "$umrt" record -o t.d -- true
ok "a missing directory is refused" gives 1 "$umrt" record -o nowhere/t.umt -- echo ran
ok "by name" says '^umrt: .*/nowhere: No such file or directory$'
ok "an empty name is refused" gives 2 "$umrt" record -o '' -- true

# -- what is said
ok "a recorded program" gives 0 "$umrt" record -o t.umt -- ./app end "$tmp/t.umt"
ok "events, losses and bytes by direction" \
    says '^umrt: t.umt: 1,032 events, 3 lost; 1,024.0 MiB to the GPU, 1,024.0 MiB back$'
ok "each region against its size" says \
    '^umrt:   region 1 grid, 1,024.0 MiB: 1,024.0 MiB to the GPU \(exactly its size\), 1,024.0 MiB back \(exactly its size\)$'
ok "a part of a region, found by address" says '^umrt:   region 2, 64.0 KiB: 32.0 KiB to the GPU \(0.50 times its size\)'
ok "the next command" says '^umrt: next: umrt report t.umt$'
ok "-q says nothing" gives 0 "$umrt" record -q -o t.umt -- ./app end "$tmp/t.umt"
ok "indeed nothing" [ ! -s "$err" ]
ok "a killed program" gives 0 "$umrt" record -o u.umt -- ./app start "$tmp/u.umt" unfinished
ok "keeps its whole blocks, and says so" says '^umrt: u.umt: 1,032 events, 3 lost; .*; not closed \(killed, or left by _exit\)$'
ok "a name with a space is quoted" gives 0 "$umrt" record -o 'a b.umt' -- ./app end "$tmp/a b.umt"
ok "for the shell" says "^umrt: next: umrt report 'a b.umt'\$"
two() { ./app end "$tmp/one.umt"; ./app end "$tmp/two.umt"; }
export -f two
export tmp
ok "two processes" gives 0 "$umrt" record -o t.umt -- bash -c two
ok "two lines" says '^umrt: two.umt: 1,032 events'
ok "one next command" says '^umrt: next: umrt report one.umt two.umt$'
ok "a trace that vanished" gives 0 "$umrt" record -o t.umt -- sh -c \
    'printf "%d\tstart\trecord\t\t/nowhere/x.umt\n" $$ >>"$UMRT_SUMMARY_TO"'
ok "is named" says '^umrt: /nowhere/x.umt: No such file or directory$'
ok "a process that was not recorded" gives 0 "$umrt" record -o t.umt -- sh -c \
    'printf "%d\tstart\tinert\tthe driver said no\t\n" $$ >>"$UMRT_SUMMARY_TO"'
ok "gives its reason" says '^umrt: not recorded: the driver said no$'
ok "exec gives one process two programs" gives 0 "$umrt" record -o t.umt -- sh -c \
    "printf '%d\tstart\trecord\t\t$tmp/one.umt\n' \$\$ >>\"\$UMRT_SUMMARY_TO\"; exec ./app end $tmp/t.umt"
ok "the first is told" says '^umrt: one.umt: '
ok "the second too" says '^umrt: t.umt: '
ok "what is no note is passed over" gives 0 "$umrt" record -o t.umt -- sh -c \
    'echo nonsense >>"$UMRT_SUMMARY_TO"'
ok "as if it were not there" says 'no CUDA calls seen'
ok "no notes are left behind" [ -z "$(ls -A "$TMPDIR")" ]
# -- deep
ok "--deep: 0" gives 0 "$umrt" record --deep -q -o d.umt -- sh -c 'echo "${UMRT_DEEP:-off}"'
ok "--deep: the program's libumrt is told" prints '^1$'
ok "without --deep it is not" gives 0 "$umrt" record -q -o d.umt -- sh -c 'echo "${UMRT_DEEP:-off}"'
ok "without --deep: off" prints '^off$'
finish
