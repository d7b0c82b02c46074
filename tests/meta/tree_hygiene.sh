#!/bin/sh
# What must not be in the tree: machine paths, package index hosts, notes to self, large files, tests that are not run.
. "$UM_SRCDIR/tests/meta/tap.sh"

# files DIR: the source files of the tree, NUL-separated: git's where there is git, else (in a released
# tree, perhaps with a build inside) what lies in the rooms.
files() {
    cd "$1" || return 1
    git ls-files -z 2>/dev/null | grep -qz . && { git ls-files -z; return; }
    find advisors bench cupti examples lib tests tools m4/um_*.m4 ./*.am ./*.ac ./*.in quickstart -type f \
        ! -name Makefile.in -print0 2>/dev/null
}

# mentions DIR PATTERN: text files that match, with the line.
mentions() {
    cd "$1" || return 1
    files . | xargs -0 -r grep -IHnE -e "$2" -- || :
}

# larger_than DIR KIB: files over that size.
larger_than() {
    cd "$1" || return 1
    files . | xargs -0 -r -I{} find {} -maxdepth 0 -type f -size +"$2"k
}

# traces_over DIR BYTES: says so when all bundled traces together are over.
traces_over() {
    cd "$1" || return 1
    files . | grep -zE '\.(umt|ump|sqlite|log)$' | xargs -0 -r cat | wc -c |
        awk -v limit="$2" '$1 > limit { print $1 " bytes of traces in the tree" }'
}

# unlisted DIR: tests that make check does not run, because no list names them.
unlisted() {
    cd "$1" || return 1
    for file in tests/cli/*.sh tests/meta/*.sh tests/softgpu/*.sh $(grep -l '^Test(' tests/unit/*.c); do
        case $file in */tap.sh | */soft.sh) continue ;; esac
        [ ! -e "$file" ] || grep -qE "${file%.c}( |\$)" tests/*.mk || echo "$file is in no list of tests"
    done
}

# The patterns are written so that this file does not match them.
paths='(^|[^a-zA-Z0-9_.$}/-])/([w]ork|[r]oot|[h]ome)/'
hosts='deb\.debian\.org|archive\.ubuntu\.com|pypi\.org|[f]iles\.pythonhosted|registry\.npmjs|proxy\.golang'
notes='\b([T]ODO|[F]IXME|[X]XX)\b'

plan 12
ok "no machine paths" mentions "$UM_SRCDIR" "$paths"
ok "no package index hosts" mentions "$UM_SRCDIR" "$hosts"
ok "no notes to self" mentions "$UM_SRCDIR" "$notes"
ok "no file over 1 MiB" larger_than "$UM_SRCDIR" 1024
ok "traces together under 10 MiB" traces_over "$UM_SRCDIR" 10485760
ok "every test is in a list" unlisted "$UM_SRCDIR"

tree=$scratch/tree
mkdir -p "$tree/lib" "$tree/tests/cli" "$tree/tests/unit"
printf 'see /%s/me/x\nfrom pypi.%s\n/* TO%s: later */\n' home org DO >"$tree/lib/planted.txt"
head -c 2000000 /dev/zero >"$tree/lib/planted.umt"
caught "a machine path" mentions "$tree" "$paths"
caught "a package index host" mentions "$tree" "$hosts"
caught "a note to self" mentions "$tree" "$notes"
caught "a file over 1 MiB" larger_than "$tree" 1024
caught "traces over the limit" traces_over "$tree" 1000000
printf 'dist_check_SCRIPTS += tests/cli/run.sh\ncheck_PROGRAMS += tests/unit/one_more\n' >"$tree/tests/a.mk"
touch "$tree/tests/cli/run.sh"
echo 'Test(one, is_run)' >"$tree/tests/unit/one.c"
caught "a test that nobody runs" unlisted "$tree"
