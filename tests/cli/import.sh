#!/usr/bin/env bash
# umrt import: what the .umt holds against what awk takes from the log, and what it leaves behind.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

data=$UM_SRCDIR/tests/data/import
logs=$UM_SRCDIR/../shared/data/nvprof

# ---- the real logs, all the way through the file ---------------------------------------------------

events() { "$umrt" dump -t "$1" "$umt" | grep -vc '^#'; }
# Sum of FIELD over the events of TYPE whose line matches PATTERN.
sum() {
    "$umrt" dump -t "$1" "$umt" | grep -- "$3" |
        awk -v field="$2" '{ for (i = 1; i <= NF; i++) if (split($i, p, "=") == 2 && p[1] == field)
            t += p[2] } END { printf "%.0f\n", t }'
}
# Bytes of the rows of one direction in the log.
moved() {
    awk -v way="$1" '$0 ~ "Unified Memory Memcpy " way { for (i = 2; i <= NF; i++) if ($i ~ /^0x/) {
        v = $(i - 1) + 0
        if ($(i - 1) ~ /KB$/) v *= 1024; else if ($(i - 1) ~ /MB$/) v *= 1048576
        t += v } } END { printf "%.0f\n", t }' "$log"
}
same() { [ "$1" = "$2" ] || { echo "$3: the trace has $1, the log $2"; return 1; }; }
imports() { gives 0 "$umrt" import "$log" -o "$umt" && prints "^next: umrt report $umt\$"; }
rows() {
    same "$(events migrate)" "$(grep -c 'Unified Memory Memcpy' "$log")" migrations &&
        same "$(events gpu_fault)" "$(grep -c 'GPU page faults' "$log")" 'GPU faults' &&
        same "$(events cpu_fault)" "$(grep -c 'CPU page faults' "$log")" 'CPU faults' &&
        same "$(events thrash)" "$(grep -c 'page thrash' "$log")" thrash &&
        same "$(events throttle)" "$(grep -c 'page throttle' "$log")" throttle &&
        same "$(events kernel_exec)" "$(grep -c ') \[[0-9]*\]$' "$log")" kernels &&
        same "$(events copy)" "$(grep -c 'CUDA memcpy' "$log")" copies &&
        same "$(events region_alloc)" "$(grep -c 'in api range' "$log")" arrays
}
bytes() {
    same "$(sum migrate bytes ' src=host ')" "$(moved HtoD)" 'to the device' &&
        same "$(sum migrate bytes ' dst=host ')" "$(moved DtoH)" 'to the host'
}
for name in v100-hotspot-512 v100-gaussian-96 v100-bfs-65536 v100-power9-hotspot-256; do
    log=$logs/$name.log umt=$name.umt
    if [ ! -r "$log" ]; then
        skip "$name" "no ../shared/data/nvprof here"
        continue
    fi
    ok "$name: imports" imports
    ok "$name: every row kind has as many events as the log has rows" rows
    ok "$name: bytes in each direction are the log's" bytes
done

# ---- the command -----------------------------------------------------------------------------------

beside() {
    mkdir -p in.d && cp "$data/every-row.log" in.d/x.log
    gives 0 "$umrt" import in.d/x.log && prints '^next: umrt report in\.d/x\.umt$' &&
        gives 0 "$umrt" dump in.d/x.umt
}
ok 'without -o the trace is beside the log, with the extension .umt' beside

absent() {
    gives 0 "$umrt" import "$data/$1" -o a.umt && prints "$2" && [ ! -s "$err" ]
}
ok 'says which rows it could not use' absent every-row.log 'lost: 1 .*kind that is not known'
ok 'says that there was no tracing, or nothing' absent no-unified-columns.log 'off or no records \('
ok 'says that tracing was not supported' absent unsupported.log 'unsupported \(nvprof says: '
ok 'says what other processes had' absent two-processes.log 'left out: 3 rows of process 14'

process() {
    gives 0 "$umrt" import -p 14 -o p.umt "$data/two-processes.log" && prints '3 kernel runs' &&
        prints 'left out: 2 rows of process 15' &&
        gives 2 "$umrt" import -p 99 -o none.umt "$data/two-processes.log" && one_line &&
        says 'no records of process 99' && [ ! -e none.umt ] &&
        gives 2 "$umrt" import -p -1 "$data/two-processes.log" && one_line
}
ok '-p chooses the process' process

keeps_old() {
    echo precious >old.umt
    gives 2 "$umrt" import -o old.umt "$data/summary.log" && one_line &&
        [ "$(cat old.umt)" = precious ] && [ "$(echo ./*.part)" = './*.part' ]
}
ok 'a failed import leaves an older trace as it was, and nothing else' keeps_old

cut_short() {
    head -c 2500 "$data/every-row.log" >cut.log
    gives 2 "$umrt" import cut.log && one_line && says 'cut\.log: offset [0-9]+: cut off' &&
        prints 'lost: 1 ' && gives 0 "$umrt" dump cut.umt
}
ok 'a log that is cut off gives what it has, one line and status 2' cut_short

cut_before_the_table() {
    head -c 150 "$data/every-row.log" >before.log
    gives 2 "$umrt" import before.log && one_line && says 'before\.log: ends before' && [ ! -e before.umt ]
}
ok 'one that is cut off before its first row gives one line and no file' cut_before_the_table

itself() {
    cp "$data/every-row.log" self.log
    gives 2 "$umrt" import self.log -o ./self.log && one_line && cmp -s "$data/every-row.log" self.log
}
ok 'it does not overwrite what it reads' itself

itself_by_default() {
    cp "$data/every-row.log" self.umt
    gives 2 "$umrt" import self.umt && one_line && says 'would overwrite what it reads' &&
        cmp -s "$data/every-row.log" self.umt && [ "$(echo ./*.part)" = './*.part' ]
}
ok 'nor where its own name is the default output' itself_by_default

no_file() { # KIND: made as "special", it must be that still
    gives 1 "$umrt" import "$data/every-row.log" -o special && one_line && test "-$1" special &&
        [ "$(echo ./*.part)" = './*.part' ]
}
mkfifo special && ok 'a pipe is not replaced by a file' no_file p
rm special && mkdir special && ok 'nor is a directory' no_file d
rmdir special && ln -s /dev/null special && ok 'nor a link to a device' no_file L

no_room() { gives 1 "$umrt" import "$data/every-row.log" -o no/such/folder/x.umt && one_line; }
ok 'an output that cannot be made is one line and status 1' no_room
ok 'no file is a usage error' gives 2 "$umrt" import
ok 'two files are a usage error' gives 2 "$umrt" import a b
ok 'help is printed' gives 0 "$umrt" import --help
finish
