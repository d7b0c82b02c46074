#!/usr/bin/env bash
# The software GPU answers what a real one did (tests/gpu/conformance.expected), but for the differences that
# README.md lists.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"

gpu=$UM_SRCDIR/tests/gpu
same() {
    awk -v differences="$UM_SRCDIR/tests/softgpu/README.md" -f "$gpu/conformance.awk" \
        "$gpu/conformance.expected" "$out"
}
try "$programs/reality"
if [ "$status" = 77 ]; then
    skip "reality" "the headers are of CUDA before 13.0"
else
    ok "the probes run" [ "$status" = 0 ]
    ok "all answers are the real one's, or listed in README.md" same
fi
finish
