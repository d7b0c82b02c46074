libumcore_la_SOURCES += %D%/status.c
libumcore_la_SOURCES += %D%/note.c %D%/note.h
