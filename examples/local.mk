# examples/: small managed programs, see README.md there; `make examples` needs nvcc and builds each one plain
# and with the one-line use of umrt (NAME and NAME-umrt).
UM_EXAMPLES = alternate churn first_touch gather launches resident stencil streams table
EXTRA_DIST += %D%/README.md %D%/example.h $(UM_EXAMPLES:%=%D%/%.cu)
# Examples of the driver API, in C; the tests run them on the software GPU (tests/softgpu).
UM_DRIVER_EXAMPLES = back_and_forth families graph two_gpus two_streams
EXTRA_DIST += %D%/driver_api/driver_api.h %D%/driver_api/kernels.ptx \
	$(UM_DRIVER_EXAMPLES:%=%D%/driver_api/%.c)
NVCCFLAGS = -O2 -Xcompiler -Wall

um-need-nvcc:
	@test -n '$(NVCC)' || { echo 'no nvcc was found; say where it is: make NVCC=/path/to/nvcc' >&2; exit 1; }

examples: $(UM_EXAMPLES:%=%D%/%) $(UM_EXAMPLES:%=%D%/%-umrt)

$(UM_EXAMPLES:%=%D%/%): %: $(top_srcdir)/%.cu $(top_srcdir)/%D%/example.h | um-need-nvcc
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(NVCC) $(NVCCFLAGS) -o $@ $<

$(UM_EXAMPLES:%=%D%/%-umrt): %-umrt: $(top_srcdir)/%.cu $(top_srcdir)/%D%/example.h libumrt.la | um-need-nvcc
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(NVCC) $(NVCCFLAGS) -DWITH_UMRT -I$(top_srcdir)/lib -o $@ $< \
	    -L$(abs_top_builddir)/.libs -lumrt -Xlinker -rpath=$(abs_top_builddir)/.libs

.PHONY: examples um-need-nvcc
CLEANFILES += $(UM_EXAMPLES:%=%D%/%) $(UM_EXAMPLES:%=%D%/%-umrt)
