#!/usr/bin/env bash
# umrt report --perfetto: a file that Perfetto reads, with all that happened in tracks that have names.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

"$bin/sample" good.umt
"$bin/sample" killed.umt unfinished 2>/dev/null || true
h200=$UM_SRCDIR/tests/data/h200
mapfile -t traces < <(ls "$h200"/*.umt "$UM_SRCDIR"/../shared/data/nvprof/*.log 2>/dev/null)
check() { python3 "$UM_SRCDIR/tests/cli/check_perfetto.py" "$@"; }
written() { gives 0 "$umrt" report --perfetto "$@" && [ ! -s "$err" ] && check "$out"; }

each() {
    local trace
    for trace in "${traces[@]}" good.umt; do
        echo "$trace"
        written "$trace" || return 1
    done
    [ "${#traces[@]}" -ge 7 ]
}
ok "every trace becomes a file that keeps the rules of the format" each

# Numbers and sums of each kind against the events.
complete() {
    local trace
    for trace in "$h200"/*.umt; do
        written "$trace" && "$umrt" dump "$trace" >events && python3 - "$out" <<'PY' || return 1
import json, re, sys
from collections import Counter
events = json.load(open(sys.argv[1]))["traceEvents"]
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
track = lambda e: re.sub(r" \(\d+\)$", "", names.get((e["pid"], e["tid"]), ""))
rows = [line.split(" ", 2) for line in open("events") if not line.startswith("#")]
count = Counter(row[1].strip() for row in rows)
number = lambda row, key: int(re.search(rf"\b{key}=(\d+)", row[2])[1])
of = lambda kind: [row for row in rows if row[1].strip() == kind]
shown = [e for e in events if e["ph"] in "Xi"]
assert sum(e["name"] == "GPU fault" for e in shown) == count["gpu_fault"] > 0
assert sum(e["name"] == "CPU fault" for e in shown) == count["cpu_fault"] > 0
assert sum(e["args"]["groups"] for e in shown if e["name"] == "GPU fault") == sum(number(r, "groups") for r in of("gpu_fault"))
assert sum(track(e).startswith("kernels, stream") for e in shown) == count["kernel_exec"] > 0
moves = [e for e in shown if track(e).startswith("moves to the")]
assert sum(e["args"]["bytes"] for e in moves) == sum(number(r, "bytes") for r in of("migrate"))
assert sum("to the CPU" in track(e) for e in moves) == sum(" dst=host" in r[2] for r in of("migrate"))
took = sum(round(e["dur"] * 1000) for e in moves if e["ph"] == "X")
assert took == sum(number(r, "duration_ns") for r in of("migrate")), took
assert sum(e["ph"] == "b" and e.get("cat") == "region" for e in events) == count["region_alloc"] > 0
PY
    done
}
ok "with every fault, move, kernel and region that is in it" complete
known() { # sample.c: all of 1 GiB goes there and comes back; 32 KiB belong to no region; one hint, refused
    written good.umt && python3 - "$out" <<'PY'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
resident = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
assert resident[0] == 2 << 20 and max(resident) > 0 and resident[-1] == 0, resident
names = {e["args"].get("name") for e in events if e["ph"] == "M"}
assert {"ahead", "moves to the GPU", "moves to the CPU", "GPU 0: good.umt", "hints: good.umt", "memory: good.umt"} <= names, names
hint, = [e for e in events if e["name"].startswith("prefetch")]
assert hint["name"] == "prefetch: refused: capacity" and hint["args"]["why"] == "tab?here", hint
assert {e["name"] for e in events if e["ph"] == "b"} == {"grid", "region 2"}
PY
}
ok "a trace whose figures are known has them: counter, hint, regions by label" known
several() {
    cp good.umt again.umt
    written good.umt again.umt && python3 - "$out" <<'PY'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
assert {"GPU 0: good.umt", "GPU 0: again.umt"} <= names, names
PY
}
ok "several traces are side by side" several
same() { "$umrt" report --perfetto "$h200/gather.umt" >first && "$umrt" report --perfetto "$h200/gather.umt" | cmp - first && [ -s first ]; }
ok "it is the same twice" same
killed() { gives 2 "$umrt" report --perfetto -o killed.json killed.umt && one_line && says 'not closed' && check killed.json; }
ok "a killed program's trace: what is whole, one line and status 2" killed
into() {
    gives 0 "$umrt" report --perfetto -o t.json good.umt && check t.json && gives 0 "$umrt" report --perfetto -o t.json good.umt &&
        echo precious >foreign && gives 2 "$umrt" report --perfetto -o foreign good.umt && one_line && [ "$(cat foreign)" = precious ] &&
        [ "$(echo ./*.part)" = './*.part' ]
}
ok "-o writes a file, over its like and nothing else" into
refuses() { gives 2 "$umrt" report --perfetto "$@" && one_line && [ ! -s "$out" ]; }
yes 'this is not a trace' | head -500 >text
ok "one unreadable file among good ones: one line, no half output" refuses good.umt missing.umt
ok "one that is no trace, too" refuses good.umt text
full() { gives 1 sh -c "'$umrt' report --perfetto good.umt >/dev/full" && one_line; }
ok "a full disk is said and gives status 1" full
small() { # a limit on the size of files
    gives 1 bash -c "trap '' XFSZ; ulimit -f 8; '$umrt' report --perfetto -o small.json '$h200/streams.umt'" && one_line &&
        says 'small.json' && [ ! -e small.json ] && [ "$(echo ./*.part)" = './*.part' ]
}
ok "a file that cannot grow is one line and status 1, and no file" small

# Memory does not follow the length of a trace: the same limit for one trace and for forty of them.
bounded() {
    local many=()
    for _ in $(seq 40); do many+=("$h200/streams.umt"); done
    (ulimit -v 100000; "$umrt" report --perfetto "${many[@]}") >big && [ "$(stat -c %s big)" -gt 100000000 ]
}
ok "forty traces take no more memory than one" bounded
finish
