#!/usr/bin/env bash
# A report says where: allocations, hints, launches and CPU faults as function, file and line, for every
# way to build a program; and never a line that is not certain.
# shellcheck source=tests/softgpu/soft.sh
. "$UM_SRCDIR/tests/softgpu/soft.sh"

from=$UM_SRCDIR/tests/softgpu/places
cp "$from"/* .
links=("$soft/lib64/libcuda.so.1" "-Wl,-rpath,$soft/lib64")

# build OUTPUT OPTION...
build() { "${CC:-cc}" -g -O1 -w -fno-omit-frame-pointer -o "$@" "${links[@]}"; }
# line FILE MARK: the number of the line that ends with the mark.
line() { grep -nE "(//|/\\*|!|#) $2( \\*/)?$" "$1" | cut -d: -f1; }

# recorded PROGRAM OPTION...: into PROGRAM.umt, PROGRAM.json and PROGRAM.txt.
recorded() {
    local program=$1
    shift
    gives 0 "$umrt" record -q -o "$program.umt" "$@" -- "./$program" && reported "$program"
}
reported() {
    gives 0 "$umrt" report --json -n 1000 --debug-dir "$tmp/debug" "$1.umt" && cp "$out" "$1.json" &&
        gives 0 "$umrt" report --debug-dir "$tmp/debug" "$1.umt" && cp "$out" "$1.txt"
}
# places PROGRAM TABLE: what the report names there, one a line.
places() {
    python3 -c 'import json, sys
for row in json.load(open(sys.argv[1]))[sys.argv[2]]:
    print(row["place"], "|", row.get("from") or "", "|", row.get("note") or row.get("why_no_line") or "")' \
        "$1.json" "$2"
}
# reported_again PROGRAM TEXT: recorded and reported anew, it names TEXT.
reported_again() { recorded "$1" && names "$1" regions "$2"; }
# names PROGRAM TABLE TEXT: a row's place is TEXT.
names() {
    places "$1" "$2" | grep -qF -- "$3 |" || { echo "no place '$3' in $2:"; places "$1" "$2"; return 1; }
}
never() { # PROGRAM TEXT: nowhere in the report
    ! grep -hF -- "$2" "$1.txt" "$1.json"
}
name_all() { # PROGRAM: what every build of program.c must say
    names "$1" regions "make_grid (program.c:$(line program.c MAKE_GRID))" &&
        names "$1" regions "main (program.c:$(line program.c MAIN))" &&
        names "$1" call_sites "hint (program.c:$(line program.c ADVISE))" &&
        names "$1" call_sites "hint (program.c:$(line program.c PREFETCH))" &&
        names "$1" cpu_fault_places "fill (program.c:$(line program.c FILL))"
}

# ---- ways to build ----
ok "PIE: built" build pie program.c -fPIE -pie
ok "PIE: recorded" recorded pie
if grep -q 'built without libdw' pie.json; then
    skip "lines" "umrt was built without libdw"
    finish
    exit 0
fi
ok "PIE: every place has its line" name_all pie
ok "not PIE: built" build fixed program.c -fno-pie -no-pie
ok "not PIE: recorded" recorded fixed
ok "not PIE: every place has its line" name_all fixed

build libgrid.so library.c -fPIC -shared
ok "a shared library: built" build shared program.c -DWITH_LIBRARY ./libgrid.so -Wl,-rpath,"$tmp"
ok "a shared library: recorded" recorded shared
ok "a shared library: its own line" names shared regions "library_grid (library.c:$(line library.c LIBRARY))"
ok "a shared library: the program's lines" name_all shared

# names_from PROGRAM TABLE TEXT FROM: the same with the caller.
names_from() {
    places "$1" "$2" | grep -qF -- "$3 | $4 |" || { echo "no place '$3' from '$4' in $2:"; places "$1" "$2"; return 1; }
}

lambda_named() { # each compiler calls it otherwise
    places plus regions | grep -qE "^main.*lambda.*operator\(\) \(program.cpp:$(line program.cpp LAMBDA)\)" ||
        { places plus regions; return 1; }
}

# ---- languages ----
if command -v "${CXX:-c++}" >/dev/null; then
    ok "C++: built" "${CXX:-c++}" -g -O2 -w -o plus program.cpp "${links[@]}"
    ok "C++: recorded" recorded plus
    ok "C++: an inlined function" names plus regions "solver::inlined (program.cpp:$(line program.cpp INLINED))"
    ok "C++: a lambda" lambda_named
    ok "C++: the library's functions are stepped over" names plus regions "by_library (program.cpp:$(line program.cpp BY_LIBRARY))"
else
    skip "C++" "no C++ compiler"
fi
if command -v gfortran >/dev/null; then
    ok "Fortran: built" gfortran -g -O1 -w -o formula program.f90 "${links[@]}"
    ok "Fortran: recorded" recorded formula
    ok "Fortran: a module's procedure" names formula regions "grid::make (program.f90:$(line program.f90 MAKE))"
    ok "Fortran: one of no module" names formula regions "outside (program.f90:$(line program.f90 OUTSIDE))"
    strip -g formula
    ok "Fortran, symbols only: readable" reported_again formula "grid::make (formula)"
else
    skip "Fortran" "no gfortran"
fi
if command -v clang >/dev/null; then
    ok "clang: built" clang -g -O1 -w -o other program.c "${links[@]}"
    ok "clang: recorded" recorded other
    ok "clang: every place has its line" name_all other
else
    skip "clang" "it is not here"
fi
if python3 -c 'import ctypes' 2>/dev/null; then
    ok "Python: recorded" gives 0 "$umrt" record -q -o snake.umt -- python3 program.py
    ok "Python: reported" reported snake
    ok "Python: the program's function, and its callers" \
        names_from snake call_sites "Model.grid ($tmp/program.py:$(line program.py GRID))" \
        "<module> ($tmp/program.py:$(line program.py FIRST))"
else
    skip "Python" "no ctypes"
fi

# ---- a runtime inside the program ----
"${CC:-cc}" -O1 -w -c runtime.c
ok "static runtime: built" build inside static.c runtime.o
ok "static runtime: recorded" recorded inside
ok "static runtime: stepped over by its names" names inside regions "direct (static.c:$(line static.c DIRECT))"
ok "static runtime: an allocator of the program's, and who calls it" \
    names_from inside call_sites "own_alloc (static.c:$(line static.c OWN_ALLOC))" "fine (static.c:$(line static.c FINE))"
# within FUNCTION: the offsets that the report names in PROGRAM lie in a function of the program it was.
within() {
    local begin end at
    read -r begin end < <(nm -S inside | awk -v f="$2" '$4 == f { print $1, $2 }')
    for at in $(places "$1" call_sites | grep -oE "$1\+0x[0-9a-f]+" | sed 's/.*+//'); do
        ((at >= 16#$begin && at < 16#$begin + 16#$end)) && return 0
    done
    echo "no place in $2:" && places "$1" call_sites && return 1
}
cp inside hidden && strip --strip-all hidden
ok "static runtime, stripped: recorded" recorded hidden
ok "static runtime, stripped: frames that all sites have are not the place" within hidden direct
ok "static runtime, stripped: callers tell sites apart" within hidden coarse
ok "static runtime, stripped: so for the other" within hidden fine

# ---- libraries that come and go, two of one name ----
mkdir one two
sed 's/^#include "gpu.h"/&\n\n\n/' library.c >two/library.c
cp library.c gpu.h one && cp gpu.h two
(cd one && build libgrid.so library.c -fPIC -shared) && (cd two && build libgrid.so library.c -fPIC -shared)
ok "opened late: built" build late late.c -ldl
ok "opened late: recorded" gives 0 "$umrt" record -q -o late.umt -- ./late one/libgrid.so two/libgrid.so one/libgrid.so
ok "opened late: reported" reported late
ok "opened late: the first library's line" names late regions "library_grid (library.c:$(line one/library.c LIBRARY))"
ok "opened late: the other's of the same name" names late regions "library_grid (library.c:$(line two/library.c LIBRARY))"

# ---- the heap is held ----
ok "malloc held: built" build held held.c -ldl
ok "malloc held: nobody calls it while an allocation is recorded" \
    gives 0 "$umrt" record -q -o held.umt -- ./held
ok "malloc held: not once" prints '^0$'
ok "malloc held: each place was recorded" [ "$("$umrt" dump -t call_site held.umt | grep -vc '^#')" = 10 ]

# ---- tables of other tools ----
ok "CSV: the CPU's places" gives 0 "$umrt" report --csv um_cpu_page_faults_sum pie.umt
ok "CSV: with their lines" prints ",\"?fill \(program.c:$(line program.c FILL)\)"

# ---- without debug information ----
cp pie bare && strip --strip-all bare
ok "stripped: recorded" recorded bare
ok "stripped: module and offset" names bare regions "bare+0x$(
    "$umrt" dump -t call_site bare.umt | sed -n 's/.*frames="bare+0x\([0-9a-f]*\).*/\1/p' | head -1)"
ok "stripped: no file is named" never bare program.c

cp pie symbols && strip -g symbols
ok "symbols only: recorded" recorded symbols
ok "symbols only: the function and the module" names symbols regions "make_grid (symbols)"

# ---- debug information apart, found by build id ----
cp pie apart
id=$(readelf -n apart | sed -n 's/.*Build ID: //p')
mkdir -p "debug/.build-id/${id:0:2}"
objcopy --only-keep-debug apart "debug/.build-id/${id:0:2}/${id:2}.debug"
strip --strip-all apart
ok "debug information apart: recorded" recorded apart
ok "debug information apart: every place has its line" name_all apart
rm apart
ok "the program is gone: reported" reported apart
ok "the program is gone: debug information by build id serves" name_all apart

# ---- not the recorded file ----
rm -r debug
cp pie changed
ok "rebuilt since: recorded" recorded changed
sed 's/^#include "gpu.h"/&\n\n\n\n/' program.c >moved.c
build changed moved.c -fPIE -pie
ok "rebuilt since: reported" reported changed
ok "rebuilt since: said" grep -q 'another build' changed.json
ok "rebuilt since: no line is named" never changed program.c
cp pie gone && recorded gone && rm gone
ok "gone: reported" reported gone
ok "gone: said" grep -q 'No such file' gone.json
cp pie short && recorded short && truncate -s 6000 short
ok "cut short: reported" reported short
cp pie noise && recorded noise && head -c 20000 /dev/urandom >noise
ok "noise: reported" reported noise
mkfifo pipe && cp pie wait && recorded wait && mv pipe wait
ok "a pipe in its place: reported without waiting" reported wait

# Debug information that is wrong under the right build id: any answer but a crash.
cp pie wrong && recorded wrong && cp wrong whole
damaged() {
    local i at
    read -r at size < <(readelf -SW whole | awk '/ \.debug_info /{ sub(/.*\.debug_info/, ""); print strtonum("0x" $3), strtonum("0x" $4) }' 2>/dev/null)
    for ((i = 0; i < 40; i++)); do
        cp whole wrong
        printf '\xff\x00\x91' | dd of=wrong bs=1 conv=notrunc seek=$((at + (size * i) / 40)) status=none
        gives 0 "$umrt" report --json wrong.umt || return 1
    done
}
ok "damaged debug information: forty reports" damaged

# ---- launches, on request ----
launches() { "$umrt" dump -t launch "$1.umt" | grep -c 'call_site=0x[1-9a-f]'; }
ok "launches have no place unless asked" [ "$(launches pie)" = 0 ]
cp pie launched
ok "launches: recorded" recorded launched --launch-sites on
ok "launches: each has a place" [ "$(launches launched)" = 1 ]
ok "launches: with its line" names launched call_sites "launch (program.c:$(line program.c LAUNCH))"
finish
