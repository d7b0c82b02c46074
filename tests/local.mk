# Criterion programs: check_PROGRAMS += tests/unit/NAME, which is tests/unit/NAME.c unless tests_unit_NAME_SOURCES
# says more; LDADD below is the default. Scripts print TAP too: dist_check_SCRIPTS += tests/cli/NAME.sh.
# A program in which threads meet: UM_THREAD_TESTS += tests/unit/NAME, for ThreadSanitizer.
AM_CPPFLAGS += $(CRITERION_CFLAGS)
LDADD = libumcore.la $(CRITERION_LIBS)
TESTS += $(check_PROGRAMS) $(dist_check_SCRIPTS)
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
	CRITERION_OUTPUTS=tap:- UM_SRCDIR='$(abs_top_srcdir)' UM_BUILDDIR='$(abs_top_builddir)' \
	CC='$(CC)' CXX='$(CXX)'; \
	export CRITERION_OUTPUTS UM_SRCDIR UM_BUILDDIR CC CXX;

include tests/core.mk
include tests/trace.mk
include tests/import.mk
include tests/report.mk
include tests/outputs.mk
include tests/cupti.mk
include tests/hints.mk
include tests/tools.mk
include tests/sim_uvm.mk
include tests/sim_engine.mk
include tests/sim_input.mk
include tests/sim_replay.mk
include tests/sim_backtest.mk
include tests/softgpu.mk
include tests/places.mk
include tests/build.mk
