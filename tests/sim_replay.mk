# Bounds and replay.
replay_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/sim_bounds
tests_unit_sim_bounds_SOURCES = tests/unit/sim_bounds.c tests/unit/sim_hand.h
tests_unit_sim_bounds_LDADD = $(replay_ldadd)

check_PROGRAMS += tests/unit/sim_bounds_hold
tests_unit_sim_bounds_hold_LDADD = $(replay_ldadd)

dist_check_SCRIPTS += tests/cli/replay.sh tests/cli/replay_bad_input.sh tests/cli/replay_backtest.sh \
	tests/cli/replay_mpi.sh

# Writes traces for replay_bad_input.sh.
noinst_PROGRAMS += tests/cli/impossible
tests_cli_impossible_SOURCES = tests/cli/impossible.c
tests_cli_impossible_LDADD = libumcore.la
