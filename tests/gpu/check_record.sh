#!/usr/bin/env bash
# umrt record, run and info on a real GPU: nothing is lost, and the program notices nothing.
# Managed memory: 1 GiB.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

if ! nvidia-smi -L >/dev/null 2>&1; then
    echo '1..0 # SKIP no NVIDIA GPU answers'
    exit 0
fi
make -s -C "$UM_BUILDDIR" examples/alternate examples/first_touch >make.log 2>&1 || { cat make.log; exit 99; }
alternate=("$UM_BUILDDIR/examples/alternate" --mib 1024)
first_touch=("$UM_BUILDDIR/examples/first_touch" --mib 1024)

same_output() { # COMMAND...: as printed by the last try
    "$@" 2>plain.err | cmp - "$out" && [ ! -s plain.err ]
}

region_moved() { # TIMES: each direction, to the byte, that many times the region
    "$umrt" info --json t.umt | python3 -c 'import json, sys
d = json.load(sys.stdin)
big = max(d["managed_regions"], key=lambda r: r["bytes"])
want = big["bytes"] * int(sys.argv[1])
if (big["to_gpu_bytes"], big["to_host_bytes"], d["lost"]) != (want, want, 0):
    sys.exit("%s; lost %d" % (big, d["lost"]))' "$1"
}

ok "info: 0" gives 0 "$umrt" info
ok "info: this machine can record" prints '^  record traces +yes$'

ok "record: 1 GiB there and back" gives 0 "$umrt" record -o t.umt -- "${alternate[@]}" --steps 1
ok "record: nothing is lost" says \
    '^umrt: t.umt: [0-9,]+ events, 0 lost; 1,024.0 MiB to the GPU, 1,024.0 MiB back$'
ok "record: every byte of the region, both ways" says \
    '^umrt:   region 1, 1,024.0 MiB: .*to the GPU \(exactly its size\), .* back \(exactly its size\)$'
ok "record: the output is the program's" same_output "${alternate[@]}" --steps 1
ok "record: five times there and back" gives 0 "$umrt" record -q -o t.umt -- "${alternate[@]}" --steps 5
ok "record: five times the region, to the byte" region_moved 5
ok "record: -q says nothing" [ ! -s "$err" ]
ok "record: two processes" gives 0 "$umrt" record -o t.umt -- \
    sh -c '"$@" & "$@"; wait' sh "${alternate[@]}" --steps 1
ok "record: two traces" [ "$(grep -c 'events, 0 lost; 1,024.0 MiB to the GPU' "$err")" = 2 ]
ok "record: killed with SIGKILL" gives 137 "$umrt" record -o t.umt -- \
    timeout -s KILL 5 "${alternate[@]}" --steps 100000
ok "record: the trace is there up to then" says '^umrt: t.umt: [0-9,]+ events, 0 lost; .*; not closed'
ok "record: killed with SIGTERM" gives 143 "$umrt" record -o t.umt -- \
    sh -c '"$@" & sleep 5; kill -TERM $!; wait $!' sh "${alternate[@]}" --steps 100000

ok "run: first touch" gives 0 "$umrt" run -- "${first_touch[@]}"
ok "run: prefetches" says '^umrt: prefetched '
ok "run: in one line" one_line
ok "run: the output is the program's" same_output "${first_touch[@]}"
ok "run --mode=observe: changes nothing" gives 0 "$umrt" run --mode=observe -- "${first_touch[@]}"
ok "run --mode=observe: and counts" says '^umrt: observed '
finish
