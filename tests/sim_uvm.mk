# The driver model.
check_PROGRAMS += tests/unit/sim_uvm_faults tests/unit/sim_uvm_traces tests/unit/sim_uvm_memory \
	tests/unit/sim_uvm_thrash tests/unit/sim_uvm_advice tests/unit/sim_uvm_random
sim_uvm_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS) $(JANSSON_LIBS)
EXTRA_DIST += tests/unit/sim_uvm.h

tests_unit_sim_uvm_faults_LDADD = $(sim_uvm_ldadd)
tests_unit_sim_uvm_traces_LDADD = $(sim_uvm_ldadd)
tests_unit_sim_uvm_memory_LDADD = $(sim_uvm_ldadd)
tests_unit_sim_uvm_thrash_LDADD = $(sim_uvm_ldadd)
tests_unit_sim_uvm_advice_LDADD = $(sim_uvm_ldadd)
tests_unit_sim_uvm_random_LDADD = $(sim_uvm_ldadd)
