#!/usr/bin/env bash
# The soak program of the software GPU on a real one: eight threads that launch and allocate without rest, hinted by all
# advisors with a profile, and recorded. They end, their data are right, memory stays what it is, and the trace holds
# every launch. SOAK_SECONDS=300 for a long one. Managed memory: under 64 MiB at a time.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"
seconds=${SOAK_SECONDS:-20}
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

# What the driver keeps for the program is not umrt's.
ok "alone: to the end, with the right sums" soaked ./soak "$seconds"
OWN_KIB=$((OWN_KIB + $(grew 4)))
ok "hinted by all: to the end, with the right sums" soaked "$umrt" run --advisors all --profile f.ump -- ./soak "$seconds"
ok "hinted by all: umrt holds no more than when warm" stays 3 $OURS_KIB
ok "hinted by all: the process holds no more than alone" stays 4 $OWN_KIB
ok "hinted again: to the end, with the right sums" soaked "$umrt" run --profile f.ump -- ./soak "$((seconds / 3))"
ok "recorded: to the end, with the right sums" soaked "$umrt" record -o t.umt -- ./soak "$seconds"
ok "recorded: umrt holds no more than when warm" stays 3 $OURS_KIB
ok "recorded: the process holds no more than alone" stays 4 $OWN_KIB
ok "recorded: every launch" [ "$("$umrt" dump -t launch t.umt | grep -vc '^#')" = "$(launched)" ]
finish
