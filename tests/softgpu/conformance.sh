#!/usr/bin/env bash
# The software GPU answers what a real one did (tests/gpu/conformance.expected), but for the differences that
# README.md lists.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"

gpu=$UM_SRCDIR/tests/gpu
same() {
    awk -v differences="$UM_SRCDIR/tests/softgpu/README.md" -f "$gpu/conformance.awk" \
        "$gpu/conformance.expected" all
}
try "$programs/conformance"
if [ "$status" = 77 ]; then
    skip "conformance" "the headers are of CUDA before 13.0"
    finish
    exit 0
fi
cp "$out" all
ok "the probes run" [ "$status" = 0 ]
ok "all answers are the real one's, or listed in README.md" same

# As documented: without a runtime library nobody makes runtime callbacks; NVTX's come once NVTX has loaded CUPTI.
holds() { grep -qxF -- "$1" all || { grep "^${1%%:*}: " all; return 1; }; }
ok "the runtime's domain can be enabled" holds "domains: enable the runtime's = 0"
ok "and is silent without a runtime" holds "domains: runtime callbacks without a runtime = 0"
ok "NVTX's domain tells of marks and ranges" \
    holds "domains: NVTX callbacks =  nvtxMarkA(here) nvtxRangePushA(outer)=0 nvtxRangePop()=0"
ok "records are on the client's clock where it gives one" holds "own clock: they are on that clock = 1"

# An H200 did (tests/softgpu/soak.c of then): such a call ends captures of other threads, whatever their mode.
ok "waiting for the context breaks another thread's capture" \
    holds "capture: cuCtxSynchronize by another thread, thread = 900, then invalid, ends 901, nodes 0"
ok "freeing does not, unless it is global" \
    holds "capture: cuMemFree by another thread, thread = 0, then active, ends 0, nodes 0"

# Which lines of the last run's section are not those of the whole run.
changed() { grep "^$1: " all | diff - "$out" | grep '^[<>]'; }
changes() { [ "$(changed "$1")" = "$2" ] || { changed "$1"; return 1; }; }
export SOFTGPU_CUDA=13.2
ok "CUDA 13.2: answered" gives 0 "$programs/conformance" subscribers
ok "CUDA 13.2: there may be two subscribers" changes subscribers \
    '< subscribers: subscribe a second one = 39
> subscribers: subscribe a second one = 0'
unset SOFTGPU_CUDA

# A probe that kills its process costs its own answer.
export SOFTGPU_RULES=$tmp/rules
echo 'cuCtxPopCurrent_v2 crash' >rules
ok "a probe that crashes: answered" gives 0 "$programs/conformance" start
ok "a probe that crashes: the others are as they were" changes start \
    '< start: cuCtxPopCurrent without a context = 201
> start: cuCtxPopCurrent without a context = signal 11'
finish
