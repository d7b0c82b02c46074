#!/usr/bin/env python3
"""Measures umrt on a GPU against plain, hand-tuned and copying variants of the same programs.

    make examples workloads && measure.py --build . --out DIR [PASS...]

Passes:
  ratios  every program of bench/workloads in all its variants: time from the first allocation to the
          end of the last step (the default pass)
  long    the same programs, plain against umrt, with as many steps as plain does in --seconds
  random  bench/workloads/random, plain against umrt, for each of --seeds, --seconds long
  gpus    bench/workloads/halves: two GPUs on one array, plain, by hand and under umrt; needs two GPUs
  torch   tests/gpu/torch_managed.py, a PyTorch MLP whose tensors are all managed, in two sizes: all steps but the
          first, plain, with an allocator that prefetches, and under umrt; needs PyTorch and a C compiler
  phases  the programs of examples/, phase by phase, and what a launch costs

Variants: plain; hand, hand2 ... (a program's expert variants: the best of them counts); copies
(cudaMalloc and pinned memory); umrt (`umrt run`, nothing known before); profile (`umrt run --profile`,
after an earlier run); in `phases` also init (built with um_runtime_init) and record (`umrt record`).

In every round the variants of a program run one after the other, so that slow drift of the machine
hits them alike. A figure is the median over the rounds. Results on stdout must be the same bytes in
every variant. A variant that fails is named, left out, and makes the exit status 1, as does a demand
that is missed. Writes one JSON and one Markdown file, named by date and card, after every round.
"""
import argparse
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

BEST_HAND = "best hand"
MIGRATION_BOUND = 1.5  # plain over the best hand: from here on, moving is what the program waits for
HOPELESS = 1.25        # a hand variant this much over the best after a round is not run again
HINTS = ("plain", "hand", "umrt", "init")
# Of examples/: name, arguments, variants, {phase: (figure, {variant: what is asked of it})}. "speedup" is
# plain's median over the variant's; "us_a_launch" what the variant adds to each launch.
PHASES = [
    ("first_touch", ["--mib", "1024", "--steps", "5"], HINTS, {"gpu": ("speedup", {"umrt": 5.0})}),
    ("alternate", ["--mib", "1024", "--steps", "5"], (*HINTS, "record"),
     {"gpu": ("speedup", {"umrt": 3.5}), "cpu-read": None}),
    ("resident", ["--mib", "1024", "--steps", "10000"], ("plain", "umrt", "init"),
     {"loop": ("speedup", {"umrt": 1 / 1.02})}),
    ("stencil", ["--mib", "256", "--steps", "20"], HINTS, {"gpu": None}),
    ("churn", ["--mib", "64", "--steps", "20"], HINTS, {"step": None}),
    ("table", ["--mib", "256", "--steps", "8"], HINTS, {"gpu": None}),
    ("streams", ["--mib", "64", "--steps", "6"], HINTS, {"gpu": None}),
    ("gather", ["--mib", "4096", "--steps", "3"], ("plain", "hand", "umrt"), {"gpu": None}),
    # no managed memory: kernels of 50 us; empty ones in a loop, whose pace CPU and GPU share; and the
    # launch call alone
    ("launches", ["--steps", "200000"], ("plain", "record", "umrt"),
     {"work": ("speedup", {"record": 1 / 1.01, "umrt": 1 / 1.01}),
      "loop": ("us_a_launch", {"record": 0.5, "umrt": 0.3}), "call": ("us_a_launch", {"record": 0.5, "umrt": 0.3})}),
]
LAUNCHES_A_SAMPLE = {"loop": 20000, "call": 500}  # of `launches`


class Failed(Exception):
    """A run of a program that gave no figures."""


class Job:
    """A program, its variants, and what was measured of them."""

    def __init__(self, name, program, arguments, variants):
        self.name, self.program, self.arguments, self.variants = name, program, list(arguments), list(variants)
        self.samples, self.outputs, self.said, self.errors = {}, {}, {}, {}
        self.dropped, self.cost = set(), 0

    def add(self, variant, output, phases, said):
        self.samples.setdefault(variant, []).append(phases)
        self.outputs.setdefault(output, set()).add(variant)
        self.said[variant] = said

    def alive(self):
        return [v for v in self.variants if v not in self.errors and v not in self.dropped]

    def totals(self, variant):
        return [p["total"][0] for p in self.samples.get(variant, []) if "total" in p]

    def total(self, variant):
        """The median; of BEST_HAND, the best hand variant's; None where nothing was measured."""
        if variant == BEST_HAND:
            return min((self.total(v) for v in self.hands()), default=None)
        return statistics.median(self.totals(variant)) if self.totals(variant) else None

    def phase(self, variant, phase):
        return [ms for p in self.samples.get(variant, []) for ms in p.get(phase, [])]

    def hands(self):
        return [v for v in self.variants if v.startswith("hand") and self.totals(v)]

    def ratio(self, over, under):
        over, under = self.total(over), self.total(under)
        return over / under if over and under else None

    def drop_hopeless(self):
        best = self.total(BEST_HAND)
        self.dropped |= {v for v in self.hands() if self.total(v) > HOPELESS * best}


class Bench:
    def __init__(self, args, scratch):
        self.args, self.scratch, self.notes = args, scratch, []
        self.card = first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
        self.version = first_line([args.umrt, "--version"])
        asked = subprocess.run([args.umrt, "run", "--help"], capture_output=True, text=True, check=False)
        self.has_profile = "--profile" in asked.stdout + asked.stderr
        self.began = time.monotonic()
        if not self.has_profile:
            self.note("this umrt run has no --profile: no variant with a profile")

    def note(self, text):
        print("note:", text, flush=True)
        self.notes.append(text)

    def umrt_variants(self):
        return ["umrt", "profile"] if self.has_profile else ["umrt"]

    def profile(self, job):
        return os.path.join(self.scratch, "".join(c if c.isalnum() else "-" for c in job.name) + ".ump")

    def start(self, job, variant, extra=()):
        """One run: (stdout, {phase: [ms]}, what umrt said)."""
        times = os.path.join(self.scratch, "times")
        open(times, "w").close()
        program = [job.program, *job.arguments, *extra, "--times", times]
        example = os.path.basename(os.path.dirname(job.program)) == "examples"
        if variant == "init":
            program[0] += "-umrt"
        elif variant == "umrt":
            program = [self.args.umrt, "run", "--", *program]
        elif variant == "profile":
            program = [self.args.umrt, "run", "--profile", self.profile(job), "--", *program]
        elif variant == "record":
            program = [self.args.umrt, "record", "-o", os.path.join(self.scratch, "t.umt"), "--", *program]
        elif not example:
            program += ["--variant", variant]
        elif variant == "hand":
            program.append("--hand")
        try:
            done = subprocess.run(program, capture_output=True, text=True, timeout=self.args.timeout, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(str(error)) from error
        if done.returncode != 0:
            raise Failed(f"exit status {done.returncode}: {done.stderr.strip()[-300:]}")
        phases = {}
        with open(times) as f:
            for line in f:
                phase, ms = line.split()
                phases.setdefault(phase, []).append(float(ms))
        if not phases:
            raise Failed("no times written")
        return done.stdout, phases, [s for s in done.stderr.splitlines() if s.startswith("umrt:")]

    def try_variant(self, job, variant, extra=(), keep=True):
        try:
            got = self.start(job, variant, extra)
        except Failed as error:
            job.errors[variant] = str(error)
            print(f"FAIL {job.name} {variant}: {error}", flush=True)
            return None
        if keep:
            job.add(variant, *got)
        return got

    def measure(self, jobs, prepare, after_round):
        """All rounds; those that --budget has no time for are left out, the first never is."""
        for r in range(self.args.rounds):
            for job in jobs:
                began = time.monotonic()
                if not job.alive():
                    continue
                if r and began - self.began + job.cost > self.args.budget:
                    self.note(f"{job.name}: {r} of {self.args.rounds} rounds, the budget is spent")
                    job.dropped = set(job.variants)
                    continue
                if r == 0:
                    if "profile" in job.variants and not os.path.exists(self.profile(job)):
                        self.try_variant(job, "profile", keep=False)  # the earlier run
                    prepare(self, job)
                order = job.alive()
                for variant in reversed(order) if r % 2 else order:
                    if len(job.samples.get(variant, [])) <= r:
                        self.try_variant(job, variant)
                job.drop_hopeless()
                job.cost = time.monotonic() - began
                print(f"round {r + 1}: {job.name}:", "  ".join(
                    f"{v} {job.samples[v][-1].get('total', ['-'])[0]}" for v in job.samples), flush=True)
            after_round()


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        sys.exit(f"measure.py: {' '.join(command)} does not answer")


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def demand(name, asked, value, met, detail=""):
    return {"demand": name, "asked": asked, "measured": None if value is None else round(value, 4),
            "met": met if value is not None else None, "detail": detail}


def at_most(name, values, limit, each=None):
    """DEMANDS on {workload: ratio}: the geometric mean, and every single one."""
    values = {k: v for k, v in values.items() if v}
    mean = geometric_mean(values.values()) if values else None
    rows = [demand(name + ", geometric mean", f"<= {limit:.2f}", mean, values and mean <= limit,
                   f"{len(values)} workloads")]
    if each:
        rows.append(worst(name + ", the worst", values, each))
    return rows


def worst(name, values, limit):
    values = {k: v for k, v in values.items() if v}
    over = sorted((k for k in values if values[k] > limit), key=lambda k: -values[k])
    return demand(name, f"<= {limit:.2f}", max(values.values(), default=None), not over,
                  ", ".join(f"{k} {values[k]:.3f}" for k in over))


# ---- passes: each has the jobs of one set of programs, and what is asked of them ---------------------

class Pass:
    jobs = ()

    @staticmethod
    def prepare(bench, job):
        """Called once a job, before it is measured."""


class Ratios(Pass):
    columns = ("plain", "copies", BEST_HAND, "umrt", "profile")

    def __init__(self, bench):
        self.jobs = []
        for name, program in workloads(bench.args):
            variants = list_variants(program)
            if variants:
                self.jobs.append(Job(name, program, [], ["plain", *variants, *bench.umrt_variants()]))

    def demands(self):
        jobs, rows = self.jobs, []
        for variant, limit, each in (("profile", 1.00, 1.05), ("umrt", 1.10, None)):
            rows += at_most(f"11: {variant} over best hand", {j.name: j.ratio(variant, BEST_HAND) for j in jobs},
                            limit, each)
            bound = [j.ratio("plain", variant) for j in jobs if bound_by_migration(j) and j.ratio("plain", variant)]
            mean = geometric_mean(bound) if bound else None
            rows.append(demand(f"11: plain over {variant}, migration-bound, geometric mean", ">= 3.00", mean,
                               bool(bound) and mean >= 3, f"{len(bound)} workloads"))
            for j in jobs:
                copy, gpu = j.phase("copies", "copy"), j.phase(variant, "gpu")
                if copy and gpu:
                    rate = statistics.median(copy) / statistics.median(gpu)
                    rows.append(demand(f"12: {j.name}, rate under {variant} over that of pinned copies, kernel included",
                                       ">= 0.88", rate, rate >= 0.88))
        return rows

    def table(self):
        yield (*("workload", *self.columns), "umrt / hand", "profile / hand", "plain / umrt", "plain / profile",
               "migration-bound", "hand variants")
        for j in self.jobs:
            yield (j.name, *(spread(j, v) for v in self.columns),
                   *(ratio_text(j.ratio(a, b)) for a, b in (("umrt", BEST_HAND), ("profile", BEST_HAND),
                                                           ("plain", "umrt"), ("plain", "profile"))),
                   "yes" if bound_by_migration(j) else "no",
                   ", ".join(f"{v} {j.total(v):.1f}" for v in j.hands()))


class Long(Pass):
    def __init__(self, bench):
        self.jobs = [Job(name, program, [], ["plain", *bench.umrt_variants()]) for name, program in workloads(bench.args)]

    @staticmethod
    def prepare(bench, job):
        """As many steps for all as plain does in the time asked for."""
        got = bench.try_variant(job, "plain", ["--seconds", str(bench.args.seconds)])
        if got:
            job.arguments += ["--steps", str(len(got[1].get("step", [])))]

    def demands(self):
        return [worst(f"11: {v} over plain, long run, the worst", {j.name: j.ratio(v, "plain") for j in self.jobs}, 1.02)
                for v in ("umrt", "profile") if any(j.totals(v) for j in self.jobs)]

    def table(self):
        yield "program", "steps", "plain", "umrt", "profile", "umrt / plain", "profile / plain"
        for j in self.jobs:
            yield (j.name, j.arguments[-1] if "--steps" in j.arguments else "", spread(j, "plain"), spread(j, "umrt"),
                   spread(j, "profile"), ratio_text(j.ratio("umrt", "plain")), ratio_text(j.ratio("profile", "plain")))


class Random(Long):
    def __init__(self, bench):
        first, last = bench.args.seeds
        program = os.path.join(bench.args.build, "bench/workloads/random")
        self.jobs = [Job(f"seed {seed}", program, ["--seed", str(seed)], ["plain", "umrt"])
                     for seed in range(first, last + 1)]

    def demands(self):
        ratios = {j.name: j.ratio("umrt", "plain") for j in self.jobs}
        found = [r for r in ratios.values() if r]
        median = statistics.median(found) if found else None
        exceptions = worst("", ratios, 1.02)["detail"]
        return [demand(f"15: umrt over plain, median of {len(found)} seeds", "<= 1.02", median,
                       bool(found) and median <= 1.02, exceptions and "over it: " + exceptions)]


class Gpus(Pass):
    columns = ("plain", "hand", "umrt", "profile")

    def __init__(self, bench):
        program = os.path.join(bench.args.build, "bench/workloads/halves")
        self.jobs = [Job(f"halves by {how}", program, ["--indexed", indexed, "--steps", "60", *every],
                         ["plain", "hand", *bench.umrt_variants()])
                     for how, indexed, every in (("pointer", "0", []), ("index", "1", []),
                                                 ("pointer, CPU on all words", "0", ["--every", "1"]))]

    def demands(self):
        return [worst(f"9: {v} over plain, two GPUs, the worst", {j.name: j.ratio(v, "plain") for j in self.jobs}, 1.02)
                for v in ("umrt", "profile")]

    def table(self):
        yield "program", *self.columns, "umrt / plain", "umrt / hand"
        for j in self.jobs:
            yield (j.name, *(spread(j, v) for v in self.columns), ratio_text(j.ratio("umrt", "plain")),
                   ratio_text(j.ratio("umrt", "hand")))


class Torch(Pass):
    columns = ("plain", "hand", "umrt", "profile")

    def __init__(self, bench):
        tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/gpu")
        cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        allocator = os.path.join(bench.scratch, "allocator.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", f"-I{cuda}/include", "-o", allocator,
                        os.path.join(tests, "managed_allocator.c"), f"-L{cuda}/lib64", "-lcudart"], check=True)
        self.jobs = [Job(name, os.path.join(tests, "torch_managed.py"), [allocator, "--steps", "12", *size],
                         ["plain", "hand", *bench.umrt_variants()])
                     for name, size in (("8 x 4096 x 4096, Adam, batch 2048",
                                         ["--layers", "8", "--width", "4096", "--batch", "2048", "--adam"]),
                                        ("4 x 2048 x 2048, SGD, batch 1024", []))]

    def demands(self):
        return [demand(f"14: plain over {v}, {j.name}", ">= 2.00", j.ratio("plain", v), (j.ratio("plain", v) or 0) >= 2)
                for v in ("umrt", "profile") for j in self.jobs]

    def table(self):
        yield "program", *self.columns, "plain / umrt", "plain / profile", "umrt / hand"
        for j in self.jobs:
            yield (j.name, *(spread(j, v) for v in self.columns),
                   *(ratio_text(j.ratio(a, b)) for a, b in (("plain", "umrt"), ("plain", "profile"), ("umrt", "hand"))))


class Phases(Pass):
    def __init__(self, bench):
        self.jobs = [Job(name, os.path.join(bench.args.build, "examples", name), arguments, variants)
                     for name, arguments, variants, _ in PHASES if wanted(bench.args, name)]
        self.asked = {name: phases for name, _, _, phases in PHASES}

    def figures(self):
        """(job, phase, variant, times, speed-up, us a launch)"""
        for j in self.jobs:
            for phase in self.asked[j.name]:
                plain = j.phase("plain", phase)
                for variant in j.variants:
                    ms = j.phase(variant, phase)
                    if not ms or not plain:
                        continue
                    added = (statistics.median(ms) - statistics.median(plain)) * 1e3
                    launches = LAUNCHES_A_SAMPLE.get(phase) if j.name == "launches" else None
                    yield j, phase, variant, ms, {"speedup": statistics.median(plain) / statistics.median(ms),
                                                  "us_a_launch": added / launches if launches else None}

    def demands(self):
        rows = []
        for j, phase, variant, _, value in self.figures():
            asked = self.asked[j.name][phase]
            if asked and variant in asked[1]:
                figure, limit = asked[0], asked[1][variant]
                got, most = value[figure], figure == "us_a_launch"
                rows.append(demand(f"{j.name} {phase}, {variant}: {figure}", f"{'<=' if most else '>='} {limit:.3f}",
                                   got, got <= limit if most else got >= limit))
        return rows

    def table(self):
        yield "program", "phase", "variant", "ms [10th .. 90th percentile]", "speed-up", "us a launch"
        for j, phase, variant, ms, value in self.figures():
            added = value["us_a_launch"]
            yield (f"{j.name} `{' '.join(j.arguments)}`", phase, variant,
                   f"{statistics.median(ms):.3f} [{percentile(ms, 0.1):.3f} .. {percentile(ms, 0.9):.3f}]",
                   ratio_text(value["speedup"]), "" if added is None or variant == "plain" else f"{added:+.2f}")


PASSES = {"ratios": Ratios, "long": Long, "random": Random, "gpus": Gpus, "torch": Torch,
          "phases": Phases}
APART = ("random", "halves")  # programs with a pass of their own


def bound_by_migration(job):
    return (job.ratio("plain", BEST_HAND) or 0) >= MIGRATION_BOUND


def wanted(args, name):
    return not args.only or name in args.only.split(",")


def workloads(args):
    """(name, program) of all that are built, but for those with a pass of their own."""
    folder = os.path.join(args.build, "bench/workloads")
    for name in sorted(os.listdir(folder)):
        program = os.path.join(folder, name)
        if name not in APART and wanted(args, name) and os.path.isfile(program) and os.access(program, os.X_OK):
            yield name, program


def list_variants(program):
    """The variants a program has besides plain."""
    done = subprocess.run([program, "--variants"], capture_output=True, text=True, check=False)
    return [line.split()[0] for line in done.stdout.splitlines() if line.split()[0] != "plain"]


def ratio_text(value):
    return "" if value is None else f"{value:.3f}"


def spread(job, variant):
    if variant in job.errors:
        return "failed"
    if variant == BEST_HAND:
        variant = min(job.hands(), key=job.total, default=None)
    totals = job.totals(variant)
    return f"{job.total(variant):.1f} [{min(totals):.1f} .. {max(totals):.1f}]" if totals else ""


def differing(job):
    if len(job.outputs) < 2:
        return None
    return f"{job.name}: outputs differ: " + " / ".join(" ".join(sorted(v)) for v in job.outputs.values())


def markdown_table(rows):
    rows = [[str(c) for c in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def as_json(job):
    return {"program": job.name, "arguments": job.arguments, "errors": job.errors,
            "best_hand": min(job.hands(), key=job.total, default=None),
            "plain_over_hand": job.ratio("plain", BEST_HAND),
            "variants": {v: {"total_ms": job.totals(v), "median_ms": job.total(v), "said": job.said.get(v, []),
                             "phases": {name: {"samples": len(ms), "median_ms": round(statistics.median(ms), 4),
                                               "p10_ms": percentile(ms, 0.1), "p90_ms": percentile(ms, 0.9)}
                                        for name in sorted({n for s in job.samples[v] for n in s})
                                        for ms in [job.phase(v, name)]}}
                         for v in job.samples}}


def failures(passes):
    """One line each: variants that failed, outputs that differ, demands missed."""
    lines = []
    for p in passes.values():
        for j in p.jobs:
            lines += [f"{j.name} {v}: {text}" for v, text in j.errors.items()]
            lines += filter(None, [differing(j)])
    return lines


def write(bench, passes):
    args, date = bench.args, datetime.date.today().isoformat()
    base = "-".join(filter(None, [date, bench.card.split(",")[0].replace(" ", "-").lower(), args.label]))
    head = {"date": date, "card": bench.card, "umrt": bench.version, "rounds": args.rounds, "seconds": args.seconds,
            "notes": bench.notes, "failures": failures(passes)}
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, base + ".json"), "w") as f:
        json.dump({**head, "passes": {name: {"demands": p.demands(), "programs": [as_json(j) for j in p.jobs]}
                                      for name, p in passes.items()}}, f, indent=1)
        f.write("\n")
    text = [f"# {date}, {bench.card}, {bench.version}\n",
            f"{args.rounds} interleaved rounds; milliseconds are medians [least .. most]. What is measured, and what the "
            "variants are: `measure.py --help`.\n", *(f"* {line}" for line in bench.notes + head["failures"]), ""]
    for name, p in passes.items():
        text += [f"## {name}\n", markdown_table(p.table())]
        text += [markdown_table([("demand", "asked", "measured", "", ""), *(
            (d["demand"], d["asked"], ratio_text(d["measured"]),
             {True: "met", False: "MISSED", None: "not measured"}[d["met"]], d["detail"]) for d in p.demands())])]
    with open(os.path.join(args.out, base + ".md"), "w") as f:
        f.write("\n".join(text))
    return "\n".join(text)


def seeds(text):
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passes", nargs="*", metavar="PASS", help=" ".join(PASSES))
    parser.add_argument("--build", default=".", help="where make has built (.)")
    parser.add_argument("--umrt", help="the umrt command (BUILD/umrt)")
    parser.add_argument("--out", required=True, help="where the results go")
    parser.add_argument("--label", default="", help="put at the end of the files' names")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=240, help="no further round after so many seconds (240)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run (120)")
    parser.add_argument("--only", default="", help="comma list of programs")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a plain run in `long` and `random` (2)")
    parser.add_argument("--seeds", type=seeds, default=(1, 50), metavar="A-B", help="of `random` (1-50)")
    args = parser.parse_args()
    unknown = [p for p in args.passes if p not in PASSES]
    if unknown:
        parser.error(f"no pass '{unknown[0]}': {', '.join(PASSES)}")
    args.build = os.path.abspath(args.build)
    args.umrt = args.umrt or os.path.join(args.build, "umrt")
    with tempfile.TemporaryDirectory() as scratch:
        bench, passes = Bench(args, scratch), {}
        for name in args.passes or ["ratios"]:
            passes[name] = PASSES[name](bench)
            bench.measure(passes[name].jobs, passes[name].prepare, lambda: write(bench, passes))
        print(write(bench, passes))
    missed = any(d["met"] is False for p in passes.values() for d in p.demands())
    return 1 if missed or failures(passes) else 0


if __name__ == "__main__":
    sys.exit(main())
