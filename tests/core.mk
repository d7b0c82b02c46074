# tests of lib/core
check_PROGRAMS += tests/unit/regions tests/unit/bus \
	tests/unit/regions_threads tests/unit/kernels_threads tests/unit/bus_threads
tests_unit_regions_SOURCES = tests/unit/regions.c
tests_unit_bus_SOURCES = tests/unit/bus.c
tests_unit_regions_threads_SOURCES = tests/unit/regions_threads.c
tests_unit_kernels_threads_SOURCES = tests/unit/kernels_threads.c
tests_unit_bus_threads_SOURCES = tests/unit/bus_threads.c
UM_THREAD_TESTS += tests/unit/regions_threads tests/unit/kernels_threads tests/unit/bus_threads
