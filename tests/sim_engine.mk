# sim engine: tests.
EXTRA_DIST += tests/unit/sim_program.h
check_PROGRAMS += tests/unit/sim_machine tests/unit/sim_engine tests/unit/sim_loop \
	tests/unit/sim_footprint tests/unit/sim_stride
sim_engine_ldadd = libumtool.la $(LDADD)
tests_unit_sim_machine_LDADD = $(sim_engine_ldadd)
tests_unit_sim_engine_LDADD = $(sim_engine_ldadd)
tests_unit_sim_loop_LDADD = $(sim_engine_ldadd)
tests_unit_sim_footprint_LDADD = $(sim_engine_ldadd)
tests_unit_sim_stride_LDADD = $(sim_engine_ldadd)
