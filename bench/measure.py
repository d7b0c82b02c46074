#!/usr/bin/env python3
"""Measures umrt on a GPU, as ratios against plain and hand-tuned variants of the same programs.

usage: measure.py --bin DIR --umrt UMRT --out DIR [--rounds N] [--only NAME,NAME]

Every round runs all variants of a workload one after the other, so that slow drift of the machine
hits them alike; a figure is the median over the steps of all rounds, its spread the 10th and 90th
percentile. Results on stdout must be the same bytes in every variant. Writes one JSON and one
Markdown table named by date and card.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

# name, program arguments, variants, {phase that is compared: (variants, what is asked of them)}
# "speedup" is plain's median over the variant's; "us_a_launch" what the variant adds to each launch.
HINTS = ("plain", "hand", "run", "init")
WORKLOADS = [
    ("first_touch", ["--mib", "1024", "--steps", "5"], HINTS, {"gpu": (["run"], "speedup", 5.0)}),
    ("alternate", ["--mib", "1024", "--steps", "5"], (*HINTS, "record"),
     {"gpu": (["run"], "speedup", 3.5), "cpu-read": None}),
    ("resident", ["--mib", "1024", "--steps", "10000"], ("plain", "run", "init"),
     {"loop": (["run"], "speedup", 1 / 1.02)}),
    ("stencil", ["--mib", "256", "--steps", "20"], HINTS, {"gpu": None}),
    ("churn", ["--mib", "64", "--steps", "20"], HINTS, {"step": None}),
    ("table", ["--mib", "256", "--steps", "8"], HINTS, {"gpu": None}),
    ("streams", ["--mib", "64", "--steps", "6"], HINTS, {"gpu": None}),
    ("gather", ["--mib", "4096", "--steps", "3"], ("plain", "hand", "run"), {"gpu": None}),
    # no managed memory: kernels of 50 us; empty ones in a loop, whose pace CPU and GPU share; and the
    # launch call alone
    ("launches", ["--steps", "200000"], ("plain", "record", "run"),
     {"work": (["record", "run"], "speedup", 1 / 1.01), "loop": (["record", "run"], "us_a_launch", 0.5),
      "call": (["record", "run"], "us_a_launch", 0.5)}),
]
LAUNCHES_A_SAMPLE = {"loop": 20000, "call": 500} # of `launches`


def run(args, name, variant, arguments, scratch):
    times = os.path.join(scratch, "times")
    open(times, "w").close()
    program = [os.path.join(args.bin, name + ("-umrt" if variant == "init" else "")), *arguments,
               "--times", times]
    if variant == "hand":
        program.append("--hand")
    elif variant == "run":
        program = [args.umrt, "run", "--"] + program
    elif variant == "record":
        program = [args.umrt, "record", "-o", os.path.join(scratch, "t.umt"), "--"] + program
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{name} {variant}: exit status {done.returncode}: {done.stderr.strip()}")
    phases = {}
    for line in open(times):
        phase, ms = line.split()
        phases.setdefault(phase, []).append(float(ms))
    said = [line for line in done.stderr.splitlines() if line.startswith("umrt:")]
    return done.stdout, phases, said


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def card():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of the example programs")
    parser.add_argument("--umrt", required=True, help="the umrt command")
    parser.add_argument("--out", required=True, help="where the results go")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="comma list of workloads")
    args = parser.parse_args()
    name_of_card = card()
    version = subprocess.run([args.umrt, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    rows, failures = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, arguments, variants, phases in WORKLOADS:
            if args.only and name not in args.only.split(","):
                continue
            samples, outputs, said = {}, {}, {}
            for _ in range(args.rounds):
                for variant in variants:
                    out, times, said[variant] = run(args, name, variant, arguments, scratch)
                    for phase in phases:
                        samples.setdefault((phase, variant), []).extend(times.get(phase, []))
                    outputs.setdefault(out, set()).add(variant)
            if len(outputs) != 1:
                print(f"FAIL {name}: outputs differ between variants")
                failures += 1
            for phase, demand in phases.items():
                plain = statistics.median(samples[phase, "plain"])
                for variant in variants:
                    times = samples[phase, variant]
                    median = statistics.median(times)
                    row = {
                        "workload": name, "phase": phase, "arguments": " ".join(arguments),
                        "variant": variant, "samples": len(times),
                        "median_ms": round(median, 4),
                        "p10_ms": round(percentile(times, 0.1), 4),
                        "p90_ms": round(percentile(times, 0.9), 4),
                        "speedup": round(plain / median, 4),
                        "said": said[variant],
                    }
                    if name == "launches" and phase in LAUNCHES_A_SAMPLE:
                        row["us_a_launch"] = round((median - plain) * 1e3 / LAUNCHES_A_SAMPLE[phase], 4)
                    if demand and variant in demand[0]:
                        value = row[demand[1]]
                        at_most = demand[1] == "us_a_launch"
                        row["met"] = value <= demand[2] if at_most else value >= demand[2]
                        row["asked"] = f"{demand[1]} {'<=' if at_most else '>='} {demand[2]:.4g}"
                        failures += not row["met"]
                    rows.append(row)
                    print("{workload:12} {phase:9} {variant:7} {median_ms:10.3f} ms [{p10_ms:.3f} .. {p90_ms:.3f}] "
                          "{speedup:7.3f}x".format(**row), row.get("us_a_launch", ""), row.get("asked", ""),
                          {True: "met", False: "MISSED"}.get(row.get("met"), ""), flush=True)
    date = datetime.date.today().isoformat()
    base = os.path.join(args.out, f"{date}-{name_of_card.split(',')[0].replace(' ', '-').lower()}")
    with open(base + ".json", "w") as f:
        json.dump({"date": date, "card": name_of_card, "umrt": version, "rounds": args.rounds, "rows": rows}, f, indent=1)
        f.write("\n")
    with open(base + ".md", "w") as f:
        f.write(f"# {date}, {name_of_card}, {version}\n\nTimes are medians over all steps of {args.rounds} interleaved "
                "rounds, [10th .. 90th percentile]; speed-up is plain's median over the variant's.\n"
                "`init`: built with `um_runtime_init(NULL)`; `run`: unmodified under `umrt run`; "
                "`record`: under `umrt record`.\n\n"
                "| workload | phase | variant | ms | speed-up | asked |\n|---|---|---|---|---|---|\n")
        for row in rows:
            f.write("| {workload} `{arguments}` | {phase} | {variant} | {median_ms:.3f} [{p10_ms:.3f} .. {p90_ms:.3f}] | "
                    "{speedup:.3f}x | ".format(**row) +
                    (f"{row['us_a_launch']:+.2f} us a launch; " if "us_a_launch" in row and row["variant"] != "plain" else "") +
                    (row["asked"] + (": met" if row["met"] else ": missed") if "asked" in row else "") + " |\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
