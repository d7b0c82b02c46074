#!/usr/bin/env bash
# A PyTorch program whose tensors all live in managed memory (at most 6 GiB, capped in its allocator):
# recorded and hinted, with the results of the plain run. Step times are told as comments.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

if ! nvidia-smi -L >/dev/null 2>&1; then
    echo '1..0 # SKIP no NVIDIA GPU answers'
    exit 0
fi
if ! python3 -c 'import torch' 2>/dev/null; then
    echo '1..0 # SKIP python3 has no torch'
    exit 0
fi
cuda=${CUDA_HOME:-/usr/local/cuda}
${CC:-cc} -shared -fPIC -O2 -I"$cuda/include" -o allocator.so \
    "$UM_SRCDIR/tests/gpu/managed_allocator.c" -L"$cuda/lib64" -lcudart || exit 99

train() { # TIMES WRAPPER...
    local times=$1
    shift
    "$@" python3 "$UM_SRCDIR/tests/gpu/torch_managed.py" ./allocator.so --times "$times"
}
same_result() { train plain.times >plain.out 2>plain.err && cmp plain.out "$out"; }
count() { "$umrt" dump t.umt | awk -v type="$1" '$2 == type { n++ } END { print n + 0 }'; }

ok "record: a training loop" gives 0 train record.times "$umrt" record -o t.umt --
ok "record: nothing is lost" says '^umrt: t.umt: [0-9,]+ events, 0 lost;'
ok "record: the losses are the program's" same_result
ok "record: managed tensors are regions" [ "$(count region_alloc)" -gt 10 ]
ok "record: PyTorch's kernels are launches" [ "$(count launch)" -gt 100 ]
ok "record: they fault" [ "$(count gpu_fault)" -gt 100 ]
ok "run: a training loop" gives 0 train run.times "$umrt" run --
ok "run: prefetches" says '^umrt: prefetched '
ok "run: the losses are the program's" same_result
for way in plain record run; do
    echo "# $way: $(awk '$1 == "step" && NR > 1 { print $2 }' "$way.times" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }') ms a step (median)"
done
finish
