# UM_FIND_HEADER(VARIABLE, HEADER, DIRECTORIES)
# Sets VARIABLE to the first of DIRECTORIES that holds HEADER, or to nothing.
AC_DEFUN([UM_FIND_HEADER], [
  $1=
  for um_dir in $3; do
    AS_IF([test -f "$um_dir/$2"], [$1=$um_dir; break])
  done
])

# UM_CUDA
# Finds a CUDA toolkit whose headers include CUPTI's (UM_CUPTI checks that they compile). Headers are
# all that is needed: the libraries are opened at run time.
#
# --with-cuda=DIR  that toolkit, or a directory that holds NVIDIA's wheels (nvidia/...), or an error
# --with-cuda      any of the usual places, or an error
# --without-cuda   offline tools only
# neither          any of the usual places, or offline tools only
#
# Sets NVCC, um_cuda_include, um_crt_include and um_cupti_include ("" = offline tools only) and
# um_cuda_why, the reason for the latter.
AC_DEFUN([UM_CUDA], [
  AC_REQUIRE([AC_CANONICAL_HOST])
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR], [CUDA toolkit (default: CUDA_HOME, CUDA_PATH, nvcc's, usual places)])],
    [], [with_cuda=check])
  AC_ARG_VAR([NVCC], [CUDA compiler, for the examples])
  AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin$PATH_SEPARATOR$CUDA_HOME/bin$PATH_SEPARATOR$PATH$PATH_SEPARATOR/usr/local/cuda/bin])

  um_cuda_include= um_cupti_include=
  um_cuda_why="no cuda.h was found"
  AS_CASE([$with_cuda],
    [no], [um_cuda_roots= um_cuda_why="configured --without-cuda"],
    [yes|check], [
      um_cuda_roots="$CUDA_HOME $CUDA_PATH"
      AS_IF([test -n "$NVCC"],
        [um_cuda_roots="$um_cuda_roots `dirname "\`readlink -f "$NVCC"\`"`/.."])
      um_cuda_roots="$um_cuda_roots /usr/local/cuda /opt/cuda /usr"],
    [um_cuda_roots=$with_cuda
     um_cuda_why="$with_cuda holds no cuda.h"])

  AC_MSG_CHECKING([for CUDA and CUPTI headers])
  for um_root in $um_cuda_roots; do
    AS_IF([test -d "$um_root"], [um_root=`cd "$um_root" && pwd`], [continue])
    UM_FIND_HEADER([um_cuda_include], [cuda.h],
      [$um_root/include $um_root/targets/$host_cpu-linux/include $um_root/targets/*/include \
       $um_root/nvidia/cuda_runtime/include $um_root/nvidia/cu*/include \
       $um_root/cuda_runtime/include $um_root/cu*/include])
    AS_IF([test -z "$um_cuda_include"], [continue])
    UM_FIND_HEADER([um_cupti_include], [cupti.h],
      [$um_cuda_include $um_root/include $um_root/extras/CUPTI/include \
       $um_root/targets/*/include $um_root/nvidia/cuda_cupti/include $um_root/cuda_cupti/include])
    # Among wheels, what both include lies in a third one.
    UM_FIND_HEADER([um_crt_include], [crt/host_defines.h],
      [$um_cuda_include $um_root/nvidia/cuda_nvcc/include $um_root/cuda_nvcc/include])
    AS_IF([test -n "$um_cupti_include"], [break])
    um_cuda_why="$um_cuda_include has cuda.h but no cupti.h is beside it"
    um_cuda_include=
  done
  AS_IF([test -n "$um_cupti_include"], [AC_MSG_RESULT([$um_root])], [AC_MSG_RESULT([no])])
])
