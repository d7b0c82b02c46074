#!/usr/bin/env bash
# The soak program of the software GPU on a real one: eight threads that launch and allocate without rest; alone, hinted
# by all advisors with a profile, and recorded, all three at once, then hinted again from that profile. They end, their
# data are right, memory stays what it is, and the trace holds every launch. It takes SOAK_SECONDS (20) and a third more,
# at most 30 s. Managed memory: under 64 MiB a process at a time, so under 192 MiB.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"
seconds=${SOAK_SECONDS:-20}
again=$((seconds / 3 < 30 ? seconds / 3 : 30))
# shellcheck source=tests/softgpu/soaked.sh
. "$UM_SRCDIR/tests/softgpu/soaked.sh"
cuda=${CUDA_HOME:-/usr/local/cuda}
export KERNELS=$UM_SRCDIR/examples/driver_api/kernels.ptx

if ! nvidia-smi -L >/dev/null 2>&1; then
    echo '1..0 # SKIP no NVIDIA GPU answers'
    exit 0
fi
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -pthread -I"$UM_SRCDIR" -I"$cuda/include" -o soak "$UM_SRCDIR/tests/softgpu/soak.c" \
    -L"$cuda/lib64/stubs" -lcuda -ldl >cc.log 2>&1 || { cat cc.log; exit 99; }

soak alone "$seconds" "$tmp/soak" &
soak hinted "$seconds" "$umrt" run --advisors all --profile f.ump -- "$tmp/soak" &
soak recorded "$seconds" "$umrt" record -o t.umt -- "$tmp/soak" &
wait
ok "alone: to the end, with the right sums" right alone
# What the driver keeps for the program is not umrt's.
drivers=$(grew alone 4)
((drivers > 0)) && OWN_KIB=$((OWN_KIB + drivers))
for run in hinted recorded; do
    ok "$run: to the end, with the right sums" right $run
    ok "$run: what umrt holds is counted" counted $run
    ok "$run: umrt holds no more than when warm" stays $run 3 $OURS_KIB
    ok "$run: the process holds no more than alone" stays $run 4 $OWN_KIB
done
ok "recorded: every launch" [ "$("$umrt" dump -t launch recorded/t.umt | grep -vc '^#')" = "$(launched recorded)" ]
ok "hinted again: to the end, with the right sums" \
    soaked again "$again" "$umrt" run --profile "$tmp/hinted/f.ump" -- "$tmp/soak"
finish
