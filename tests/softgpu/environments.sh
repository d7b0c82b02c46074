#!/usr/bin/env bash
# Places where umrt must not hint, or knows less than it would like: it says so in one line, gives no hint, and the
# program prints and returns what it does alone.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
program=("$programs/back_and_forth" 4 10)
run=("$umrt" run --)
record=("$umrt" record -o t.umt --)
export SOFTGPU_CALLS=$tmp/calls
unhurried

# Hints and allocations that umrt asked the driver for, in the last run.
hints() { awk '$1 ~ /^libumrt/ && $2 ~ /Prefetch|Advise|Discard/ { n += $3 } END { print n + 0 }' calls; }
no_hints() { [ "$(hints)" = 0 ] || { echo "hints were given:"; grep libumrt calls; return 1; }; }
lines_of_umrt() { grep -c '^umrt' "$err"; }

# as_alone NAME COMMAND...: what the program prints and returns alone, in this environment, is kept and compared.
alone() { { "$@" >alone.out 2>alone.err </dev/null; alone=$?; } 2>/dev/null; }
as_alone() {
    rm -f calls
    gives "$alone" "$@" && cmp "$out" alone.out
}
# passive NAME PATTERN: under umrt run it is as alone, no hint is given, and one line of umrt's says why.
passive() {
    local name=$1 pattern=$2
    alone "${program[@]}"
    ok "$name: the program's own result" as_alone "${run[@]}" "${program[@]}"
    ok "$name: nothing is hinted" no_hints
    ok "$name: said" says "^umrt: .*($pattern)"
    ok "$name: in one line" [ "$(lines_of_umrt)" = 1 ]
}

# Without these the tests below could not fail.
alone "${program[@]}"
ok "an ordinary place: the program's own result" as_alone "${run[@]}" "${program[@]}"
ok "an ordinary place: hints are given" [ "$(hints)" -gt 0 ]

# 13: WSL, Jetson, GPUs before Pascal. 14: there the CPU must not touch what a kernel is at work on, nor may umrt.
export SOFTGPU_CONCURRENT=0
passive "no concurrent access" 'observed only: concurrentManagedAccess is 0'
ok "no concurrent access: info says why not" gives 0 "$umrt" info
ok "no concurrent access: in words" prints 'no: concurrentManagedAccess is 0 \(WSL'
alone "$programs/life" unwaited
ok "no concurrent access: a touch under a kernel is SIGSEGV" grep -qx 'signal 11' alone.out
ok "no concurrent access: so it is hinted" as_alone "${run[@]}" "$programs/life" unwaited
ok "no concurrent access: so it is recorded" as_alone "$umrt" record -q -o t.%p.umt -- "$programs/life" unwaited
rm -f records
alone "${program[@]}"
ok "no concurrent access: recorded" as_alone env SOFTGPU_RECORDS="$tmp/records" "${record[@]}" "${program[@]}"
ok "no concurrent access: every record is in the trace" traced t.umt records
ok "no concurrent access: the GPU faulted never" [ -z "$("$umrt" dump -t gpu_fault t.umt | grep -v '^#')" ]
ok "no concurrent access: deep" as_alone "$umrt" record --deep -o t.umt -- "${program[@]}"
unset SOFTGPU_CONCURRENT

# 15: a virtual GPU with unified memory switched off: programs that do without it run on.
export SOFTGPU_MANAGED=0 SOFTGPU_CONCURRENT=0
alone "${program[@]}"
ok "no managed memory: the program hears it" as_alone "${run[@]}" "${program[@]}"
ok "no managed memory: from the driver" grep -q NOT_SUPPORTED "$out" "$err"
ok "no managed memory: nothing is hinted" no_hints
ok "no managed memory: info says why not" gives 0 "$umrt" info
ok "no managed memory: in words" prints 'no: a GPU without managed memory'
unset SOFTGPU_MANAGED SOFTGPU_CONCURRENT

# 24: systems where both share page tables, or memory.
for setting in SOFTGPU_HOST_PAGE_TABLES SOFTGPU_INTEGRATED; do
    export $setting=1 SOFTGPU_PAGEABLE=1
    passive "$setting" 'observed only: (cpu and gpu share page tables|the gpu shares the cpu.s memory)'
    ok "$setting: info says why not" gives 0 "$umrt" info
    ok "$setting: in words" prints 'no: a coherent system'
    unset $setting SOFTGPU_PAGEABLE
done

# 16: nothing on a stream that is being captured.
alone "$programs/life" capture
ok "capture: as alone" as_alone "${run[@]}" "$programs/life" capture

# 17: the place in CUPTI is taken.
export SOFTGPU_OTHER_TOOL="CUPTI for Nsight Systems"
passive "another profiler" 'another profiler.*Nsight Systems'
unset SOFTGPU_OTHER_TOOL

# 19: nothing of umrt's runs in a child of fork.
alone "$programs/life" fork
ok "fork: as alone" as_alone "${run[@]}" "$programs/life" fork

# 20: switched off as people write it.
for off in 0 off false no OFF No; do
    alone "${program[@]}"
    ok "UMRT_MODE=$off: as alone" as_alone env UMRT_MODE=$off CUDA_INJECTION64_PATH="$UM_BUILDDIR/.libs/libumrt.so" \
        "${program[@]}"
    ok "UMRT_MODE=$off: umrt asks nothing of the driver" [ -z "$(grep '^libumrt' calls)" ]
    ok "UMRT_MODE=$off: and says nothing" [ ! -s "$err" ]
done
# A container's memory limit is in the trace.
alone "${program[@]}"
ok "a memory limit: recorded" as_alone "${record[@]}" "${program[@]}"
limit() { # of our control group, of version 2 or 1
    local group
    group=$(sed -n 's/^0:://p' /proc/self/cgroup)
    cat "/sys/fs/cgroup$group/memory.max" 2>/dev/null && return
    group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
    sed 's/^922337203685477[0-9]*$/max/' "/sys/fs/cgroup/memory$group/memory.limit_in_bytes"
}
if limit >limit_here 2>/dev/null; then
    ok "a memory limit: in the trace" grep -q "host.cgroup_memory_max.*$(cat limit_here)" <("$umrt" dump t.umt)
else
    skip "a memory limit: in the trace" "no control group that can be read here"
fi

# 21: other ranks hold most of the GPU: what umrt prefetches has to fit into the rest.
export SOFTGPU_MEMORY=64M UMRT_HEADROOM_BYTES=4M
alone "${program[@]}"
ok "a GPU with room: as alone" as_alone "${run[@]}" "${program[@]}"
ok "a GPU with room: hints are given" [ "$(hints)" -gt 0 ]
export SOFTGPU_USED=58M
ok "a GPU that others filled: as alone" as_alone "${run[@]}" "${program[@]}"
ok "a GPU that others filled: nothing is hinted" no_hints
ok "a GPU that others filled: said" says 'nothing prefetched; refused [0-9]+ capacity'
unset SOFTGPU_USED
# Each rank has its part, and a budget is kept to, whatever is free.
too_little() {
    ok "$1: as alone" as_alone env "$2" "${run[@]}" "${program[@]}"
    ok "$1: nothing is hinted" no_hints
    ok "$1: said" says 'nothing prefetched; refused [0-9]+ capacity'
}
enough() {
    ok "$1: as alone" as_alone env "${@:2}" "${run[@]}" "${program[@]}"
    ok "$1: hints are given" [ "$(hints)" -gt 0 ]
}
too_little "sixty ranks on one GPU" OMPI_COMM_WORLD_LOCAL_SIZE=60
ok "sixty ranks on one GPU: and why" says 'a gpu is shared by 60 processes'
enough "sixty ranks, which is said not to matter" OMPI_COMM_WORLD_LOCAL_SIZE=60 UMRT_BUDGET=all
enough "as many GPUs as ranks" OMPI_COMM_WORLD_LOCAL_SIZE=4 SOFTGPU_GPUS=4
too_little "a budget of bytes" UMRT_BUDGET=1M
too_little "a budget of percent" UMRT_BUDGET=1%
ok "a budget as a flag" as_alone "$umrt" run --budget=1M -- "${program[@]}"
ok "a budget as a flag: nothing is hinted" no_hints
ok "no budget" gives 2 "$umrt" run --budget=half -- "${program[@]}"
ok "no budget: said" says "budget.*half"
unset SOFTGPU_MEMORY UMRT_HEADROOM_BYTES
# Other processes of umrt's on the GPU are seen; nobody told of them.
export UMRT_SHARE_DIR=$tmp/beside
timeout 600 "$umrt" run -q --budget all -- "$programs/soak" 500 >/dev/null 2>&1 </dev/null &
beside=$!
beside_it() { as_alone env UMRT_LOG_LEVEL=2 "${run[@]}" "${program[@]}"; }
sees_it() { until beside_it && says '2 processes share gpu 0'; do kill -0 "$beside" || return 1; done; } # it takes a while to begin
ok "another process on the GPU: seen" sees_it
ok "another process on the GPU: as alone" beside_it
kill "$beside" 2>/dev/null
wait "$beside" 2>/dev/null

# 20: a host that has nothing left, of the machine's memory or of the control group's: nothing is brought there.
to_the_host() { "$umrt" dump -t hint t.umt | grep 'device=host' | grep -c 'result=applied'; }
back=("$umrt" run --advisors "first_touch,ahead,readback" --guard-per-mille 0 --trace t.umt -- "$programs/back_and_forth" 8 6)
alone "$programs/back_and_forth" 8 6
rm -f t.umt
ok "a host with room: as alone" as_alone "${back[@]}"
ok "a host with room: results are brought back" [ "$(to_the_host)" -gt 0 ]
rm -f t.umt
ok "a host without room: as alone" as_alone env UMRT_HOST_HEADROOM_BYTES=1000G "${back[@]}"
ok "a host without room: nothing is brought back" [ "$(to_the_host)" = 0 ]
rm -f t.umt

# 23: why a trace has no faults and migrations: the option, the platform, or there were none.
reported() { "$umrt" report t.umt 2>&1 | tr '\n' ' ' | grep -qE -- "$1" || { "$umrt" report t.umt; return 1; }; }
alone "${program[@]}"
ok "not asked for: recorded" as_alone env UMRT_UNIFIED_MEMORY=off "${record[@]}" "${program[@]}"
ok "not asked for: said" reported 'switched off|UMRT_UNIFIED_MEMORY|not recorded'
while IFS='|' read -r code words; do
    ok "refused ($code): recorded" as_alone env SOFTGPU_UM_REFUSED="$code" "${record[@]}" "${program[@]}"
    ok "refused ($code): said" reported "$words"
done <<'END'
28|recording .*not supported on this operating system
31|recording .*Multi-Process Service
END
alone "$programs/families" 0 # ends at its first allocation
ok "none: recorded" as_alone "${record[@]}" "$programs/families" 0
ok "none: said" reported 'recording +on, and there was no fault and no migration'
finish
