# The driver model and what runs on it: only the umrt command needs it.
libumtool_la_SOURCES += \
	%D%/backtest.h %D%/machine.h %D%/policy.h %D%/sim.h %D%/uvm.h %D%/workload.h
# the back-test against measured runs
libumtool_la_SOURCES += %D%/backtest.c
libumtool_la_CPPFLAGS += -DUM_BACKTEST_FILE=\"$(pkgdatadir)/backtest.json\" \
	-DUM_BACKTEST_SOURCE_FILE=\"$(abs_top_srcdir)/tests/data/h200/backtest.json\"
dist_pkgdata_DATA = tests/data/h200/backtest.json
# the bounds of a workload
libumtool_la_SOURCES += %D%/bounds.c %D%/flows.c %D%/flows.h %D%/least_time.c %D%/least_time.h
# the measured programs of back-test and calibration
libumtool_la_SOURCES += %D%/jobs.c %D%/jobs.h %D%/calibrate.c %D%/calibrate.h \
	%D%/calibrate_fit.c %D%/calibrate_fit.h
if !UM_WITH_CUDA
libumtool_la_SOURCES += %D%/calibrate_none.c
endif
# the driver's rules
EXTRA_DIST += %D%/MODEL.md
libumtool_la_SOURCES += %D%/uvm_set.h %D%/uvm_state.h %D%/uvm.c %D%/uvm_params.c %D%/uvm_region.c %D%/uvm_block.c \
	%D%/uvm_memory.c %D%/uvm_tree.c %D%/uvm_thrash.c %D%/uvm_fault.c %D%/uvm_advice.c \
	%D%/uvm_check.c
# a workload: put together, loaded, generated
libumtool_la_SOURCES += %D%/workload.c %D%/workload_build.h %D%/workload_ids.c %D%/workload_ids.h \
	%D%/workload_lifetimes.c %D%/workload_lifetimes.h \
	%D%/workload_load.c %D%/workload_load.h %D%/workload_recorded.c %D%/workload_recorded.h \
	%D%/workload_recorded_impl.h %D%/workload_concluded.c
libumtool_la_SOURCES += %D%/gen.c %D%/gen.h %D%/gen_program.c %D%/gen_program.h %D%/gen_patterns.c
# the engine: one workload on one machine under one policy
libumtool_la_SOURCES += \
	%D%/engine.h %D%/engine.c %D%/engine_cost.c %D%/engine_hints.c %D%/engine_program.c \
	%D%/engine_stream.c %D%/engine_walk.c %D%/machine.c %D%/oracle.c %D%/policy.c %D%/sim_executor.c
libumtool_la_LIBADD += -lm
libumtool_la_SOURCES += %D%/baselines/deepum.c %D%/baselines/static.c %D%/baselines/table.c
machinesdir = $(pkgdatadir)/machines
dist_machines_DATA = \
	%D%/machines/a100-pcie4.json %D%/machines/gh200-c2c.json %D%/machines/h200-pcie5.json \
	%D%/machines/rtx4090-pcie4.json %D%/machines/v100-nvlink-p9.json %D%/machines/v100-pcie3.json
libumtool_la_CPPFLAGS += -DUM_MACHINES_DIR=\"$(machinesdir)\" \
	-DUM_MACHINES_SOURCE_DIR=\"$(abs_top_srcdir)/lib/sim/machines\"
EXTRA_DIST += %D%/SCHEMA.md
# findings: their advice applied and replayed
libumtool_la_SOURCES += %D%/change.h %D%/change.c %D%/predict.h %D%/predict.c
# replay: many simulations, and what they came to
libumtool_la_SOURCES += %D%/crew.c %D%/crew.h %D%/open.c %D%/open.h %D%/ranks.c %D%/ranks.h \
	%D%/streams.c %D%/streams.h %D%/sweep.c %D%/sweep.h
libumtool_la_SOURCES += %D%/error_bar.h %D%/replay.c %D%/replay.h %D%/replay_html.c
libumtool_la_CPPFLAGS += $(MPI_CPPFLAGS)
libumtool_la_LIBADD += $(MPI_LIBS)
