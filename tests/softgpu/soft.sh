# Sourced by the scripts of this folder: programs on the software GPU, found as the loader finds the real one.
# shellcheck shell=bash
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"
unset "${!SOFTGPU_@}" "${!CUDA_@}"
soft=$UM_BUILDDIR/tests/softgpu
export CUDA_HOME=$soft LD_LIBRARY_PATH=$soft/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export UMRT_SHARE_DIR=$tmp/share # the other tests that run now are not on this GPU
export KERNELS=$UM_SRCDIR/examples/driver_api/kernels.ptx
programs=$soft/bin
# unhurried: kernels begin with a rest of 20 ms: time for a hint to come while one runs, on a busy machine too.
unhurried() {
    sed '/^\/\/softgpu kernel/a //softgpu   wait 20000000' "$KERNELS" >unhurried.ptx
    export KERNELS=$tmp/unhurried.ptx
}

# Managed memory needs userfaultfd with minor faults for the kernel's own accesses.
if ! "$programs/back_and_forth" 1 1 >"$out" 2>&1 && grep -q NOT_SUPPORTED "$out"; then
    skip "the software GPU" "no userfaultfd for shared memory here"
    finish
    exit 0
fi

# truth KEY: what the software GPU says that it did, in the last run with SOFTGPU_TRUTH=$truth.
truth=$tmp/truth
truth_of() { awk -v key="$1" '$1 == key { n = $2 } END { printf "%.0f\n", n }' "$truth"; }

# What a trace holds of the GPU's records, in the form of $SOFTGPU_RECORDS but without who; both sorted.
in_trace() {
    "$umrt" dump -t migrate,cpu_fault,gpu_fault,thrash,remote_map "$1" | awk '
        function value(key,   i) {
            for (i = 1; i <= NF; i++)
                if (index($i, key "=") == 1)
                    return substr($i, length(key) + 2)
        }
        BEGIN { split("user fault driverprefetch eviction accesscounters", names)
                for (i in names) cause[names[i]] = i
                cause["unknown"] = 0 }
        $2 == "migrate" { kind = value("src") == "host" ? 1 : value("dst") == "host" ? 2 : 8
                          gsub("\"", "")
                          print kind, value("addr"), value("bytes"), cause[value("cause")] }
        $2 == "cpu_fault" { print 3, value("addr"), value("pc"), value("access") }
        $2 == "gpu_fault" { print 4, value("addr"), value("groups"), value("access") }
        $2 == "thrash" { print 5, value("addr"), value("bytes"), 0 }
        $2 == "remote_map" { print 7, value("addr"), value("bytes"), value("cause") }' | LC_ALL=C sort
}
in_truth() {
    awk '$1 != 0 && $1 != 6 { print $1, $2, $3, $6 }' "$1" | LC_ALL=C sort
}
# traced TRACE RECORDS: the trace holds every record that the GPU made and no other.
traced() {
    in_trace "$1" >has
    in_truth "$2" >made
    [ -s made ] || { echo "the GPU made no records"; return 1; }
    diff made has >difference || { echo "made and not told, or told and not made:"; head -20 difference; return 1; }
}
# The trace may lack some, but holds none that the GPU did not make.
none_made_up() {
    in_trace "$1" >has
    in_truth "$2" >made
    [ -z "$(LC_ALL=C comm -13 made has)" ] || { echo "told and not made:"; LC_ALL=C comm -13 made has; return 1; }
}
# A trace tells of no loss, but that a busy machine let umrt come late for records: there might be some.
no_loss() { "$umrt" dump -t loss "$1" >losses && ! grep -v -e '^#' -e 'fell behind' losses; }
# Each example with what it prints on any GPU: NAME ARGUMENTS = OUTPUT.
examples() {
    echo 'back_and_forth 8 3 = sum 31457271'
    echo 'families = mean 5.000'
    echo 'graph 4 5 = x 5, y seen 7.5'
    echo 'two_gpus = 6 6'
    echo 'two_streams = y 21 21, called 3 times'
}
