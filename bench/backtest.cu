/*
 * backtest - measures what the driver model is judged by: patterns of managed memory, each in
 * several variants of hints, on the GPU that is here.
 *
 *   backtest [--only TEXT] [--mib N] [--seconds N] > backtest.json
 *
 * --mib measures every variant of every pattern at that size instead of the sizes of the table, and
 * marks the file as held out: nothing is ever fitted to its runs.
 *
 * A run is a list of operations (host access, kernel, prefetch, advice, wait). The program carries
 * the list out and prints it beside the times, so that lib/sim/backtest.c simulates the very same
 * list. Every repetition has fresh allocations: set-up (not timed), `warm` rounds of the body (not
 * timed), then `iterations` rounds. Timed is from before the first operation of these until all is
 * done: helper threads joined and the device idle. One repetition warms up and is thrown away.
 *
 * `ns` of a kernel or host access is its own time with all its data where it is needed, measured
 * here as well; `took_ns` is what the call took in the run, median over repetitions, for diagnosis.
 * Managed memory never exceeds 4 GiB (example.h refuses more); under 3 minutes on an H200.
 */
#define EXAMPLE_MANAGED_LIMIT ((size_t)4 << 30)
#include "backtest_json.h"
#include "backtest_measure.h"
#include "backtest_patterns.h"

#include <set>

static const int REPETITIONS = 7;

int main(int argc, char **argv)
{
    const char *only = "";
    size_t size = 0;
    double seconds = 170;
    bool first = true;
    char *none[] = {argv[0], NULL};

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--only") && i + 1 < argc) {
            only = argv[++i];
        } else if (!strcmp(argv[i], "--mib") && i + 1 < argc) {
            size = strtoul(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else {
            fprintf(stderr, "usage: %s [--only TEXT] [--mib N] [--seconds N]\n", argv[0]);
            return 2;
        }
    }
    example_start(1, none, 0, 0);
    for (cudaStream_t &s : streams)
        CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (cudaStream_t &s : side)
        CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    print_header(size);
    double start = now_ns();
    std::set<std::string> made; /* --mib: the table names some variants at several sizes */
    for (const auto &p : patterns) {
        for (size_t mib : size ? std::vector<size_t>{size} : p.mib) {
            for (const std::string &variant : p.variants) {
                run r = {p.name, variant, mib, {}, {}, {}};
                std::string name = r.pattern + "/" + std::to_string(mib) + "/" + variant;
                if (!has(name, only) || !made.insert(name).second)
                    continue;
                p.make(r, variant, mib * MIB);
                measure_resident(r);
                repetition(r);
                /* over time: fewer repetitions rather than fewer runs */
                int n = now_ns() - start < seconds * 0.85e9 ? REPETITIONS : 3;
                for (int i = 0; i < n; i++) {
                    r.samples.push_back(repetition(r));
                    for (op &o : r.body)
                        o.tooks.push_back(o.took);
                }
                print_run(r, first);
                fprintf(stderr, "%6.1f s %-32s %9.3f ms\n", (now_ns() - start) * 1e-9, name.c_str(),
                        quantile(r.samples, 0.5) * 1e-6);
                first = false;
            }
        }
    }
    printf("\n]}\n");
    return 0;
}
