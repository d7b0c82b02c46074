# The CUDA source: decoding, symbol tables, and the whole of it against a fake driver and CUPTI.
EXTRA_DIST += tests/unit/cupti_program.h tests/fake/cuda.c tests/fake/cupti.c \
	tests/gpu/safety.c tests/gpu/check_safety.sh \
	tests/gpu/record_traces.sh tests/gpu/managed_allocator.c tests/gpu/torch_managed.py
check_PROGRAMS += tests/unit/marks
if UM_WITH_CUDA
check_PROGRAMS += tests/unit/cupti_decode tests/unit/cupti_driver tests/unit/cupti_live \
	tests/unit/cupti_followed tests/unit/cupti_launches tests/unit/cupti_memory \
	tests/unit/cupti_records tests/unit/cupti_deep tests/unit/cupti_threads
UM_THREAD_TESTS += tests/unit/cupti_threads
cupti_cppflags = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS)
tests_unit_cupti_driver_CPPFLAGS = $(cupti_cppflags)
EXTRA_tests_unit_cupti_driver_DEPENDENCIES = $(um_fakes)
tests_unit_cupti_live_CPPFLAGS = $(cupti_cppflags)
EXTRA_tests_unit_cupti_live_DEPENDENCIES = $(um_fakes)
tests_unit_cupti_followed_CPPFLAGS = $(cupti_cppflags)
EXTRA_tests_unit_cupti_followed_DEPENDENCIES = $(um_fakes)
tests_unit_cupti_launches_CPPFLAGS = $(cupti_cppflags)
EXTRA_tests_unit_cupti_launches_DEPENDENCIES = $(um_fakes)
tests_unit_cupti_memory_CPPFLAGS = $(cupti_cppflags)
EXTRA_tests_unit_cupti_memory_DEPENDENCIES = $(um_fakes)
tests_unit_cupti_records_CPPFLAGS = $(cupti_cppflags)
EXTRA_tests_unit_cupti_records_DEPENDENCIES = $(um_fakes)
tests_unit_cupti_deep_CPPFLAGS = $(cupti_cppflags)
EXTRA_tests_unit_cupti_deep_DEPENDENCIES = $(um_fakes)
tests_unit_cupti_threads_CPPFLAGS = $(cupti_cppflags)
EXTRA_tests_unit_cupti_threads_DEPENDENCIES = $(um_fakes)

um_fakes = tests/fake/libcuda.so.1 tests/fake/libcupti.so.13 tests/fake/libempty.so
um_fake_cc = $(MKDIR_P) tests/fake && $(CC) $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS) -std=gnu11 -Wall -O1 \
	-fPIC -shared -pthread
tests/fake/libcuda.so.1: tests/fake/cuda.c
	$(AM_V_GEN)$(um_fake_cc) -Wl,-soname,libcuda.so.1 -o $@ $(srcdir)/tests/fake/cuda.c
tests/fake/libcupti.so.13: tests/fake/cupti.c
	$(AM_V_GEN)$(um_fake_cc) -Wl,-soname,libcupti.so.13 -o $@ $(srcdir)/tests/fake/cupti.c
tests/fake/libempty.so:
	$(AM_V_GEN)echo 'int um_empty;' | $(um_fake_cc) -o $@ -x c -
CLEANFILES += $(um_fakes)
endif
