# the hint loop and the runtime's life
EXTRA_DIST += tests/unit/hints_fake.h tests/unit/program_fake.h tests/unit/gate_fake.h
check_PROGRAMS += tests/unit/pagemap tests/unit/residency tests/unit/hinter \
	tests/unit/gate tests/unit/gate_advice tests/unit/gate_waits \
	tests/unit/workers_threads tests/unit/recorder tests/unit/summary \
	tests/unit/decisions tests/unit/sharing tests/unit/guard tests/unit/footprint
check_PROGRAMS += tests/unit/share tests/unit/host_memory
tests_unit_share_SOURCES = tests/unit/share.c
tests_unit_host_memory_SOURCES = tests/unit/host_memory.c
tests_unit_pagemap_SOURCES = tests/unit/pagemap.c
tests_unit_residency_SOURCES = tests/unit/residency.c
tests_unit_gate_SOURCES = tests/unit/gate.c
tests_unit_gate_advice_SOURCES = tests/unit/gate_advice.c
tests_unit_gate_waits_SOURCES = tests/unit/gate_waits.c
tests_unit_hinter_SOURCES = tests/unit/hinter.c
tests_unit_decisions_SOURCES = tests/unit/decisions.c
tests_unit_sharing_SOURCES = tests/unit/sharing.c
tests_unit_guard_SOURCES = tests/unit/guard.c
tests_unit_footprint_SOURCES = tests/unit/footprint.c
tests_unit_workers_threads_SOURCES = tests/unit/workers_threads.c
tests_unit_recorder_SOURCES = tests/unit/recorder.c
tests_unit_summary_SOURCES = tests/unit/summary.c
check_PROGRAMS += tests/unit/runtime tests/unit/runtime_threads tests/unit/hinting_threads
UM_THREAD_TESTS += tests/unit/workers_threads tests/unit/runtime_threads tests/unit/hinting_threads
tests_unit_hinting_threads_SOURCES = tests/unit/hinting_threads.c
tests_unit_runtime_SOURCES = tests/unit/runtime.c
tests_unit_runtime_threads_SOURCES = tests/unit/runtime_threads.c
if UM_WITH_CUDA
check_PROGRAMS += tests/unit/cuda_executor
tests_unit_cuda_executor_SOURCES = tests/unit/cuda_executor.c
tests_unit_cuda_executor_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS)
endif
# the advisors and the simulator's baselines
check_PROGRAMS += tests/unit/calm tests/unit/evict tests/unit/first_touch tests/unit/placement \
	tests/unit/read_mostly tests/unit/readback tests/unit/advisor_contract tests/unit/baselines
tests_unit_calm_SOURCES = tests/unit/calm.c
tests_unit_evict_SOURCES = tests/unit/evict.c
tests_unit_first_touch_SOURCES = tests/unit/first_touch.c
tests_unit_placement_SOURCES = tests/unit/placement.c
tests_unit_read_mostly_SOURCES = tests/unit/read_mostly.c
tests_unit_readback_SOURCES = tests/unit/readback.c
tests_unit_advisor_contract_SOURCES = tests/unit/advisor_contract.c
tests_unit_advisor_contract_LDADD = libumtool.la $(LDADD)
tests_unit_baselines_SOURCES = tests/unit/baselines.c
tests_unit_baselines_LDADD = libumtool.la $(LDADD)
check_PROGRAMS += tests/unit/profile tests/unit/sequence
tests_unit_sequence_SOURCES = tests/unit/sequence.c
tests_unit_profile_SOURCES = tests/unit/profile.c
