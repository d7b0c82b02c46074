#!/usr/bin/env bash
# What the software GPU answers, a line each: error codes, order of callbacks, kinds and causes of records. To accept a
# change: tests/softgpu/bin/conformance >tests/softgpu/conformance.txt, with LD_LIBRARY_PATH and KERNELS as here.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"

as_kept() { diff "$UM_SRCDIR/tests/softgpu/conformance.txt" "$out"; }
ok "the questions are answered" gives 0 "$programs/conformance"
if grep -q 'cuKernelGetParamInfo' "$out"; then
    ok "as they were" as_kept
else
    skip "as they were" "these headers are of before CUDA 12.4: not all questions are asked"
fi
export SOFTGPU_CUDA=13.2
ok "CUDA 13.2: answered" gives 0 "$programs/conformance"
differs() { diff "$UM_SRCDIR/tests/softgpu/conformance.txt" "$out" | grep -c '^>'; }
ok "CUDA 13.2: one answer is another: there may be two subscribers" [ "$(differs)" = 1 ]
ok "CUDA 13.2: this one" prints '^cuptiSubscribe, again +0$'
finish
