#!/usr/bin/env bash
# umrt record and umrt run on the software GPU of every version: the program's result is its own, and a trace
# holds each record that the GPU made, to the byte.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"

export SOFTGPU_QUEUE=0 # CUPTI's own queue loses records: another test
for version in 11.8 12.1 12.4 12.8 13.0 13.2; do
    export SOFTGPU_CUDA=$version
    examples >list
    while IFS='=' read -r command want; do
        read -r -a words <<<"$command"
        name="$version: ${words[0]}"
        export SOFTGPU_GPUS=1
        [ "${words[0]}" = two_gpus ] && SOFTGPU_GPUS=2
        rm -f t.umt records
        ok "$name: recorded" gives 0 env SOFTGPU_RECORDS="$tmp/records" \
            "$umrt" record -q -o t.umt -- "$programs/${words[0]}" "${words[@]:1}"
        ok "$name: same result" [ "$(cat "$out")" = "${want# }" ]
        ok "$name: every record is in the trace" traced t.umt records
        ok "$name: none is lost" no_loss t.umt
        case $version in 12.1 | 12.8 | 13.2) continue ;; esac # as the one before
        ok "$name: hinted" gives 0 "$umrt" run -q -- "$programs/${words[0]}" "${words[@]:1}"
        ok "$name: same result with hints" [ "$(cat "$out")" = "${want# }" ]
    done <list
done
finish
