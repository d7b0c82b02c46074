#!/usr/bin/env bash
# umrt calibrate on a real GPU: a whole machine description in under a minute.
# Managed memory: 256 MiB.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

if ! nvidia-smi -L >/dev/null 2>&1; then
    echo '1..0 # SKIP no NVIDIA GPU answers'
    exit 0
fi

figures() { # EXPRESSION over f, the values by name, and source, the sources
    python3 - "$1" <<'PY'
import json, sys
d = json.load(open("m.json"))
f = {k: v["value"] for k, v in d["figures"].items()}
source = {k: v["source"] for k, v in d["figures"].items()}
curve = f["link_to_device"]
sys.exit(0 if eval(sys.argv[1]) else "%s is false: %s" % (sys.argv[1], f))
PY
}

start=$SECONDS
ok "calibrate: 0" gives 0 "$umrt" calibrate -o m.json
ok "calibrate: in under 60 s" [ $((SECONDS - start)) -lt 60 ]
ok "calibrate: nothing on stderr" [ ! -s "$err" ]
ok "calibrate: says how many were measured" prints '^m.json: [0-9]+ of [0-9]+ figures measured'
ok "calibrate: most were" figures 'sum(s.startswith("measured") for s in source.values()) >= 25'
ok "calibrate: the link is faster the larger the transfer" figures 'curve[0][1] < curve[-1][1]'
ok "calibrate: the link is between 5 and 1000 GB/s" figures '5 < curve[-1][1] < 1000'
ok "calibrate: a CPU fault is between 1 us and 1 ms" figures '1e3 < f["cpu_fault_ns"] < 1e6'
"$umrt" gen stream -o s.umt >gen.log 2>&1 || { cat gen.log; exit 99; }
ok "calibrate: replay takes it" gives 0 "$umrt" replay --machine ./m.json s.umt
off_by() { # PERCENT: the median error of its predictions, over all measured runs
    "$umrt" replay --backtest --json --machine ./m.json | python3 -c 'import json, sys
both = [h for h in json.load(sys.stdin)["halves"] if h["half"] == "both"][0]
sys.exit(both["median_error_percent"] > int(sys.argv[1]) and "median error %s" % both)' "$1"
}
case $(nvidia-smi --query-gpu=name --format=csv,noheader -i 0) in
*H200*) ok "calibrate: as good as the fitted figures, nearly: median error at most 30 %" off_by 30 ;;
esac
ok "calibrate: no such GPU is 2" gives 2 "$umrt" calibrate --gpu 1000 -o n.json
ok "calibrate: and said" says '^umrt: calibrate: there is no GPU 1000'
ok "calibrate: and nothing is written" [ ! -e n.json ]
finish
