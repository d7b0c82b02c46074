# Sourced by the scripts of this folder: programs on the software GPU, found as the loader finds the real one.
# shellcheck shell=bash
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"
unset "${!SOFTGPU_@}" "${!CUDA_@}"
soft=$UM_BUILDDIR/tests/softgpu
export CUDA_HOME=$soft LD_LIBRARY_PATH=$soft/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export KERNELS=$UM_SRCDIR/examples/driver_api/kernels.ptx
programs=$soft/bin

# Managed memory needs userfaultfd with minor faults for the kernel's own accesses.
if ! "$programs/back_and_forth" 1 1 >"$out" 2>&1 && grep -q NOT_SUPPORTED "$out"; then
    skip "the software GPU" "no userfaultfd for shared memory here"
    finish
    exit 0
fi

# truth KEY: what the software GPU says that it did, in the last run with SOFTGPU_TRUTH=$truth.
truth=$tmp/truth
truth_of() { awk -v key="$1" '$1 == key { n = $2 } END { print n + 0 }' "$truth"; }
