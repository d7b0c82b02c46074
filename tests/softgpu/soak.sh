#!/usr/bin/env bash
# Eight threads that launch and allocate without rest, hinted by all advisors with a profile, and recorded: they end,
# their data are right, memory stays what it is, and the trace holds every record or says how many it lacks.
# SOAK_SECONDS=3600 (`make soak SECONDS=3600`) for a long one.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
export SOFTGPU_GPUS=1 SOFTGPU_TRUTH=$truth
seconds=${SOAK_SECONDS:-5}
# Captures that take a while: time for another thread to break one.
echo 'cuStreamEndCapture slow 5ms' >rules
export SOFTGPU_RULES=$tmp/rules
# shellcheck source=tests/softgpu/soaked.sh
. "$UM_SRCDIR/tests/softgpu/soaked.sh"

# What the trace holds, in the words of $SOFTGPU_TRUTH.
told_of() {
    "$umrt" dump "$1" | awk '
        function value(key,   i) {
            for (i = 1; i <= NF; i++)
                if (index($i, key "=") == 1)
                    return substr($i, length(key) + 2)
        }
        $2 == "migrate" { n[value("dst") == "host" ? "bytes_to_host" : "bytes_to_device"] += value("bytes") }
        $2 == "launch" { n["launches"]++ }
        $2 == "kernel_exec" { n["kernels"]++ }
        $2 == "cpu_fault" { n["cpu_faults"]++ }
        $2 == "gpu_fault" { n["gpu_faults"]++ }
        $2 == "loss" { n["losses"]++ }
        END { for (key in n) printf "%s %.0f\n", key, n[key] }' >told
}
told() { awk -v key="$1" '$1 == key { n = $2 } END { printf "%.0f\n", n }' told; }
# Each record that the GPU made was told, or some loss was. Of bytes and faults none is made up.
told_all() {
    local key status=0
    for key in bytes_to_device bytes_to_host cpu_faults gpu_faults kernels; do
        [ "$(told $key)" = "$(truth_of $key)" ] && continue
        [ "$(told $key)" -lt "$(truth_of $key)" ] && [ "$(told losses)" -gt 0 ] && continue
        echo "$key: told of $(told $key) of $(truth_of $key), losses $(told losses)"
        status=1
    done
    return $status
}

ok "hinted by all: to the end, with the right sums" \
    soaked hinted "$seconds" "$umrt" run --advisors all --profile f.ump -- "$programs/soak"
ok "hinted by all: what threads that launch at once save is not made up" \
    grep -q 'what that saved is not measured: [2-8] threads launch at once' hinted/said
ok "hinted by all: what umrt holds is counted" counted hinted
ok "hinted by all: umrt holds no more than when warm" stays hinted 3 $OURS_KIB
ok "hinted by all: the process holds no more" stays hinted 4 $OWN_KIB
ok "hinted by all: a profile was saved" gives 0 "$umrt" profile show hinted/f.ump
ok "hinted again: to the end, with the right sums" \
    soaked again "$((seconds / 3))" "$umrt" run --profile "$tmp/hinted/f.ump" -- "$programs/soak"
ok "recorded: to the end, with the right sums" soaked recorded "$seconds" "$umrt" record -o t.umt -- "$programs/soak"
ok "recorded: what umrt holds is counted" counted recorded
ok "recorded: umrt holds no more than when warm" stays recorded 3 $OURS_KIB
ok "recorded: the process holds no more" stays recorded 4 $OWN_KIB
told_of recorded/t.umt
ok "recorded: every record was told, or a loss" told_all
ok "recorded: every launch" [ "$(told launches)" = "$(launched recorded)" ]

# The program ends, or forks, in the middle of it all.
unset SOFTGPU_TRUTH
in_the_middle() { # MODE STATUS WORDS COMMAND...
    local mode=$1 want=$2 words=$3
    shift 3
    timeout 300 "$@" -- "$programs/soak" 2 "$mode" >now 2>said </dev/null
    local got=$?
    [ "$got $(cat now)" = "$want $words" ] || { echo "status $got"; cat now said; return 1; }
}
for way in "run -q --advisors all --profile hinted/f.ump" "record -q -o middle.%p.umt"; do
    read -r -a command <<<"$way"
    ok "${command[0]}: ends while threads launch" in_the_middle leave 4 left "$umrt" "${command[@]}"
    ok "${command[0]}: forks while threads launch" in_the_middle fork 0 "0 sums were wrong" "$umrt" "${command[@]}"
done
finish
