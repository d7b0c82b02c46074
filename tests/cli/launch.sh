#!/usr/bin/env bash
# umrt run and umrt record: the program notices nothing.
# shellcheck disable=SC2016 # other shells expand it
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

# The same status with and without umrt, whatever it is and whatever signals are ignored around us.
same_status() {
    local plain
    "$@" >/dev/null 2>&1 </dev/null
    plain=$?
    gives "$plain" "$umrt" "$command" -q -- "$@"
}

same_bytes() {
    "$@" >plain.out 2>plain.err </dev/null
    try "$umrt" "$command" -q -- "$@"
    cmp plain.out "$out" && cmp plain.err "$err"
}

# Without -q the program's bytes come first and whole; after them only lines of ours.
own_lines_last() {
    "$@" 2>plain.err >/dev/null </dev/null
    try "$umrt" "$command" -- "$@"
    head -c "$(wc -c <plain.err)" "$err" | cmp - plain.err &&
        tail -c "+$(($(wc -c <plain.err) + 1))" "$err" >rest && [ -s rest ] && ! grep -v '^umrt: ' rest
}

sees() { # VARIABLE VALUE COMMAND...
    local variable=$1 value=$2
    shift 2
    try "$@" printenv "$variable"
    [ "$(cat "$out")" = "$value" ] || { echo "$variable is '$(cat "$out")', wanted '$value'"; cat "$err"; return 1; }
}

stdin_passes() {
    [ "$(printf 'a\0b' | "$umrt" "$command" -q -- od -c)" = "$(printf 'a\0b' | od -c)" ]
}

# A background job of a script has SIGINT ignored, and who runs the tests may ignore more: python gives all their
# defaults back.
with_default_signals() {
    exec python3 -c 'import os, signal, sys
for number in signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1:
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

forwards() { # SIGNAL: sent to umrt, the program gets it
    mkfifo "ready.$1"
    with_default_signals "$umrt" "$command" -q -- \
        bash -c "trap 'exit 9' $1; : >ready.$1; for i in {1..600}; do sleep 0.1; done" >/dev/null 2>&1 &
    local pid=$!
    : <"ready.$1"
    kill "-$1" $pid
    wait $pid
    [ $? = 9 ]
}

outlives_interrupt() { # SIGINT is for the program: umrt waits on and passes its status
    mkfifo ready.int go.int
    with_default_signals "$umrt" "$command" -q -- \
        bash -c ': >ready.int; read -r _ <go.int; exit 5' &
    local pid=$!
    : <ready.int
    kill -INT $pid
    echo >go.int
    wait $pid
    [ $? = 5 ]
}

interrupt_default_inside() { # the program has the disposition it would have without us
    (with_default_signals "$umrt" "$command" -q -- bash -c 'kill -INT $$; exit 0')
    [ $? = 130 ]
}

ignored_stays_ignored() {
    (trap '' HUP && gives 7 "$umrt" "$command" -q -- sh -c 'kill -HUP $$; exit 7')
}

child_signal_ignored() { # an ignored SIGCHLD does not lose the status
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$umrt" "$command" -q -- sh -c 'exit 6'
    [ $? = 6 ]
}

broken_stderr() { # nobody reads our lines: the status is the program's all the same
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
r, w = os.pipe()
os.close(r)
os.dup2(w, 2)
os.execv(sys.argv[1], sys.argv[1:])' "$umrt" "$command" -- sh -c 'exit 3'
    [ $? = 3 ]
}

printf '#!/bin/sh\nexit 0\n' >not-executable
mkdir directory

for command in run record; do
    for status_of in 'exit 0' 'exit 3' 'exit 255' 'kill -TERM $$' 'kill -KILL $$' 'kill -SEGV $$'; do
        ok "$command: status of '$status_of'" same_status sh -c "$status_of"
    done
    ok "$command: SIGTERM is 143" gives 143 "$umrt" $command -q -- sh -c 'kill -TERM $$'
    ok "$command: SIGKILL is 137" gives 137 "$umrt" $command -q -- sh -c 'kill -KILL $$'
    ok "$command: no such command is 127" gives 127 "$umrt" $command -- no-such-command-here
    ok "$command: and says so" says '^umrt: no-such-command-here: command not found$'
    ok "$command: no such file is 127" gives 127 "$umrt" $command -- ./no-such-file
    ok "$command: and says so in one line" one_line
    ok "$command: not executable is 126" gives 126 "$umrt" $command -- ./not-executable
    ok "$command: a directory is 126" gives 126 "$umrt" $command -- ./directory
    ok "$command: output bytes are the program's" \
        same_bytes sh -c 'printf "a\0b\nno newline"; printf "e\0f\ng" >&2'
    ok "$command: umrt's lines come after them" own_lines_last sh -c 'echo "umrt: mine" >&2; exit 2'
    ok "$command: arguments stay whole" \
        same_bytes printf '[%s]\n' 'a b' '' $'new\nline' '*' '$HOME' '--quiet' -q --
    ok "$command: options after the program are the program's" \
        same_bytes sh -c 'echo "$@"' sh --help -q --mode=x
    ok "$command: -- may be left out" gives 4 "$umrt" $command sh -c 'exit 4'
    ok "$command: standard input passes" stdin_passes
    for signal in TERM HUP USR1; do
        ok "$command: SIG$signal is passed on" forwards $signal
        rm -f ready.$signal
    done
    ok "$command: SIGINT is the program's affair" outlives_interrupt
    rm -f ready.int go.int
    ok "$command: SIGINT works inside" interrupt_default_inside
    ok "$command: an ignored SIGHUP stays ignored" ignored_stays_ignored
    ok "$command: an ignored SIGCHLD loses no status" child_signal_ignored
    ok "$command: a closed stderr loses no status" broken_stderr

    ok "$command: the library goes with the program" \
        sees CUDA_INJECTION64_PATH "$(realpath "$UM_BUILDDIR/.libs/libumrt.so")" "$umrt" $command -q --
    ok "$command: a setting is handed on" \
        sees UMRT_PIECE_BYTES 16M "$umrt" $command -q --piece-bytes=16M --
    ok "$command: a setting with its value apart" \
        sees UMRT_WORKERS 3 "$umrt" $command -q --workers 3 --
    ok "$command: an advisor's setting is handed on" \
        sees UMRT_AHEAD_DENSE_LIMIT 3G "$umrt" $command -q --ahead-dense-limit=3G --
    ok "$command: an advisor's setting is checked, too" gives 2 "$umrt" $command --ahead-min=few -- true
    ok "$command: a wrong value is refused before the program runs" \
        gives 2 "$umrt" $command --workers=many -- sh -c 'echo ran'
    ok "$command: naming it" says "^umrt: $command: --workers: 'many' is not "
    ok "$command: nothing ran" [ ! -s "$out" ]
    ok "$command: an unknown option is refused" gives 2 "$umrt" $command --wrokers=2 -- true
    ok "$command: and the nearest named" says "unknown option --wrokers, did you mean --workers\\?"
    ok "$command: an advisor that there is not is refused" gives 2 "$umrt" $command --advisors=calm,aheed -- true
    ok "$command: and the nearest one named" says "there is no advisor 'aheed', did you mean 'ahead'\\?"
    ok "$command: advisors that there are" sees UMRT_ADVISORS ahead,calm "$umrt" $command -q --advisors=ahead,calm --
    ok "$command: an option without its value" gives 2 "$umrt" $command --workers
    ok "$command: and says so" says 'needs a value'
    ok "$command: no program is refused" gives 2 "$umrt" $command --
    ok "$command: no CUDA calls are said" gives 0 "$umrt" $command -- true
    ok "$command: in words" says '^umrt: no CUDA calls seen'
    ok "$command: -q says nothing" gives 0 "$umrt" $command -q -- true
    ok "$command: indeed nothing" [ ! -s "$err" ]
    ok "$command: -q silences the library too" gives 0 "$umrt" $command -q -- "$bin/inject"
    ok "$command: entirely" [ ! -s "$err" ]

    ok "$command: another injection is left alone" \
        sees CUDA_INJECTION64_PATH /other/tool.so env CUDA_INJECTION64_PATH=/other/tool.so "$umrt" $command --
    ok "$command: with a line that names it" says '^umrt: CUDA_INJECTION64_PATH already names /other/tool.so;'
    ok "$command: umrt under umrt leaves the program to the outer one" \
        sees UMRT_MODE "$([ $command = run ] && echo hint || echo record)" "$umrt" $command -q -- "$umrt" run --
    ok "$command: in words" says '^umrt: this runs under umrt already; the program is the outer one'
    ok "$command: and nothing of ours is set" \
        sees UMRT_MODE '' env CUDA_INJECTION64_PATH=/other/tool.so "$umrt" $command --
    ok "$command: without the library the program runs" \
        gives 8 env UMRT_LIBRARY=/nowhere/libumrt.so "$umrt" $command -- sh -c 'exit 8'
    ok "$command: and a line says so" says '^umrt: UMRT_LIBRARY=/nowhere/libumrt.so cannot be read; the program runs without umrt$'
    ok "$command: the injected library lets the program be" gives 0 "$umrt" $command -- "$bin/inject"
    ok "$command: it was there" [ "$(grep -c 'no CUDA calls seen' "$err")" = 0 ]
    ok "$command: the program's status comes through the library" \
        gives 3 "$umrt" $command -- "$bin/inject" sh -c 'exit 3'
done
ok "run: hint is the mode" sees UMRT_MODE hint "$umrt" run -q --
ok "run: --mode=observe" sees UMRT_MODE observe "$umrt" run -q --mode=observe --
ok "run: -m observe" sees UMRT_MODE observe "$umrt" run -qm observe --
ok "run: a wrong mode is refused" gives 2 "$umrt" run --mode=fast -- true
ok "run: recording is another command" gives 2 "$umrt" run --mode=record -- true
ok "record: record is the mode" sees UMRT_MODE record "$umrt" record -q --
for lib in lib lib/x86_64-linux-gnu; do
    rm -rf prefix
    mkdir -p prefix/bin prefix/$lib
    cp "$umrt" prefix/bin/
    cp "$UM_BUILDDIR/.libs/libumrt.so" prefix/$lib/
    ok "installed: the library in ../$lib is found" \
        sees CUDA_INJECTION64_PATH "$tmp/prefix/$lib/libumrt.so" prefix/bin/umrt run -q --
done
ok "no notes are left behind" [ -z "$(ls -A "$TMPDIR")" ]
finish
