# Bounds and replay.
replay_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/sim_bounds
tests_unit_sim_bounds_SOURCES = tests/unit/sim_bounds.c tests/unit/sim_hand.h
tests_unit_sim_bounds_LDADD = $(replay_ldadd)

check_PROGRAMS += tests/unit/sim_bounds_hold
tests_unit_sim_bounds_hold_SOURCES = tests/unit/sim_bounds_hold.c
tests_unit_sim_bounds_hold_LDADD = $(replay_ldadd)
