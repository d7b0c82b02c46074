# Importers. They are libumtool's (SQLite), so the tests link it before libumcore.
check_PROGRAMS += tests/unit/import_nvprof_logs
import_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS)
import_collect = tests/unit/import_collect.h tests/unit/import_collect.c

tests_unit_import_nvprof_logs_SOURCES = tests/unit/import_nvprof_logs.c $(import_collect)
tests_unit_import_nvprof_logs_LDADD = $(import_ldadd)
