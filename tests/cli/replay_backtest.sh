#!/usr/bin/env bash
# The error bar that replay prints is no smaller than what the back-test says now.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

data=$UM_SRCDIR/tests/data/h200
halves() {
    python3 - main.json <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
judge = [h for h in d["halves"] if h["half"] == "judge"][0]
assert len(d["runs"]) >= 30 and d["halves"][0]["half"] == "fit"
assert {r["half"] for r in d["runs"]} == {"fit", "judge"}
met = (judge["median_error_percent"] <= 15 and judge["worst_error_percent"] <= 40
       and judge["pairs_right"] >= 0.95 * judge["pairs"])
assert met == d["met"], "not what it says"
PY
}
bar_holds() { # over all runs that nothing was fitted to, those held out included
    python3 - main.json held-192.json held-640.json bar.json <<'PY'
import json, statistics, sys
runs = [r for path in sys.argv[1:4] for r in json.load(open(path))["runs"]]
held = [r for path in sys.argv[2:4] for r in json.load(open(path))["runs"]]
errors = [abs(r["error_percent"]) for r in runs if r["half"] == "judge"]
bar = json.load(open(sys.argv[4]))["workloads"][0]["tables"][0]
print(len(errors), statistics.median(errors), max(errors), {k: v for k, v in bar.items() if k.startswith("error")})
assert len(held) > 100 and all(r["half"] == "judge" for r in held)
assert len(errors) == bar["error_runs"]
assert statistics.median(errors) <= bar["error_median_percent"]
assert max(errors) <= bar["error_worst_percent"]
PY
}
status_is_the_answer() {
    try "$umrt" replay --backtest
    if prints 'in order: met$'; then [ "$status" = 0 ]; else [ "$status" = 1 ]; fi
}
"$umrt" gen stream -o s.umt -s 16M -n 1 >/dev/null
"$umrt" replay --json -m h200-pcie5 s.umt >bar.json
"$umrt" replay --backtest --json >main.json
for size in 192 640; do "$umrt" replay --backtest --json "$data/backtest-$size.json" >held-$size.json; done
ok "predicted against measured, with which half was fit" halves
ok "the error bar is that of all runs that only judge" bar_holds
ok "the status says whether it is as good as demanded" status_is_the_answer
echo '{}' >other.json
ok "a file of something else is 2" gives 2 "$umrt" replay --backtest other.json
ok "in one line that names it" one_line
ok "with its name" says 'other\.json'
finish
