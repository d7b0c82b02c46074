# The soak program, watched: sourced by soak.sh and by tests/gpu/check_soak.sh.
# shellcheck shell=bash
# Not more than what umrt keeps for each place, region and kernel that a program has, which is bounded; and of the
# process the queues of its threads, filled once.
# shellcheck disable=SC2034 # both are for who sources this
OURS_KIB=$((8 << 10)) OWN_KIB=$((24 << 10))

# soak FOLDER SECONDS COMMAND...: the command, which ends in the program, in a new folder with what it says and its
# figures. Several may run at once, each in its own. The program ends itself when a thread stands still for 120 s.
soak() {
    mkdir "$1" && (
        cd "$1" || exit
        SOAK_FIGURES=figures timeout $(($2 + 150)) "${@:3}" "$2" >now 2>said </dev/null
        echo $? >status
    )
}
# ---- of what ran in FOLDER ----
# It ended by itself, with the right sums.
right() {
    [ "$(cat "$1/status") $(cat "$1/now")" = "0 0 sums were wrong" ] && return
    echo "status $(cat "$1/status")"
    cat "$1/now" "$1/said"
    return 1
}
soaked() { soak "$@" && right "$1"; }
# grew FOLDER COLUMN: KiB from a fifth of the time on, when all is warm, to the end.
grew() { awk -v c="$2" 'NF == 4 { kib[n++] = $c } END { if (n) print kib[n - 1] - kib[int(n / 5)] }' "$1/figures"; }
# stays FOLDER COLUMN KIB: it grew no more than that.
stays() { [ "$(grew "$1" "$2")" -le "$3" ] || { echo "$(grew "$1" "$2") KiB more"; awk 'NR % int(1 + NR / 20) == 0' "$1/figures"; return 1; }; }
# What umrt holds is counted: without that it could not grow.
counted() { awk 'NF == 4 { kib = $3 } END { exit !(kib > 0) }' "$1/figures"; }
launched() { awk '$1 == "launches" { print $2 }' "$1/figures"; }
