# workloads and generators
sim_input_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS) $(JANSSON_LIBS)
check_PROGRAMS += tests/unit/sim_workload tests/unit/sim_gen tests/unit/sim_recorded
tests_unit_sim_workload_LDADD = $(sim_input_ldadd)
tests_unit_sim_gen_LDADD = $(sim_input_ldadd)
tests_unit_sim_recorded_LDADD = $(sim_input_ldadd)
dist_check_SCRIPTS += tests/cli/gen.sh
EXTRA_DIST += tests/gpu/check_deep.sh tests/gpu/half.cu
