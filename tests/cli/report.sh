#!/usr/bin/env bash
# The report command: what it takes, what it prints where, and that it prints the same twice.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

"$bin/sample" good.umt
cp good.umt again.umt
"$bin/sample" killed.umt unfinished 2>/dev/null || true
logs=$UM_SRCDIR/../shared/data/nvprof

json() { python3 -c "import json, sys; r = json.load(open('$out')); assert $1, $1"; }
same() { # OPTIONS... FILE
    "$umrt" report "$@" >first && "$umrt" report "$@" >second && cmp first second && [ -s first ]
}
reported() { gives 0 "$umrt" report "$@" && [ ! -s "$err" ]; }
wide() { # N: no line is longer
    awk -v n="$1" 'length($0) > n { print "too long: " $0; bad = 1 } END { exit bad }' "$out"
}
ascii_only() { ! LC_ALL=C grep -n '[^ -~]' "$out"; }

text() { reported good.umt && prints '^umrt report: good.umt$' && prints 'grid' && prints '^Next: umrt '; }
sums() { # of sample.c: 1 GiB and 32 KiB to the GPU, 1 GiB back
    reported --json good.umt && json 'r["schema"] == "umrt.report/1"' &&
        json 'sum(m["bytes"] for m in r["migrations"] if m["direction"] == "GPU to CPU") == 1 << 30' &&
        json 'r["traces"][0]["host"] == "sample"'
}
ok "text names file, region and the next command" text
ok "JSON has the bytes of both ways" sums
ok "text is the same twice" same good.umt
ok "JSON is the same twice" same --json good.umt
ok "two files are the same twice" same good.umt again.umt

piped() { reported good.umt && wide 100 && ascii_only; }
narrow() { reported --width 80 good.umt && wide 80; }
ok "piped text has 100 columns, no colours and no block characters" piped
ok "--width 80 keeps to 80 columns" narrow
colored() { reported --color always good.umt && grep -q "$(printf '\033')\[1m" "$out"; }
plain() { reported --color always --json good.umt && ! grep -q "$(printf '\033')" "$out"; }
utf8() { reported --utf8 good.umt && grep -q '▀\|▄\|█\|▝\|▗\|▞' "$out"; }
ok "--color always colours text" colored
ok "--color always leaves JSON alone" plain
ok "--utf8 draws with blocks" utf8

killed() {
    gives 2 "$umrt" report killed.umt && one_line && says 'killed.umt: .*not closed' &&
        prints '^  note .*not closed' && prints 'grid'
}
ok "a killed program's trace: all whole blocks, a note, one line and status 2" killed

merged() {
    reported --json good.umt again.umt && json 'len(r["traces"]) == 2' &&
        json 'sum(m["bytes"] for m in r["migrations"] if m["direction"] == "GPU to CPU") == 2 << 30' &&
        json '[g["regions"] for g in r["regions"] if g["name"] == "grid"] == [2]'
}
ok "several files are added up, and regions of one label are one row" merged

damaged() {
    head -c $(($(stat -c %s good.umt) - 40)) good.umt >cut.umt
    gives 2 "$umrt" report cut.umt && one_line && says '^umrt: .*cut\.umt: offset [0-9]+: ' &&
        prints '^  note  .*cut.umt' && prints '^Next: '
}
ok "a damaged trace: what is whole, a note, one line and status 2" damaged
one_bad() { gives 2 "$umrt" report good.umt missing.umt && one_line && [ ! -s "$out" ]; }
ok "one unreadable file among good ones: one line, no half report" one_bad

for bad in '--top 0' '--top x' '--width 59' '--width 401' '--color sometimes' '--nonsense' '--top' ''; do
    # shellcheck disable=SC2086 # words are wanted
    refuses() { gives 2 "$umrt" report $bad ${1+"$1"} && one_line && says '^umrt: report: '; }
    if [ -n "$bad" ] && [ "$bad" != --top ]; then
        ok "refuses $bad" refuses good.umt
    else
        ok "refuses '$bad' alone" refuses
    fi
done
# ---- the bundled traces -------------------------------------------------------------------------------

h200=$UM_SRCDIR/tests/data/h200
# finds TRACE KIND...: these findings in this order, and no others.
finds() {
    local trace=$1
    shift
    reported --what-if 0 --json "$h200/$trace.umt" && json '" ".join(f["kind"] for f in r["findings"]) == "'"$*"'"' &&
        json 'all(f["win_ns"] > 0 for f in r["findings"])'
}
ok "alternate: ping-pong" finds alternate ping-pong
ok "churn: churn before what it causes, and the result that goes to and fro" \
    finds churn allocation-churn never-on-cpu ping-pong
ok "first-touch: a storm, and the CPU's look at the result" finds first-touch first-touch host-read-tail
ok "gather: sparse, and two small buffers in one page" finds gather sparse-faulting ping-pong false-sharing
replayed() {
    reported --json "$h200/gather.umt" && json 'r["findings"][0]["kind"] == "sparse-faulting"' &&
        json '0 < r["findings"][0]["predicted_error_ns"] < r["findings"][0]["predicted_ns"] < r["totals"]["span_ns"]' &&
        json '[f["worth_it"] for f in r["findings"]] == [True, False, False]'
}
ok "gather: replayed, one of them is worth it" replayed
ok "stencil: both arrays at first, then a page of each every step" \
    finds stencil first-touch demand-faulting ping-pong ping-pong
ok "streams: ping-pong" finds streams ping-pong
ok "table: what the CPU changes, the result, the rest of the table, and the CPU's look at it" \
    finds table ping-pong first-touch demand-faulting ping-pong
# Time and bytes by direction, added up from the events themselves. Fault records overlap a little.
agrees() {
    local trace bytes stall
    cd "$h200" || return 1 # for short names in the first line
    for trace in *.umt; do
        reported --json "$trace" || return 1
        bytes=$("$umrt" dump -t migrate "$trace" | awk '{ match($0, / bytes=[0-9]+/)
            total += substr($0, RSTART + 7, RLENGTH - 7) } END { printf "%.0f", total }')
        stall=$("$umrt" dump -t gpu_fault "$trace" | awk '/ gpu_fault / { match($0, /duration_ns=[0-9]+/)
            end = $1 + substr($0, RSTART + 12, RLENGTH - 12)
            if (end > last) { total += end - ($1 > last ? $1 : last); last = end } }
            END { printf "%.0f", total }')
        json "sum(m['bytes'] for m in r['migrations']) == $bytes" &&
            json "sum(k['gpu_fault_ns'] for k in r['kernels']) == $stall" &&
            json "sum(g['gpu_fault_ns'] for g in r['regions']) == $stall" || return 1
        reported --width 80 "$trace" && wide 80 && reported --width 60 "$trace" && wide 60 || return 1
    done
}
ok "the totals of each are those of its events, and its text keeps to 80 and to 60 columns" agrees
elsewhere() {
    local trace
    for trace in "$h200"/*.umt; do
        "$umrt" report "$trace" >first &&
            TZ=Asia/Tokyo LC_ALL=C.UTF-8 TERM=dumb COLUMNS=61 "$umrt" report "$trace" | cmp - first || return 1
    done
}
ok "locale, time zone and terminal change nothing in a file" elsewhere

full() { gives 1 sh -c "'$umrt' report good.umt >/dev/full" && one_line; }
if [ -c /dev/full ]; then
    ok "a full disk is said and gives status 1" full
fi

if [ -r "$logs/v100-hotspot-512.log" ]; then
    foreign() { reported "$logs/v100-hotspot-512.log" && prints 'CPU-GPU ping-pong, with thrashing and throttling'; }
    ok "a log of nvprof is imported on the way" foreign
    imported() {
        "$umrt" import -o log.umt "$logs/v100-hotspot-512.log" >/dev/null 2>&1
        "$umrt" report --json log.umt | grep -v '"path"\|"next"' >first
        "$umrt" report --json "$logs/v100-hotspot-512.log" | grep -v '"path"\|"next"' >second
        diff first second
    }
    ok "and its report is that of the imported trace" imported
else
    skip "a log of nvprof is imported on the way" "shared data is absent"
    skip "and its report is that of the imported trace" "shared data is absent"
fi
finish
