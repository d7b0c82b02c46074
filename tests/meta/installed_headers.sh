#!/bin/sh
# Each installed header compiles alone, as C11 and as C++11, without a warning.
. "$UM_SRCDIR/tests/meta/tap.sh"

as_c() {
    ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c -I"$UM_SRCDIR/lib" "$1"
}
as_cxx() {
    $CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ -I"$UM_SRCDIR/lib" "$1"
}

have_cxx=no
[ "${CXX:-no}" != no ] && command -v "${CXX%% *}" >/dev/null && have_cxx=yes

plan 10
for name in event advisor trace runtime; do
    # A header on the command line is a main file; including it is what users do.
    printf '#include <um_%s.h>\n#include <um_%s.h>\n' $name $name >"$scratch/$name.c"
    ok "um_$name.h as C11" as_c "$scratch/$name.c"
    if [ $have_cxx = yes ]; then
        ok "um_$name.h as C++11" as_cxx "$scratch/$name.c"
    else
        skip "um_$name.h as C++11" "no C++ compiler"
    fi
done

echo 'size_t um_needs_stddef(void);' >"$scratch/planted.c"
caught "a header that needs another first" as_c "$scratch/planted.c"
echo 'struct um_x { int class; };' >"$scratch/planted.cc"
if [ $have_cxx = yes ]; then
    caught "a header that is not C++" as_cxx "$scratch/planted.cc"
else
    skip "a header that is not C++" "no C++ compiler"
fi
