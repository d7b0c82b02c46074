# The soak program, watched: sourced by soak.sh and by tests/gpu/check_soak.sh, which set $seconds.
# shellcheck shell=bash disable=SC2154
export SOAK_FIGURES=$tmp/figures
# Not more than what umrt keeps for each place, region and kernel that a program has, which is bounded; and of the
# process the queues of its threads, filled once.
# shellcheck disable=SC2034 # both are for who sources this
OURS_KIB=$((8 << 10)) OWN_KIB=$((24 << 10))

# soaked COMMAND...: it ended by itself, with the right sums.
soaked() {
    rm -f figures
    timeout $((seconds + 300)) "$@" >now 2>said </dev/null
    local got=$?
    [ "$got $(cat now)" = "0 0 sums were wrong" ] || { echo "status $got"; cat now said; return 1; }
}
# grew COLUMN: KiB from a fifth of the time on, when all is warm, to the end.
grew() { awk -v c="$1" -v warm="$((seconds / 5 + 1))" 'NF == 4 && $1 == warm { first = $c } NF == 4 { last = $c } END { print last - first }' figures; }
stays() { [ "$(grew "$1")" -le "$2" ] || { echo "$(grew "$1") KiB more"; awk 'NR % int(1 + NR / 20) == 0' figures; return 1; }; }
launched() { awk '$1 == "launches" { print $2 }' figures; }
