# .umt traces: the live library writes them, everything reads them.
libumcore_la_SOURCES += %D%/schema.c %D%/schema.h %D%/column.c %D%/column.h \
  %D%/format.c %D%/format.h %D%/rows.c %D%/encode.c %D%/encode.h %D%/writer.c \
  %D%/decode.c %D%/decode.h %D%/source.c %D%/source.h %D%/index.c %D%/index.h \
  %D%/reader.c %D%/reader.h %D%/facts.c
EXTRA_DIST += %D%/FORMAT.md
