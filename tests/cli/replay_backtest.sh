#!/usr/bin/env bash
# The error bar that replay prints is no smaller than what the back-test says now.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

runs_and_halves() {
    python3 - "$out" "$1" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
bar = json.load(open(sys.argv[2]))["workloads"][0]["tables"][0]
judge = [h for h in d["halves"] if h["half"] == "judge"][0]
print(judge, {k: v for k, v in bar.items() if k.startswith("error")})
assert len(d["runs"]) >= 30 and d["halves"][0]["half"] == "fit"
assert {r["half"] for r in d["runs"]} == {"fit", "judge"}
assert judge["runs"] == bar["error_runs"]
assert judge["median_error_percent"] <= bar["error_median_percent"]
assert judge["worst_error_percent"] <= bar["error_worst_percent"]
met = (judge["median_error_percent"] <= 15 and judge["worst_error_percent"] <= 40
       and judge["pairs_right"] >= 0.95 * judge["pairs"])
assert met == d["met"], "not what it says"
PY
}
status_is_the_answer() {
    try "$umrt" replay --backtest
    if prints 'in order: met$'; then [ "$status" = 0 ]; else [ "$status" = 1 ]; fi
}
"$umrt" gen stream -o s.umt -s 16M -n 1 >/dev/null
"$umrt" replay --json -m h200-pcie5 s.umt >bar.json
try "$umrt" replay --backtest --json
ok "predicted against measured, with which half was fit" runs_and_halves bar.json
ok "the status says whether it is as good as demanded" status_is_the_answer
echo '{}' >other.json
ok "a file of something else is 2" gives 2 "$umrt" replay --backtest other.json
ok "in one line that names it" one_line
ok "with its name" says 'other\.json'
finish
