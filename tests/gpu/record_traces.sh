#!/usr/bin/env bash
# record_traces.sh UMRT BIN OUT - records the small traces that tests/data/h200 keeps.
# UMRT: the umrt command; BIN: the folder of the example programs; OUT: where the traces go.
set -euo pipefail
umrt=$1 bin=$2 out=$3

# Sizes are chosen so that no trace passes 300 KiB.
while read -r trace program arguments; do
    # shellcheck disable=SC2086 # arguments are words on purpose
    "$umrt" record -q -o "$out/$trace.umt" -- "$bin/$program" $arguments >/dev/null
    bytes=$(stat -c %s "$out/$trace.umt")
    printf '%-12s %8d bytes\n' "$trace" "$bytes"
    [ "$bytes" -le 307200 ] || { echo "$trace.umt is over 300 KiB" >&2; exit 1; }
done <<'LIST'
first-touch first_touch --mib 128 --steps 2
alternate alternate --mib 64 --steps 3
stencil stencil --mib 64 --steps 6
gather gather --mib 256 --steps 2
churn churn --mib 16 --steps 10
table table --mib 32 --steps 4
streams streams --mib 32 --steps 3
LIST
