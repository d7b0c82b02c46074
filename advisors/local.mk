# One file a policy, and the table.
libumcore_la_SOURCES += %D%/ahead.c %D%/first_touch.c %D%/readback.c %D%/table.c
EXTRA_DIST += %D%/README.md
