"""check_hostile.py KIND FILE: whether what came of a trace that means harm is still what it should be.

text: lines of printable characters alone. json: no number is absurd, shares are of a hundred, sums are their
parts'. html: the only scripts are the page's own. csv: every row has the columns of its head, and no cell is
a formula."""
import csv
import json
import re
import sys
import unicodedata

TURNS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"  # the line round


def text(data):
    for number, line in enumerate(data.decode("utf-8").split("\n"), 1):
        for c in line:
            if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in TURNS:
                fail(f"line {number}: U+{ord(c):04X}")


def numbers(value, at=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            numbers(inner, f"{at}.{key}")
            if key.endswith("_percent") and key != "change_percent" or key in ("confidence", "density", "sure"):
                if isinstance(inner, (int, float)) and not 0 <= inner <= 100:
                    fail(f"{at}.{key}: {inner} of a hundred")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            numbers(inner, f"{at}[{i}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if not -2**63 <= value < 2**64:
            fail(f"{at}: {value}")
    elif isinstance(value, str):
        for c in value:
            if ord(c) < 32 and c not in "\n\t":
                fail(f"{at}: U+{ord(c):04X}")


def report(data):
    r = json.loads(data, parse_constant=lambda c: fail(f"{c} is no number"))
    numbers(r)
    worth = [f["worth_it"] for f in r["findings"]]
    if worth != sorted(worth, reverse=True) or [f["rank"] for f in r["findings"]] != list(range(1, len(worth) + 1)):
        fail("findings out of order")
    for f in r["findings"]:
        if f["worth_ns"] != (f["win_ns"] if f["predicted_ns"] is None else f["predicted_ns"]):
            fail(f"worth_ns of {f['kind']}")
    most = 2**63 - 1 # sums stop there
    for direction, key in (("CPU to GPU", "to_device_bytes"), ("GPU to CPU", "to_host_bytes")):
        total = sum(m["bytes"] for m in r["migrations"] if m["direction"] == direction)
        if r["totals"][key] != min(total, most):
            fail(f"{key}: {r['totals'][key]}, and {total} in the table")
    if len(r["regions"]) == r["regions_found"]:
        for key in ("gpu_fault_ns", "gpu_faults", "cpu_faults"):
            parts = [g[key] for g in r["regions"]]
            # What is where no program has memory is in no region.
            if None not in parts and r["totals"][key] is not None and min(sum(parts), most) > r["totals"][key]:
                fail(f"{key}: {r['totals'][key]}, and {sum(parts)} in the regions")


def html(data):
    page = data.decode("utf-8")
    if len(re.findall(r"<script", page, re.I)) != len(re.findall(r"</script", page, re.I)):
        fail("a script that does not end, or ends early")
    if len(re.findall(r"<script[^>]*>", page, re.I)) > 12:
        fail("scripts that are not its own")
    for body in re.findall(r"<script type=\"application/json\"[^>]*>(.*?)</script>", page, re.S):
        json.loads(body)
        if "<" in body.replace("\\u003c", ""):
            fail("markup in its data")


def table(data):
    rows = list(csv.reader(data.decode("utf-8").splitlines()))
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            fail(f"row {number} has {len(row)} cells")
        for cell in row:
            if cell[:1] in ("=", "+", "@", "\t", "\r") or (cell[:1] == "-" and not re.fullmatch(r"-?[\d.]+", cell)):
                fail(f"row {number}: a formula, {cell}")


def fail(what):
    sys.exit(f"{sys.argv[2]}: {what}")


with open(sys.argv[2], "rb") as file:
    {"text": text, "json": report, "html": html, "csv": table}[sys.argv[1]](file.read())
