# cupti/: everything that knows CUDA. Compiled only where the CUDA and CUPTI headers are.
if UM_WITH_CUDA
libumcore_la_CPPFLAGS += $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS) -DUM_HAVE_BACKEND
libumcore_la_SOURCES += %D%/driver.c %D%/driver.h %D%/decode.c %D%/decode.h %D%/live.c %D%/live.h
libumcore_la_SOURCES += %D%/callbacks.c %D%/calls.c %D%/memory.c %D%/transfer.c %D%/launch.c %D%/graphs.c
libumcore_la_SOURCES += %D%/modules.c %D%/preload.c %D%/callsite.c %D%/loaded.c %D%/loaded.h %D%/python.c %D%/python.h %D%/activity.c %D%/records.c %D%/records.h
libumcore_la_SOURCES += %D%/deep.c %D%/deep.h
libumcore_la_SOURCES += %D%/arena.c %D%/probe.c %D%/backend.c %D%/executor.c %D%/executor.h
# only `umrt calibrate` needs it
libumtool_la_CPPFLAGS += $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS)
libumtool_la_SOURCES += %D%/calibrate.c
endif
