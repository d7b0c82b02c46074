# Compares two outputs of the conformance program: awk -f conformance.awk [-v differences=README.md] EXPECTED GOT
# A line of EXPECTED whose value is "(varies)" or "(not measured)" is not compared. With a file of differences each row of
# the table under its heading "## Differences" names, in its first column, lines that do differ ("<br>" between
# them); to differ without being named, or to be named without differing, is an error.
function split_line(line) {
    at = index(line, " = ")
    key = substr(line, 1, at - 1)
    value = substr(line, at + 3)
}
function complain(text) {
    print text
    bad = 1
}
BEGIN {
    while (differences != "" && (getline line <differences) > 0) {
        if (line ~ /^## /)
            inside = line == "## Differences"
        else if (inside && split(line, cell, "|") > 2) {
            n = split(cell[2], names, "<br>")
            for (i = 1; i <= n; i++) {
                gsub(/^ +| +$/, "", names[i])
                if (names[i] ~ /: /)
                    known[names[i]] = 1
            }
        }
    }
}
{ split_line($0) }
FNR == NR {
    expected[key] = value
    next
}
{
    got[key] = 1
    if (!(key in expected)) {
        if (!(key in known))
            complain("not expected: " key " = " value)
    } else if (expected[key] == "(varies)" || expected[key] == "(not measured)") {
        if (key in known)
            complain("listed, and not compared: " key)
    } else if (expected[key] == value) {
        if (key in known)
            complain("listed, and no longer differs: " key)
    } else if (!(key in known)) {
        complain("differs: " key " = " value " | expected " expected[key])
        row = row (row ? "<br>" : "") key
    }
}
END {
    for (key in expected)
        if (!(key in got) && !(key in known))
            complain("missing: " key " = " expected[key])
    for (key in known)
        if (!(key in expected) && !(key in got))
            complain("listed, and there is no such line: " key)
    if (row && differences != "")
        print "what differs, as a row of " differences ":\n| " row " | REASON |"
    exit bad
}
