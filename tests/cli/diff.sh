#!/usr/bin/env bash
# umrt diff: what it takes, how it answers, and its exit status as a gate.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

h200=$UM_SRCDIR/tests/data/h200
cp "$h200/stencil.umt" old.umt
cp "$h200/table.umt" new.umt
"$bin/sample" killed.umt unfinished 2>/dev/null || true
"$umrt" report --json --top 1000000 old.umt >old.json
"$umrt" report --json --top 1000000 new.umt >new.json
"$umrt" report --what-if 0 --json --top 1000000 old.umt >guess.json
"$umrt" report --what-if 0 --json --top 1 old.umt >short.json

# Runs of one program: reports whose times and faults scatter, seeded. runs NAME FACTOR SEED N
runs() {
    python3 - "$@" <<'PY'
import json, random, sys
name, factor, seed, n = sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4])
random.seed(seed)
for i in range(n):
    r = json.load(open("old.json"))
    by = factor * random.uniform(1, 1.1)
    for key in ("gpu_faults", "cpu_faults", "gpu_fault_ns", "cpu_wait_ns"):
        r["totals"][key] = int(r["totals"][key] * by)
    json.dump(r, open(f"{name}{i}.json", "w"))
PY
}
runs base 1 1 5
runs alike 1 2 5
runs slow 1.3 3 5

json() { python3 -c "import json; r = json.load(open('$out')); assert $1, $1"; }

same() {
    gives 0 "$umrt" diff old.umt old.umt --fail-on 'faults>0%,bytes>0%,time>0%,span>0%,new-finding' &&
        prints '^  no difference$' && prints 'passed  new-finding: none' && [ ! -s "$err" ]
}
ok "a trace is like itself, and nothing fires" same
both_kinds() { # a trace is as good as its report
    gives 0 "$umrt" diff --json old.umt new.umt && grep -v '\.umt\|\.json' "$out" >first &&
        gives 0 "$umrt" diff --json old.json new.umt && grep -v '\.umt\|\.json' "$out" >second &&
        gives 0 "$umrt" diff --json old.json new.json && grep -v '\.umt\|\.json' "$out" >third &&
        cmp first second && cmp first third && [ -s first ]
}
ok "traces and their JSON reports compare alike" both_kinds
by_estimate() {
    gives 0 "$umrt" diff --estimate --json old.umt old.umt &&
        json 'r["findings"] and {f["time_by"] for f in r["findings"]} == {"estimate"}' &&
        gives 0 "$umrt" diff --json old.umt guess.json && # one side of them was not replayed
        json '{f["time_by"] for f in r["findings"]} == {"estimate"}' &&
        json 'all(f["time_verdict"] == "same" and f["time_error_ns"] is None for f in r["findings"])' &&
        gives 0 "$umrt" diff --json old.umt old.json && json '"replay" in {f["time_by"] for f in r["findings"]}'
}
ok "time to win is by replay where both sides have it, else by estimate" by_estimate
folds() { # a finding that is not worth it on either side is counted, and new ones of them fire nothing
    python3 - <<'PY'
import json
for name in "old", "new":
    r = json.load(open(name + ".json"))
    for f in r["findings"]:
        f["worth_it"] = False
    json.dump(r, open(name + "-small.json", "w"))
PY
    gives 0 "$umrt" diff --fail-on new-finding old-small.json new-small.json && prints 'not worth it on either side' &&
        gives 1 "$umrt" diff --fail-on new-finding old-small.json new.json
}
ok "what is not worth it is folded, and is no new finding" folds
figures() {
    gives 0 "$umrt" diff --json old.umt new.umt && json 'r["schema"] == "umrt.diff/1"' &&
        python3 - "$out" <<'PY'
import json, sys
d, a, b = (json.load(open(name)) for name in (sys.argv[1], "old.json", "new.json"))
rows = {t["total"]: t for t in d["totals"]}
for total, keys in (("faults", ("gpu_faults", "cpu_faults")), ("bytes", ("to_device_bytes", "to_host_bytes")),
                    ("time", ("gpu_fault_ns", "cpu_wait_ns")), ("span", ("span_ns",))):
    x, y = (sum(r["totals"][k] for k in keys) for r in (a, b))
    assert (rows[total]["a"], rows[total]["b"]) == (x, y), total
    assert abs(rows[total]["change_percent"] - (y / x - 1) * 100) < 1e-6, total
    assert rows[total]["verdict"] == ("better" if y < x else "worse"), total
    assert rows[total]["p"] is None
kernels = {k["name"]: k for k in d["kernels"]}
for report, side in ((a, "a"), (b, "b")):
    for k in report["kernels"]:
        assert kernels[k["name"]]["time_" + side] == k["gpu_fault_ns"]
assert {f["state"] for f in d["findings"]} == {"new", "gone"}
# old and new have no finding in common: each time is what its report goes by
assert sum(f["time_a"] for f in d["findings"]) == sum(f["worth_ns"] for f in a["findings"])
assert sum(f["time_b"] for f in d["findings"]) == sum(f["worth_ns"] for f in b["findings"])
assert {f["time_by"] for f in d["findings"]} == {f["worth_by"] for f in a["findings"] + b["findings"]} - {"none"}
assert all((f["time_error_ns"] is not None) == (f["time_by"] == "replay") for f in d["findings"])
assert sum(r["bytes_b"] for r in d["regions"]) == sum(r["to_device_bytes"] + r["to_host_bytes"] for r in b["regions"])
PY
}
ok "its figures are those of the two reports" figures
no_test() { gives 0 "$umrt" diff old.umt new.umt && prints 'one trace a side nothing tells a change from chance'; }
ok "with one a side it says that there is no test" no_test

# ---- as a gate ---------------------------------------------------------------------------------------

gate() { # STATUS CONDITIONS FILES...
    gives "$1" "$umrt" diff --fail-on "$2" "${@:3}" && [ ! -s "$err" ]
}
ok "bytes that grew fire" gate 1 'bytes>5%' old.umt new.umt
ok "not beyond their limit" gate 0 'bytes>50%' old.umt new.umt
ok "faults that fell do not" gate 0 'faults>10%' old.umt new.umt
ok "one of several is enough" gate 1 'faults>10%,bytes>5%,new-finding' old.umt new.umt
ok "a new finding fires" gate 1 new-finding old.umt new.umt
ok "a new finding of a kind" gate 1 new-finding=ping-pong old.umt new.umt
ok "no new one of another kind" gate 0 new-finding=allocation-churn old.umt new.umt
ok "a change in five runs a side fires" gate 1 'time>10%' base?.json -- slow?.json
ok "so do options behind the files" gate 1 'time>10%' base?.json -- slow?.json --json
ok "the other way round it is better" gate 0 'time>0%' slow?.json -- base?.json
ok "scatter does not fire" gate 0 'time>0%,faults>0%' base?.json -- alike?.json
says_p() { gives 0 "$umrt" diff base?.json -- slow?.json && prints 'time .*worse \(p 0.0079\)' && prints "Mann-Whitney's U"; }
ok "the test and its p are named" says_p
said() { gives 1 "$umrt" diff old.umt new.umt --fail-on 'bytes>5%' && prints 'FAILED  bytes>5%: 64.7 MiB -> 88.4 MiB'; }
ok "what fired is said with its figures" said
in_json() {
    gives 1 "$umrt" diff --json old.umt new.umt --fail-on 'bytes>5%,faults>10%' && json 'r["failed"] is True' &&
        json '[(c["condition"], c["fired"]) for c in r["fail_on"]] == [("bytes>5%", True), ("faults>10%", False)]'
}
ok "and in JSON" in_json

# ---- bad input ---------------------------------------------------------------------------------------

refuses() { gives 2 "$umrt" diff "$@" && one_line && [ ! -s "$out" ]; }
printf '{"schema": "umrt.report/1"' >cut.json
printf '{"schema": "umrt.replay/1"}' >other.json
yes 'this is not a trace' | head -500 >foreign
for bad in 'missing.umt' killed.umt cut.json other.json foreign /dev/null .; do
    ok "refuses $bad" refuses old.umt "$bad"
done
for bad in old.umt 'old.umt new.umt new.umt' '-- old.umt' 'old.umt --' 'old.umt -- new.umt -- old.umt' \
    '--fail-on faults old.umt new.umt' '--fail-on bytes>x% old.umt new.umt' '--fail-on new-finding=x old.umt new.umt' \
    '--fail-on' '--top 0 old.umt new.umt' '--width 1 old.umt new.umt' '--nonsense old.umt new.umt'; do
    # shellcheck disable=SC2086 # words are wanted
    ok "refuses '$bad'" refuses $bad
done
cut() { refuses short.json new.umt --fail-on new-finding && says 'larger --top'; }
ok "a report that was cut off is not judged by what it lacks" cut
cut_noted() { gives 0 "$umrt" diff short.json new.umt && prints 'cut rows off'; }
ok "which is said" cut_noted
lossy() {
    "$bin/sample" lossy.umt && gives 0 "$umrt" diff lossy.umt lossy.umt && prints 'records were lost'
}
ok "lost records are said" lossy
into() {
    gives 0 "$umrt" diff -o d.txt old.umt new.umt && "$umrt" diff old.umt new.umt | cmp - d.txt &&
        gives 0 "$umrt" diff -o d.txt old.umt new.umt && echo precious >foreign &&
        refuses -o foreign old.umt new.umt && [ "$(cat foreign)" = precious ]
}
ok "-o writes a file, over its like and nothing else" into
wide() { gives 0 "$umrt" diff -w 60 old.umt new.umt && awk 'length($0) > 60 { bad = 1 } END { exit bad }' "$out"; }
ok "--width is kept to in the tables" wide
finish
