# The driver model.
check_PROGRAMS += tests/unit/sim_uvm_faults
sim_uvm_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS) $(JANSSON_LIBS)
EXTRA_DIST += tests/unit/sim_uvm.h

tests_unit_sim_uvm_faults_SOURCES = tests/unit/sim_uvm_faults.c
tests_unit_sim_uvm_faults_LDADD = $(sim_uvm_ldadd)
