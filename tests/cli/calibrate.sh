#!/usr/bin/env bash
# umrt calibrate where it cannot work: one line that says why, status 2, no file.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

refused() { # PATTERN ENVIRONMENT... : with that environment, for that reason
    local pattern=$1
    shift
    gives 2 env "$@" "$umrt" calibrate -o m.json && one_line && says "$pattern" && [ ! -e m.json ]
}

mkdir -p empty
ok "an argument too many is 2" gives 2 "$umrt" calibrate here
ok "and said to be" says "'here' is one argument too many; see 'umrt calibrate --help'"
ok "a GPU that is no number is 2" gives 2 "$umrt" calibrate --gpu first
ok "and named" says "^umrt: calibrate: --gpu: 'first' is not the number of a GPU"
if [ -e "$UM_BUILDDIR/tests/fake/libcuda.so.1" ]; then
    fake="LD_LIBRARY_PATH=$UM_BUILDDIR/tests/fake"
    ok "without concurrent access" \
        refused '^umrt: calibrate: concurrentManagedAccess is 0' "$fake" FAKE_CUDA_NO_CONCURRENT=1
    ok "with little memory free" \
        refused '^umrt: calibrate: GPU 0 has 512 MiB free' "$fake" FAKE_CUDA_FREE_MIB=512
    ok "with a driver that lacks the calls" \
        refused '^umrt: calibrate: GPU 0 cannot be measured, its driver refuses a call that this needs: [a-z_]+: [A-Z_a-z ]+$' "$fake"
    ok "a GPU that is not there is 2" gives 2 env "$fake" "$umrt" calibrate --gpu 7
    ok "and those that are are counted" says '^umrt: calibrate: there is no GPU 7, only 0 to 0$'
fi
if ! nvidia-smi -L >/dev/null 2>&1; then
    ok "without a driver or in an offline build" \
        refused '^umrt: calibrate: (no CUDA driver here|this umrt was built without)' A=b
fi
finish
