# Attribution and report. The report is libumtool's, so its tests link that before libumcore.
check_PROGRAMS += tests/unit/attribution tests/unit/report_logs
report_ldadd = libumtool.la $(LDADD) $(SQLITE_LIBS) $(JANSSON_LIBS)
report_stream = tests/unit/report_stream.h tests/unit/report_stream.c
report_found = tests/unit/report_found.h $(report_stream)
report_kinds = tests/unit/report_kinds.h $(report_found)


check_PROGRAMS += tests/unit/report_faults tests/unit/report_findings tests/unit/report_ping_pong
tests_unit_report_faults_SOURCES = tests/unit/report_faults.c $(report_found)
tests_unit_report_faults_LDADD = $(report_ldadd)
tests_unit_report_findings_SOURCES = tests/unit/report_findings.c $(report_found)
tests_unit_report_findings_LDADD = $(report_ldadd)
tests_unit_report_ping_pong_SOURCES = tests/unit/report_ping_pong.c $(report_found)
tests_unit_report_ping_pong_LDADD = $(report_ldadd)

check_PROGRAMS += tests/unit/report_families tests/unit/report_hints tests/unit/report_kinds
tests_unit_report_families_SOURCES = tests/unit/report_families.c $(report_kinds)
tests_unit_report_families_LDADD = $(report_ldadd)
tests_unit_report_hints_SOURCES = tests/unit/report_hints.c $(report_kinds)
tests_unit_report_hints_LDADD = $(report_ldadd)
tests_unit_report_kinds_SOURCES = tests/unit/report_kinds.c $(report_kinds)
tests_unit_report_kinds_LDADD = $(report_ldadd)

tests_unit_report_logs_SOURCES = tests/unit/report_logs.c $(report_stream)
tests_unit_report_logs_LDADD = $(report_ldadd)

check_PROGRAMS += tests/unit/report_emitter tests/unit/report_golden
tests_unit_report_emitter_LDADD = $(report_ldadd)

tests_unit_report_golden_SOURCES = tests/unit/report_golden.c $(report_stream)
tests_unit_report_golden_LDADD = $(report_ldadd)

CLEANFILES += tests/golden-report*
EXTRA_DIST += \
	tests/data/h200 \
	tests/golden/report.txt tests/golden/report-narrow.txt tests/golden/report.json \
	tests/golden/report-ranks.txt tests/golden/report-off.txt

dist_check_SCRIPTS += tests/cli/report.sh tests/cli/report_html.sh tests/cli/report_page.sh

# Writes traces for them.
noinst_PROGRAMS += tests/cli/busy
tests_cli_busy_SOURCES = tests/cli/busy.c
tests_cli_busy_LDADD = libumcore.la
# The page in a browser.
EXTRA_DIST += tests/cli/browser.py tests/cli/report_page.py

check_PROGRAMS += tests/unit/report_html
tests_unit_report_html_SOURCES = tests/unit/report_html.c $(report_stream)
tests_unit_report_html_LDADD = $(report_ldadd)

check_PROGRAMS += tests/unit/report_random
tests_unit_report_random_SOURCES = tests/unit/report_random.c tests/unit/any_event.h $(report_stream)
tests_unit_report_random_LDADD = $(report_ldadd)

check_PROGRAMS += tests/unit/sim_predict
tests_unit_sim_predict_LDADD = $(report_ldadd)

# What a finding's change is in each CUDA and library; code_print writes it for a compiler.
check_PROGRAMS += tests/unit/report_code
report_code = tests/unit/report_code.h tests/unit/report_code_findings.c $(report_stream)
tests_unit_report_code_SOURCES = tests/unit/report_code.c $(report_code)
tests_unit_report_code_LDADD = $(report_ldadd)
EXTRA_DIST += \
	tests/golden/code-cuda12.txt tests/golden/code-cuda12_2.txt tests/golden/code-cuda13.txt \
	tests/golden/code-rmm.txt tests/golden/code-umpire.txt tests/golden/code-kokkos.txt \
	tests/golden/code-amrex.txt tests/golden/code-cupy.txt
noinst_PROGRAMS += tests/unit/code_print
tests_unit_code_print_SOURCES = tests/unit/code_print.c $(report_code)
tests_unit_code_print_LDADD = $(report_ldadd)
dist_check_SCRIPTS += tests/cli/code_compiles.sh
EXTRA_DIST += tests/cli/library.hpp
# the first finding on programs with a planted fault, as make bench-report
check_PROGRAMS += tests/unit/report_accuracy
tests_unit_report_accuracy_SOURCES = tests/unit/report_accuracy.c $(um_planted)
tests_unit_report_accuracy_LDADD = $(report_ldadd)

# The changes as a diff: --patch.
check_PROGRAMS += tests/unit/report_patch tests/unit/report_patch_launch tests/unit/report_patch_refused \
	tests/unit/report_patch_random
report_patch = tests/unit/report_patch.h $(report_stream)
tests_unit_report_patch_SOURCES = tests/unit/report_patch.c $(report_patch)
tests_unit_report_patch_LDADD = $(report_ldadd)
tests_unit_report_patch_launch_SOURCES = tests/unit/report_patch_launch.c $(report_patch)
tests_unit_report_patch_launch_LDADD = $(report_ldadd)
tests_unit_report_patch_refused_SOURCES = tests/unit/report_patch_refused.c $(report_patch)
tests_unit_report_patch_refused_LDADD = $(report_ldadd)
tests_unit_report_patch_random_SOURCES = tests/unit/report_patch_random.c $(report_patch)
tests_unit_report_patch_random_LDADD = $(report_ldadd)
# what no driver would write, through every output
noinst_PROGRAMS += tests/cli/hostile
tests_cli_hostile_SOURCES = tests/cli/hostile.c tests/unit/any_event.h
tests_cli_hostile_LDADD = libumcore.la
dist_check_SCRIPTS += tests/cli/hostile.sh
EXTRA_DIST += tests/cli/check_hostile.py
