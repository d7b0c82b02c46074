#!/usr/bin/env bash
# Traces of a stranger who means harm, through every output: forged events, names that are markup, escapes
# or formulas, damage, nothing at all.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

seeds=${UM_HOSTILE_SEEDS:-3}
for ((seed = 1; seed <= seeds; seed++)); do
    "$bin/hostile" "h$seed.umt" $((seed * 7919)) $((seed * 700)) || exit 99
done
"$bin/hostile" empty.umt 1 0
traces=(h*.umt empty.umt)
check() { python3 "$UM_SRCDIR/tests/cli/check_hostile.py" "$@"; }
# Status 0, or 2 with one line; never a sanitizer's word, a crash or silence.
stands() {
    try timeout 300 "$@"
    if [ "$status" != 0 ] && { [ "$status" != 2 ] || [ "$(wc -l <"$err")" != 1 ]; }; then
        echo "status $status: $*"
        head -20 "$err"
        return 1
    fi
    ! grep -qE 'Sanitizer|runtime error' "$err" || { head -20 "$err"; return 1; }
}
each() { # COMMAND...: with every trace behind it
    local trace
    for trace in "${traces[@]}"; do "$@" "$trace" || { echo "of $trace"; return 1; }; done
}
is() { local kind=$1; shift; stands "$@" && [ "$status" = 0 ] && check "$kind" "$out"; } # KIND COMMAND...
ok "text is lines of printable characters" each is text "$umrt" report
ok "so it is in a narrow terminal with colors off" each is text "$umrt" report --width 60 --color never --top 3
ok "JSON: sums are their parts', shares of a hundred, the order that of what is worth it" \
    each is json "$umrt" report --json --top 100000
schema() { python3 "$UM_SRCDIR/tests/cli/check_schema.py" "$UM_SRCDIR/lib/report/schema.json" "$@"; }
fits() { stands "$umrt" report --json "$1" && schema "$out" closed; }
ok "JSON is what its schema says" each fits
is_sarif() { stands "$umrt" report --sarif "$1" && python3 "$UM_SRCDIR/tests/cli/check_sarif.py" "$out"; }
ok "SARIF keeps its rules" each is_sarif
page() {
    rm -f page.html
    stands "$umrt" report --html page.html "$1" && check html page.html
}
ok "a page has no script but its own, and its data is no markup" each page
for table in um_sum um_total_sum um_cpu_page_faults_sum; do
    ok "CSV $table: rows are whole and no cell is a formula" each is csv "$umrt" report --csv "$table"
done
tracks() { stands "$umrt" report --perfetto "$1" && python3 "$UM_SRCDIR/tests/cli/check_perfetto.py" "$out"; }
ok "Perfetto: slices nest, pairs pair, counters go on, all have names" each tracks
database() {
    rm -f x.sqlite
    stands "$umrt" export --sqlite x.sqlite "$1" || return 1
    [ "$status" != 0 ] || [ "$(sqlite3 x.sqlite 'PRAGMA integrity_check')" = ok ]
}
ok "SQLite is whole" each database
shown() {
    local command
    for command in dump info 'replay --open'; do
        # shellcheck disable=SC2086 # two words
        stands "$umrt" $command "$1" && check text "$out" || return 1
    done
    stands "$umrt" replay "$1"
}
ok "dump and info print no control characters; replay stands it" each shown
compares() { stands "$umrt" diff "${traces[@]:0:3}" -- "${traces[@]:3}" && check text "$out" && stands "$umrt" diff --json h1.umt h2.umt; }
ok "diff compares them" compares
again() {
    local option
    for option in --json --sarif --perfetto --ascii '--csv um_sum'; do
        # shellcheck disable=SC2086 # two words
        stands "$umrt" report $option "$1" && cp "$out" first && stands "$umrt" report $option "$1" &&
            cmp first "$out" || return 1
    done
    stands "$umrt" report --html a.html --what-if 0 "$1" && stands "$umrt" report --html b.html --what-if 0 "$1" &&
        cmp a.html b.html && rm a.html b.html
}
ok "the same trace gives the same bytes" each again
damaged() { # cut anywhere, and with bytes turned: every output says it in one line and goes on
    local n size=$(($(wc -c <h2.umt)))
    for ((n = 1; n <= 12; n++)); do
        python3 - $n $size <<'PY'
import random, sys
n, size = map(int, sys.argv[1:])
random.seed(n)
data = bytearray(open("h2.umt", "rb").read())
if n % 2:
    data = data[:random.randrange(size)]
else:
    for _ in range(n):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
open("broken.umt", "wb").write(data)
PY
        rm -f page.html x.sqlite
        for command in 'report' 'report --json' 'report --sarif' 'report --perfetto' 'report --csv um_sum' \
            'report --html page.html' 'export --sqlite x.sqlite' 'dump' 'info' 'diff broken.umt'; do
            # shellcheck disable=SC2086 # words
            stands "$umrt" $command broken.umt || return 1
        done
    done
}
ok "damage is said in one line, whatever is asked for" damaged
words() {
    local word
    for word in $'\e[31m' '</script>' "$(printf 'x%.0s' {1..5000})" '' '%s%n' ../../etc/passwd; do
        stands "$umrt" explain "$word" && ! grep -q $'\e' "$out" "$err" || return 1
        stands "$umrt" report "$word" && ! grep -q $'\e' "$err" || return 1
    done
}
ok "explain and file names print nothing that a terminal obeys" words
finish
