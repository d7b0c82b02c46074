#!/usr/bin/env bash
# The driver-API examples on the software GPU: their results, what the GPU had to do for them, and one of them in
# its three forms: plain, with the one line of umrt, tuned by hand.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"

export SOFTGPU_TRUTH=$truth
unhurried
examples >list
while IFS='=' read -r command want; do
    read -r -a words <<<"$command"
    export SOFTGPU_GPUS=1
    [ "${words[0]}" = two_gpus ] && SOFTGPU_GPUS=2
    ok "${words[0]} computes" gives 0 "$programs/${words[0]}" "${words[@]:1}"
    ok "what it must" [ "$(cat "$out")" = "${want# }" ]
done <list

# sixteen PROGRAM [ARGUMENT]: 16 MiB three times over.
export SOFTGPU_GPUS=1 UMRT_ADVISORS=first_touch,ahead UMRT_GUARD_PER_MILLE=0
export LD_LIBRARY_PATH=$UM_BUILDDIR/.libs:$LD_LIBRARY_PATH
sixteen() { gives 0 "$programs/$1" 16 3 "${@:2}"; }
ok "plain" sixteen back_and_forth
ok "it computes what it must" prints '^sum 62914545$'
ok "all of it went to the GPU three times" [ "$(truth_of bytes_to_device)" = $((3 * 16 << 20)) ]
ok "and came back three times" [ "$(truth_of bytes_to_host)" = $((3 * 16 << 20)) ]
ok "in three kernels" [ "$(truth_of kernels)" = 3 ]
plain=$(truth_of gpu_faults)
ok "by faults, one way" [ "$plain" -gt 0 ]
ok "and the other" [ "$(truth_of cpu_faults)" -gt 48 ]
ok "by hand" sixteen back_and_forth hand
ok "it computes the same" prints '^sum 62914545$'
ok "without a fault of the GPU" [ "$(truth_of gpu_faults)" = 0 ]
ok "and none of the CPU but the first writing's" [ "$(truth_of cpu_faults)" = 48 ]
ok "with umrt's one line" sixteen back_and_forth-umrt
ok "it computes the same" prints '^sum 62914545$'
ok "with fewer faults" [ "$(truth_of gpu_faults)" -lt "$plain" ]
finish
