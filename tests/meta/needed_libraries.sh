#!/bin/sh
# libumrt.so goes into other people's processes and must need libc alone.
. "$UM_SRCDIR/tests/meta/tap.sh"

# others LIBRARY: needed libraries that are not glibc's.
others() {
    readelf -d "$1" >"$scratch/dynamic" || return 1
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$scratch/dynamic" |
        grep -Ev '^(libc|libm|libpthread|libdl|librt)\.so\.[0-9]+$|^ld-linux' || :
}

plan 2
if grep -q '^UM_ZSTD_LIBS = .*libzstd\.a' "$UM_BUILDDIR/Makefile"; then
    ok "libumrt.so needs libc alone" others "$UM_BUILDDIR/.libs/libumrt.so"
else
    skip "libumrt.so needs libc alone" "this machine has no libzstd.a fit for a shared library"
fi
echo 'unsigned ZSTD_versionNumber(void); unsigned um_x(void); unsigned um_x(void) { return ZSTD_versionNumber(); }' |
    ${CC:-cc} -x c -shared -fPIC -o "$scratch/planted.so" - -lzstd
caught "a library that needs another" others "$scratch/planted.so"
