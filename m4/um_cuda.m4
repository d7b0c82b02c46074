AC_DEFUN([UM_CUDA], [
AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR], [CUDA toolkit root])], [], [with_cuda=check])
um_cuda=no
AS_IF([test "x$with_cuda" != xno], [
  um_try="$with_cuda"; AS_IF([test "x$with_cuda" = xcheck -o "x$with_cuda" = xyes], [um_try="$CUDA_HOME /usr/local/cuda"])
  for d in $um_try; do AS_IF([test -f "$d/include/cuda.h"], [um_cuda="$d"; break]) done])
AM_CONDITIONAL([UM_WITH_CUDA], [test "x$um_cuda" != xno])
AC_SUBST([CUDA_CPPFLAGS], ["-I$um_cuda/include"])
])
