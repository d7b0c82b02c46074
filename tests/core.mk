# tests of lib/core; _threads ones also run under ThreadSanitizer
check_PROGRAMS += tests/unit/event tests/unit/log tests/unit/settings tests/unit/bus \
	tests/unit/regions tests/unit/kernels tests/unit/mangled tests/unit/cubin \
	tests/unit/bus_threads tests/unit/regions_threads tests/unit/kernels_threads
tests_unit_event_SOURCES = tests/unit/event.c
tests_unit_log_SOURCES = tests/unit/log.c
tests_unit_settings_SOURCES = tests/unit/settings.c
tests_unit_bus_SOURCES = tests/unit/bus.c
tests_unit_regions_SOURCES = tests/unit/regions.c
tests_unit_kernels_SOURCES = tests/unit/kernels.c
tests_unit_mangled_SOURCES = tests/unit/mangled.c
tests_unit_cubin_SOURCES = tests/unit/cubin.c
tests_unit_bus_threads_SOURCES = tests/unit/bus_threads.c
tests_unit_regions_threads_SOURCES = tests/unit/regions_threads.c
tests_unit_kernels_threads_SOURCES = tests/unit/kernels_threads.c
UM_THREAD_TESTS += tests/unit/regions_threads tests/unit/kernels_threads tests/unit/bus_threads
EXTRA_DIST += tests/data/cubin
