# tests of lib/trace
check_PROGRAMS += tests/unit/trace_schema tests/unit/trace_file tests/unit/trace_damage \
  tests/unit/trace_writer tests/unit/trace_kill tests/unit/trace_threads
tests_unit_trace_schema_SOURCES = tests/unit/trace_schema.c tests/unit/trace_events.h
tests_unit_trace_file_SOURCES = tests/unit/trace_file.c tests/unit/trace_events.h
tests_unit_trace_damage_SOURCES = tests/unit/trace_damage.c tests/unit/trace_events.h
tests_unit_trace_writer_SOURCES = tests/unit/trace_writer.c tests/unit/trace_events.h
tests_unit_trace_kill_SOURCES = tests/unit/trace_kill.c tests/unit/trace_events.h
tests_unit_trace_threads_SOURCES = tests/unit/trace_threads.c tests/unit/trace_events.h
UM_THREAD_TESTS += tests/unit/trace_threads tests/unit/trace_file

# Writes the seeds of the fuzz targets: make tests/fuzz/seeds_trace && tests/fuzz/seeds_trace DIR
EXTRA_PROGRAMS += tests/fuzz/seeds_trace
tests_fuzz_seeds_trace_SOURCES = tests/fuzz/seeds_trace.c tests/unit/trace_events.h
