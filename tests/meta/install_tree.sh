#!/bin/sh
# `make install DESTDIR=` gives a tree that works where it is put: headers, library, command, umrt.pc.
. "$UM_SRCDIR/tests/meta/tap.sh"

dest=$scratch/dest
MAKEFLAGS='' "${MAKE:-make}" -s -C "$UM_BUILDDIR" install DESTDIR="$dest" >"$scratch/log" 2>&1 || {
    sed 's/^/# /' "$scratch/log"
    echo "Bail out! make install DESTDIR= failed"
    exit 1
}
library=$(find "$dest" -name libumrt.so)
libdir=$(dirname "$library")
prefix=$(dirname "$libdir")

headers() { ls "$prefix/include"; }
umrt_runs() { "$prefix/bin/umrt" --version | grep -v '^umrt [0-9]' || :; }

# A program with the one line of um_runtime.h, built from what is installed.
program_builds() {
    cat >"$scratch/user.c" <<'END'
#include <um_runtime.h>
int main(void) { return um_runtime_init(0) == UM_OK ? 0 : 1; }
END
    ${CC:-cc} -o "$scratch/user" "$scratch/user.c" \
        -I"$prefix/include" -L"$libdir" -lumrt -Wl,-rpath,"$libdir"
}
program_runs() { UMRT_MODE=off "$scratch/user"; }

pc_file() {
    PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --define-prefix --exists --print-errors umrt
    [ "$(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --define-prefix --variable=libdir umrt)" = \
        "$libdir" ] || echo "umrt.pc does not follow its prefix"
}
only() { [ "$("$1")" = "$2" ] || "$1"; }

plan 5
ok "exactly the four public headers" only headers "um_advisor.h
um_event.h
um_runtime.h
um_trace.h"
ok "the installed umrt runs" umrt_runs
ok "a program builds with the installed header and library" program_builds
ok "that program runs" program_runs
if command -v pkg-config >/dev/null; then
    ok "umrt.pc follows its prefix" pc_file
else
    skip "umrt.pc follows its prefix" "no pkg-config"
fi
