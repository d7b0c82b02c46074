# sim backtest: tests.
check_PROGRAMS += tests/unit/sim_backtest tests/unit/sim_calibrate
sim_backtest_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS) $(JANSSON_LIBS) -lm
tests_unit_sim_backtest_LDADD = $(sim_backtest_ldadd)
tests_unit_sim_calibrate_LDADD = $(sim_backtest_ldadd)
dist_check_SCRIPTS += tests/cli/calibrate.sh
EXTRA_DIST += tests/gpu/check_calibrate.sh
# savings predicted against savings measured
check_PROGRAMS += tests/unit/sim_saving_error
tests_unit_sim_saving_error_LDADD = $(report_ldadd)
