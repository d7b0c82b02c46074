/* Measured runs: what the file may say, which half a run is in, and how the error is counted. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/backtest.h"

#define MIB ((uint64_t)1 << 20)

static char path[] = "/tmp/um-backtest-XXXXXX";

static const char *write_file(const char *text)
{
    int fd = mkstemp(strcpy(path, "/tmp/um-backtest-XXXXXX"));

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static um_status_t load(const char *text, um_backtest_t **out, char *error, size_t error_bytes)
{
    um_status_t status = um_backtest_load(write_file(text), out, error, error_bytes);

    unlink(path);
    return status;
}

#define HEAD                                                                                       \
    "{\"schema\": \"umrt.backtest/1\", \"date\": \"2026-11-30\", \"gpu\": \"NVIDIA H200\", "       \
    "\"driver\": \"580\", \"piece_bytes\": 2097152, \"racers\": 2, \"runs\": ["
#define RUN(name, ns, body)                                                                        \
    "{\"run\": \"p/8/" name "\", \"pattern\": \"p\", \"variant\": \"" name "\", "                  \
    "\"bytes\": 8388608, \"warm\": 1, \"iterations\": 2, \"median_ns\": " #ns ", "                 \
    "\"q1_ns\": " #ns ", \"q3_ns\": " #ns ", \"regions\": [8388608], "                             \
    "\"setup\": [{\"op\": \"host\", \"name\": \"write\", \"region\": 0, \"at\": 0, "               \
    "\"bytes\": 8388608, \"step\": 4096, \"ns\": 0}], \"body\": [" body "]}"
#define PREFETCH                                                                                   \
    "{\"op\": \"prefetch\", \"region\": 0, \"at\": 0, \"bytes\": 8388608, \"step\": 2097152, "     \
    "\"stream\": 0, \"to\": 0}, "
#define KERNEL(more)                                                                               \
    "{\"op\": \"kernel\", \"name\": \"update\", \"region\": 0, \"at\": 0, \"bytes\": 8388608, "    \
    "\"stream\": 0, \"ns\": 5000" more "}, {\"op\": \"sync\"}"
#define TAIL "]}"

static const char good[] = HEAD RUN("plain", 900, KERNEL("")) ", " RUN(
    "chunk", 500, PREFETCH KERNEL("")) ", " RUN("race", 300, KERNEL(", \"race\": true")) TAIL;

static um_backtest_t *load_good(void)
{
    um_backtest_t *backtest;
    char error[512];

    cr_assert_eq(load(good, &backtest, error, sizeof error), UM_OK, "%s", error);
    return backtest;
}

/* Steps of a type in a workload, of one thread (0 = any). */
static size_t count(const um_workload_t *workload, um_event_type_t type, uint32_t tid)
{
    size_t n = 0;

    for (uint64_t i = 0; i < workload->n_steps; i++) {
        const um_event_t *event = workload->steps[i].event;
        n += event && event->type == (uint32_t)type && (!tid || event->tid == tid);
    }
    return n;
}

Test(backtest, the_timed_part_is_what_the_whole_has_more)
{
    um_backtest_t *backtest = load_good();
    const um_backtest_run_t *chunk = &backtest->runs[1];

    cr_assert_eq(backtest->n_runs, 3);
    cr_assert_str_eq(chunk->name, "p/8/chunk");
    cr_assert_eq(chunk->measured_ns, 500);
    /* four calls a round: one round warms up, two are timed */
    cr_assert_eq(count(chunk->before, UM_EV_HINT, 0), 4);
    cr_assert_eq(count(chunk->whole, UM_EV_HINT, 0), 12);
    cr_assert_eq(count(chunk->whole, UM_EV_LAUNCH, 0) - count(chunk->before, UM_EV_LAUNCH, 0), 2);
    um_backtest_free(backtest);
}

Test(backtest, racers_share_the_pieces_and_come_after_what_they_race_with)
{
    um_backtest_t *backtest = load_good();
    const um_workload_t *race = backtest->runs[2].before;
    bool launched = false;

    cr_assert_eq(count(race, UM_EV_HINT, 1), 0);
    cr_assert_eq(count(race, UM_EV_HINT, 2), 2);
    cr_assert_eq(count(race, UM_EV_HINT, 3), 2);
    for (uint64_t i = 0; i < race->n_steps; i++) {
        const um_step_t *step = &race->steps[i];
        if (!step->event)
            continue;
        launched = launched || (step->event->type == UM_EV_LAUNCH && step->n_touches);
        cr_assert(step->event->type != UM_EV_HINT || launched);
    }
    um_backtest_free(backtest);
}

Test(backtest, a_kernel_that_updates_reads_and_writes_side_by_side)
{
    um_backtest_t *backtest = load_good();
    const um_workload_t *workload = backtest->runs[0].before;
    const um_step_t *last = NULL;

    for (uint64_t i = 0; i < workload->n_steps; i++)
        if (workload->steps[i].event && workload->steps[i].event->type == UM_EV_LAUNCH)
            last = &workload->steps[i];
    cr_assert_eq(last->n_touches, 2);
    cr_assert_eq(last->compute_ns, 5000);
    cr_assert_eq(workload->touches[last->first_touch].kind, UM_ACCESS_READ);
    cr_assert_eq(workload->touches[last->first_touch + 1].kind, UM_ACCESS_WRITE);
    cr_assert_eq(workload->touches[last->first_touch + 1].beside, 1);
    um_backtest_free(backtest);
}

Test(backtest, all_runs_of_a_file_that_is_held_out_judge)
{
    um_backtest_t *backtest;
    char held_out[sizeof good + 32], error[512];
    const char *runs = strstr(good, "\"runs\"");

    snprintf(held_out, sizeof held_out, "%.*s\"held_out\": true, %s", (int)(runs - good), good,
             runs);
    cr_assert_eq(load(held_out, &backtest, error, sizeof error), UM_OK, "%s", error);
    cr_assert(backtest->held_out);
    for (uint32_t i = 0; i < backtest->n_runs; i++)
        cr_assert_eq(backtest->runs[i].half, UM_BACKTEST_JUDGE);
    um_backtest_free(backtest);
    backtest = load_good();
    cr_assert_not(backtest->held_out);
    cr_assert_eq(backtest->runs[0].half + backtest->runs[1].half + backtest->runs[2].half, 1);
    um_backtest_free(backtest);
}

Test(backtest, nonsense_is_refused_by_one_line_that_says_where)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "'['"},
        {"[]", "schema"},
        {"{\"schema\": \"umrt.backtest/9\"}", "schema"},
        {HEAD TAIL, "runs"},
        {HEAD "7" TAIL, "run"},
        {HEAD RUN("plain", 0, KERNEL("")) TAIL, "p/8/plain: median_ns: 0 is not in"},
        {HEAD RUN("plain", -5, KERNEL("")) TAIL, "median_ns"},
        {HEAD RUN("plain", 1.5, KERNEL("")) TAIL, "median_ns: not a whole number"},
        {HEAD RUN("plain", 5, "3") TAIL, "op: not a text"},
        {HEAD RUN("plain", 5, "{\"op\": \"jump\"}") TAIL, "p/8/plain: op: jump"},
        {HEAD RUN("plain", 5, "{\"op\": \"kernel\", \"region\": 1}") TAIL, "region: 1 is not in"},
        {HEAD RUN("plain", 5,
                  "{\"op\": \"prefetch\", \"region\": 0, \"at\": 4096, \"bytes\": 8388608}") TAIL,
         "bytes: 8388608 is not in"},
        {HEAD RUN("plain", 5,
                  "{\"op\": \"prefetch\", \"region\": 0, \"at\": 0, \"bytes\": 4096, "
                  "\"step\": 0}") TAIL,
         "step: 0 is not in"},
        {HEAD RUN("plain", 5,
                  "{\"op\": \"prefetch\", \"region\": 0, \"at\": 0, \"bytes\": 4096, "
                  "\"step\": 4096, \"stream\": 0, \"to\": 3}") TAIL,
         "to: neither"},
        {HEAD RUN("plain", 5, KERNEL("")) ", " RUN("plain", 5, KERNEL("")) TAIL, "there twice"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        um_backtest_t *backtest = NULL;
        char error[512] = "";

        cr_expect_eq(load(cases[i].text, &backtest, error, sizeof error), UM_ERR_FORMAT, "case %zu",
                     i);
        cr_expect_null(backtest);
        cr_expect(strncmp(error, path, strlen(path)) == 0, "no file: %s", error);
        cr_expect_not_null(strstr(error, cases[i].says), "case %zu: %s", i, error);
        cr_expect_null(strchr(error, '\n'), "case %zu: %s", i, error);
    }
}

Test(backtest, every_cut_of_a_good_file_is_refused)
{
    for (size_t n = 0; n < strlen(good); n += 7) {
        um_backtest_t *backtest = NULL;
        char *cut = strndup(good, n), error[512] = "";

        cr_expect_eq(load(cut, &backtest, error, sizeof error), UM_ERR_FORMAT, "cut at %zu", n);
        free(cut);
    }
}

Test(backtest, a_missing_file_is_named)
{
    um_backtest_t *backtest;
    char error[512];

    cr_assert_eq(um_backtest_load("/nowhere/b.json", &backtest, error, sizeof error), UM_ERR_IO);
    cr_assert_str_eq(error, "/nowhere/b.json: No such file or directory");
}

Test(backtest, the_error_is_relative_and_pairs_count_where_runs_really_differ)
{
    um_backtest_t *backtest = load_good();
    /* plain 900, chunk 500, race 300: the first two swapped, the last too dear by half */
    uint64_t predicted[] = {500, 900, 450};
    um_backtest_stats_t stats;

    um_backtest_stats(backtest, predicted, UM_BACKTEST_BOTH, &stats);
    cr_assert_eq(stats.runs, 3);
    cr_assert_float_eq(stats.median_error, 0.5, 1e-9);
    cr_assert_float_eq(stats.worst_error, 0.8, 1e-9);
    cr_assert_eq(stats.worst_run, 1);
    cr_assert_eq(stats.pairs, 3);
    cr_assert_eq(stats.pairs_right, 2);
    backtest->runs[1].q1_ns = 250; /* quartiles that overlap: no longer really different */
    um_backtest_stats(backtest, predicted, UM_BACKTEST_BOTH, &stats);
    cr_assert_eq(stats.pairs, 2);
    backtest->runs[0].measured_ns = 540; /* within 10 % of 500 */
    backtest->runs[0].q1_ns = 540;
    um_backtest_stats(backtest, predicted, UM_BACKTEST_BOTH, &stats);
    cr_assert_eq(stats.pairs, 1);
    um_backtest_free(backtest);
}

Test(backtest, the_shipped_runs_are_split_by_the_hash_of_their_names)
{
    um_backtest_t *backtest;
    um_backtest_stats_t fit, judge;
    char file[4096], error[512];
    uint64_t *measured;
    uint32_t before = 0;

    snprintf(file, sizeof file, "%s/tests/data/h200/backtest.json", getenv("UM_SRCDIR"));
    cr_assert_eq(um_backtest_load(file, &backtest, error, sizeof error), UM_OK, "%s", error);
    cr_assert_geq(backtest->n_runs, 60);
    measured = calloc(backtest->n_runs, sizeof *measured);
    for (uint32_t i = 0; i < backtest->n_runs; i++) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        measured[i] = backtest->runs[i].measured_ns;
        for (const char *c = backtest->runs[i].name; *c; c++)
            hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        before = 0;
        for (uint32_t j = 0; j < backtest->n_runs; j++) {
            uint64_t other = UINT64_C(0xcbf29ce484222325);
            for (const char *c = backtest->runs[j].name; *c; c++)
                other = (other ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
            before += other < hash;
        }
        cr_assert_eq(backtest->runs[i].half, before % 2 ? UM_BACKTEST_JUDGE : UM_BACKTEST_FIT);
    }
    /* what predicts itself is never wrong, and both halves have something to say */
    um_backtest_stats(backtest, measured, UM_BACKTEST_FIT, &fit);
    um_backtest_stats(backtest, measured, UM_BACKTEST_JUDGE, &judge);
    cr_assert_eq(fit.runs + judge.runs, backtest->n_runs);
    cr_assert_eq(fit.worst_error + judge.worst_error, 0);
    cr_assert_eq(judge.pairs_right, judge.pairs);
    cr_assert_geq(judge.pairs, 20);
    free(measured);
    um_backtest_free(backtest);
}
