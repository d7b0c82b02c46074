# the hint loop and the runtime's life
EXTRA_DIST += tests/unit/hints_fake.h tests/unit/program_fake.h tests/unit/gate_fake.h \
	tests/unit/footprint_fake.h
check_PROGRAMS += tests/unit/pagemap tests/unit/residency tests/unit/hinter \
	tests/unit/gate tests/unit/gate_advice tests/unit/gate_waits \
	tests/unit/workers_threads tests/unit/recorder tests/unit/summary \
	tests/unit/decisions tests/unit/sharing tests/unit/guard tests/unit/footprint
check_PROGRAMS += tests/unit/share tests/unit/host_memory
check_PROGRAMS += tests/unit/runtime tests/unit/runtime_threads tests/unit/hinting_threads
UM_THREAD_TESTS += tests/unit/workers_threads tests/unit/runtime_threads tests/unit/hinting_threads
if UM_WITH_CUDA
check_PROGRAMS += tests/unit/cuda_executor
tests_unit_cuda_executor_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS)
endif
# the advisors and the simulator's baselines
check_PROGRAMS += tests/unit/ahead tests/unit/ahead_sweep tests/unit/calm tests/unit/evict tests/unit/first_touch tests/unit/placement \
	tests/unit/read_mostly tests/unit/readback tests/unit/readback_moving tests/unit/advisor_contract tests/unit/baselines
tests_unit_advisor_contract_LDADD = libumtool.la $(LDADD)
tests_unit_baselines_LDADD = libumtool.la $(LDADD)
check_PROGRAMS += tests/unit/profile tests/unit/sequence
check_PROGRAMS += tests/unit/lookahead tests/unit/sequence_cpu tests/unit/footprint_stride \
	tests/unit/footprint_integer tests/unit/footprint_slices tests/unit/footprint_evidence \
	tests/unit/footprint_profile
EXTRA_DIST += tests/unit/sequence_world.h
