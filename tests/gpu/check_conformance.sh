#!/usr/bin/env bash
# check_conformance.sh - asks a real driver and CUPTI what tests/softgpu/conformance.c asks, and runs the driver-API
# examples; answers other than the software GPU's must be among those that tests/softgpu/README.md lists, with reasons.
# Needs a GPU. TAP.
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
build() { # SOURCE PROGRAM LIBRARIES...
    ${CC:-cc} -O1 -pthread -D_GNU_SOURCE -I"$root" -I"$cuda/include" -I"$cuda/extras/CUPTI/include" -o "$tmp/$2" "$1" \
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
# Lines of the table "Known differences": | question | here | H200 | reason |
same_answers() {
    "$tmp/conformance" >"$tmp/answers" 2>&1
    diff "$root/tests/softgpu/conformance.txt" "$tmp/answers" | grep '^[<>]' >"$tmp/differs"
    awk -F'|' '/^## / { on = /Known differences/ } on && /^\|/ { q = $2; gsub(/^ +| +$|`/, "", q); print q }' \
        "$root/tests/softgpu/README.md" | tail -n +3 >"$tmp/known"
    grep -vFf "$tmp/known" "$tmp/differs" || return 0
    return 1
}

build "$root/tests/softgpu/conformance.c" conformance -lcuda -lcupti
ok "a real GPU answers as the software GPU does, but for the known differences" same_answers
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

# Many more probes, each named: what they gave on an H200 is kept. ACCEPT=1 keeps what they give here; what is not
# the same in three runs is marked "(varies)" and not compared.
kept=$here/conformance.expected
probe() { LD_LIBRARY_PATH=$cuda/extras/CUPTI/lib64:${LD_LIBRARY_PATH:-} "$tmp/probes" >"$1"; }
accept() {
    for i in 1 2 3; do
        probe "$tmp/run.$i"
        [ -s "$tmp/run.$i" ] || return 1
    done
    awk '{ at = index($0, " = "); key = substr($0, 1, at - 1); value = substr($0, at + 3) }
        !(key in seen) { order[++lines] = key }
        key in seen && seen[key] != value { varies[key] = 1 }
        { seen[key] = value; times[key]++ }
        END { for (i = 1; i <= lines; i++) {
                  key = order[i]
                  print key " = " (key in varies || times[key] != 3 ? "(varies)" : seen[key])
              } }' "$tmp/run.1" "$tmp/run.2" "$tmp/run.3" >"$kept"
}
as_kept() {
    probe "$tmp/got"
    awk -f "$here/conformance.awk" "$kept" "$tmp/got" || { echo "to keep these: ACCEPT=1 $0"; return 1; }
}
build "$here/conformance.c" probes "$here/conformance_cupti.c" -lcuda -ldl
[ -z "${ACCEPT:-}" ] || ok "the probes answer, and that is kept: $kept" accept
ok "the probes give what is kept of an H200" as_kept
echo "1..$n"
