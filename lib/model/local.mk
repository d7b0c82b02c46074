libumcore_la_SOURCES += %D%/pagemap.c %D%/residency.c %D%/residency.h
libumcore_la_SOURCES += %D%/attribution.c %D%/attribution.h
