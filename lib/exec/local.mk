libumcore_la_SOURCES += %D%/executor.h %D%/gate.c %D%/gate.h %D%/guard.c %D%/guard.h %D%/hinter.c %D%/hinter.h %D%/null.c \
	%D%/view.c %D%/view.h %D%/workers.c %D%/workers.h
libumcore_la_SOURCES += %D%/learning.c %D%/learning.h
