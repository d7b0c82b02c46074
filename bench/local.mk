# sources of this room
EXTRA_DIST += %D%/measure.py
EXTRA_PROGRAMS += bench/bench_trace
UM_BENCHES += bench/bench_trace
bench_bench_trace_SOURCES = bench/bench_trace.c bench/storm.c bench/storm.h
bench_bench_trace_LDADD = libumcore.la
