#!/bin/sh
# libumrt.so exports what the installed headers mark UM_API, and every external name is ours.
. "$UM_SRCDIR/tests/meta/tap.sh"

library=$UM_BUILDDIR/.libs/libumrt.so

# The functions of the installed headers that are marked UM_API, sorted.
promised() {
    for header in "$UM_SRCDIR"/lib/um_*.h; do echo "#include \"$header\""; done |
        ${CC:-cc} -E -P -x c -I"$UM_SRCDIR/lib" - | tr '\n' ' ' | tr ';' '\n' |
        sed -n 's/.*__attribute__((visibility("default")))//p' |
        sed -n 's/^[^(]*[^a-zA-Z0-9_(]\([a-zA-Z_][a-zA-Z0-9_]*\) *(.*/\1/p' | sort -u
}

# exported LIBRARY: what its dynamic symbol table defines, sorted.
exported() { nm -D --defined-only "$1" | awk '{ print $NF }' | sort -u; }

# difference LIBRARY: prints what is exported and not promised, or promised and not exported.
difference() {
    promised >"$scratch/promised"
    exported "$1" >"$scratch/exported"
    [ -s "$scratch/promised" ] || echo "no UM_API function was found in the headers"
    comm -13 "$scratch/promised" "$scratch/exported" | sed 's/$/: exported, not in the headers/'
    comm -23 "$scratch/promised" "$scratch/exported" | sed 's/$/: in the headers, not exported/'
}

# foreign FILE...: external names in objects and archives that do not start with um_.
foreign() {
    for file in "$@"; do
        nm -g --defined-only "$file" 2>/dev/null | awk -v file="$(basename "$file")" \
            'NF == 3 && $3 !~ /^(um_|main$|InitializeInjection(Nvtx2)?$)/ { print file ": " $3 }'
    done
}

compile() {
    echo "$2" | ${CC:-cc} -x c -c -fPIC -o "$1" -
}

plan 4
ok "the library exports exactly the UM_API functions" difference "$library"
ok "external names start with um_" \
    foreign "$UM_BUILDDIR/.libs/libumcore.a" "$UM_BUILDDIR/.libs/libumtool.a" "$UM_BUILDDIR"/tools/*.o

echo 'int um_not_promised(void); int um_not_promised(void) { return 0; }' |
    ${CC:-cc} -x c -shared -fPIC -o "$scratch/planted.so" -
caught "an export that no header promises" difference "$scratch/planted.so"
compile "$scratch/planted.o" 'int stray_name;'
caught "an external name that is not ours" foreign "$scratch/planted.o"
