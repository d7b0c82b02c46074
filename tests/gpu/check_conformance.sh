#!/usr/bin/env bash
# check_conformance.sh - asks a real driver and CUPTI what the software GPU is asked (conformance/), and runs the
# driver-API examples. Answers other than conformance.expected fail; ACCEPT=1 keeps those of three runs there.
# Needs a GPU, a C compiler, CUDA 13's headers and CUPTI; writes nothing but that file. TAP.
#
#   tests/gpu/check_conformance.sh              compare, one run
#   ACCEPT=1 tests/gpu/check_conformance.sh     keep what the GPU answers, in $KEPT (tests/gpu/conformance.expected)
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export KERNELS=$root/examples/driver_api/kernels.ptx

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
    echo "1..0 # SKIP no GPU"
    exit 0
fi
# shellcheck disable=SC2086 # sources are words
build() { # SOURCES PROGRAM LIBRARIES...
    ${CC:-cc} -O1 -pthread -D_GNU_SOURCE -I"$root" -I"$cuda/include" -I"$cuda/extras/CUPTI/include" -o "$tmp/$2" $1 \
        -L"$cuda/lib64" -L"$cuda/lib64/stubs" -L"$cuda/extras/CUPTI/lib64" "${@:3}" \
        -Wl,-rpath,"$cuda/lib64:$cuda/extras/CUPTI/lib64" 2>"$tmp/cc.log" || sed 's/^/# /' "$tmp/cc.log"
}
n=0
ok() { # NAME COMMAND...
    local name=$1 said
    shift
    n=$((n + 1))
    if said=$("$@" 2>&1); then echo "ok $n - $name"; else
        echo "not ok $n - $name"
        printf '%s\n' "$said" | sed 's/^/# /'
    fi
}
computes() { # OUTPUT COMMAND...
    local want=$1 got
    shift
    got=$("$@" 2>&1)
    [ "$got" = "$want" ] || { echo "$got"; return 1; }
}
while IFS='|' read -r name arguments want; do
    build "$root/examples/driver_api/$name.c" "$name" -lcuda
    # shellcheck disable=SC2086 # arguments are words
    ok "$name computes the same" computes "$want" "$tmp/$name" $arguments
done <<'END'
back_and_forth|8 3|sum 31457271
families||mean 5.000
graph|4 5|x 5, y seen 7.5
two_gpus||6 6
two_streams||y 21 21, called 3 times
END

# What is not the same in three runs is marked "(varies)" and not compared.
kept=${KEPT:-$here/conformance.expected}
probe() { # OUTPUT: what dies or hangs is told on the error output
    local start=$SECONDS
    LD_LIBRARY_PATH=$cuda/extras/CUPTI/lib64:${LD_LIBRARY_PATH:-} timeout 900 "$tmp/probes" >"$1" 2>"$tmp/err"
    sed 's/^/# /' "$tmp/err"
    echo "# $(wc -l <"$1") answers in $((SECONDS - start)) s"
    [ -s "$1" ]
}
accept() {
    awk '{ at = index($0, " = "); key = substr($0, 1, at - 1); value = substr($0, at + 3) }
        !(key in seen) { order[++lines] = key }
        key in seen && seen[key] != value { varies[key] = 1 }
        { seen[key] = value; times[key]++ }
        END { for (i = 1; i <= lines; i++) {
                  key = order[i]
                  print key " = " (key in varies || times[key] != 3 ? "(varies)" : seen[key])
              } }' "$tmp/run.1" "$tmp/run.2" "$tmp/run.3" >"$tmp/kept" && cp "$tmp/kept" "$kept"
}
as_kept() { awk -f "$here/conformance.awk" "$kept" "$tmp/run.1" || { echo "to keep these: ACCEPT=1 $0"; return 1; }; }
build "$(echo "$here"/conformance/*.c)" probes -lcuda -ldl
probe "$tmp/run.1"
if [ -n "${ACCEPT:-}" ]; then
    probe "$tmp/run.2"
    probe "$tmp/run.3"
    ok "what the GPU answers is kept: $kept" accept
fi
ok "the GPU answers what is kept of an H200" as_kept
echo "1..$n"
