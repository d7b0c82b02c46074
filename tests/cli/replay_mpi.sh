#!/usr/bin/env bash
# umrt replay on two ranks of mpirun: the same bytes as without, where this build can do it.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

if ! grep -q '^MPI_CPPFLAGS = .*UM_WITH_MPI' "$UM_BUILDDIR/Makefile"; then
    skip "two ranks" "this build is without MPI (--with-mpi)"
    finish
    exit
fi
if ! command -v mpirun >/dev/null; then
    skip "two ranks" "there is no mpirun"
    finish
    exit
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() { mpirun -n 2 --oversubscribe "$umrt" replay "$@"; }
"$umrt" gen ping-pong -o pp.umt -s 16M -n 2 >/dev/null
"$umrt" gen stream -o st.umt -s 16M -n 2 >/dev/null
args=(--policy all --machine 'h200-pcie5,v100-pcie3' --gpu-mem '50%,100%' pp.umt st.umt)
alike() {
    gives 0 ranks "$@" "${args[@]}" && cp "$out" two && gives 0 "$umrt" replay "$@" "${args[@]}" && cmp "$out" two
}
one_says() { # mpirun adds lines of its own
    gives 2 ranks "$@" && return "$(($(grep -c '^umrt: ' "$err") != 1))"
}
ok "two ranks print what one does" alike
ok "as JSON, too" alike --json
ok "more ranks than simulations" gives 0 mpirun -n 4 --oversubscribe "$umrt" replay -p none,driver pp.umt
ok "what cannot be is said once" one_says -p no-such pp.umt
ok "a file that is not there, too" one_says missing
finish
