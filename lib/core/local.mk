# regions, kernels, bus, settings, log: what every other room stands on
libumcore_la_SOURCES += %D%/status.c %D%/names.c %D%/log.c %D%/config.c %D%/regions.c \
	%D%/region_index.c %D%/region_index.h \
	%D%/kernels.c %D%/args.c %D%/mangled.c %D%/cubin.c %D%/bus.c %D%/event_pack.c \
	%D%/bus.h %D%/config.h %D%/grow.c %D%/grow.h %D%/kernels.h %D%/log.h %D%/regions.h %D%/runtime.h
libumcore_la_SOURCES += %D%/note.c %D%/note.h
libumcore_la_SOURCES += %D%/runtime.c %D%/calls.c %D%/recorder.c %D%/recorder.h
libumcore_la_SOURCES += %D%/summary.c %D%/summary.h
libumcore_la_SOURCES += %D%/top.c %D%/top.h
# cupti/local.mk brings its own um_backend() and turns this one off with UM_HAVE_BACKEND.
libumcore_la_SOURCES += %D%/backend_none.c
libumcore_la_SOURCES += %D%/marks.c %D%/marks.h
