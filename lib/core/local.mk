libumcore_la_SOURCES += %D%/status.c
libumcore_la_SOURCES += %D%/note.c %D%/note.h
libumcore_la_SOURCES += %D%/runtime.c %D%/runtime.h %D%/recorder.c %D%/recorder.h
libumcore_la_SOURCES += %D%/summary.c %D%/summary.h
# cupti/local.mk brings its own um_backend() and turns this one off with UM_HAVE_BACKEND.
libumcore_la_SOURCES += %D%/backend_none.c
