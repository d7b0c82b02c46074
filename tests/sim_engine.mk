# sim engine: tests.
EXTRA_DIST += tests/unit/sim_program.h
check_PROGRAMS += tests/unit/sim_machine tests/unit/sim_engine
tests_unit_sim_machine_SOURCES = tests/unit/sim_machine.c
tests_unit_sim_machine_LDADD = libumtool.la $(LDADD)
tests_unit_sim_engine_SOURCES = tests/unit/sim_engine.c
tests_unit_sim_engine_LDADD = libumtool.la $(LDADD)
