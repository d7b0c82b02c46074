# sources of this room
EXTRA_DIST += %D%/measure.py
EXTRA_PROGRAMS += bench/bench_trace
UM_BENCHES += bench/bench_trace
bench_bench_trace_SOURCES = bench/bench_trace.c bench/storm.c bench/storm.h
bench_bench_trace_LDADD = libumcore.la
# the core's launch path, no GPU needed
EXTRA_PROGRAMS += %D%/bench_regions %D%/bench_launch_path
UM_BENCHES += %D%/bench_regions %D%/bench_launch_path
%C%_bench_regions_SOURCES = %D%/bench_regions.c
%C%_bench_regions_LDADD = libumcore.la
%C%_bench_launch_path_SOURCES = %D%/bench_launch_path.c
%C%_bench_launch_path_LDADD = libumcore.la
