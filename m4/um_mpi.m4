# UM_MPI
# --with-mpi[=MPICC]: `umrt replay` spreads its work over the ranks of mpirun. Off unless asked for; asked
# for and unusable is an error. The compiler wrapper only tells flags: one compiler builds everything.
AC_DEFUN([UM_MPI], [
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi@<:@=MPICC@:>@],
      [spread umrt replay over the ranks of mpirun (Open MPI); MPICC is its compiler wrapper])],
    [], [with_mpi=no])
  um_mpi_summary="one process (--with-mpi was not given)"
  AS_IF([test "x$with_mpi" != xno], [
    AS_IF([test "x$with_mpi" = xyes],
      [AC_PATH_PROGS([MPICC], [mpicc mpicc.openmpi], [no])],
      [AC_PATH_PROG([MPICC], [$with_mpi], [no])])
    AS_IF([test "x$MPICC" = xno],
      [AC_MSG_ERROR([--with-mpi: there is no mpicc; on Debian or Ubuntu: apt-get install libopenmpi-dev openmpi-bin])])
    MPI_CPPFLAGS=`"$MPICC" --showme:compile 2>/dev/null` && MPI_LIBS=`"$MPICC" --showme:link 2>/dev/null` ||
      AC_MSG_ERROR([--with-mpi: $MPICC is not Open MPI's: it does not know --showme])
    um_save_CPPFLAGS=$CPPFLAGS um_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS" LIBS="$MPI_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0);]])], [],
      [AC_MSG_ERROR([--with-mpi: a program does not link with what $MPICC says])])
    CPPFLAGS=$um_save_CPPFLAGS LIBS=$um_save_LIBS
    MPI_CPPFLAGS="$MPI_CPPFLAGS -DUM_WITH_MPI"
    um_mpi_summary=$MPICC
  ])
  AC_SUBST([MPI_CPPFLAGS])
  AC_SUBST([MPI_LIBS])
  AM_CONDITIONAL([UM_WITH_MPI], [test "x$with_mpi" != xno])
])
