#!/usr/bin/env bash
# umrt report --patch from a real program's trace: the diff applies, compiles, and the patched program prints the
# same; what is not certain gives no diff, a reason and its own exit status; the source is never written.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"

from=$UM_SRCDIR/tests/softgpu/places
mkdir -p here/src there
cp "$from"/{patched.c,gpu.h} here/src
cp "$from"/{gpu.h,runtime_calls.c} .
links=("$soft/lib64/libcuda.so.1" "-Wl,-rpath,$soft/lib64")

built() { # OUTPUT SOURCE
    "${CC:-cc}" -O1 -c runtime_calls.c && "${CC:-cc}" -g -O1 -o "$1" "$2" runtime_calls.o "${links[@]}"
}
gives_not() { ! "$@"; }

ok "built" built app here/src/patched.c
ok "it runs" gives 0 ./app
cp "$out" plain.out
# Until both findings are worth something: their times are the machine's, and it may be busy.
recorded() {
    local i
    for ((i = 0; i < 60; i++)); do
        gives 0 "$umrt" record -q -o t.umt -- ./app || return 1
        [ "$("$umrt" report --limit all.win-percent=0 t.umt | grep -cE '^[0-9]\. (CPU-GPU|Never)')" != 2 ] || return 0
    done
    echo "in no run of 60 both findings were worth something"
    return 1
}
ok "recorded" recorded
"$umrt" report --json t.umt >t.json
if grep -q 'built without libdw' t.json; then
    skip "a diff" "umrt was built without libdw"
    finish
    exit 0
fi
cp -r here as-it-was

patched() { # OPTION...: into it.diff
    gives 0 "$umrt" report --limit all.win-percent=0 --patch "$@" t.umt && cp "$out" it.diff && [ -s it.diff ] && cat it.diff
}
applies() { # COMMAND...: to a copy of the source
    rm -rf there && cp -r as-it-was there && (cd there && "$@" <../it.diff)
}
holds() { grep -qF -- "$1" "there/src/patched.c" || { cat there/src/patched.c; return 1; }; }

ok "a diff" patched --source-root here
ok "its names are below the root" grep -qxF -- '--- src/patched.c' it.diff
ok "it says which findings it is of" grep -q '^umrt: finding [0-9] (never-on-cpu)' it.diff
ok "patch -p0 takes it" applies patch -s -p0
if command -v git >/dev/null; then
    ok "git apply -p0 takes it" applies git apply -p0
else
    skip "git apply -p0 takes it" "there is no git"
fi
ok "scratch becomes device memory" holds 'cudaMalloc((void **)&scratch, n * sizeof(float)); '
ok "the patched program compiles" built patched there/src/patched.c
ok "and runs" gives 0 ./patched
ok "and prints the same" cmp "$out" plain.out
ok "the source is as it was" diff -r here as-it-was
ok "the same trace gives the same diff" eval 'cp it.diff first.diff && patched --source-root here >/dev/null && cmp it.diff first.diff'
ok "into a file" gives 0 "$umrt" report --limit all.win-percent=0 --patch --source-root here -o out.diff t.umt
ok "which is the same" cmp out.diff it.diff
ok "and is replaced" gives 0 "$umrt" report --limit all.win-percent=0 --patch --source-root here -o out.diff t.umt

# What CUDA's own headers make of it, for each version that is here.
in_cuda() { # TREE
    local include=() dir version
    while read -r dir; do
        include+=(-isystem "${dir%/crt/host_defines.h}")
    done < <(find -L "$1" -name cuda_runtime_api.h -printf '%h\n' -o -path '*/crt/host_defines.h' -print)
    version=$(printf '#include <cuda_runtime_api.h>\nCUDART_VERSION\n' | "${CC:-cc}" -E -P "${include[@]}" - | tail -1)
    patched --source-root here --cuda "$((version / 1000)).$((version % 1000 / 10))" && applies patch -s -p0 &&
        holds 'sums, few * sizeof(float), cudaMemAdviseSetPreferredLocation, ' &&
        "${CC:-cc}" -DREAL -std=gnu11 -fsyntax-only -Werror "${include[@]}" there/src/patched.c
}
found=0
for tree in "${CUDA_REAL:-/usr/local/cuda}" "$UM_SRCDIR"/build-ci/cuda/*; do
    [ -n "$(find -L "$tree" -name cuda_runtime_api.h -print -quit 2>/dev/null)" ] || continue
    ok "it compiles against ${tree##*/}" in_cuda "$tree"
    found=1
done
[ $found = 1 ] || skip "it compiles against CUDA's headers" "there are none here"

# ---- refusals ----
refused() { # WHY OPTION...
    local why=$1
    shift
    gives 3 "$umrt" report --limit all.win-percent=0 --patch "$@" t.umt && [ ! -s "$out" ] || return 1
    grep -qF -- "$why" "$err" || { cat "$err"; return 1; }
}
ok "a source that is elsewhere" refused "none-such: No such file or directory" --source-root none-such
mkdir empty
ok "a root without it" refused "is not below the source root" --source-root empty
ok "a file that is there is not replaced by nothing" eval 'refused "" --source-root empty -o out.diff && cmp out.diff first.diff'
touch here/src/patched.c
ok "a source that is newer than the program" refused "was changed after the program" --source-root here
touch -d "1 hour ago" here/src/patched.c
echo mine >mine
ok "something else is not overwritten" gives 2 "$umrt" report --limit all.win-percent=0 --patch --source-root here -o mine t.umt
ok "a root without --patch" gives 2 "$umrt" report --source-root here t.umt
ok "a page of it" gives 2 "$umrt" report --limit all.win-percent=0 --patch --html x.html t.umt
ok "a version that there is not" gives 2 "$umrt" report --limit all.win-percent=0 --patch --cuda 9.2 t.umt
finish
