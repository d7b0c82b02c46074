#!/usr/bin/env bash
# The code that findings come with is what a compiler takes: CUDA's calls against the headers of each version
# that is here, as C and as C++; a library's against its signatures (library.hpp); Python's by its parser.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

print=$UM_BUILDDIR/tests/unit/code_print
cc=${CC:-cc} cxx=${CXX:-c++}
strict=(-fsyntax-only -Wall -Werror -Wno-unused-variable -Wno-strict-aliasing)

# What configure found, and what .ci/run has fetched.
trees=()
for tree in "${CUDA_HOME:-/usr/local/cuda}" "$UM_SRCDIR"/build-ci/cuda/*; do
    [ -z "$(find -L "$tree" -name cuda_runtime_api.h -print -quit 2>/dev/null)" ] || trees+=("$tree")
done

includes() { # TREE: into include
    local dir
    include=()
    while read -r dir; do
        include+=(-isystem "${dir%/crt/host_defines.h}")
    done < <(find -L "$1" -name cuda_runtime_api.h -printf '%h\n' -o -path '*/crt/host_defines.h' -print)
}
version_of() { printf '#include <cuda_runtime_api.h>\nCUDART_VERSION\n' | "$cc" -E -P "${include[@]}" - | tail -1; }

compiles() { # KEY
    "$print" "$1" >"$1.c" && "$cc" -std=gnu11 "${strict[@]}" "${include[@]}" "$1.c" || return 1
    command -v "$cxx" >/dev/null || return 0
    cp "$1.c" "$1.cpp" && "$cxx" -std=c++14 "${strict[@]}" "${include[@]}" "$1.cpp"
}

seen=" "
for tree in "${trees[@]}"; do
    includes "$tree"
    version=$(version_of)
    [[ $seen != *" $version "* ]] || continue
    seen+="$version "
    [ "$version" -ge 13000 ] || ok "CUDA $version takes the calls of 11.8 to 12.1" compiles cuda12
    [ "$version" -ge 13000 ] || [ "$version" -lt 12020 ] ||
        ok "CUDA $version takes the calls of 12.2 to 12.9" compiles cuda12_2
    [ "$version" -lt 13000 ] || ok "CUDA $version takes the calls of 13" compiles cuda13
    newest=$tree
done
[ ${#trees[@]} != 0 ] || skip "CUDA's calls" "there are no headers of CUDA here"

fits() { # LIBRARY
    "$print" "$1" >"$1.cpp" &&
        "$cxx" -std=c++17 "${strict[@]}" "${include[@]}" "-DFOR_$1" "-DLIBRARY=\"library.hpp\"" -I"$UM_SRCDIR/tests/cli" "$1.cpp"
}
# Its other calls are those of 12.2.
include=()
for tree in "${trees[@]}"; do
    includes "$tree"
    version=$(version_of)
    [ "$version" -lt 12020 ] || [ "$version" -ge 13000 ] || break
    include=()
done
for library in rmm umpire kokkos amrex; do
    if [ ${#include[@]} = 0 ] && [ -n "${newest:-}" ]; then # the calls of 13 stand in for them
        includes "$newest"
        include+=(-DcudaMemPrefetchAsync_v2=cudaMemPrefetchAsync -DcudaMemAdvise_v2=cudaMemAdvise)
    fi
    if [ ${#include[@]} != 0 ] && command -v "$cxx" >/dev/null; then
        ok "$library takes its calls" fits $library
    else
        skip "$library takes its calls" "there are no headers of CUDA, or no C++ compiler, here"
    fi
done

parses() { "$print" cupy | python3 -c 'import ast, sys; ast.parse(sys.stdin.read())'; }
if command -v python3 >/dev/null; then
    ok "Python takes CuPy's calls" parses
else
    skip "Python takes CuPy's calls" "there is no Python"
fi
finish
