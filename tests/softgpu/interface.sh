#!/usr/bin/env bash
# um_runtime.h in a program that is linked with -lumrt alone, at every time and from every thread.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
interface=$programs/interface
export LD_LIBRARY_PATH=$UM_BUILDDIR/.libs:$LD_LIBRARY_PATH UMRT_GUARD_PER_MILLE=0
unhurried

# as_off [ENV...] MODE: prints what it prints with umrt switched off; its stderr is in `said`.
as_off() {
    local mode=${*: -1}
    UMRT_MODE=off timeout 300 "$interface" "$mode" >alone.out 2>/dev/null || { echo "alone: $?"; return 1; }
    timeout 300 env "${@:1:$#-1}" "$interface" "$mode" >now 2>said || { cat said; return 1; }
    cmp now alone.out || { cat now said; return 1; }
}
# in_line PATTERN: a line of stderr matches; applied: hints that were.
in_line() { grep -qE -- "$1" said || { cat said; return 1; }; }
applied() { awk '/^stats applied/ { n = $3 } END { print n + 0 }' said; }
# By its last line, too: where the machine is busy, a hint may be done after the program has asked.
hinted() { [ "$(applied)" -gt 0 ] || grep -q '^umrt: prefetched ' said || { cat said; return 1; }; }
not_hinted() { [ "$(applied)" = 0 ] || { cat said; return 1; }; }

for mode in before after late; do
    ok "$mode: the same result" as_off UMRT_LOG_LEVEL=1 $mode
    ok "$mode: hints" in_line "^state 4 ''"
    ok "$mode: really" hinted
    ok "$mode: one line at the end" in_line '^umrt: prefetched '
    ok "$mode: under umrt run, the same" as_off CUDA_INJECTION64_PATH="$UM_BUILDDIR/.libs/libumrt.so" $mode
    ok "$mode: still one runtime" [ "$(grep -c '^umrt: prefetched' said)" = 1 ]
    ok "$mode: observed only" as_off UMRT_MODE=observe $mode
    ok "$mode: which it says" in_line "^state 2 ''"
    ok "$mode: nothing done" not_hinted
done
ok "a region older than umrt can be named" as_off LABEL=1 UMRT_TRACE=late.umt late
ok "is" in_line '^label: (ok|success)'
ok "in the trace" grep -q 'region_label .*label="old"' <("$umrt" dump late.umt)
ok "twice: the same" as_off twice
ok "twice: shut down in the end" in_line "^state 1 'shut down'"
ok "threads: the same" as_off UMRT_PROFILE="$tmp/threads.ump" threads
ok "threads: hinting" in_line "^state 4 ''"

# The word of the program.
ok "off: the same" as_off off
ok "off: nothing done" not_hinted
ok "off and on again: the same" as_off UMRT_TRACE=word.umt off-and-on
ok "off and on again: hints" hinted
ok "the trace has the word" grep -qE 'region_hint .*region=1 flags=0x1' <("$umrt" dump -t region_hint word.umt)
ok "GPU first: the same" as_off gpu-first
ok "GPU first: populated there" hinted
ok "CPU first: the same" as_off cpu-first
ok "CPU first: left to it" not_hinted

# Early, late and wrong calls.
UMRT_SUMMARY=off "$interface" wrong >now 2>said
ok "wrong: as documented" [ "$(tr '\n' ' ' <now)" = "1 1 1 1 1 1 1 -9 -9 -1 $(sed -n 5p now) -11 " ]

# Paths of its own.
ok "its own trace, profile and report" as_off paths
ok "a trace" grep -q ' launch ' <("$umrt" dump own.umt)
ok "a report" grep -q '"schema": "umrt-run"' own.json
rm -f s.ump
ok "a profile saved on request" as_off UMRT_PROFILE="$tmp/s.ump" UMRT_ADVISORS=first_touch,ahead,readback sync
ok "outlives the program" gives 0 "$umrt" profile show s.ump
ok "and was not counted twice" [ "$("$umrt" profile show --json s.ump | grep -c '"who": "readback"')" -le 1 ]

# How much of a GPU is its own.
ok "a budget too small: the same" as_off UMRT_ADVISORS=first_touch,ahead budget
ok "a budget too small: nothing done" not_hinted
ok "a budget too small: said" in_line '^umrt: nothing prefetched; refused [0-9]+ capacity'
ok "no budget: the same" as_off UMRT_ADVISORS=first_touch,ahead bad-budget
ok "no budget: said" in_line "'half' is no budget"
ok "no budget: as without" hinted

# Where hints are of no use it says why.
ok "no concurrent access: the same" as_off SOFTGPU_CONCURRENT=0 before
ok "no concurrent access: in one line" in_line '^umrt: observed only: concurrentManagedAccess is 0'

# C++.
if [ "${CXX:-no}" != no ] && command -v "${CXX%% *}" >/dev/null; then
    cat >plain.cc <<'CODE'
#include <um_runtime.h>
#include <cstdio>
int main()
{
    um_config_t config{};
    config.size = sizeof config;
    config.log = [](void *, int, const char *line) { std::fprintf(stderr, "log: %s\n", line); };
    int here = 0;
    um_status_t status = um_runtime_init(&config);
    um_phase_begin("all");
    um_region_hint(&here, UM_REGION_HINT_READ_ONLY | UM_REGION_HINT_CPU_FIRST);
    um_phase_end();
    um_runtime_shutdown();
    std::printf("%d\n", (int)status);
}
CODE
    # shellcheck disable=SC2086 # words
    ok "C++: builds with -lumrt alone" \
        $CXX -std=c++11 -Wall -Wextra -Werror -I"$UM_SRCDIR/lib" -o plain plain.cc -L"$UM_BUILDDIR/.libs" -lumrt
    ok "C++: runs" gives 0 ./plain
    ok "C++: init is fine" prints '^0$'
else
    skip "C++" "no C++ compiler"
fi
finish
