check_PROGRAMS += tests/unit/trace_schema tests/unit/trace_file
tests_unit_trace_schema_SOURCES = tests/unit/trace_schema.c tests/unit/trace_events.h
tests_unit_trace_file_SOURCES = tests/unit/trace_file.c tests/unit/trace_events.h
UM_THREAD_TESTS += tests/unit/trace_file
