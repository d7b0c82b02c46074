# The driver model and what runs on it: only the umrt command needs it.
libumtool_la_SOURCES += \
	%D%/backtest.h %D%/machine.h %D%/policy.h %D%/sim.h %D%/uvm.h %D%/workload.h
