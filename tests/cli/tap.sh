# Sourced by the scripts of this folder: tests named by what must hold, in TAP.
# shellcheck shell=bash

export umrt=$UM_BUILDDIR/umrt
export bin=$UM_BUILDDIR/tests/cli # sample, inject
unset "${!UMRT_@}" CUDA_INJECTION64_PATH
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 99
mkdir notes
export TMPDIR=$tmp/notes
count=0

# ok NAME COMMAND...: holds when COMMAND succeeds; what it prints is shown when it does not.
ok() {
    local name=$1 said
    shift
    count=$((count + 1))
    if said=$("$@" 2>&1); then
        printf 'ok %d - %s\n' $count "$name"
    else
        printf 'not ok %d - %s\n' $count "$name"
        printf '%s\n' "$said" | head -40 | sed 's/^/# /'
    fi
}

skip() { # NAME REASON
    count=$((count + 1))
    printf 'ok %d - %s # SKIP %s\n' $count "$1" "$2"
}

finish() { printf '1..%d\n' $count; }

# Runs COMMAND into $out, $err (files) and $status.
out=$tmp/out
err=$tmp/err
try() {
    status=0
    "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# gives STATUS COMMAND...
gives() {
    local want=$1
    shift
    try "$@"
    if [ "$status" != "$want" ]; then
        printf 'status %s, wanted %s: %s\n' "$status" "$want" "$*"
        cat "$out" "$err"
        return 1
    fi
}

# says PATTERN: a line of the last command's stderr matches (extended regular expression).
says() { grep -qE -- "$1" "$err" || { echo "no line matches: $1"; cat "$err"; return 1; }; }
prints() { grep -qE -- "$1" "$out" || { echo "no line matches: $1"; cat "$out"; return 1; }; }
one_line() { [ "$(wc -l <"$err")" = 1 ] || { echo "not one line:"; cat "$err"; return 1; }; }
