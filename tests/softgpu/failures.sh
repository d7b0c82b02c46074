#!/usr/bin/env bash
# Every call that umrt makes of the driver and of CUPTI fails once, fails always, and is missing, each in turn: the
# program prints and returns what it does alone. The list of calls is that of a run that counts them; hints are those
# of all advisors.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
export SOFTGPU_GPUS=1
modes="run record"
programs_and_options="graph:1 3;families:1;life:capture;hinted:waits"
IFS=';' read -r -a all <<<"$programs_and_options"

# as_alone COMMAND...
as_alone() {
    timeout 300 "$@" >now 2>said </dev/null
    local got=$?
    [ $got = 0 ] || { echo "status $got"; cat said; return 1; }
    cmp now alone.out || { cat now said; return 1; }
}
# failing RULE COMMAND...: as alone with this one rule.
failing() {
    echo "$1" >rules
    shift
    SOFTGPU_RULES=$tmp/rules as_alone "$@"
}

: >tried
for entry in "${all[@]}"; do
    program=${entry%%:*}
    read -r -a options <<<"${entry#*:}"
    "$programs/$program" "${options[@]}" >alone.out
    for mode in $modes; do
        command=("$umrt" "$mode" -q)
        if [ "$mode" = record ]; then command+=(-o t.umt); else command+=(--advisors all --guard-per-mille 0); fi
        command+=(-- "$programs/$program" "${options[@]}")
        rm -f calls
        SOFTGPU_CALLS=$tmp/calls "${command[@]}" >/dev/null 2>&1
        awk '$1 ~ /^libumrt/ { print $2 }' calls | sort -u >called
        [ -s called ] || ok "$mode: calls were counted" false
        while read -r call; do
            grep -qx "$mode $call" tried && continue # with an earlier program
            echo "$mode $call" >>tried
            rm -f t.umt
            code=999
            ok "$mode: $call fails once" failing "$call fail $code times 1 by libumrt*" "${command[@]}"
            ok "$mode: $call fails always" failing "$call fail $code by libumrt*" "${command[@]}"
            # cuInit's own users need it; what a program links cannot be missing
            case $call in cupti*) ok "$mode: $call is missing" failing "$call missing" "${command[@]}" ;; esac
        done <called
    done
done
# Advice is rare: calls of its own, each failing, in a program that moves one array to and fro.
"$programs/hinted" shared >alone.out
for code in 1 101 999; do
    ok "run: advice fails with $code" failing "cuMemAdvise* fail $code by libumrt*" \
        "$umrt" run -q --advisors calm,ahead --guard-per-mille 0 -- "$programs/hinted" shared
done
ok "run: advice is slow" failing "cuMemAdvise* slow 20ms by libumrt*" \
    "$umrt" run -q --advisors calm,ahead --guard-per-mille 0 -- "$programs/hinted" shared
ok "run: advice never returns" failing "cuMemAdvise* hang by libumrt*" \
    "$umrt" run -q --advisors calm,ahead --guard-per-mille 0 -- "$programs/hinted" shared
ok "many calls were tried" [ "$(wc -l <tried)" -gt 30 ]

# Not failing but slow, or never coming back.
"$programs/graph" 1 3 >alone.out
for call in cuptiActivityFlushAll cuptiActivityEnable cuMemPrefetchAsync_v2 cuStreamCreate cuMemGetInfo_v2; do
    for mode in $modes; do
        command=("$umrt" "$mode" -q)
        [ "$mode" = record ] && command+=(-o t.umt)
        ok "$mode: $call is slow" failing "$call slow 5ms by libumrt*" \
            "${command[@]}" -- "$programs/graph" 1 3
    done
done
ok "record: cuptiActivityFlushAll never returns" failing "cuptiActivityFlushAll hang from 3 by libumrt*" \
    "$umrt" record -q -o t.umt -- "$programs/graph" 1 3
# Switching records off takes 2 s where none came (H200): for ever is no worse for the program.
for mode in $modes; do
    command=("$umrt" "$mode" -q)
    [ "$mode" = record ] && command+=(-o t.umt)
    ok "$mode: cuptiActivityDisable never returns" failing "cuptiActivityDisable hang by libumrt*" \
        "${command[@]}" -- "$programs/graph" 1 3
done
# Whoever asks for the profile to be saved meanwhile gets an answer.
with_library=(env LD_LIBRARY_PATH="$UM_BUILDDIR/.libs:$LD_LIBRARY_PATH")
"${with_library[@]}" UMRT_MODE=off "$programs/interface" sync >alone.out 2>/dev/null
ok "um_sync_profile: cuMemGetInfo_v2 never returns" failing "cuMemGetInfo_v2 hang by libumrt*" \
    "${with_library[@]}" UMRT_PROFILE="$tmp/h.ump" "$programs/interface" sync
ok "um_sync_profile: it is said" grep -q 'the profile is not saved: .*held up in the driver' said
"$programs/graph" 1 3 >alone.out
ok "run: cuMemPrefetchAsync_v2 never returns" failing "cuMemPrefetchAsync_v2 hang by libumrt*" \
    "$umrt" run -q -- "$programs/graph" 1 3
finish
