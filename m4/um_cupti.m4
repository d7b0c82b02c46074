# UM_CUPTI
# Checks that what UM_CUDA found compiles and is new enough, reads both versions from the headers and
# decides: conditional UM_WITH_CUDA, CUDA_CPPFLAGS, CUPTI_CPPFLAGS, and a line each for the summary.
# A CUDA that was asked for and cannot be used is an error.
AC_DEFUN([UM_CUPTI], [
  AC_REQUIRE([UM_CUDA])
  um_cuda_summary="offline tools only: $um_cuda_why"
  um_cupti_summary="none"
  CUDA_CPPFLAGS= CUPTI_CPPFLAGS=

  AS_IF([test -n "$um_cupti_include"], [
    # -isystem: their warnings are not ours. The compiler's own directories are left as they are.
    AS_IF([test "$um_cuda_include" != /usr/include], [CUDA_CPPFLAGS="-isystem $um_cuda_include"])
    AS_IF([test "$um_cupti_include" != "$um_cuda_include"],
      [CUPTI_CPPFLAGS="-isystem $um_cupti_include"])
    AS_IF([test -n "$um_crt_include" && test "$um_crt_include" != "$um_cuda_include"],
      [CUDA_CPPFLAGS="$CUDA_CPPFLAGS -isystem $um_crt_include"])
    um_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS $CUPTI_CPPFLAGS"
    um_headers="@%:@include <cuda.h>
@%:@include <cupti.h>"
    AC_MSG_CHECKING([whether they compile and are CUDA 11.8 or newer])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([$um_headers
@%:@if CUDA_VERSION < 11080
@%:@error too old
@%:@endif], [])],
      [AC_MSG_RESULT([yes])
       AC_COMPUTE_INT([um_cuda_version], [CUDA_VERSION], [$um_headers])
       AC_COMPUTE_INT([um_cupti_version], [CUPTI_API_VERSION], [$um_headers])
       um_cuda_version=`expr $um_cuda_version / 1000`.`expr $um_cuda_version % 1000 / 10`
       um_cuda_summary="$um_cuda_version in $um_cuda_include"
       um_cupti_summary="API $um_cupti_version in $um_cupti_include"],
      [AC_MSG_RESULT([no])
       um_cuda_why="the headers in $um_cuda_include do not compile or are older than CUDA 11.8"
       um_cuda_summary="offline tools only: $um_cuda_why"
       um_cupti_include=])
    CPPFLAGS=$um_save_CPPFLAGS
  ])

  AS_IF([test -z "$um_cupti_include" && test "x$with_cuda" != xno && test "x$with_cuda" != xcheck],
    [AC_MSG_ERROR([--with-cuda=$with_cuda cannot be used: $um_cuda_why])])
  AM_CONDITIONAL([UM_WITH_CUDA], [test -n "$um_cupti_include"])
  AM_CONDITIONAL([UM_WITH_NVCC], [test -n "$um_cupti_include" && test -n "$NVCC"])
  AC_SUBST([um_cuda_summary]) # quickstart reads it
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUPTI_CPPFLAGS])
])
