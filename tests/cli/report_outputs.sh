#!/usr/bin/env bash
# What report writes for programs: JSON by its schema, SARIF by its rules, Nsight's tables by their sums;
# and where it writes them.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

"$bin/sample" good.umt
"$bin/sample" killed.umt unfinished 2>/dev/null || true
h200=$UM_SRCDIR/tests/data/h200
mapfile -t traces < <(ls "$h200"/*.umt "$UM_SRCDIR"/../shared/data/nvprof/*.log 2>/dev/null)
schema() { python3 "$UM_SRCDIR/tests/cli/check_schema.py" "$UM_SRCDIR/lib/report/schema.json" "$@"; }
sarif() { python3 "$UM_SRCDIR/tests/cli/check_sarif.py" "$@"; }
refused() { ! "$@" >/dev/null 2>&1; }

# ---- JSON ------------------------------------------------------------------------------------------

each_fits() {
    local trace
    for trace in "${traces[@]}" good.umt; do
        echo "$trace"
        gives 0 "$umrt" report --json "$trace" && schema "$out" closed || return 1
    done
    [ "${#traces[@]}" -ge 7 ]
}
ok "every report is what its schema says, and no key is missing from the schema" each_fits
golden() { schema "$UM_SRCDIR/tests/golden/report.json" closed; }
ok "so is the report that the tests keep" golden

# spoil EXPRESSION: a report r changed by a Python statement is refused.
spoil() {
    python3 - "$UM_SRCDIR/tests/golden/report.json" "$1" >spoilt.json <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(r, sys.stdout)
PY
    refused schema spoilt.json closed
}
for change in 'r["schema"] = "umrt.report/2"' 'del r["totals"]' 'r["findings"][0]["win_ns"] = -1' \
    'r["findings"][0]["confidence"] = 101' 'del r["regions"][0]["to_host_bytes"]' 'r["traces"] = []' \
    'r["kernels"][0]["gpu_faults"] = "3"' 'r["map"]["regions"][0]["cells"][0].pop()' 'r["more"] = 1'; do
    ok "the check refuses: $change" spoil "$change"
done
totals() {
    gives 0 "$umrt" report --json "$h200/stencil.umt" && python3 - "$out" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
t = r["totals"]
assert t["gpu_faults"] == r["traces"][0]["records"]["gpu_fault"] > 0
assert t["cpu_faults"] == r["traces"][0]["records"]["cpu_fault"] > 0
for total, column in (("gpu_fault_ns", "gpu_fault_ns"), ("cpu_wait_ns", "cpu_wait_ns"),
                      ("gpu_fault_groups", "gpu_fault_groups")):
    assert t[total] == sum(g[column] for g in r["regions"]) > 0, total
PY
}
ok "totals are those of the tables" totals

# ---- SARIF -----------------------------------------------------------------------------------------

each_is_sarif() {
    local trace
    for trace in "${traces[@]}" good.umt; do
        echo "$trace"
        gives 0 "$umrt" report --sarif "$trace" && sarif "$out" || return 1
        "$umrt" report --json "$trace" >report.json
        python3 - "$out" report.json <<'PY' || return 1
import json, sys
log, report = (json.load(open(name)) for name in sys.argv[1:])
results = log["runs"][0]["results"]
assert [x["ruleId"] for x in results] == [f["kind"] for f in report["findings"]]
for key in "win_ns", "worth_ns", "worth_by", "worth_it", "predicted_ns", "predicted_error_ns":
    assert [x["properties"][key] for x in results] == [f[key] for f in report["findings"]], key
assert all((x["level"] == "warning") == bool(f["worth_it"] and f["worth_ns"]) for x, f in zip(results, report["findings"]))
assert all(f["where"] in x["message"]["text"] for x, f in zip(results, report["findings"]))
PY
    done
}
ok "every SARIF log keeps the rules of the format and has the report's findings" each_is_sarif
notified() {
    gives 2 "$umrt" report --sarif killed.umt && one_line && sarif "$out" && grep -q 'not closed' "$out"
}
ok "a damaged trace's log says so" notified
spoil_sarif() {
    "$umrt" report --sarif "$h200/gather.umt" | python3 -c 'import json, sys
r = json.load(sys.stdin)
run = r["runs"][0]
exec(sys.argv[1])
json.dump(r, sys.stdout)' "$1" >spoilt.sarif
    refused sarif spoilt.sarif
}
for change in 'r["version"] = "2.0.0"' 'run["results"][0]["ruleIndex"] = 99' 'run["results"][0]["rank"] = 101' \
    'run["results"][0]["level"] = "bad"' 'del run["results"][0]["message"]' 'run["extra"] = 1'; do
    ok "the check refuses: $change" spoil_sarif "$change"
done

# ---- CSV -------------------------------------------------------------------------------------------

# The tables against what awk adds up from the events.
tables_agree() {
    local trace total
    for trace in "$h200"/*.umt; do
        "$umrt" dump -t migrate,gpu_fault,cpu_fault "$trace" >events
        total=$(awk '
            function of(key) { match($0, " " key "=[^ ]*"); return substr($0, RSTART + length(key) + 2, RLENGTH - length(key) - 2) }
            / migrate / { if (of("src") == "host") i += of("bytes"); else o += of("bytes") }
            / gpu_fault / { g += of("groups") }
            / cpu_fault / { c++ }
            END { printf "%s,%s,%s,%s", i ? sprintf("%.3f", i / 1e6) : "", o ? sprintf("%.3f", o / 1e6) : "", c ? c : "", g ? g : "" }' events)
        gives 0 "$umrt" report --csv um_total_sum "$trace" && [ "$(wc -l <"$out")" = 2 ] || return 1
        [ "$(sed -n 2p "$out" | cut -d, -f1-4)" = "$total" ] || { echo "$trace: $total, not:"; cat "$out"; return 1; }
        cp "$out" total.csv
        "$umrt" report --csv um_sum "$trace" >sum.csv
        "$umrt" report --csv um_cpu_page_faults_sum "$trace" >cpu.csv
        python3 - <<'PY' || return 1
import csv
total, = csv.DictReader(open("total.csv"))
rows = list(csv.DictReader(open("sum.csv")))
cpu = list(csv.DictReader(open("cpu.csv")))
number = lambda text: float(text or 0)
assert abs(sum(number(r["HtoD Migration size (MB)"]) for r in rows) - number(total["Total HtoD Migration Size (MB)"])) < 0.001 * len(rows)
assert sum(int(r["CPU Page Faults"] or 0) for r in rows) == int(total["Total CPU Page Faults"] or 0)
assert sum(int(r[" GPU Page Faults"] or 0) for r in rows) == int(total["Total GPU PageFaults"] or 0)
assert sum(int(r["CPU Page Faults"]) for r in cpu) == int(total["Total CPU Page Faults"] or 0)
addresses = [int(r["Virtual Address"], 16) for r in rows]
assert len(set(addresses)) == len(addresses)
assert min(addresses) == int(total["Minimum Virtual Address"], 16)
assert max(addresses) == int(total["Maximum Virtual Address"], 16)
speeds = [number(r["Migration Throughput (MB/s)"]) for r in rows]
assert speeds == sorted(speeds, reverse=True)
assert [int(r["CPU Page Faults"]) for r in cpu] == sorted((int(r["CPU Page Faults"]) for r in cpu), reverse=True)
PY
    done
}
ok "Nsight's tables have the sums of the events, in its order" tables_agree
known() { # sample.c: 2 MiB pieces of 1 GiB in 5 ns each way, and 32 KiB
    gives 0 "$umrt" report --csv um_total_sum good.umt &&
        [ "$(sed -n 2p "$out")" = '1073.775,1073.742,,,0x7F0000000000,0x7F8000000000' ] &&
        gives 0 "$umrt" report --csv um_sum --top 1 good.umt && [ "$(wc -l <"$out")" = 2 ] &&
        [ "$(sed -n 2p "$out")" = '0x7F0000000000,2.097,2.097,,,419430400.000' ]
}
ok "a trace whose figures are known has them, and blanks for what it has not" known
no_table() { gives 2 "$umrt" report --csv um_nothing good.umt && one_line && says 'um_total_sum'; }
ok "a table that is not there is refused with those that are" no_table

# ---- where it goes -----------------------------------------------------------------------------------

into() { # OPTION...: written, written again over itself, not over anything else
    gives 0 "$umrt" report "$@" -o result good.umt && [ ! -s "$out" ] || return 1
    "$umrt" report "$@" good.umt | cmp - result || return 1
    gives 0 "$umrt" report "$@" -o result good.umt || return 1
    echo precious >foreign
    gives 2 "$umrt" report "$@" -o foreign good.umt && one_line && says 'foreign is not .*not overwritten' &&
        [ "$(cat foreign)" = precious ] || return 1
    gives 1 "$umrt" report "$@" -o no/such/folder good.umt && one_line || return 1
    cp good.umt copy.umt
    gives 2 "$umrt" report "$@" -o copy.umt good.umt && cmp copy.umt good.umt || return 1
    rm -f result
    [ "$(echo ./*.part)" = './*.part' ]
}
for option in --json --sarif '--csv um_sum' '--csv um_total_sum'; do
    # shellcheck disable=SC2086 # words are wanted
    ok "-o with $option: what -o is to stdout, over its like and nothing else" into $option
done
damaged_into() {
    gives 2 "$umrt" report --json -o part.json killed.umt && one_line && schema part.json closed
}
ok "a damaged trace's report is written whole" damaged_into
full() { gives 1 "$umrt" report --json -o /dev/full good.umt || gives 2 "$umrt" report --json -o /dev/full good.umt; one_line; }
ok "a device is not replaced" full
finish
