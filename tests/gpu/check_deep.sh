#!/usr/bin/env bash
# umrt record --deep on a real GPU: each of three launches shows its whole footprint, to the block,
# though after the first one all of it is on the GPU already. Managed memory: 80 MiB.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

if ! nvidia-smi -L >/dev/null 2>&1; then
    echo '1..0 # SKIP no NVIDIA GPU answers'
    exit 0
fi
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if ! "$nvcc" -O1 -arch=native -o half "$UM_SRCDIR/tests/gpu/half.cu" >cc.log 2>&1; then
    sed 's/^/# /' cc.log
    echo '1..0 # SKIP half.cu does not build here'
    exit 0
fi

same_output() { ./half 2>plain.err | cmp - "$out" && [ ! -s plain.err ]; }

# footprints FILE: what each launch brought to the GPU, by the driver's doing alone, in blocks.
cat >footprints.py <<'PY'
import re, subprocess, sys

umrt, trace, deep = sys.argv[1], sys.argv[2], sys.argv[3] == "deep"
BLOCK = 2 << 20
regions, launches = {}, []
for line in subprocess.run([umrt, "dump", "-t", "region_alloc,launch,migrate", trace],
                           capture_output=True, text=True, check=True).stdout.splitlines():
    if line.startswith("#"):
        continue
    time, kind = line.split()[:2]
    f = dict(re.findall(r"(\w+)=(\S+)", line))
    if kind == "region_alloc" and f["family"] == "managed":
        regions[int(f["bytes"])] = int(f["addr"], 16)
    elif kind == "launch":
        launches.append(set())
    elif kind == "migrate" and f["dst"] == "0" and f["cause"] in ("fault", "driverprefetch"):
        a, n = int(f["addr"], 16), int(f["bytes"])
        launches[-1] |= set(range(a // BLOCK, (a + n - 1) // BLOCK + 1))
data, added = regions[64 << 20], regions[16 << 20]
half = data + (32 << 20)
want = set(range(half // BLOCK, (half + (32 << 20)) // BLOCK)) | \
    set(range(added // BLOCK, (added + (16 << 20)) // BLOCK))
if len(launches) != 3:
    sys.exit("%d launches" % len(launches))
for i, got in enumerate(launches):
    expected = want if deep or i == 0 else set()
    if got != expected:
        sys.exit("launch %d: %d blocks too many, %d missing" %
                 (i, len(got - expected), len(expected - got)))
PY
footprints() { python3 footprints.py "$umrt" "$1" "$2"; }

ok "record: 0" gives 0 "$umrt" record -q -o plain.umt -- ./half
ok "record: only the first launch shows anything" footprints plain.umt plain
ok "record --deep: 0" gives 0 "$umrt" record --deep -o deep.umt -- ./half
ok "record --deep: nothing is lost" says 'deep.umt: [0-9,]+ events, 0 lost; '
ok "record --deep: the output is the program's" same_output
ok "record --deep: every launch shows its footprint, to the block" footprints deep.umt deep
ok "record --deep: the trace says that it is one" gives 0 "$umrt" info deep.umt
ok "record --deep: as a fact" prints '^  workload.accesses +deep$'
ok "record --deep: a report says so" gives 0 "$umrt" report deep.umt
ok "record --deep: first of all" prints 'recording +deep: '
finish
