# Importers: in the umrt command only, they need SQLite.
libumtool_la_SOURCES += \
	%D%/import.h %D%/import.c \
	%D%/import_sink.h %D%/import_sink.c \
	%D%/import_cells.h %D%/import_cells.c \
	%D%/import_log.h %D%/import_log.c \
	%D%/import_arrays.h %D%/import_arrays.c \
	%D%/import_survey.h %D%/import_survey.c \
	%D%/import_nvprof_text.c \
	%D%/import_open.h %D%/import_open.c \
	%D%/import_sqlite.h %D%/import_sqlite.c \
	%D%/import_nvprof_sqlite.c \
	%D%/export.h %D%/export.c %D%/export_shape.h %D%/export_shape.c %D%/import_export.c \
	%D%/import_nsys.h %D%/import_nsys_sqlite.c %D%/import_nsys_facts.c
