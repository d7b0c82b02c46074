#!/usr/bin/env bash
# umrt report --html: the file, without a browser. report_page.sh looks at it in one.
# shellcheck source=tests/cli/tap.sh
. "$UM_SRCDIR/tests/cli/tap.sh"

"$bin/busy" busy.umt 20
h200=$UM_SRCDIR/tests/data/h200

# holds EXPRESSION: of the parts of page.html as d, and of the elements around them as tags.
holds() {
    python3 - page.html "$1" <<'PY' || { echo "not so: $1"; return 1; }
import html.parser, json, sys

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.parts, self.tags, self.inside = {}, [], None

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = dict(attributes).get("id") if tag == "script" else None

    def handle_data(self, data):
        if self.inside:
            self.parts[self.inside.removeprefix("part-")] = json.loads(data)
            self.inside = None

page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
d, tags = page.parts, page.tags
sys.exit(not eval(sys.argv[2]))
PY
}
page() { gives 0 "$umrt" report --html page.html --what-if 3600 "$@"; } # however busy the machine

ok "a page" page busy.umt
ok "with the report on stdout, too" prints '^Findings'
ok "nothing on stderr" [ ! -s "$err" ]
ok "of report, map and replay" holds 'sorted(d) == ["map", "replay", "report"]'
whole() { [ "$(head -1 page.html)" = '<!DOCTYPE html>' ] && [ "$(tail -1 page.html)" = '</html>' ]; }
ok "that is whole" whole
ok "and asks nobody for anything" eval '! grep -qE "https?://|src=[^x]|<link|@import|url\(" page.html'
ok "names of the trace end no element" holds \
    'tags.count("script") == 4 and "img" not in tags and "b" not in tags'
ok "but are all there" holds \
    'any("onerror=alert(1)" in r["name"] for r in d["report"]["regions"]) and "<b>output" in d["map"]["names"]'
same() {
    "$umrt" report --json --top 1000 busy.umt >"$out"
    holds '{k: v for k, v in json.load(open("'"$out"'")).items() if k != "map"} == d["report"]'
}
ok "its report is that of --json" same
replayed() { "$umrt" replay --json busy.umt >"$out" && holds 'json.load(open("'"$out"'")) == d["replay"]'; }
ok "its replay is that of umrt replay" replayed
ok "its time line has the phases as often as they came" holds 'd["map"]["spans_left"] == 0 and len(d["map"]["names"]) == 2'
ok "--top is for the page, too" page --top 3 busy.umt
ok "three rows a table" holds 'len(d["report"]["regions"]) == 3'
twice() { page busy.umt && mv page.html first.html && page busy.umt && cmp first.html page.html; }
ok "the same page twice" twice
ok "no replay when it is not asked for" page --what-if 0 busy.umt
ok "is said" holds '"--what-if 0" in d["replay"]["absent"]'
ok "a log that replay does not take" page "$UM_SRCDIR/tests/data/import/every-row.log"
ok "has a page that says why" holds '"make a trace of it first" in d["replay"]["absent"]'
for trace in "$h200"/*.umt; do
    ok "a page of $(basename "$trace")" page "$trace"
done
ok "several traces in one" page busy.umt "$h200/table.umt"
ok "are all on it" holds 'len(d["report"]["traces"]) == 2 and len(d["replay"]["workloads"]) == 2'
ok "a page over a page" page busy.umt
echo 'Dear friend' >letter.txt
ok "not over something else" gives 2 "$umrt" report --html letter.txt busy.umt
ok "in one line" one_line
ok "not over its own trace" gives 2 "$umrt" report --html busy.umt busy.umt
ok "a page that cannot be written is 1" gives 1 "$umrt" report --html no/where.html busy.umt
ok "of which one line says" one_line
ok "no page of what is no trace" gives 2 "$umrt" report --html none.html letter.txt
ok "nor half of one" eval '! ls none.html* 2>/dev/null'
for bad in -1 3601 x ''; do
    ok "refuses --what-if '$bad'" gives 2 "$umrt" report --what-if "$bad" busy.umt
done
cut() {
    head -c $(($(stat -c %s busy.umt) - 40)) busy.umt >cut.umt
    gives 2 "$umrt" report --html page.html cut.umt && holds '"cut.umt" in d["report"]["traces"][0]["note"]'
}
ok "a damaged trace: a page with a note, and status 2" cut
finish
