# The software GPU: a libcuda and a libcupti for tests, and programs that run on it and on a real one.
um_soft_parts = call copy cubin device graph hints kernel managed mappings memory module rules stream watch
um_soft_headers = client counted hooks kernel managed softgpu
um_soft_sources = $(um_soft_parts:%=tests/softgpu/%.c)
um_soft_cupti = tests/softgpu/cupti_activity.c tests/softgpu/cupti_callbacks.c tests/softgpu/cupti_nvtx.c
um_soft_rules = $(wildcard $(srcdir)/lib/sim/uvm*.c) $(srcdir)/lib/core/grow.c
um_probes = $(um_probe_parts:%=tests/gpu/conformance/%.c)
um_probe_parts = callbacks code contexts domains graphs hints main memory records streams
um_soft_tests = life hinted soak
EXTRA_DIST += $(um_soft_sources) $(um_soft_cupti) $(um_soft_headers:%=tests/softgpu/%.h) \
	tests/softgpu/calls.txt tests/softgpu/calls.awk tests/softgpu/README.md tests/softgpu/soft.sh tests/softgpu/soaked.sh tests/softgpu/top_screen.py tests/softgpu/interface.c \
	tests/gpu/check_conformance.sh tests/gpu/check_soak.sh tests/gpu/conformance/conformance.h tests/gpu/conformance/cupti_calls.h \
	$(um_soft_tests:%=tests/softgpu/%.c) $(um_probes) \
	tests/gpu/conformance.awk tests/gpu/conformance.expected
if UM_WITH_CUDA
um_soft_libraries = tests/softgpu/lib64/libcuda.so.1 tests/softgpu/lib64/libcupti.so.13
um_soft_programs = $(UM_DRIVER_EXAMPLES:%=tests/softgpu/bin/%) $(um_soft_tests:%=tests/softgpu/bin/%) tests/softgpu/bin/conformance \
	tests/softgpu/bin/interface tests/softgpu/bin/back_and_forth-umrt
check_DATA = $(um_soft_libraries) $(um_soft_programs)
CLEANFILES += tests/softgpu/lib64/libcupti.so.12 tests/softgpu/lib64/libcupti.so.11.8
CLEANFILES += $(um_soft_libraries) $(um_soft_programs) tests/softgpu/calls.c
dist_check_SCRIPTS += tests/softgpu/examples.sh tests/softgpu/record.sh \
	tests/softgpu/interface.sh tests/softgpu/life.sh tests/softgpu/hints.sh tests/softgpu/profile.sh \
	tests/softgpu/failures.sh tests/softgpu/soak.sh \
	tests/softgpu/absent.sh tests/softgpu/environments.sh tests/softgpu/top.sh \
	tests/softgpu/conformance.sh
um_soft_flags = $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS) -D_GNU_SOURCE -I$(top_srcdir) -I$(top_srcdir)/lib \
	-I$(srcdir)/tests/softgpu -std=gnu11 -Wall -Wextra -O2 -g -pthread
um_soft_library = $(MKDIR_P) tests/softgpu/lib64 && $(CC) $(um_soft_flags) -fPIC -shared \
	-fvisibility=hidden -Wl,-z,defs

tests/softgpu/calls.c: tests/softgpu/calls.awk tests/softgpu/calls.txt
	$(AM_V_GEN)$(MKDIR_P) tests/softgpu && \
	header=`echo '#include <cupti.h>' | $(CC) $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS) -M -x c - | \
		tr ' ' '\n' | grep '/generated_cuda_meta\.h$$'` && \
	$(AWK) -f $(srcdir)/tests/softgpu/calls.awk "$$header" $(srcdir)/tests/softgpu/calls.txt \
		>$@.new && mv $@.new $@
tests/softgpu/lib64/libcuda.so.1: $(um_soft_sources) $(um_soft_rules) tests/softgpu/calls.c \
		$(um_soft_headers:%=tests/softgpu/%.h)
	$(AM_V_GEN)$(um_soft_library) -Wl,-soname,libcuda.so.1 -o $@ tests/softgpu/calls.c \
		$(um_soft_sources:%=$(srcdir)/%) $(um_soft_rules) -ldl
tests/softgpu/lib64/libcupti.so.13: $(um_soft_cupti) tests/softgpu/client.h tests/softgpu/hooks.h \
		tests/softgpu/lib64/libcuda.so.1
	$(AM_V_GEN)$(um_soft_library) -Wl,-soname,libcupti.so.13 -o $@ $(um_soft_cupti:%=$(srcdir)/%) \
		tests/softgpu/lib64/libcuda.so.1 && cd tests/softgpu/lib64 && \
		ln -sf libcupti.so.13 libcupti.so.12 && ln -sf libcupti.so.13 libcupti.so.11.8
um_soft_program = $(MKDIR_P) tests/softgpu/bin && $(CC) $(um_soft_flags)
$(UM_DRIVER_EXAMPLES:%=tests/softgpu/bin/%): tests/softgpu/bin/%: examples/driver_api/%.c \
		examples/driver_api/driver_api.h tests/softgpu/lib64/libcuda.so.1
	$(AM_V_GEN)$(um_soft_program) -o $@ $< tests/softgpu/lib64/libcuda.so.1
# the same program with the one line of umrt
tests/softgpu/bin/back_and_forth-umrt: examples/driver_api/back_and_forth.c \
		examples/driver_api/driver_api.h lib/um_runtime.h $(um_soft_libraries) libumrt.la
	$(AM_V_GEN)$(um_soft_program) -DWITH_UMRT -o $@ $(srcdir)/examples/driver_api/back_and_forth.c \
		.libs/libumrt.so tests/softgpu/lib64/libcuda.so.1
tests/softgpu/bin/interface: tests/softgpu/interface.c examples/driver_api/driver_api.h \
		lib/um_runtime.h lib/um_event.h $(um_soft_libraries) libumrt.la
	$(AM_V_GEN)$(um_soft_program) -o $@ $(srcdir)/tests/softgpu/interface.c .libs/libumrt.so \
		tests/softgpu/lib64/libcuda.so.1
$(um_soft_tests:%=tests/softgpu/bin/%): tests/softgpu/bin/%: tests/softgpu/%.c \
		examples/driver_api/driver_api.h tests/softgpu/counted.h $(um_soft_libraries)
	$(AM_V_GEN)$(um_soft_program) -o $@ $< -Wl,--as-needed $(um_soft_libraries) -ldl
tests/softgpu/bin/conformance: $(um_probes) tests/gpu/conformance/conformance.h \
		tests/gpu/conformance/cupti_calls.h tests/softgpu/lib64/libcuda.so.1
	$(AM_V_GEN)$(um_soft_program) -o $@ $(um_probes:%=$(srcdir)/%) tests/softgpu/lib64/libcuda.so.1 -ldl
endif
