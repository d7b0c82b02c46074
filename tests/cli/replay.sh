#!/usr/bin/env bash
# umrt replay: the tables, in text, JSON and HTML; the same bytes however many threads make them.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

"$umrt" gen ping-pong -o pp.umt -s 16M -n 3 >/dev/null
"$umrt" gen pipeline -o pipe.umt -s 16M -n 2 >/dev/null
wide=(--machine 'h200-pcie5,v100-pcie3' --gpu-mem '50%,100%,machine' --streams '0,1' --policy all)

# holds EXPRESSION: of the JSON of the last command, as d.
holds() {
    python3 - "$out" "$1" <<'PY' || { echo "not so: $1"; return 1; }
import json, sys
d = json.load(open(sys.argv[1]))
tables = [t for w in d.get("workloads", []) for t in w["tables"]]
rows = [(t, r) for t in tables for r in t["results"]]
sys.exit(not eval(sys.argv[2]))
PY
}
same_with_jobs() {
    local n
    "$umrt" replay "${wide[@]}" "$@" pp.umt pipe.umt >one 2>/dev/null --jobs 1
    for n in 2 7; do
        "$umrt" replay "${wide[@]}" "$@" pp.umt pipe.umt >many 2>/dev/null --jobs $n
        cmp one many || return 1
    done
    [ -s one ]
}
self_contained() {
    sed -n 's/.*id="part-replay">\(.*\)<\/script>/\1/p' page.html >"$out" &&
        holds 'len(tables) == 12 and d["schema"] == "umrt.replay/1"' &&
        ! grep -qE 'https?://|src=|<link|@import' page.html && tail -1 page.html | grep -q '</html>'
}

ok "a trace is replayed" gives 0 "$umrt" replay pp.umt
ok "and nothing is said on stderr" [ ! -s "$err" ]
for word in none driver umrt oracle 'at least' generated h200-pcie5; do
    ok "the table has $word" prints "^ *(  )?$word|$word"
done
ok "without hints of the program there is no row for them" eval '! prints "^  app "'
ok "JSON" gives 0 "$umrt" replay --json "${wide[@]}" pp.umt pipe.umt
ok "has its schema" holds 'd["schema"] == "umrt.replay/1"'
ok "has all of the cross product" holds 'len(tables) == 2 * 2 * 3 * 2 and all(len(t["results"]) == len(tables[0]["results"]) > 10 for t in tables)'
ok "begins every table with none and driver" holds 'all([r["policy"] for r in t["results"][:2]] == ["none", "driver"] for t in tables)'
ok "driver is what speed-ups are against" holds 'all(r["speedup"] == 1 for t, r in rows if r["policy"] == "driver")'
ok "no time is below the least" holds 'all(r["time_ns"] >= t["least_ns"] > 0 for t, r in rows)'
ok "no traffic is below the least" holds 'all(r["bytes_to_device"] + r["bytes_to_host"] + r["bytes_peer"] + r["bytes_remote"] >= t["least_bytes"] for t, r in rows)'
ok "less memory is not faster for the driver" holds 'all(a["results"][1]["time_ns"] >= b["results"][1]["time_ns"] for w in d["workloads"][1:] for a, b in zip(w["tables"][0::3], w["tables"][2::3]))'
ok "a machine that was measured has an error bar" holds 'all((t["error_median_percent"] is not None) == (t["machine"] == "h200-pcie5") for t in tables)'
ok "says of which kind the accesses are" holds 'all(w["kind"] == "generated" and w["means"] for w in d["workloads"])'
ok "the same text with any number of threads" same_with_jobs
ok "the same JSON with any number of threads" same_with_jobs --json
ok "a page" gives 0 "$umrt" replay --html page.html --gpu-mem 50%,100% --machine h200-pcie5,v100-pcie3,gh200-c2c pp.umt pipe.umt
ok "of one table for each, in need of nothing else" self_contained
ok "a page that cannot be written is 1" gives 1 "$umrt" replay --html no/where.html pp.umt
ok "in one line" one_line
ok "by default on the machine with the GPU of the trace" gives 0 "$umrt" replay --json pp.umt
ok "with all of its memory" holds 'tables[0]["machine"] == "h200-pcie5" and tables[0]["gpu_mem"] == "machine"'
ok "one stream" gives 0 "$umrt" replay --json --streams 4,1 pipe.umt
ok "is not faster than four" holds 'tables[1]["least_ns"] >= tables[0]["least_ns"]'
for pattern in gather graph; do
    "$umrt" gen $pattern -s 256M -n 2 -o sparse.umt >/dev/null
    ok "$pattern with less and less memory" gives 0 "$umrt" replay --json -p driver -g 5%,10%,15%,20%,40% sparse.umt
    ok "is nowhere slower with more" holds 'all(a["results"][1]["time_ns"] * 1.1 >= b["results"][1]["time_ns"] for a, b in zip(tables, tables[1:]))'
done
# Each policy has a program that it is for: at least so many times as fast as the driver alone.
while read -r policy least pattern size rounds memory; do
    "$umrt" gen "$pattern" -s "$size" -n "$rounds" -o for.umt >/dev/null
    ok "$policy helps $pattern" gives 0 "$umrt" replay --json -p "$policy" -g "$memory" -m h200-pcie5 for.umt
    ok "so much" holds "[r['speedup'] for t, r in rows if r['policy'] == '$policy'][0] >= $least"
done <<'END'
first_touch 5 first-touch 256M 5 machine
ahead 1.15 ping-pong 256M 5 machine
run 1.15 ping-pong 256M 5 machine
readback 1.2 ping-pong 64M 10 machine
read_mostly 1.1 table 256M 40 machine
calm 1.5 table 64M 40 machine
placement 1.7 lookup 256M 40 machine
umrt 1.7 lookup 256M 40 machine
run 1.05 gather 3G 5 machine
run 1.4 pool 512M 20 machine
evict 1.03 pool 256M 10 50%
lookahead 1.02 stages 512M 20 machine
lookahead+again 1.05 stages 512M 10 machine
run+lookahead+again 1.8 stages 512M 10 machine
umrt 1.5 ping-pong 64M 10 machine
static 1.2 stencil 64M 10 machine
deepum 1.1 ping-pong 256M 10 machine
oracle 1.5 ping-pong 64M 10 50%
END
ok "a driver with other parameters" gives 0 "$umrt" replay -p driver --json -u uvm_perf_prefetch_enable=0 pp.umt
ok "without its prefetcher is none" holds 'tables[0]["results"][0]["time_ns"] == tables[0]["results"][1]["time_ns"] and d["workloads"][0]["uvm"]["uvm_perf_prefetch_enable"] == 0'
ok "what is not the default" gives 0 "$umrt" replay -u uvm_perf_prefetch_threshold=1 pp.umt
ok "is said" prints '^ *uvm  *uvm_perf_prefetch_threshold=1 .default 51.$'
"$UM_BUILDDIR/tests/cli/impossible" tuned tuned.umt
ok "parameters that were recorded" gives 0 "$umrt" replay --json -u uvm_perf_thrashing_pin=7 tuned.umt
ok "hold, but those asked for and nonsense do not" holds '[d["workloads"][0]["uvm"]["uvm_perf_" + p] for p in ("prefetch_threshold", "thrashing_pin", "fault_batch_count")] == [1, 7, 256]'
ok "hints without a model" gives 0 "$umrt" replay --open --policy umrt,first_touch --json pp.umt
ok "have their schema" holds 'd["schema"] == "umrt.replay-open/1" and len(d["lists"]) == 2'
ok "say who would have prefetched what" holds 'any(h["advisor"] == "ahead" and h["bytes"] > 0 for h in d["lists"][0]["hints"])'
ok "are as many as said" holds 'all(l["pieces"] == sum(a["pieces"] for a in l["advisors"]) for l in d["lists"])'
ok "and at most --top are listed" gives 0 "$umrt" replay --open --top 1 --json pp.umt
ok "of each" holds 'all(len(l["hints"]) == 1 for l in d["lists"])'
finish
