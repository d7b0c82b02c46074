#!/usr/bin/env bash
# An option that would mean nothing beside another is refused in one line; those that mean something stay.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

"$bin/sample" t.umt
"$umrt" gen stream -o s.umt -s 16M -n 1 >/dev/null
"$bin/sample" a.ump profile

refused() { # PATTERN COMMAND...
    local pattern=$1
    shift
    gives 2 timeout 300 "$umrt" "$@" && one_line && says "^umrt: $1: $pattern; see 'umrt $1 --help'$"
}

kinds=(--json --sarif --perfetto "--csv um_sum" --patch)
for one in "${kinds[@]}"; do
    for other in "${kinds[@]}"; do
        [ "$one" = "$other" ] && continue
        # shellcheck disable=SC2086 # words
        ok "report $one $other" refused 'one of --json, --sarif, --perfetto, --csv and --patch' report $one $other t.umt
    done
done
ok "the same kind twice is that kind" gives 0 "$umrt" report --json --json t.umt
for kind in --perfetto "--csv um_sum"; do
    for option in "--limit first-touch.faults=20" "--cuda 12.4" "--debug-dir /" "--what-if 1"; do
        # shellcheck disable=SC2086 # words
        ok "report $kind $option" refused "${option%% *} is about findings, which .*" report $kind $option t.umt
        # shellcheck disable=SC2086 # words
        ok "report $option" gives 0 "$umrt" report $option t.umt
    done
done
ok "report --perfetto --top" refused '--top does not go with --perfetto.*' report --perfetto --top 3 t.umt
ok "report --csv --top" gives 0 "$umrt" report --csv um_sum --top 3 t.umt
for option in "-m v100-pcie3" "-g 50%" "-s 1"; do
    # shellcheck disable=SC2086 # words
    {
        ok "replay --open $option" refused '--open has no model.*' replay --open $option s.umt
        ok "replay $option" gives 0 "$umrt" replay $option s.umt
    }
done
for option in "-p none" "-g 50%" "-s 1"; do
    # shellcheck disable=SC2086 # words
    ok "replay --backtest $option" refused '--backtest runs what was measured.*' replay --backtest $option
done
ok "replay --top" refused '--top goes with --open' replay --top 3 s.umt
ok "profile show --output" refused '--output goes with merge' profile show -o x.ump a.ump
ok "profile merge --json" refused '--json goes with show and diff' profile merge --json -o x.ump a.ump
ok "explain --limits with a kind" refused '--limits goes with no kind of finding' explain --limits ping-pong
for mode in observe off; do
    for option in --profile --report --trace; do
        ok "run --mode=$mode $option" refused '--profile, --report and --trace go with --mode hint or trial' \
            run --mode=$mode $option=x.file true
        ok "run --mode=$mode $option: nothing is made" [ ! -e x.file ]
    done
done
ok "top --mode of a process" refused '--mode is for a PROGRAM.*' top --mode hint $$
finish
