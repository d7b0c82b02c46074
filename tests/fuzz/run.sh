#!/bin/sh
# Builds every tests/fuzz/fuzz_*.c with libFuzzer, AddressSanitizer and UBSan in ./fuzz and runs each
# for a while on a copy of its seed corpus. A finding is kept in fuzz/NAME.findings.
# usage: run.sh SRCDIR SECONDS CLANG. FUZZ_SEED=N: the same inputs each time, as far as the time goes.
set -eu
srcdir=$1 seconds=$2 clang=$3
command -v "$clang" >/dev/null || { echo "fuzz: needs clang" >&2; exit 1; }

mkdir -p fuzz
cd fuzz
[ -f Makefile ] || "$srcdir/configure" -q --without-cuda CC="$clang" CFLAGS='-g -O1' \
    --enable-sanitizer=fuzzer-no-link,address,undefined
make -s libumcore.la libumtool.la
libs=$(sed -n 's/^UM_ZSTD_LIBS = //p; s/^SQLITE_LIBS = //p; s/^JANSSON_LIBS = //p' Makefile)

targets=0 findings=0
for source in "$srcdir"/tests/fuzz/fuzz_*.c; do
    [ -f "$source" ] || continue
    name=$(basename "$source" .c)
    targets=$((targets + 1))
    # shellcheck disable=SC2086 # a list of libraries
    "$clang" -std=gnu11 -g -O1 -D_GNU_SOURCE= -fsanitize=fuzzer,address,undefined \
        -fno-sanitize-recover=all -I"$srcdir/lib" -I"$srcdir" -o "$name" "$source" \
        .libs/libumtool.a .libs/libumcore.a $libs -lpthread -ldl -lm
    mkdir -p "$name.corpus" "$name.findings"
    seeds=$srcdir/tests/fuzz/corpus/${name#fuzz_}
    [ ! -d "$seeds" ] || cp -rf "$seeds/." "$name.corpus/"
    chmod -R u+w "$name.corpus"
    echo "== $name, $seconds s"
    if ! "./$name" -seed="${FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$name.findings/" "$name.corpus" >"$name.log" 2>&1; then
        findings=$((findings + 1))
        tail -40 "$name.log"
    fi
    grep -E '^stat::(number_of_executed_units|average_exec_per_sec)' "$name.log" || true
done
echo "fuzz: $targets targets, $findings with findings"
[ "$findings" = 0 ] && [ "$targets" != 0 ]
