#!/usr/bin/env bash
# umrt top of programs that run: the figures are those of the program, whatever becomes of it, and the program is as it
# is alone. The screen is tested on a pseudo-terminal where there is python3.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
export SOFTGPU_QUEUE=0
program=$programs/back_and_forth

# value NAME [LINE]: of name=value in the last line, or the last that begins with LINE.
value() { grep "${2:-pid=}" looks | tail -1 | grep -oE " ?$1=[^ ]*" | head -1 | cut -d= -f2; }
# in_report NAME: of the JSON that the program left.
in_report() { python3 -c 'import json, sys
value = json.load(open("report.json"))
for key in sys.argv[1].split("."):
    value = value[key]
print(value if not isinstance(value, dict) else sum(value.values()))' "$1"; }
same() { [ "$(value "$1")" = "$(in_report "$2")" ] || { echo "$1: $(value "$1"), $2: $(in_report "$2")"; return 1; }; }

# A program that takes its time, so that there are looks before it ends, however busy the machine is.
echo 'cuLaunchKernel slow 100ms' >slowly
slowly=(env SOFTGPU_RULES="$tmp/slowly")

"$program" 16 20 >alone.out
ok "a program of its own: as alone" gives 0 "${slowly[@]}" "$umrt" top -i 0.1 --all --report report.json -- "$program" 16 20
cp "$err" looks
ok "what it prints is its own" cmp "$out" alone.out
ok "a line a look, on stderr" [ "$(grep -c '^umrt: pid=' looks)" -gt 1 ]
ok "the last is of the end" [ "$(value over)" = 1 ]
ok "all launches of it" [ "$(value launches)" = 20 ]
ok "of an advisor, too" grep -qE '^umrt: advisor name=ahead proposals=[1-9]' looks
ok "of a region, with where it is" grep -qE '^umrt: region id=1 .* bytes=16777216 family=managed .* gpu_bytes=[0-9]+ .* name=' looks
ok "by the place in the source" grep -qE 'name=main \(back_and_forth\.c:[0-9]+\)$' looks
ok "what is said at the end comes after" grep -q '^umrt: prefetched' <(tail -1 looks)
if command -v python3 >/dev/null; then
    ok "launches: the program's own figure" same launches launches.seen
    ok "managed ones" same launches_managed launches.managed
    ok "hinted ones" same launches_hinted launches.hinted
    ok "hints proposed" same hints_proposed hints.proposed
    ok "hints applied" same hints_applied hints.applied
    ok "hints refused" same hints_refused hints.refused
    ok "bytes prefetched" same prefetched_bytes hints.prefetched_bytes
fi
ok "its status is that of the program" gives 7 "${slowly[@]}" "$umrt" top -i 0.1 -- sh -c "'$program' 16 8; exit 7"
ok "which is found below a shell" says '^umrt: pid=[0-9]+ mode=hint over=1 .* launches=8 '

# running ENV... -- ARGUMENT...: the program in the background, as $pid, with something to see.
running() {
    local as=()
    while [ "$1" != -- ]; do as+=("$1"); shift; done
    env "${as[@]}" CUDA_INJECTION64_PATH="$UM_BUILDDIR/.libs/libumrt.so" "${@:2}" >ran 2>&1 &
    pid=$!
    until_it_holds "$umrt" top -n 1 $pid
}
# until_it_holds COMMAND...: tried again for five minutes.
until_it_holds() {
    local end=$((SECONDS + 300))
    until "$@" >tried 2>&1; do
        [ $SECONDS -lt $end ] || { cat tried; return 1; }
        sleep 0.1
    done
}
stop() { kill -9 $pid; wait $pid; } 2>/dev/null

# it_shows PATTERN: in one of two looks.
it_shows() { "$umrt" top -i 0.5 -n 2 -a $pid >looks && grep -E -- "$1" looks; }
running UMRT_MODE=record UMRT_OUT="$tmp/t.umt" -- "$program" 16 100000
ok "a running one: three looks" gives 0 "$umrt" top -i 0.3 -n 3 -a $pid
ok "are three lines, on stdout" [ "$(grep -c '^pid=' "$out")" = 3 ]
ok "with faults, at a rate" until_it_holds it_shows 'gpu_faults=[1-9].* gpu_faults_per_s=[1-9]'
ok "and migrations, also of a region" until_it_holds it_shows '^region id=1 .* to_gpu_bytes=[1-9]'
ok "which tell where it is" grep -qE '^region id=1 .* unknown_bytes=[0-9]+ .* gpu_bytes=[0-9]' looks
: >looks
"$umrt" top -i 0.2 $pid >looks 2>"$err" &
watcher=$!
until_it_holds [ -s looks ]
stop
wait $watcher
ok "killed, the view ends" [ $? = 0 ]
ok "with its last figures" [ "$(value over)" = 1 ]
ok "gone: no process" gives 2 "$umrt" top $pid
ok "which is said" says "^umrt: there is no process $pid$"

# It shows nothing, or not to everybody.
sleep 100 & pid=$!
ok "without umrt: refused" gives 2 "$umrt" top $pid
ok "in one line" one_line
ok "that says how" says "^umrt: process $pid runs without umrt; start it by 'umrt run PROGRAM'"
kill $pid
off() {
    UMRT_TOP=off CUDA_INJECTION64_PATH=$UM_BUILDDIR/.libs/libumrt.so "$program" 4 100000 >/dev/null 2>&1 &
    pid=$!
    until_it_holds grep -q '/memfd:managed' /proc/$pid/maps
    try "$umrt" top $pid
    ls -l /proc/$pid/fd >files
    stop
    [ "$status" = 2 ] && says 'UMRT_TOP' && ! grep -q umrt-top files
}
ok "off: there is no page" off
ok "neither PID nor program" gives 2 "$umrt" top
ok "an interval like none" gives 2 "$umrt" top -i 0 1
ok "a column like none" gives 2 "$umrt" top -s colour 1
ok "no such program" gives 127 "$umrt" top -- ./no-such-program

# Programs fork, exec and die: nothing of it changes with somebody looking.
for mode in $("$programs/life"); do
    case $mode in late) continue ;; esac
    { "$programs/life" "$mode" >alone.out 2>/dev/null </dev/null; alone=$?; } 2>/dev/null
    ok "$mode: looked at, the same status" gives $alone "$umrt" top -i 0.1 -- "$programs/life" "$mode"
    ok "$mode: the same output" cmp "$out" alone.out
done

# The screen.
if ! command -v python3 >/dev/null; then
    skip "the screen" "there is no python3"
elif ! grep -q '^CURSES_LIBS = .*-lncursesw' "$UM_BUILDDIR/Makefile"; then
    skip "the screen" "built without ncurses"
else
    running UMRT_MODE=hint -- "$program" 8 1000000
    for test in quit interrupt resize sort_and_pause ascii dumb terminate; do
        ok "screen: $test" python3 "$UM_SRCDIR/tests/softgpu/top_screen.py" $test "$umrt" $pid
    done
    ok "screen: killed" python3 "$UM_SRCDIR/tests/softgpu/top_screen.py" killed "$umrt" $pid
    wait $pid 2>/dev/null
    for test in program quit_before_the_end; do
        ok "screen: $test" python3 "$UM_SRCDIR/tests/softgpu/top_screen.py" $test "$umrt" "$program"
    done
fi
finish
