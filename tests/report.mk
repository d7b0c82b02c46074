# Attribution and report. The report is libumtool's, so its tests link that before libumcore.
check_PROGRAMS += tests/unit/attribution
tests_unit_attribution_SOURCES = tests/unit/attribution.c
