/* umrt replay --backtest: what the model says of runs that were measured. */
#include "replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "report/emitter.h"
#include "sim/backtest.h"
#include "sim/crew.h"
#include "um_tools.h"

#define DEFAULT_MACHINE "h200-pcie5"

/* What is demanded of the runs that nothing was fitted to. */
#define MEDIAN_MAX 0.15
#define WORST_MAX  0.40
#define PAIRS_MIN  0.95

static const um_column_t run_columns[] = {
    {.key = "run", .title = "run", .left = true},
    {.key = "half", .title = "half", .left = true},
    {.key = "measured_ns", .title = "measured"},
    {.key = "predicted_ns", .title = "predicted"},
    {.key = "error_percent", .title = NULL}, /* no sign in these */
    {.key = NULL, .title = "off by"},
    {.key = "outside", .title = "", .left = true, .hide = ""},
};

static const um_column_t half_columns[] = {
    {.key = "half", .title = "half", .left = true},
    {.key = "runs", .title = "runs"},
    {.key = "median_error_percent", .title = "median error"},
    {.key = "worst_error_percent", .title = "worst"},
    {.key = "worst_run", .title = "of", .left = true},
    {.key = "pairs", .title = "pairs"},
    {.key = "pairs_right", .title = "in order"},
    {.key = "pairs_right_percent", .title = ""},
};

typedef struct testing {
    const um_backtest_t *backtest;
    const um_machine_t *machine;
    uint64_t *predicted_ns;
    um_status_t *status;
    char (*error)[256];
} testing_t;

static void predict(void *ctx, size_t i)
{
    testing_t *t = ctx;

    t->status[i] = um_backtest_predict(t->backtest, (uint32_t)i, t->machine, NULL,
                                       &t->predicted_ns[i], t->error[i], sizeof(t->error[i]));
}

static const char *half_name(uint32_t half)
{
    return half == UM_BACKTEST_FIT ? "fit" : half == UM_BACKTEST_JUDGE ? "judge" : "both";
}

static uint64_t percent(double share)
{
    return (uint64_t)(share * 100 + 0.5);
}

static bool good(const um_backtest_stats_t *stats)
{
    return stats->median_error <= MEDIAN_MAX && stats->worst_error <= WORST_MAX &&
           stats->pairs_right >= PAIRS_MIN * stats->pairs;
}

static void print_run(um_emitter_t *e, const um_backtest_run_t *run, uint64_t predicted)
{
    double off = ((double)predicted - (double)run->measured_ns) / (double)run->measured_ns;
    char text[32];

    snprintf(text, sizeof(text), "%+.0f %%", off * 100);
    off = off < 0 ? -off : off;
    um_emitter_row(e, (um_value_t[]){um_text(run->name), um_text(half_name(run->half)),
                                     um_ns(run->measured_ns), um_ns(predicted),
                                     um_percent(percent(off)), um_text(text),
                                     um_text(off > WORST_MAX ? "outside" : "")});
}

static void print_half(um_emitter_t *e, const um_backtest_t *b, uint32_t half,
                       const um_backtest_stats_t *stats)
{
    um_emitter_row(e,
                   (um_value_t[]){um_text(half_name(half)), um_count(stats->runs),
                                  um_percent(percent(stats->median_error)),
                                  um_percent(percent(stats->worst_error)),
                                  stats->runs ? um_text(b->runs[stats->worst_run].name) : um_none(),
                                  um_count(stats->pairs), um_count(stats->pairs_right),
                                  um_percent(stats->pairs
                                                 ? (uint64_t)stats->pairs_right * 100 / stats->pairs
                                                 : 100)});
}

/* Whether the half that judges is as good as demanded. */
static bool print(um_emitter_t *e, const testing_t *t)
{
    const um_backtest_t *b = t->backtest;
    um_backtest_stats_t stats[3];
    char text[256];
    bool met;

    for (int half = 0; half < 3; half++)
        um_backtest_stats(b, t->predicted_ns, (um_backtest_half_t)half, &stats[half]);
    met = good(&stats[UM_BACKTEST_JUDGE]);
    um_emitter_pair(e, "schema", NULL, um_text("umrt.replay-backtest/1"));
    um_emitter_pair(e, "path", "measured", um_text(b->path));
    um_emitter_pair(e, "date", NULL, um_text(b->date));
    um_emitter_pair(e, "gpu", NULL, um_text(b->gpu));
    um_emitter_pair(e, "driver", NULL, um_text(b->driver));
    snprintf(text, sizeof(text), "%" PRIu32 " runs on an %s, driver %s, %s", b->n_runs, b->gpu,
             b->driver, b->date);
    um_emitter_wrap(e, "", text);
    um_emitter_pair(e, "machine", "predicted", um_text(t->machine->name));
    um_emitter_line(e, "%s", "");
    um_emitter_table(e, "runs", run_columns, sizeof(run_columns) / sizeof(run_columns[0]));
    for (uint32_t i = 0; i < b->n_runs; i++)
        print_run(e, &b->runs[i], t->predicted_ns[i]);
    um_emitter_table_end(e, 0);
    um_emitter_line(e, "%s", "");
    um_emitter_table(e, "halves", half_columns, sizeof(half_columns) / sizeof(half_columns[0]));
    for (int half = 0; half < 3; half++)
        print_half(e, b, (uint32_t)half, &stats[half]);
    um_emitter_table_end(e, 0);
    um_emitter_line(e, "%s", "");
    um_emitter_wrap(
        e, "halves",
        b->held_out
            ? "held out: the machine's figures were fitted to none of these runs"
            : "the machine's figures were fitted to the runs of 'fit' alone; those of 'judge' "
              "only say how good that is");
    um_emitter_wrap(e, "pairs",
                    "variants of one pattern and size whose measured medians differ by over 10 % "
                    "and whose quartiles do not meet");
    um_emitter_pair(e, "met", NULL, um_bool(met));
    snprintf(text, sizeof(text),
             "of 'judge': median error at most %.0f %%, worst at most %.0f %%, at least %.0f %% of "
             "the pairs in order: %s",
             MEDIAN_MAX * 100, WORST_MAX * 100, PAIRS_MIN * 100, met ? "met" : "missed");
    um_emitter_wrap(e, "demanded", text);
    return met;
}

static int test(const um_replay_args_t *args, testing_t *t)
{
    um_emitter_t *e;
    bool met;

    um_crew_run(t->backtest->n_runs, args->threads, predict, t, um_progress_simulating, NULL);
    for (uint32_t i = 0; i < t->backtest->n_runs; i++) {
        if (t->status[i]) {
            um_say("%s: %s: %s", t->backtest->path, t->backtest->runs[i].name,
                   *t->error[i] ? t->error[i] : um_status_string(t->status[i]));
            return UM_EXIT_FAILED;
        }
    }
    if (um_emitter_open(&args->report, stdout, &e)) {
        um_say("replay: out of memory");
        return UM_EXIT_FAILED;
    }
    met = print(e, t);
    return um_emitter_close(e) || !met ? UM_EXIT_FAILED : UM_EXIT_OK;
}

int um_replay_backtest(const um_replay_args_t *args, const char *path)
{
    um_backtest_t *backtest;
    um_machine_t machine;
    char error[1024] = "";
    um_status_t status = path ? um_input_check(path, error, sizeof(error)) : UM_OK;
    int exit_status = UM_EXIT_FAILED;

    if (!status)
        status = um_backtest_load(path, &backtest, error, sizeof(error));
    if (status) {
        um_say("%s", *error ? error : um_status_string(status));
        return status == UM_ERR_NO_MEMORY ? UM_EXIT_FAILED : UM_EXIT_USAGE;
    }
    if (args->n_machines)
        machine = args->machines[0];
    else
        status = um_machine_load(DEFAULT_MACHINE, &machine, error, sizeof(error));
    if (status) {
        um_say("%s", *error ? error : um_status_string(status));
    } else {
        testing_t t = {
            .backtest = backtest,
            .machine = &machine,
            .predicted_ns = calloc(backtest->n_runs + 1, sizeof(*t.predicted_ns)),
            .status = calloc(backtest->n_runs + 1, sizeof(*t.status)),
            .error = calloc(backtest->n_runs + 1, sizeof(*t.error)),
        };

        if (t.predicted_ns && t.status && t.error)
            exit_status = test(args, &t);
        else
            um_say("replay: out of memory");
        free(t.predicted_ns);
        free(t.status);
        free(t.error);
    }
    um_backtest_free(backtest);
    return exit_status;
}
