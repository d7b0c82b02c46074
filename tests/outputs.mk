# What a report is written as, and what is compared or exported.
check_PROGRAMS += tests/unit/report_outputs
tests_unit_report_outputs_SOURCES = tests/unit/report_outputs.c $(report_stream)
tests_unit_report_outputs_LDADD = $(report_ldadd)

dist_check_SCRIPTS += tests/cli/report_outputs.sh
EXTRA_DIST += tests/cli/check_schema.py tests/cli/check_sarif.py

check_PROGRAMS += tests/unit/report_diff
tests_unit_report_diff_LDADD = $(report_ldadd) -lm

dist_check_SCRIPTS += tests/cli/diff.sh

check_PROGRAMS += tests/unit/export_sqlite
tests_unit_export_sqlite_LDADD = $(import_ldadd)
dist_check_SCRIPTS += tests/cli/export.sh

dist_check_SCRIPTS += tests/cli/perfetto.sh
EXTRA_DIST += tests/cli/check_perfetto.py
