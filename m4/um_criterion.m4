AC_DEFUN([UM_CRITERION], [PKG_CHECK_MODULES([CRITERION], [criterion >= 2.3.3], [um_criterion=yes], [um_criterion=no])
AM_CONDITIONAL([UM_WITH_CRITERION], [test "x$um_criterion" = xyes])])
