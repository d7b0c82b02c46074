# shellcheck shell=sh
# TAP for shell tests: plan N, then N of ok/skip. Sourced by tests/meta/*.sh.
tap_n=0

plan() { echo "1..$1"; }

# ok NAME COMMAND...: passes when the command succeeds and prints nothing; what it prints is shown.
ok() {
    tap_n=$((tap_n + 1))
    tap_name=$1
    shift
    if tap_out=$("$@" 2>&1) && [ -z "$tap_out" ]; then
        echo "ok $tap_n - $tap_name"
    else
        echo "not ok $tap_n - $tap_name"
        printf '%s\n' "$tap_out" | sed 's/^/# /'
    fi
}

# caught NAME COMMAND...: passes when the command complains, as it must about a planted fault.
caught() {
    tap_n=$((tap_n + 1))
    tap_name=$1
    shift
    if tap_out=$("$@" 2>&1) && [ -z "$tap_out" ]; then
        echo "not ok $tap_n - $tap_name: the planted fault was not found"
    else
        echo "ok $tap_n - $tap_name"
    fi
}

skip() {
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1 # SKIP $2"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
