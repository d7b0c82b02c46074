# UM_CRITERION
# The unit tests' framework. It is needed by `make check` alone; without it every test program fails
# to compile with the one line of tests/no-criterion/criterion/criterion.h.
AC_DEFUN([UM_CRITERION], [
  PKG_CHECK_MODULES([CRITERION], [criterion >= 2.3.3],
    [um_criterion_summary="Criterion `$PKG_CONFIG --modversion criterion`"],
    [CRITERION_CFLAGS='-Wfatal-errors -I$(top_srcdir)/tests/no-criterion'
     um_criterion_summary="will fail: no Criterion 2.3.3 or newer (package libcriterion-dev)"])
  # ThreadSanitizer and Criterion's processes do not go together.
  AS_CASE([$enable_sanitizer], [*thread*],
    [CRITERION_CFLAGS='-I$(top_srcdir)/tests/in-process' CRITERION_LIBS=
     um_criterion_summary="tests/in-process, for ThreadSanitizer"])
])
