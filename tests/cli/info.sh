#!/usr/bin/env bash
# umrt info and umrt dump.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

# json EXPRESSION: holds for the document `d` that the last command printed.
json() {
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else "not so: %s\n%s" % (sys.argv[2], json.dumps(d)[:2000]))' "$out" "$1"
}

# -- this machine, which has no GPU or has one: either way each ability has an answer
ok "info: 0" gives 0 "$umrt" info
ok "info: says whether it can record, and why not" prints '^  record traces +(yes|no: .+)$'
ok "info: says whether it can hint, and why not" prints '^  hint \(umrt run\) +(yes|no: .+)$'
ok "info: can always read" prints '^  read traces +yes$'
ok "info --json: 0" gives 0 "$umrt" info --json
ok "info --json: every answer is yes or no with a reason" json \
    'set(d["can"]) == {"record", "hint", "read"} and all(a == "yes" or (a.startswith("no: ") and len(a) > 6) for a in d["can"].values())'
ok "info --json: the library's place" json 'd["library"].endswith(".so.0.0.0") or d["library"].endswith(".so")'
ok "info --json: schema" json 'd["schema"] == "umrt-machine" and d["schema_version"] == 1'
ok "info --json: the host" json '"host.name" in d["facts"] and "process.pid" not in d["facts"]'
ok "info without the library: 0" gives 0 env UMRT_LIBRARY=/nowhere/x.so "$umrt" info
ok "info without the library: cannot record, and says why" prints '^  record traces +no: UMRT_LIBRARY=/nowhere/x.so cannot be read$'

# -- settings
ok "--config: 0" gives 0 "$umrt" info --config
ok "--config: variable, value and source" prints '^UMRT_PIECE_BYTES = 32M +\(default\)$'
ok "--config: from the environment" gives 0 env UMRT_PIECE_BYTES=16M "$umrt" info --config
ok "--config: says so" prints '^UMRT_PIECE_BYTES = 16M +\(environment\)$'
printf 'workers = 3\n' >umrt.conf
ok "--config: from a file" gives 0 env UMRT_CONFIG=umrt.conf "$umrt" info --config
ok "--config: says so too" prints '^UMRT_WORKERS = 3 +\(file\)$'
ok "--config: an advisor's setting" gives 0 env UMRT_AHEAD_MIN=1M "$umrt" info --config
ok "--config: with its value and source" prints '^UMRT_AHEAD_MIN = 1M +\(environment\)$'
ok "--config --json: 0" gives 0 "$umrt" info --config --json
ok "--config --json: every setting has all of it" json \
    'len(d["settings"]) > 10 and all({"name", "variable", "value", "source", "default", "range", "doc"} <= set(s) and s["doc"] for s in d["settings"])'

# -- a trace
"$bin/sample" t.umt
ok "FILE: 0" gives 0 "$umrt" info t.umt
ok "FILE: finished" prints '^t.umt: .*, finished$'
ok "FILE: facts" prints '^  host.name +sample$'
ok "FILE: events and loss" prints '^1,032 events, 3 lost$'
ok "FILE: by type" prints '^  migrate +1,025$'
ok "FILE: a region against its size" prints '^  1 grid +1,024.0 MiB +1,024.0 MiB +1,024.0 MiB +0 bytes$'
ok "FILE --json: 0" gives 0 "$umrt" info --json t.umt
ok "FILE --json: figures" json \
    'd["events"] == 1032 and d["lost"] == 3 and d["finished"] and d["damage"] == "" and d["events_by_type"]["migrate"] == 1025 and d["moved"] == {"to_gpu_bytes": 2**30 + 32768, "to_host_bytes": 2**30, "between_gpus_bytes": 0} and [r["to_gpu_bytes"] for r in d["managed_regions"]] == [2**30, 32768] and d["moved_outside_regions"]["to_gpu_bytes"] == 0'
ok "a trace of a GPU: 0" gives 0 "$umrt" info "$UM_SRCDIR/tests/data/h200/first-touch.umt"
ok "a trace of a GPU: facts that were told later" prints '^  cuda.driver +13\.0$'
ok "a trace of a GPU: its name" prints '^  name +NVIDIA H200$'
ok "a trace of a GPU: its UUID" prints '^  uuid +GPU-[0-9a-f-]+$'
"$bin/sample" u.umt unfinished 2>/dev/null
ok "a killed program's FILE: 2, it is not all there" gives 2 "$umrt" info u.umt
ok "a killed program's FILE: says so" prints '^u.umt: .*not closed'
ok "a killed program's FILE: one line about it" one_line
ok "a killed program's FILE: all whole blocks" prints '^1,032 events, 3 lost$'

# -- dump
cat >expected <<'TEXT'
1010 region_alloc tid=7 bytes=1073741824 addr=0x7f0000000000 region=1 family=managed host_addr=0x0 device=none flags=0x0 call_site=0x0 stream=0x0
1020 region_label region=1 label="grid"
1030 region_alloc bytes=65536 addr=0x7f8000000000 region=2 family=managed host_addr=0x0 device=none flags=0x0 call_site=0x0 stream=0x0
1040 kernel kernel=1 module_hash=0x0 name="_Z3addPfi" layout_known=1 params=[{offset_bytes=0,size_bytes=8,flags=0x2},{offset_bytes=8,size_bytes=4,flags=0x0}]
1050 launch correlation=5 kernel=1 stream=0x0 context=0 device=0 grid[0]=64 grid[1]=1 grid[2]=1 block[0]=256 block[1]=1 block[2]=1 shared_bytes=0 flags=0x0 graph=0x0 call_site=0x0 args=[{slot=0,offset_bytes=0,region=1,region_offset_bytes=4096}] scalars=[{slot=1,size_bytes=4,value=262144}]
1060 migrate bytes=2097152 addr=0x7f0000000000 duration_ns=5 src=host dst=0 cause=fault region=1
TEXT
cat >expected.end <<'TEXT'
11310 hint bytes=1073741824 addr=0x7f0000000000 kind=prefetch result=refused:capacity device=0 region=0 correlation=0 error=0 duration_ns=0 stream=0x0 call_site=0x0 who="ahead" why="tab\there"
11320 loss what=gpu_fault count=3 bytes=0 reason="queue full"
TEXT
dump_begins() { grep -v '^#' "$out" | head -6 | diff expected -; }
dump_ends() { tail -2 "$out" | diff expected.end -; }
ok "dump: 0" gives 0 "$umrt" dump t.umt
ok "dump: the header" prints '^# note="a \\"quoted\\" text"$'
ok "dump: one event a line, every field" dump_begins
ok "dump: names and escapes" dump_ends
lines() { [ "$(grep -vc '^#' "$out")" = "$1" ] || { echo "$(grep -vc '^#' "$out") lines"; return 1; }; }
ok "dump: every event" lines 1032
ok "dump -t: 0" gives 0 "$umrt" dump -t region_label,loss t.umt
ok "dump -t: only these" lines 2
ok "dump --file-order: 0" gives 0 "$umrt" dump --file-order t.umt
ok "dump --file-order: every event" lines 1032
finish
