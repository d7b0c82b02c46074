# tests of lib/core; _threads ones also run under ThreadSanitizer
check_PROGRAMS += tests/unit/event tests/unit/log tests/unit/settings tests/unit/bus \
	tests/unit/regions tests/unit/kernels tests/unit/mangled tests/unit/cubin \
	tests/unit/bus_threads tests/unit/regions_threads tests/unit/kernels_threads
UM_THREAD_TESTS += tests/unit/regions_threads tests/unit/kernels_threads tests/unit/bus_threads
EXTRA_DIST += tests/data/cubin
