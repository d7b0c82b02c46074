#!/usr/bin/env bash
# check_safety.sh - every way to end, fork, free and reset: plain, under `umrt record` and under
# `umrt run`. Exit status and the bytes of stdout and stderr must be the same; nothing may hang; what was
# recorded before a kill must be readable. Needs a GPU. TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${UM_BUILDDIR:-$PWD}
umrt=$build/umrt
cuda=${CUDA_HOME:-/usr/local/cuda}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
    echo "1..0 # SKIP no GPU"
    exit 0
fi
if ! ${CC:-cc} -O1 -Wall -pthread -I"$cuda/include" -o safety "$here/safety.c" \
    -L"$cuda/lib64" -L"$cuda/lib64/stubs" -lcudart -lcuda -Wl,-rpath,"$cuda/lib64" 2>cc.log; then
    sed 's/^/# /' cc.log
    echo "1..0 # SKIP safety.c does not build here"
    exit 0
fi

# run WAY COMMAND...: output to WAY.out and WAY.err, exit status and seconds to WAY.status, WAY.time.
run() {
    local way=$1 begin
    shift
    begin=$(date +%s.%N)
    timeout -k 5 120 "$@" >"$way.out" 2>"$way.err"
    echo $? >"$way.status"
    awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }' >"$way.time"
}

n=0
report() { # NAME WAY: the same as plain?
    local why=
    n=$((n + 1))
    cmp -s plain.out "$2.out" || why="$why stdout"
    cmp -s plain.err "$2.err" || why="$why stderr"
    cmp -s plain.status "$2.status" || why="$why status($(cat plain.status)->$(cat "$2.status"))"
    if [ -z "$why" ]; then
        echo "ok $n - $1 under $2 ($(cat plain.time) s plain, $(cat "$2.time") s)"
    else
        echo "not ok $n - $1 under $2: differs in$why"
        diff plain.out "$2.out" | head -5 | sed 's/^/#   stdout /'
        diff plain.err "$2.err" | head -5 | sed 's/^/#   stderr /'
    fi
}

readable() { # NAME: each trace that was left can be read, and the process that launched has launches
    local trace launches=0 found
    n=$((n + 1))
    for trace in trace.*.umt; do
        [ -e "$trace" ] || continue
        "$umrt" dump "$trace" >dump.out 2>dump.err
        found=$(grep -c launch dump.out)
        launches=$((launches + found))
    done
    if [ "$1" = no-cuda ] || [ "$launches" -gt 0 ]; then
        echo "ok $n - the trace of $1 is readable ($launches launches)"
    else
        echo "not ok $n - the trace of $1 is readable: no launch in it"
        head -3 dump.err | sed 's/^/#   /'
    fi
}

names=$(./safety list)
echo "1..$((3 * $(echo "$names" | wc -l)))"
for name in $names; do
    rm -f trace.*.umt
    run plain ./safety "$name"
    run record "$umrt" record -q -o "$tmp/trace.%p.umt" -- ./safety "$name"
    report "$name" record
    readable "$name"
    run run "$umrt" run -q -- ./safety "$name"
    report "$name" run
done
