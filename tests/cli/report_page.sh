#!/usr/bin/env bash
# The page of umrt report in a headless Chromium.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

if ! command -v python3 >/dev/null; then
    skip "the page in a browser" "there is no python3 to drive one"
    finish
    exit
fi
if ! python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import browser; sys.exit(not browser.program())' \
    "$UM_SRCDIR/tests/cli"; then
    skip "the page in a browser" "there is no Chromium (UM_BROWSER names another)"
    finish
    exit
fi
"$bin/busy" busy.umt 20
"$umrt" report --html busy.html --what-if 3600 busy.umt >/dev/null
"$umrt" report --html table.html --what-if 3600 "$UM_SRCDIR/tests/data/h200/table.umt" >/dev/null
"$umrt" report --html off.html "$UM_SRCDIR/tests/data/import/unsupported.log" >/dev/null
"$umrt" gen pipeline -o pipe.umt -s 16M -n 2 >/dev/null
"$umrt" replay --html replay.html --gpu-mem 50%,100% pipe.umt >/dev/null
python3 "$UM_SRCDIR/tests/cli/report_page.py"
