"""check_perfetto.py FILE: whether FILE is Trace Event Format as Perfetto reads it, or the first breach.

Slices of one track lie one after another or one inside another, to the nanosecond; B and E, b and e, s and f
pair; times are microseconds of a sane size; counters go on in time; every process and thread that is used has
a name, once."""
import json
import sys
from collections import defaultdict
from decimal import Decimal

PHASES = set("XBEibeCMsf")


def check(path):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, parse_float=Decimal, parse_constant=lambda c: fail(f"{c} is no number"))
    if set(trace) != {"traceEvents", "displayTimeUnit", "otherData"} or trace["displayTimeUnit"] != "ns":
        fail("the object's own members")
    if trace["otherData"]["writer"] != "umrt":
        fail("who wrote it")
    slices, opened, asynchronous = defaultdict(list), defaultdict(list), defaultdict(list)
    flows, counters, named = defaultdict(list), {}, defaultdict(set)
    for number, e in enumerate(trace["traceEvents"]):
        ph, track = e["ph"], (e["pid"], e["tid"])
        where = f"event {number}: {e}"
        if ph not in PHASES:
            fail("phase, " + where)
        if not all(isinstance(x, int) and 0 <= x < 2**31 for x in track) or e["pid"] == 0:
            fail("process or thread, " + where)
        if not isinstance(e["name"], str) or (not e["name"] and ph not in "E"):
            fail("name, " + where)
        ts = Decimal(e["ts"])
        if not 0 <= ts < 2**64 / Decimal(1000) + 1 or ts.as_tuple().exponent < -3:
            fail("time, " + where)
        if ph == "M":
            wants = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index",
                     "thread_sort_index": "sort_index"}
            if list(e["args"]) != [wants[e["name"]]] or (track if "thread" in e["name"] else e["pid"]) in named[e["name"]]:
                fail("metadata, " + where)
            named[e["name"]].add(track if "thread" in e["name"] else e["pid"])
            continue
        if e["pid"] not in named["process_name"] or (ph in "XBEi" and track not in named["thread_name"]):
            fail("no name before it, " + where)
        if ph == "X":
            duration = Decimal(e["dur"])
            if duration <= 0 or duration.as_tuple().exponent < -3:
                fail("duration, " + where)
            slices[track].append((ts, -duration, ts + duration, where))
        elif ph == "B":
            opened[track].append((ts, where))
        elif ph == "E":
            if not opened[track] or opened[track][-1][0] > ts:
                fail("an end without its begin, " + where)
            start, begin = opened[track].pop()
            slices[track].append((start, start - ts, ts, begin))
        elif ph == "i":
            if e["s"] not in "gpt":
                fail("scope, " + where)
        elif ph in "be":
            key = (e["cat"], e["id"])
            if ph == "b":
                asynchronous[key].append((ts, where))
            elif not asynchronous[key] or asynchronous[key].pop()[0] > ts:
                fail("an end without its begin, " + where)
        elif ph in "sf":
            flows[(e["cat"], e["id"])].append((ph, ts, track, where))
        elif ph == "C":
            key = (e["pid"], e["name"])
            if not e["args"] or not all(isinstance(v, int) and v >= 0 for v in e["args"].values()):
                fail("a counter's value, " + where)
            if ts < counters.get(key, 0):
                fail("a counter that goes back in time, " + where)
            counters[key] = ts
    for track, left in list(opened.items()) + list(asynchronous.items()):
        if left:
            fail(f"a begin without its end, {left[0][1]}")
    for track, of in slices.items():
        stack = []
        for start, _, end, where in sorted(of, key=lambda s: s[:2]):
            while stack and stack[-1] <= start:
                stack.pop()
            if stack and end > stack[-1]:
                fail("slices that overlap and do not nest, " + where)
            stack.append(end)
    for key, of in flows.items():
        if sorted(p for p, *_ in of) != ["f", "s"]:
            fail(f"a flow without both ends, {of[0][3]}")
        (_, start, *_), (_, end, *_) = sorted(of, key=lambda f: f[0] != "s")
        if start > end:
            fail(f"a flow back in time, {of[0][3]}")
        for _, ts, track, where in of:
            if not any(s[0] <= ts <= s[2] for s in slices[track]):
                fail(f"a flow's end in no slice, {where}")


def fail(what):
    sys.exit(f"{sys.argv[1]}: {what}")


if __name__ == "__main__":
    check(sys.argv[1])
