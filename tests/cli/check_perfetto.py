"""check_perfetto.py FILE: whether FILE is Trace Event Format that Perfetto shows as it is meant: every event
has what its phase needs, every track a name, and no slice of a track overlaps another one halfway."""
import json
import sys
from collections import defaultdict

NEEDS = {"M": {"args"}, "X": {"dur", "args"}, "i": {"s"}, "B": set(), "E": set(), "C": {"args"},
         "b": {"cat", "id"}, "e": {"cat", "id"}}

with open(sys.argv[1], encoding="utf-8") as file:
    log = json.load(file)
assert log["otherData"]["writer"] == "umrt" and log["displayTimeUnit"] == "ns"
processes, threads = {}, {}
slices, depth, open_ids = defaultdict(list), defaultdict(int), {}
for e in log["traceEvents"]:
    assert {"ph", "pid", "tid", "ts", "name"} <= set(e), e
    assert e["ph"] in NEEDS and NEEDS[e["ph"]] <= set(e), e
    assert e["ts"] >= 0 and isinstance(e["pid"], int) and isinstance(e["tid"], int), e
    track = (e["pid"], e["tid"])
    if e["ph"] == "M":
        if e["name"] == "process_name":
            assert e["pid"] not in processes, "a process is named twice"
            processes[e["pid"]] = e["args"]["name"]
        elif e["name"] == "thread_name":
            assert track not in threads, "a thread is named twice"
            threads[track] = e["args"]["name"]
        continue
    assert processes.get(e["pid"]), f"process {e['pid']} has no name before {e}"
    if e["ph"] in "XiBE":
        assert threads.get(track), f"thread {track} has no name before {e}"
    if e["ph"] == "X":
        assert e["dur"] > 0, e
        slices[track].append((round(e["ts"] * 1000), round(e["dur"] * 1000)))
    elif e["ph"] in "BE":
        depth[track] += 1 if e["ph"] == "B" else -1
        assert depth[track] >= 0, f"an end without a begin: {e}"
    elif e["ph"] == "b":
        assert (e["cat"], e["id"]) not in open_ids, f"begun twice: {e}"
        open_ids[e["cat"], e["id"]] = e["ts"]
    elif e["ph"] == "e":
        assert open_ids.pop((e["cat"], e["id"])) <= e["ts"], e
    elif e["ph"] == "C":
        assert all(isinstance(v, int) and v >= 0 for v in e["args"].values()), e
assert not open_ids, f"begun and not ended: {open_ids}"
for track, found in slices.items():
    ends = []
    for start, dur in sorted(found, key=lambda s: (s[0], -s[1])):
        while ends and ends[-1] <= start:
            ends.pop()
        assert not ends or start + dur <= ends[-1], f"{threads[track]}: slices cross at {start}"
        ends.append(start + dur)
