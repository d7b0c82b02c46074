#!/usr/bin/env bash
# Programs fork, exec, die, lose their context, capture, watch themselves: under umrt run and umrt record they print
# and return what they do alone, and the trace holds every record or says what is missing.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
life=$programs/life
export SOFTGPU_QUEUE=0

# as_alone COMMAND...: prints and returns what `alone` has.
as_alone() {
    "$@" >now 2>said </dev/null
    local got=$?
    [ $got = "$alone" ] || { echo "status $got, alone $alone"; cat said; return 1; }
    cmp now alone.out || { cat now said; return 1; }
}
readable() { "$umrt" dump "$1" >dumped && grep -q ' launch ' dumped; }
# What was written before the program went without a word, and a line that it did.
readable_in_part() {
    "$umrt" dump "$1" >dumped 2>said || grep -q 'trace was not closed' said || { cat said; return 1; }
    grep -q '^# process.pid' dumped
}

for mode in $("$life"); do
    [ "$mode" = late ] && continue
    { "$life" "$mode" >alone.out </dev/null; alone=$?; } 2>/dev/null
    ok "$mode: hinted, the same" as_alone "$umrt" run -q -- "$life" "$mode"
    rm -f t*.umt records
    ok "$mode: recorded, the same" \
        as_alone env SOFTGPU_RECORDS="$tmp/records" "$umrt" record -q -o t.%p.umt -- "$life" "$mode"
    case $mode in
    subscriber) ok "$mode: no trace, and why" [ -z "$(ls t*.umt 2>/dev/null)" ] ;;
    _exit | signal | kill | fork-before | unwaited | exec)
        for trace in t*.umt; do ok "$mode: a trace that can be read" readable_in_part "$trace"; done ;;
    *)  ok "$mode: every record is in the trace" traced t*.umt records ;;
    esac
done

# CUPTI tells of a __managed__ variable only once umrt has allocated something managed, as the program asks for the
# variable's address. Where it cannot, that is a loss.
echo 'cuMemAllocManaged fail 2 times 1 by libumrt*' >rules
"$life" variable >alone.out
alone=0
rm -f records
ok "variable, no allocation: the same" as_alone env SOFTGPU_RULES="$tmp/rules" SOFTGPU_RECORDS="$tmp/records" \
    "$umrt" record -q -o lost.umt -- "$life" variable
ok "variable, no allocation: a loss is told" grep -q 'managed variable' <("$umrt" dump -t loss lost.umt)
ok "variable, no allocation: no record is made up" none_made_up lost.umt records
ok "variable: recorded" as_alone "$umrt" record -q -o whole.umt -- "$life" variable
ok "variable: no loss otherwise" no_loss whole.umt

# What was asked for in calls of all kinds.
SOFTGPU_CUDA=13.0 "$umrt" record -q -o calls.umt -- "$life" mappings >/dev/null
"$umrt" dump -t region_alloc,hint,set,copy calls.umt >dumped
ok "mappings: the mapping is a region" grep -q 'region_alloc .*bytes=2097152 .*family=vmm' dumped
ok "mappings: a rectangle set counts what it sets" grep -q 'set .*bytes=32768 .*memory=5' dumped
ok "mappings: a rectangle copied counts what it copies" grep -q 'copy .*bytes=4096 .*dst_memory=5 src_memory=3' dumped
"$programs/two_streams" >alone.out
alone=0
ok "deep: the same" as_alone "$umrt" record -q --deep -o deep.umt -- "$programs/two_streams"
ok "deep: what launches touch is told" grep -q ' access ' <("$umrt" dump deep.umt)

# All that umrt does falls into captures of all modes, and none minds.
"$life" capture >alone.out
alone=0
by_umrt() { grep -qE "^libumrt[^ ]* $1" calls || { grep libumrt calls; return 1; }; }
ok "capture: hinted by all, the same" \
    as_alone env SOFTGPU_CALLS="$tmp/calls" "$umrt" run --advisors all -q --guard-per-mille 0 -- "$life" capture
ok "capture: hinted by all: pages were moved meanwhile" by_umrt cuMemPrefetch
ok "capture: hinted by all: advice was given meanwhile" by_umrt cuMemAdvise
ok "capture: hinted by all: streams were asked about meanwhile" by_umrt cuStreamQuery
ok "capture: deep, the same" as_alone "$umrt" record -q --deep -o captured.umt -- "$life" capture
"$life" capture-meanwhile >alone.out
ok "capture-meanwhile: it is whole" grep -q 'ends 0$' alone.out
ok "capture-meanwhile: deep, the same" as_alone "$umrt" record -q --deep -o meanwhile.umt -- "$life" capture-meanwhile

# umrt itself comes late: what happens after that is all told.
"$life" late >alone.out
alone=0
rm -f records
ok "late: the same" as_alone env LATE="$UM_BUILDDIR/.libs/libumrt.so" UMRT_MODE=record UMRT_OUT="$tmp/late.umt" \
    "$life" late
ok "late: a trace" readable late.umt
ok "late: with the migrations of what came after" grep -q ' migrate ' dumped
ok "late: hinted, the same" as_alone env LATE="$UM_BUILDDIR/.libs/libumrt.so" UMRT_MODE=hint "$life" late

# From CUDA 13.2 on CUPTI has room for two.
export SOFTGPU_CUDA=13.2
"$life" subscriber >alone.out
ok "two subscribers: the same" \
    as_alone env SOFTGPU_RECORDS="$tmp/both" "$umrt" record -q -o both.umt -- "$life" subscriber
ok "two subscribers: every record is in the trace" traced both.umt both
unset SOFTGPU_CUDA
export SOFTGPU_OTHER_TOOL="CUPTI for Nsight Systems"
"$life" plain >alone.out
ok "another tool: the same" as_alone "$umrt" record -o other.umt -- "$life" plain
ok "another tool: it is named" grep -q 'another profiler.*Nsight Systems' said
ok "another tool: hinted, the same" as_alone "$umrt" run -- "$life" plain
finish
