# sources of this room
EXTRA_DIST += %D%/measure.py
EXTRA_PROGRAMS += bench/bench_trace
UM_BENCHES += bench/bench_trace
bench_bench_trace_SOURCES = bench/bench_trace.c bench/storm.c bench/storm.h
bench_bench_trace_LDADD = libumcore.la
# the core's launch path, no GPU needed
EXTRA_PROGRAMS += %D%/bench_regions %D%/bench_launch_path
UM_BENCHES += %D%/bench_regions %D%/bench_launch_path
%C%_bench_regions_SOURCES = %D%/bench_regions.c
%C%_bench_regions_LDADD = libumcore.la
%C%_bench_launch_path_SOURCES = %D%/bench_launch_path.c
%C%_bench_launch_path_LDADD = libumcore.la
# what the CUDA source's callback adds to a launch, against the fake driver of tests/fake
if UM_WITH_CUDA
EXTRA_PROGRAMS += %D%/bench_callbacks
UM_BENCHES += %D%/bench_callbacks
%C%_bench_callbacks_SOURCES = %D%/bench_callbacks.c
%C%_bench_callbacks_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS)
%C%_bench_callbacks_LDADD = libumcore.la
EXTRA_bench_bench_callbacks_DEPENDENCIES = $(um_fakes)
endif
# what the hint loop costs its own thread, with real page tables
EXTRA_PROGRAMS += %D%/bench_hint_loop
UM_BENCHES += %D%/bench_hint_loop
%C%_bench_hint_loop_SOURCES = %D%/bench_hint_loop.c
%C%_bench_hint_loop_LDADD = libumcore.la
EXTRA_DIST += %D%/results
# what the driver model is back-tested against: needs nvcc to build, a GPU to run
um_backtest = %D%/backtest.cu %D%/backtest_json.h %D%/backtest_measure.h %D%/backtest_ops.h \
	%D%/backtest_patterns.h %D%/backtest_race.h %D%/backtest_run.h
EXTRA_DIST += $(um_backtest)
examples: %D%/backtest
%D%/backtest: $(um_backtest:%=$(top_srcdir)/%) $(top_srcdir)/examples/example.h | um-need-nvcc
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(NVCC) $(NVCCFLAGS) -std=c++17 -o $@ $<
CLEANFILES += %D%/backtest
# the measured workloads, for measure.py; NVCC_ARCH: the card they are for, so that nothing is compiled
# while time is taken
UM_WORKLOADS = bfs chatter churn decode dense eighth gather graph halves matmul pingpong pipeline pool \
	random stencil table
NVCC_ARCH = sm_90
EXTRA_DIST += %D%/workloads/workload.h $(UM_WORKLOADS:%=%D%/workloads/%.cu)
workloads: $(UM_WORKLOADS:%=%D%/workloads/%)
$(UM_WORKLOADS:%=%D%/workloads/%): %: $(top_srcdir)/%.cu $(top_srcdir)/%D%/workloads/workload.h \
		$(top_srcdir)/examples/example.h | um-need-nvcc
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(NVCC) $(NVCCFLAGS) -std=c++17 -arch=$(NVCC_ARCH) -Xcompiler -O3,-Wextra -o $@ $<
.PHONY: workloads
CLEANFILES += $(UM_WORKLOADS:%=%D%/workloads/%)
# adjusts a machine's figures to the fit half of the back-test
EXTRA_PROGRAMS += %D%/fit
%C%_fit_SOURCES = %D%/fit.c
%C%_fit_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_fit_LDADD = libumtool.la libumcore.la $(JANSSON_LIBS) -lm
# the driver model of the simulator
EXTRA_PROGRAMS += %D%/bench_uvm
UM_BENCHES += %D%/bench_uvm
%C%_bench_uvm_SOURCES = %D%/bench_uvm.c
%C%_bench_uvm_LDADD = libumtool.la libumcore.la $(SQLITE_LIBS) $(JANSSON_LIBS)
# how fast the simulator is, and how that grows
EXTRA_PROGRAMS += %D%/bench_sim
UM_BENCHES += %D%/bench_sim
%C%_bench_sim_SOURCES = %D%/bench_sim.c
%C%_bench_sim_LDADD = libumtool.la libumcore.la $(SQLITE_LIBS) $(JANSSON_LIBS) -lm
# what each advisor wins and loses in the driver model: make umrt && make -s bench-advisors >bench/results/advisors.md
EXTRA_DIST += %D%/advisors.py
bench-advisors: umrt$(EXEEXT)
	@python3 $(srcdir)/bench/advisors.py ./umrt $(srcdir)
.PHONY: bench-advisors
# is the report's first finding the fault that was planted? make bench-report
EXTRA_PROGRAMS += %D%/report_accuracy
um_planted = %D%/planted.h %D%/planted_beside.c %D%/planted_beside.h %D%/planted_fitted.c %D%/planted_held_out.c \
	%D%/planted_run.c %D%/planted_scene.c %D%/planted_scene.h
%C%_report_accuracy_SOURCES = %D%/report_accuracy.c $(um_planted)
%C%_report_accuracy_LDADD = libumtool.la libumcore.la $(SQLITE_LIBS) $(JANSSON_LIBS)
bench-report: bench/report_accuracy
	./bench/report_accuracy
.PHONY: bench-report
