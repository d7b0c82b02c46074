libumcore_la_SOURCES += %D%/advised.c %D%/advised.h %D%/executor.h %D%/gate.c %D%/gate.h \
	%D%/host_memory.c %D%/host_memory.h %D%/share.c %D%/share.h \
	%D%/guard.c %D%/guard.h %D%/guard_impl.h %D%/guard_places.c \
	%D%/hinter.c %D%/hinter_asks.c %D%/hinter_impl.h %D%/hinter.h %D%/in_force.c %D%/in_force.h %D%/null.c \
	%D%/ranges.c %D%/ranges.h %D%/samples.c %D%/samples.h %D%/sharing.c %D%/sharing.h \
	%D%/teams.c %D%/teams.h %D%/uses.c %D%/uses.h %D%/view.c %D%/view.h %D%/workers.c %D%/workers.h
libumcore_la_SOURCES += %D%/learning.c %D%/learning.h %D%/outcome.c %D%/outcome.h
libumcore_la_SOURCES += %D%/expect.c %D%/expect.h
