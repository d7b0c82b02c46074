# Importers. They are libumtool's (SQLite), so the tests link it before libumcore.
check_PROGRAMS += \
	tests/unit/import_nvprof_logs \
	tests/unit/import_nvprof_text \
	tests/unit/import_nvprof_sqlite \
	tests/unit/import_nsys_sqlite \
	tests/unit/import_refused
import_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS)
import_collect = tests/unit/import_collect.h tests/unit/import_collect.c
dist_check_SCRIPTS += tests/cli/import.sh
EXTRA_DIST += tests/data/import

tests_unit_import_nvprof_logs_SOURCES = tests/unit/import_nvprof_logs.c $(import_collect)
tests_unit_import_nvprof_logs_LDADD = $(import_ldadd)
tests_unit_import_nvprof_text_SOURCES = tests/unit/import_nvprof_text.c $(import_collect)
tests_unit_import_nvprof_text_LDADD = $(import_ldadd)
tests_unit_import_nvprof_sqlite_SOURCES = tests/unit/import_nvprof_sqlite.c $(import_collect)
tests_unit_import_nvprof_sqlite_LDADD = $(import_ldadd)
tests_unit_import_nsys_sqlite_SOURCES = tests/unit/import_nsys_sqlite.c $(import_collect)
tests_unit_import_nsys_sqlite_LDADD = $(import_ldadd)
tests_unit_import_refused_SOURCES = tests/unit/import_refused.c $(import_collect)
tests_unit_import_refused_LDADD = $(import_ldadd)
