# UM_ZSTD
# libumrt.so lives in other people's processes and must need libc alone, so zstd goes in statically
# and hidden where its archive can be part of a shared library (hidden names need no PIC archive). UM_ZSTD_LIBS is what to link with,
# UM_HIDE_LDFLAGS what keeps its names inside.
AC_DEFUN([UM_ZSTD], [
  AC_CACHE_CHECK([for a libzstd.a that can go into a shared library], [um_cv_zstd_static], [
    um_save_CFLAGS=$CFLAGS um_save_LIBS=$LIBS
    CFLAGS="$CFLAGS $ZSTD_CFLAGS -fPIC -shared -Wl,--exclude-libs,libzstd.a -Wl,-z,defs -Wl,-z,text"
    LIBS="-l:libzstd.a"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <zstd.h>
size_t f(void *d, const void *s);
size_t f(void *d, const void *s) { return ZSTD_compress(d, 64, s, 8, 1); }]])],
      [um_cv_zstd_static=yes], [um_cv_zstd_static=no])
    CFLAGS=$um_save_CFLAGS LIBS=$um_save_LIBS])
  AS_IF([test "x$um_cv_zstd_static" = xyes],
    [UM_ZSTD_LIBS="-l:libzstd.a"
     UM_HIDE_LDFLAGS="-Wl,--exclude-libs,libzstd.a"
     um_zstd_summary="static and hidden"],
    [UM_ZSTD_LIBS=$ZSTD_LIBS
     um_zstd_summary="shared: no usable libzstd.a, so libumrt.so needs libzstd.so"
     AC_MSG_WARN([no usable libzstd.a: libumrt.so will need libzstd.so in every process that loads it])])
  AC_SUBST([UM_ZSTD_LIBS])
  AC_SUBST([UM_HIDE_LDFLAGS])
])
