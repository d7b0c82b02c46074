libumcore_la_SOURCES += %D%/pagemap.c
libumcore_la_SOURCES += %D%/residency.c %D%/residency.h %D%/residency_impl.h %D%/residency_look.c
libumcore_la_SOURCES += %D%/profile.c %D%/profile_file.c %D%/profile.h %D%/profile_set.h
libumcore_la_SOURCES += %D%/attribution.c %D%/attribution.h
libumcore_la_SOURCES += %D%/footprint.c %D%/footprint.h %D%/footprint_impl.h \
	%D%/footprint_integer.c %D%/footprint_records.c %D%/footprint_stride.c \
	%D%/footprint_watch.c %D%/slices.c %D%/slices.h
libumcore_la_SOURCES += %D%/sequence.c %D%/sequence.h %D%/sequence_impl.h %D%/sequence_cpu.c \
	%D%/sequence_profile.c
