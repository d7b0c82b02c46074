#!/usr/bin/env bash
# Whatever a reading command is given: no crash, no hang, one line that names the file, status 2.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

# refuses COMMAND FILE: and prints no result.
refuses() {
    local name=${2##*/}
    gives 2 timeout 300 "$umrt" "$1" "$2" && one_line && says "^umrt: .*${name//./\\.}" && no_result
}
no_result() { [ ! -s "$out" ] || { echo "printed a result:"; head -3 "$out"; return 1; }; }

# What is whole may be shown; the damage is one line and the status 2.
complains() { gives 2 timeout 300 "$umrt" "$1" "$2" && one_line && says "^umrt: .*${2##*/}: offset [0-9]+: "; }

"$bin/sample" good.umt
size=$(stat -c %s good.umt)

: >empty
printf 'U' >one-byte
python3 -c 'import random, sys
random.seed(19)
sys.stdout.buffer.write(random.randbytes(65536))' >random
yes 'this is not a trace' | head -500 >foreign
mkdir directory
ln -s loop loop
ln -s nowhere dangling
mkfifo fifo
head -c 20 good.umt >cut-in-header.umt
{ head -c 8 good.umt; head -c 4096 random; } >random-after-magic.umt
files=(empty one-byte random foreign directory loop dangling fifo missing /dev/null
    cut-in-header.umt random-after-magic.umt)
if [ "$(id -u)" != 0 ]; then
    cp good.umt unreadable
    chmod 0 unreadable
    files+=(unreadable)
fi

for command in info dump report import; do
    if ! "$umrt" help | grep -q "^  $command "; then
        skip "$command" "this build has no such subcommand"
        continue
    fi
    for file in "${files[@]}"; do
        ok "$command: $file" refuses $command "$file"
    done
done
for command in info dump report; do
    for cut in $((size / 3)) $((size / 2)) $((size - 1)); do
        head -c "$cut" good.umt >cut.umt
        ok "$command: cut at $cut of $size" complains $command cut.umt
    done
    for at in $((size / 3)) $((size / 2)); do
        { head -c "$at" good.umt; printf 'damaged!'; tail -c "+$((at + 9))" good.umt; } >flipped.umt
        ok "$command: overwritten at $at" complains $command flipped.umt
    done
done
finish
