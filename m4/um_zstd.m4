dnl libumrt.so lives in other people's processes and must need libc alone, so zstd goes in statically
dnl where its archive can be part of a shared library. UM_ZSTD_LIBS is what to link with.
AC_DEFUN([UM_ZSTD], [
PKG_CHECK_MODULES([ZSTD], [libzstd >= 1.4])
AC_CACHE_CHECK([for a static libzstd], [um_cv_zstd_static], [
  um_save_LIBS=$LIBS
  um_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $ZSTD_CFLAGS -fPIC -shared -Wl,-z,defs -Wl,-z,text"
  LIBS="-l:libzstd.a"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <zstd.h>
    size_t f(void *d, const void *s);
    size_t f(void *d, const void *s) { return ZSTD_compress(d, 64, s, 8, 1); }]])],
    [um_cv_zstd_static=yes], [um_cv_zstd_static=no])
  LIBS=$um_save_LIBS
  CFLAGS=$um_save_CFLAGS])
AS_IF([test "x$um_cv_zstd_static" = xyes], [UM_ZSTD_LIBS="-l:libzstd.a"], [UM_ZSTD_LIBS=$ZSTD_LIBS])
AC_SUBST([UM_ZSTD_LIBS])
])
