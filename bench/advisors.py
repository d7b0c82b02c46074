#!/usr/bin/env python3
"""advisors.py UMRT SOURCE-DIRECTORY: what each advisor is worth in the driver model, as Markdown.

Every policy of `umrt replay` over the bundled traces and all generated programs, then with too little memory.
Nothing in it depends on the machine that it runs on.
"""
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile

MACHINE = "h200-pcie5"
SIZE = "256M"
CAPACITIES = ("50%", "75%", "90%")
SAME = 0.01  # of the driver's time
BASELINES = ("none", "driver", "app", "static", "deepum", "oracle")
SETS = ("run", "umrt")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def listed(umrt, *command):
    """The names that begin the lines of a list."""
    return [line.split()[0] for line in output(umrt, *command).splitlines() if re.match(r"[a-z]", line)]


def policies(umrt):
    text = output(umrt, "replay", "--help").split("Policies:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in text.splitlines()]


def replay(umrt, names, capacities, files):
    return json.loads(output(umrt, "replay", "--json", "--machine", MACHINE, "--policy", ",".join(names),
                             "--gpu-mem", ",".join(capacities), *files))["workloads"]


def times(table):
    return {r["policy"]: r["time_ns"] for r in table["results"]}


def name_of(workload):
    name = os.path.basename(workload["path"]).removesuffix(".umt")
    return name if workload["kind"] == "generated" else name + " (recorded)"


def ms(ns):
    return f"{ns / 1e6:.3g}" if ns < 1e9 else f"{ns / 1e6:.0f}"


def cell(driver, time):
    """Speed-up over the driver alone."""
    speedup = driver / time
    if abs(time - driver) <= SAME * driver:
        return "="
    return f"**{speedup:.2f}**" if speedup > 1 else f"{speedup:.2f} slower"


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |")


def head(*cells):
    row(*cells)
    print("|---" + "|---:" * (len(cells) - 1) + "|")


def won(found, driver, least):
    """What of the time that could be saved is saved."""
    return f"{100 * (driver - found) / (driver - least):.0f} %" if driver > least else "-"


def overview(programs, names):
    head("policy", "faster on", "slower on", "geometric mean", "best", "worst")
    for name in names:
        speedups = sorted((t["driver"] / t[name], p) for p, t, _ in programs)
        row(f"`{name}`", sum(s > 1 / (1 - SAME) for s, _ in speedups), sum(s < 1 / (1 + SAME) for s, _ in speedups),
            f"{math.exp(sum(math.log(s) for s, _ in speedups) / len(speedups)):.3f}",
            f"{speedups[-1][0]:.2f} {speedups[-1][1]}", f"{speedups[0][0]:.2f} {speedups[0][1]}")


def by_program(programs, names):
    head("program", "driver, ms", "least possible", "none", *names)
    for program, t, least in programs:
        row(program, ms(t["driver"]), f"{t['driver'] / least:.2f}", cell(t["driver"], t["none"]),
            *(cell(t["driver"], t[n]) for n in names))


def by_advisor(programs, advisors):
    for advisor in advisors:
        print(f"\n### `{advisor}`\n")
        changed = [(t["driver"] / t[advisor], p, t, least) for p, t, least in programs
                   if abs(t[advisor] - t["driver"]) > SAME * t["driver"]]
        if not changed:
            print("Changes nothing on any of these.")
            continue
        head("program", "driver, ms", f"{advisor}, ms", "speed-up", "none, ms", "least, ms", "of what could be saved")
        for speedup, program, t, least in sorted(changed, key=lambda c: (-c[0], c[1])):
            row(program, ms(t["driver"]), ms(t[advisor]), f"{speedup:.2f}" + ("" if speedup > 1 else " slower"),
                ms(t["none"]), ms(least), won(t[advisor], t["driver"], least))


def oversubscribed(workloads, names):
    """names[0] is none, which by_program shows anyway."""
    for i, capacity in enumerate(CAPACITIES):
        print(f"\n### {capacity} of what is managed at once\n")
        programs = [(name_of(w), times(w["tables"][i]), w["tables"][i]["least_ns"]) for w in workloads]
        overview(programs, names)
        print()
        by_program(programs, names[1:])


LEAN = "first_touch+ahead+readback"


def pairs():
    """What lookahead is added to: in a first run, and in one that is told what a run before has learned."""
    return [(base + again, base + "+lookahead" + again) for base in ("run", LEAN) for again in ("", "+again")]


def foretold(workloads):
    head("program", "run", "taught", f"`{LEAN}`", "taught", "run, 70 % of memory", "taught, 70 %")
    for w in workloads:
        roomy, tight = (times(table) for table in w["tables"])
        row(name_of(w), *(f"{t[ahead] / t[base]:.3f}" for t, some in ((roomy, pairs()), (tight, pairs()[:2]))
                          for base, ahead in some))


def main():
    umrt, source = sys.argv[1:]
    names = policies(umrt)
    advisors = [n for n in names if n not in BASELINES + SETS]
    bundled = sorted(glob.glob(os.path.join(source, "tests/data/h200/*.umt")))
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for pattern in listed(umrt, "gen", "--list"):
            made.append(os.path.join(folder, pattern + ".umt"))
            subprocess.run([umrt, "gen", pattern, "-s", SIZE, "-o", made[-1]], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        roomy = replay(umrt, names, ["machine"], made + bundled)
        tight = replay(umrt, ["none", "driver", "static", "evict", "run", "umrt", "oracle"], CAPACITIES, made)
        ahead = replay(umrt, [name for pair in pairs() for name in pair], ["machine", "70%"], made)
    first = roomy[0]["tables"][0]
    programs = [(name_of(w), times(w["tables"][0]), w["tables"][0]["least_ns"]) for w in roomy]
    shown = advisors + list(SETS) + ["static", "deepum", "oracle"]

    print("# What each advisor is worth, by replay\n")
    print("Made by `make bench-advisors`. Not measured: simulated in the driver model (`lib/sim/MODEL.md`) on "
          f"`{MACHINE}`, whose times are half of them within {first['error_median_percent']:.0f} % of measured ones and all "
          f"within {first['error_worst_percent']:.0f} %. Programs: all of `umrt gen --list` with {SIZE}, every access "
          "known; and the bundled traces of an H200 (recorded), where only what moved is known.\n")
    print("Speed-ups are over the driver's own prefetcher without hints: **bold** is faster, \"=\" within 1 %. "
          "\"Least possible\" is the speed-up of the least time that any policy could do with, a bound that nobody need reach. "
          "`run` is what `umrt run` asks without options, `umrt` all advisors; nothing is withheld, nor given up, by the guard.\n")
    print("## With room for everything\n")
    overview(programs, shown)
    print()
    by_program(programs, advisors + list(SETS) + ["oracle"])
    print("\n## What each wins and loses alone")
    by_advisor(programs, advisors + list(SETS))
    print("\n## What `lookahead` adds")
    print("\nIt is not asked without options. Time with it over time without: in a run that knows nothing, and taught by the "
          "profile of a run before, which both had. Programs that put all their launches on the stream at once gain nothing: "
          "what is brought racing is on its way just as early.\n")
    foretold(ahead)
    print("\n## With too little memory")
    print("\nEvictions were never measured: these times are the model's alone. `evict` says something only here.")
    oversubscribed(tight, ["none", "static", "evict", "run", "umrt", "oracle"])


if __name__ == "__main__":
    main()
