#!/usr/bin/env bash
# Whatever way a kernel comes to run, on whatever stream, in whatever context and on whatever GPU: with hints, of the
# default advisors and of all, the program prints what it prints alone, and memory went where it was needed.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"
hints=$programs/hinted
export SOFTGPU_GPUS=2 SOFTGPU_RECORDS=$tmp/records SOFTGPU_QUEUE=0
MIB=$((1 << 20))
unhurried

# brought GPU: bytes that were asked to there; returned: to the CPU; stolen: from one GPU by another; stolen_late: once
# half of all kernels are through.
brought() { awk -v gpu="$1" '$1 == 1 && $6 == 1 && $5 == gpu { n += $3 } END { print n + 0 }' records; }
returned() { awk '$1 == 2 && $6 == 1 { n += $3 } END { print n + 0 }' records; }
stolen() { awk '$1 == 8 { n += $3 } END { print n + 0 }' records; }
stolen_late() { awk '$1 == 0 { n[++kernels] = 0 } $1 == 8 { n[kernels + 0] += $3 }
    END { for (k in n) sum += k >= kernels / 2 ? n[k] : 0; print sum + 0 }' records; }
prompt=() # how it is run
# as_alone ARGUMENT...: `umrt run ARGUMENT...` of the mode prints what the mode prints.
as_alone() {
    : >records
    timeout 300 "${prompt[@]}" "$umrt" run "$@" -- "$hints" "$mode" >now 2>said </dev/null || { cat said; return 1; }
    cmp now alone.out || { cat now said; return 1; }
}

for mode in $("$hints" | grep -v elements); do # of which one run is long enough
    rm -f records
    timeout 300 "$hints" "$mode" >alone.out
    ok "$mode: runs alone" [ $? = 0 ]
    ok "$mode: with all advisors, the same" as_alone --advisors all -q
    ok "$mode: hinted, the same" as_alone -q
    case $mode in
    apart | advised | shared | slices | indexed | library | frees | items) continue ;; # below
    esac
    [ -s alone.out ] || { skip "$mode: memory goes to GPU 0" "this CUDA has none"; continue; }
    ok "$mode: memory goes to GPU 0" [ "$(brought 0)" -ge $((4 * MIB)) ]
    ok "$mode: and to no other" [ "$(brought 1)" = 0 ]
done

# A kernel that is loaded while another one runs holds up what is brought for that one: all of them are loaded first.
mode=library
"$hints" $mode >alone.out 2>said
if [ -s alone.out ]; then
    # ready PATTERN: "N N N N", before the first launch, with launches outstanding, after a wait for all of them,
    # with one outstanding while another GPU was waited for
    ready() { [[ $(awk '$1 == "ready" { print $2 }' said | xargs) =~ ^$1$ ]] || { cat said; return 1; }; }
    # umrt stops where one has taken 5 ms, however busy the machine was with other things.
    all_are_ready() {
        if grep -qE ' 1 of 2 kernels of a library loaded in ([5-9]|[1-9][0-9]+)\.' said; then
            ready '[12] 0 [12] 0'
        else
            ready '2 0 2 0'
        fi
    }
    ok "library: alone, kernels are loaded as they are launched" ready '0 0 0 0'
    UMRT_LOG_LEVEL=3 as_alone
    ok "library: hinted, before the first of them is, and never while kernels may be running" all_are_ready
    as_alone --preload-kernels 1
    ok "library: not one of more kernels than asked for" ready '0 0 0 0'
    as_alone --mode observe
    ok "library: not where nothing is hinted" ready '0 0 0 0'
    for only in CONCURRENT=0 INTEGRATED=1 HOST_PAGE_TABLES=1; do
        export "SOFTGPU_$only"
        as_alone
        ok "library: not on a GPU that is only observed ($only)" ready '0 0 0 0'
        unset "SOFTGPU_${only%=*}"
    done
else
    skip "library: kernels are loaded before the first of them runs" "this CUDA cannot"
fi

mode=apart
"$hints" $mode >alone.out
as_alone -q --guard-per-mille 0
ok "apart: each GPU gets its own" [ "$(brought 0)" -ge $((4 * MIB)) ]
ok "apart: and the other its own" [ "$(brought 1)" -ge $((4 * MIB)) ]
ok "apart: none takes the other's" [ "$(stolen)" = 0 ]

# Two GPUs at one array. Each round the CPU writes all 8 MiB, so that what one GPU is given too much the other steals;
# in the first rounds it may.
for mode in slices indexed; do
    rm -f records
    "$hints" $mode >alone.out
    ok "$mode: alone, neither steals" [ "$(stolen)" = 0 ]
    ok "$mode: hinted, the same" as_alone -q --guard-per-mille 0
    ok "$mode: neither steals once it is known what each takes" [ "$(stolen_late)" = 0 ]
    [ $mode = slices ] || continue
    ok "$mode: one GPU is brought what it takes" [ "$(brought 0)" -gt 0 ]
    ok "$mode: and so is the other" [ "$(brought 1)" -gt 0 ]
done

# A free, and a copy of four bytes to pageable memory, keep everybody else out of the driver until the kernel before it is
# over: what that kernel takes is there first. Alone it faults all of it in.
faulted() { awk '$1 == 4 { n++ } END { print n + 0 }' records; }
for mode in frees items; do
    rm -f records
    "$hints" $mode >alone.out
    alone=$(faulted)
    ok "$mode: alone, the GPU faults" [ "$alone" -gt 0 ]
    ok "$mode: hinted, the same" as_alone -q --advisors first_touch,ahead --guard-per-mille 0
    ok "$mode: what a launch takes is there before the call after it closes the driver" [ "$(faulted)" -lt $((alone / 2)) ]
done

# What the CPU reads after a wait is brought to it, whatever the wait was.
mode=waits
"$hints" $mode >alone.out
ok "waits: the same" as_alone --advisors first_touch,ahead,readback -q --guard-per-mille 0
ok "waits: what is read after them comes back by itself" [ "$(returned)" -ge $((4 * MIB)) ]
mode=elsewhere
"$hints" $mode >alone.out
ok "elsewhere: the same" as_alone --advisors first_touch,ahead,readback -q --guard-per-mille 0
ok "elsewhere: what is read of an argument comes back wherever it is" [ "$(returned)" -ge $((16 * MIB)) ]

# What a run before has shown of what comes next is there before it comes.
mode=stages
"$hints" $mode >alone.out
ahead=(--advisors "first_touch,ahead,lookahead" -q --guard-per-mille 0 --profile stages.ump)
# foretold REGION N: bytes of it that lookahead began to bring before launch N; its event comes when it is done.
foretold() {
    "$umrt" dump -t launch,hint t.umt | awk -v region="region=$1" -v n="$2" '
        function value(key,   i) {
            for (i = 1; i <= NF; i++)
                if (index($i, key "=") == 1)
                    return substr($i, length(key) + 2)
        }
        $2 == "launch" { launched[++launches] = $1 }
        /who="lookahead"/ && /result="?applied/ && $0 ~ region "($| )" {
            began[++hints] = $1 - value("duration_ns")
            brought[hints] = value("bytes")
        }
        END { for (h = 1; h <= hints; h++)
                  bytes += began[h] < launched[n] ? brought[h] : 0
              print bytes + 0 }'
}
ok "stages: a first run, the same" as_alone "${ahead[@]}"
ok "stages: it learned what comes next" grep -q '"sequence"' <("$umrt" profile show --json stages.ump)
named() {
    gives 0 "$umrt" profile show --json stages.ump && prints '"pointers": [0-9]+' && ! grep '"value_' "$out" &&
        gives 0 "$umrt" profile show stages.ump && prints 'sequence +launch .* pointers [0-9]+'
}
ok "stages: each value that a profile shows has a name, with its unit" named
export HINTED_AHEAD=1
ok "stages: a second run, the same" as_alone "${ahead[@]}" -t t.umt
unset HINTED_AHEAD
ok "stages: what the GPU touches first is there before any launch" [ "$(foretold 3 1)" -ge $((4 * MIB)) ]
ok "stages: and what the CPU writes is not" [ "$(foretold 2 1)" = 0 ]
ok "stages: what the second launch takes comes during the first" [ "$(foretold 2 2)" -ge $((2 * MIB)) ]

# A launch's integer says how far its kernel goes, which the grid does not: brought is what that takes, with a new value too.
mode=elements
"$hints" $mode >alone.out
# last: MiB that `ahead` brought for the last launch
last() {
    "$umrt" dump -t launch,hint t.umt | awk '
        { for (i = 1; i <= NF; i++) { split($i, pair, "="); field[pair[1]] = pair[2] } }
        $2 == "launch" { launch = field["correlation"] }
        $2 == "hint" && field["result"] == "applied" && field["device"] == 0 { bytes[field["correlation"]] += field["bytes"] }
        END { print int(bytes[launch] / 1048576) }'
}
near() {
    local off=$(($1 - $2))
    [ "${off#-}" -le 6 ] || { echo "$1 MiB of $2"; return 1; }
}
elements() { as_alone --advisors first_touch,ahead -q --guard-per-mille 0 --profile elements.ump -t t.umt; }
learned() {
    "$umrt" profile show elements.ump >shown
    grep -qE 'footprint +integer .*parameter 1 ' shown || { cat shown; return 1; }
}
# Where a kernel stopped is only seen within 2 ms of the wait: ahead of all else on a busy machine, where that is allowed,
# and else in several runs.
! chrt -r 1 true 2>/dev/null || prompt=(chrt -r 1)
ok "elements: the same" elements
ok "elements: the integer is in the trace" grep -q ' launch .*scalars=\[{slot=1,size_bytes=8,value=16777216}\]' <("$umrt" dump t.umt)
for _ in {1..9}; do learned >/dev/null && break; elements; done
ok "elements: which of the integers it is is learned, and kept in the profile" learned
ok "elements: another run with it, the same" elements
ok "elements: what a value takes that has not been before is brought, and no more" near "$(last)" 64
prompt=()

# Advice is given, but not where the program gives it.
advice() { awk '$1 ~ /^libumrt/ && $2 ~ /^cuMemAdvise/ { n += $3 } END { print n + 0 }' calls; }
mode=shared
"$hints" $mode >alone.out
rm -f calls
ok "shared: it runs" env SOFTGPU_CALLS="$tmp/calls" "$umrt" run --advisors calm,ahead -q --guard-per-mille 0 -- "$hints" $mode
ok "shared: advice was given" [ "$(advice)" -gt 0 ]
ok "shared: it runs on an old driver" env SOFTGPU_CUDA=11.8 SOFTGPU_CALLS="$tmp/old" \
    "$umrt" run --advisors calm,ahead -q --guard-per-mille 0 -- "$hints" $mode
ok "shared: advised there by the old call" grep -q '^libumrt[^ ]* cuMemAdvise ' old
mode=advised
rm -f calls
ok "advised: it runs" env SOFTGPU_CALLS="$tmp/calls" "$umrt" run --advisors calm,ahead -q --guard-per-mille 0 -- "$hints" $mode
ok "advised: none where the program advises itself" [ "$(advice)" = 0 ]
finish
