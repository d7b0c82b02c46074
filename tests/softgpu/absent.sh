#!/usr/bin/env bash
# What is not there, refused, or lost: the program goes on, and umrt says in a line what is the matter.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
program=("$programs/back_and_forth" 2 2)
"${program[@]}" >alone.out

# goes_on PATTERN COMMAND...: the program's result, and a line that matches.
goes_on() {
    local pattern=$1
    shift
    gives 0 "$@" && cmp "$out" alone.out && { [ -z "$pattern" ] || says "$pattern"; }
}
record=("$umrt" record -o t.umt --)
run=("$umrt" run --)

# CUPTI or the driver missing. A real one that is installed would be found: then only the symbols are hidden.
mkdir -p bare
ln -sf "$soft/lib64/libcuda.so.1" bare/
real_cupti() { [ -n "$(ls /usr/local/cuda/lib64/libcupti.so* 2>/dev/null)" ] || ldconfig -p | grep -q libcupti; }
if real_cupti; then
    skip "no CUPTI: recorded" "a real CUPTI is installed"
    lacks() { echo 'not (recorded|active): '; } # the real one is tried then, and wants a real driver
else
    ok "no CUPTI: recorded" \
        goes_on 'CUPTI not found' env LD_LIBRARY_PATH=bare CUDA_HOME=/nowhere "${record[@]}" "${program[@]}"
    lacks() { echo "lacks $1"; }
fi
for symbol in cuptiSubscribe cuptiGetVersion cuptiEnableCallback; do
    echo "$symbol missing" >rules
    ok "no $symbol: recorded" goes_on "$(lacks $symbol)" env SOFTGPU_RULES="$tmp/rules" "${record[@]}" "${program[@]}"
    ok "no $symbol: hinted" goes_on "$(lacks $symbol)" env SOFTGPU_RULES="$tmp/rules" "${run[@]}" "${program[@]}"
done
echo "cuptiActivity* missing" >rules
ok "no activity interface: recorded all the same" \
    goes_on 'no activity interface' env SOFTGPU_RULES="$tmp/rules" "${record[@]}" "${program[@]}"
if LD_LIBRARY_PATH=/nowhere "$bin/inject" true 2>/dev/null || ldconfig -p | grep -q libcuda.so.1; then
    skip "no driver: said" "a real driver is installed"
else
    ok "no driver: info says so" gives 0 env LD_LIBRARY_PATH=/nowhere "$umrt" info
    ok "no driver: in words" prints 'no CUDA driver here'
fi
ok "no GPU: the program hears it, nothing else" \
    gives 1 env SOFTGPU_GPUS=0 "$umrt" run -q -- "${program[@]}"
ok "no GPU: it is its own line" prints 'CUDA_ERROR_NO_DEVICE'

# The refusals of unified-memory profiling, each in its own words.
while IFS='|' read -r code words; do
    ok "refusal $code" goes_on "$words" env SOFTGPU_UM_REFUSED="$code" "${record[@]}" "${program[@]}"
    ok "refusal $code: there is a trace all the same" grep -q ' launch ' <("$umrt" dump t.umt)
done <<'EOF2'
28|not supported on this operating system
29|not supported by a GPU
30|no peer access
31|Multi-Process Service
EOF2

# Where hints are of no use.
ok "no concurrent access" goes_on 'concurrentManagedAccess is 0' env SOFTGPU_CONCURRENT=0 "${run[@]}" "${program[@]}"
ok "host page tables" goes_on 'share page tables' env SOFTGPU_HOST_PAGE_TABLES=1 "${run[@]}" "${program[@]}"
ok "integrated" goes_on "shares the cpu's memory" env SOFTGPU_INTEGRATED=1 "${run[@]}" "${program[@]}"

# CUPTI's queue loses records without a word; drained in time it loses none.
rm -f records
ok "a short queue: recorded" \
    goes_on '' env SOFTGPU_QUEUE=8 SOFTGPU_RECORDS="$tmp/records" "${record[@]}" "${program[@]}"
ok "a short queue: no record is made up" none_made_up t.umt records

# More than fits on the GPU: it evicts, and what it evicts is told.
rm -f records
"$programs/back_and_forth" 24 2 >alone.out
ok "oversubscribed: recorded" goes_on '' env SOFTGPU_MEMORY=16M SOFTGPU_QUEUE=0 SOFTGPU_RECORDS="$tmp/records" \
    "$umrt" record -o t.umt -- "$programs/back_and_forth" 24 2
ok "oversubscribed: every record is in the trace" traced t.umt records
ok "oversubscribed: evictions among them" grep -q 'cause=eviction' <("$umrt" dump -t migrate t.umt)
ok "oversubscribed: hinted" goes_on '' env SOFTGPU_MEMORY=16M "$umrt" run -- "$programs/back_and_forth" 24 2
finish
