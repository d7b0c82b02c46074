# One file a policy, and the table.
libumcore_la_SOURCES += %D%/ahead.c %D%/calm.c %D%/evict.c %D%/first_touch.c %D%/lookahead.c %D%/placement.c \
	%D%/read_mostly.c %D%/readback.c %D%/readback_moving.c %D%/readback_range.c %D%/roles.c %D%/table.c \
	%D%/lru.h %D%/mix.h %D%/place.h %D%/readback_impl.h %D%/readback_range.h %D%/roles.h \
	%D%/sweep.h
EXTRA_DIST += %D%/README.md
