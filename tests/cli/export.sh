#!/usr/bin/env bash
# umrt export: there and back again, what queries find, what it leaves alone.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

"$bin/sample" good.umt
"$bin/sample" killed.umt unfinished 2>/dev/null || true
h200=$UM_SRCDIR/tests/data/h200
logs=$UM_SRCDIR/../shared/data/nvprof

report() { "$umrt" report --json --what-if 0 "$1" | grep -v '"path"\|"next"\|"where": "[^ ]*\.\(umt\|sqlite\)"'; }
events() { "$umrt" dump "$1" | grep -v '^#'; }
exported() { gives 0 "$umrt" export --sqlite x.sqlite "$1" && [ ! -s "$out" ] && [ ! -s "$err" ]; }

round_trip() {
    exported "$1" && gives 0 "$umrt" import -o back.umt x.sqlite && report "$1" >first && [ -s first ] &&
        report back.umt | cmp - first && report x.sqlite | cmp - first
}
for trace in "$h200"/*.umt good.umt; do
    ok "${trace##*/}: the report of its export is its own" round_trip "$trace"
    same_events() { events "$trace" >first && events back.umt | cmp - first; }
    ok "${trace##*/}: so is every event" same_events
done
for name in v100-hotspot-512 v100-gaussian-96 v100-bfs-65536 v100-power9-hotspot-256; do
    if [ -r "$logs/$name.log" ]; then
        ok "$name.log: the report of its export is its own" round_trip "$logs/$name.log"
    else
        skip "$name.log: the report of its export is its own" "shared data is absent"
    fi
done

# What Nsight's own readers see: without umrt's mark it is read by the names of Nsight's tables.
as_nsight() {
    local trace
    for trace in "$h200"/*.umt; do
        exported "$trace" && python3 - <<'PY' && gives 0 "$umrt" import -o nsight.umt x.sqlite && prints 'Nsight Systems' || return 1
import sqlite3
db = sqlite3.connect("x.sqlite")
db.execute("PRAGMA application_id = 0")
db.commit()
PY
        rm x.sqlite
        for what in totals migrations kernels findings; do
            "$umrt" report --json --what-if 0 "$trace" >first
            "$umrt" report --json --what-if 0 nsight.umt >second
            python3 - $what <<'PY' || return 1
import json, sys
def figures(name):
    r = json.load(open(name))
    if sys.argv[1] == "totals": # its span has the calls, too, for which Nsight has other tables
        return {k: v for k, v in r["totals"].items() if k not in ("span_ns", "throttle_ns")}
    if sys.argv[1] == "findings":
        # Nsight has no call sites, by which regions are put together and churn is seen.
        return {f["kind"] for f in r["findings"]} - {"allocation-churn"}
    if sys.argv[1] == "kernels":
        return sorted((k["name"], k["launches"], k["exec_ns"], k["gpu_fault_groups"]) for k in r["kernels"])
    return r["migrations"]
a, b = figures("first"), figures("second")
assert a == b and a, (sys.argv[1], a, b)
PY
        done
    done
}
ok "by Nsight's tables and columns alone it has the same faults, migrations, kernels and findings" as_nsight

sums() {
    exported "$h200/stencil.umt" && python3 - "$("$umrt" dump -t gpu_fault "$h200/stencil.umt" | grep -vc '^#')" <<'PY'
import sqlite3, sys
db = sqlite3.connect("x.sqlite")
assert db.execute("SELECT count(*) FROM CUDA_UM_GPU_PAGE_FAULT_EVENTS").fetchone()[0] == int(sys.argv[1]) > 0
assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
bytes, = db.execute("SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 11").fetchone()
assert bytes == 67436544, bytes
names = {name for name, in db.execute("SELECT value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = mangledName")}
assert any("relax" in name for name in names), names
PY
}
ok "queries find what is in the trace" sums
twice() { exported good.umt && cp x.sqlite first && exported good.umt && cmp x.sqlite first; }
ok "it is the same twice, and an older export is replaced" twice

killed() {
    gives 2 "$umrt" export --sqlite killed.sqlite killed.umt && one_line && says 'not closed' &&
        gives 0 "$umrt" import -o whole.umt killed.sqlite && gives 0 "$umrt" dump -t loss whole.umt && prints 'not closed'
}
ok "a killed program's trace: what is whole, a loss, one line and status 2" killed
refuses() { gives 2 "$umrt" export "$@" && one_line && [ ! -s "$out" ] && [ "$(echo ./*.part)" = './*.part' ]; }
echo precious >foreign
python3 -c 'import sqlite3; sqlite3.connect("other.sqlite").execute("CREATE TABLE precious(x)")'
cp other.sqlite kept
foreign() { refuses --sqlite foreign good.umt && says 'not overwritten' && [ "$(cat foreign)" = precious ]; }
ok "a file that is something else is not overwritten" foreign
database() { refuses --sqlite other.sqlite good.umt && cmp other.sqlite kept; }
ok "nor another database" database
trace_kept() { cp good.umt copy.umt && refuses --sqlite copy.umt good.umt && cmp copy.umt good.umt; }
ok "nor a trace" trace_kept
itself() { exported good.umt && gives 0 "$umrt" export --sqlite x.sqlite x.sqlite && report good.umt >first && report x.sqlite | cmp - first; }
ok "an export can be exported onto itself" itself
older() { exported good.umt && cp x.sqlite kept && refuses --sqlite x.sqlite missing.umt && cmp x.sqlite kept; }
ok "a failed export leaves an older one as it was" older
no_room() { gives 1 "$umrt" export --sqlite no/such/folder/x good.umt && one_line; }
ok "an output that cannot be made is one line and status 1" no_room
full() { # a file system without room: a limit on the size of files
    gives 1 bash -c "trap '' XFSZ; ulimit -f 8; '$umrt' export --sqlite full.sqlite '$h200/streams.umt'" && one_line &&
        [ ! -e full.sqlite ] && [ "$(echo ./*.part)" = './*.part' ]
}
ok "a file that cannot grow is one line and status 1, and no file" full
for bad in '' 'good.umt' '--sqlite' '--sqlite y' '--sqlite y good.umt good.umt' '--sqlite y missing.umt' '--sqlite y foreign' \
    '--sqlite y /dev/null' '--nonsense --sqlite y good.umt'; do
    # shellcheck disable=SC2086 # words are wanted
    ok "refuses '$bad'" refuses $bad
done
finish
