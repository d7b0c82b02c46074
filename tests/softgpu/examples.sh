#!/usr/bin/env bash
# The driver-API examples on the software GPU: their results, and what the GPU had to do for them.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"

export SOFTGPU_TRUTH=$truth
ok "back_and_forth computes" gives 0 "$programs/back_and_forth" 16 3
ok "what it must" prints '^sum 62914545$'
ok "all of it went to the GPU three times" [ "$(truth_of bytes_to_device)" = $((3 * 16 << 20)) ]
ok "and came back three times" [ "$(truth_of bytes_to_host)" = $((3 * 16 << 20)) ]
ok "in three kernels" [ "$(truth_of kernels)" = 3 ]
finish
