/* umrt replay --open: the hints that advisors would have given, by who gave them and one by one. */
#include "replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/emitter.h"
#include "sim/open.h"
#include "um_tools.h"

#define DEFAULT_POLICY "umrt"
#define ERROR_BYTES    1024

typedef struct sum {
    const char *who, *why; /* static, or the trace's, copied */
    uint32_t kind;
    uint64_t pieces, bytes;
    uint32_t last_launch;
    uint64_t launches;
} sum_t;

typedef struct listing {
    um_ev_hint_t *hints; /* the first of them */
    uint64_t *time_ns;
    size_t n, most, all;
    sum_t *sums;
    size_t n_sums;
    bool no_memory;
} listing_t;

static const um_column_t sum_columns[] = {
    {.key = "advisor", .title = "advisor", .left = true},
    {.key = "kind", .title = "hint", .left = true},
    {.key = "why", .title = "why", .left = true},
    {.key = "pieces", .title = "pieces"},
    {.key = "bytes", .title = "bytes"},
    {.key = "launches", .title = "launches"},
};

static const um_column_t hint_columns[] = {
    {.key = "time_ns", .title = "time"},
    {.key = "advisor", .title = "advisor", .left = true},
    {.key = "kind", .title = "hint", .left = true},
    {.key = "region", .title = "region"},
    {.key = "addr", .title = "address"},
    {.key = "bytes", .title = "bytes"},
    {.key = "device", .title = "to", .left = true},
    {.key = "launch", .title = "launch"},
    {.key = "why", .title = "why", .left = true},
};

static sum_t *sum_of(listing_t *l, const um_ev_hint_t *hint)
{
    sum_t *grown;
    char *why;

    for (size_t i = 0; i < l->n_sums; i++) {
        if (l->sums[i].kind == hint->kind && !strcmp(l->sums[i].who, hint->who) &&
            !strcmp(l->sums[i].why, hint->why))
            return &l->sums[i];
    }
    grown = realloc(l->sums, (l->n_sums + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    l->sums = grown;
    why = strdup(hint->why);
    grown[l->n_sums] = (sum_t){.who = strdup(hint->who), .why = why, .kind = hint->kind};
    if (!why || !grown[l->n_sums].who) {
        free(why);
        free((char *)grown[l->n_sums].who);
        return NULL;
    }
    return &grown[l->n_sums++];
}

static void take(void *ctx, const um_event_t *event)
{
    listing_t *l = ctx;
    const um_ev_hint_t *hint = &event->u.hint;
    sum_t *sum = sum_of(l, hint);

    if (!sum) {
        l->no_memory = true;
        return;
    }
    sum->pieces++;
    sum->bytes += hint->bytes;
    if (hint->correlation && hint->correlation != sum->last_launch) {
        sum->launches++;
        sum->last_launch = hint->correlation;
    }
    l->all++;
    if (l->n == l->most)
        return;
    l->hints[l->n] = *hint;
    l->hints[l->n].who = sum->who;
    l->hints[l->n].why = sum->why;
    l->time_ns[l->n++] = event->time_ns;
}

static um_value_t device_text(int32_t device, char *text, size_t bytes)
{
    if (device == UM_DEVICE_NONE)
        return um_none();
    if (device == UM_DEVICE_HOST)
        return um_text("host");
    snprintf(text, bytes, "GPU %" PRId32, device);
    return um_text(text);
}

static void print(um_emitter_t *e, const listing_t *l, const char *path, const um_policy_t *policy,
                  const um_open_stats_t *stats)
{
    char text[256], device[32];
    uint64_t begin = l->n ? l->time_ns[0] : 0;

    um_emitter_object(e, NULL);
    um_emitter_pair(e, "path", "trace", um_text(path));
    um_emitter_pair(e, "policy", "policy", um_text(policy->name));
    um_emitter_pair(e, "doc", NULL, um_text(policy->doc));
    um_emitter_pair(e, "whole", NULL, um_bool(stats->whole));
    um_emitter_pair(e, "launches", NULL, um_count(stats->launches));
    um_emitter_pair(e, "hinted_launches", NULL, um_count(stats->hinted_launches));
    um_emitter_pair(e, "pieces", NULL, um_count(l->all));
    um_emitter_pair(e, "pieces_refused", NULL, um_count(stats->refused));
    snprintf(text, sizeof(text),
             "%zu pieces; %" PRIu64 " of %" PRIu64 " launches would have been hinted", l->all,
             stats->hinted_launches, stats->launches);
    um_emitter_wrap(e, "hints", text);
    um_emitter_line(e, "%s", "");
    um_emitter_table(e, "advisors", sum_columns, sizeof(sum_columns) / sizeof(sum_columns[0]));
    for (const sum_t *s = l->sums; s < l->sums + l->n_sums; s++)
        um_emitter_row(e, (um_value_t[]){um_text(s->who),
                                         um_text(um_hint_kind_name((um_hint_kind_t)s->kind)),
                                         um_text(s->why), um_count(s->pieces), um_bytes(s->bytes),
                                         um_count(s->launches)});
    um_emitter_table_end(e, 0);
    um_emitter_line(e, "%s", "");
    um_emitter_table(e, "hints", hint_columns, sizeof(hint_columns) / sizeof(hint_columns[0]));
    for (size_t i = 0; i < l->n; i++) {
        const um_ev_hint_t *h = &l->hints[i];

        um_emitter_row(
            e,
            (um_value_t[]){um_ns(um_emitter_is_text(e) ? l->time_ns[i] - begin : l->time_ns[i]),
                           um_text(h->who), um_text(um_hint_kind_name((um_hint_kind_t)h->kind)),
                           um_count(h->region), um_addr(h->addr), um_bytes(h->bytes),
                           device_text(h->device, device, sizeof(device)),
                           h->correlation ? um_count(h->correlation) : um_none(), um_text(h->why)});
    }
    um_emitter_table_end(e, l->all - l->n);
    um_emitter_end(e);
}

static void release(listing_t *l)
{
    for (size_t i = 0; i < l->n_sums; i++) {
        free((char *)l->sums[i].who);
        free((char *)l->sums[i].why);
    }
    free(l->sums);
    free(l->hints);
    free(l->time_ns);
}

/* One trace under one policy. */
static int open_one(um_emitter_t *e, const um_replay_args_t *args, const char *path,
                    const um_policy_t *policy, bool *damaged)
{
    listing_t l = {.most = args->report.top};
    um_open_stats_t stats;
    char error[ERROR_BYTES] = "";
    um_status_t status;

    l.hints = calloc(l.most, sizeof(*l.hints));
    l.time_ns = calloc(l.most, sizeof(*l.time_ns));
    if (!l.hints || !l.time_ns)
        status = UM_ERR_NO_MEMORY;
    else if (!(status = um_input_check_trace(path, error, sizeof(error))))
        status = um_open_run(path, policy, take, &l, &stats, error, sizeof(error));
    if (!status && l.no_memory) {
        status = UM_ERR_NO_MEMORY;
        *error = '\0';
    }
    if (!status && stats.launches == 0) {
        if (stats.whole)
            snprintf(error, sizeof(error), "%s: has no launches", path);
        status = UM_ERR_INVALID;
    }
    if (status) {
        um_say("%s", *error ? error : um_status_string(status));
    } else {
        print(e, &l, path, policy, &stats);
        if (!stats.whole && !*damaged)
            um_say("%s", error);
        *damaged = *damaged || !stats.whole;
    }
    release(&l);
    return !status ? UM_EXIT_OK : status == UM_ERR_NO_MEMORY ? UM_EXIT_FAILED : UM_EXIT_USAGE;
}

int um_replay_open(const um_replay_args_t *args)
{
    const um_policy_t *fallback = um_policy_find(DEFAULT_POLICY);
    const um_policy_t *const *policies = args->n_policies ? args->policies : &fallback;
    size_t n = args->n_policies ? args->n_policies : 1, said = 0;
    bool damaged = false;
    int exit_status = UM_EXIT_OK;
    um_emitter_t *e;
    um_status_t status = um_emitter_open(&args->report, stdout, &e);

    if (status) {
        um_say("replay: %s", um_status_string(status));
        return UM_EXIT_FAILED;
    }
    um_emitter_pair(e, "schema", NULL, um_text("umrt.replay-open/1"));
    um_emitter_array(e, "lists");
    for (size_t f = 0; f < args->n_paths; f++) {
        bool told = false; /* once, however many policies read it */

        for (size_t p = 0; p < n && exit_status == UM_EXIT_OK; p++) {
            const um_policy_t *policy = policies[p];

            if (!policy->advisors && !policy->app_hints)
                continue; /* gives none by its nature */
            if (said++)
                um_emitter_line(e, "%s", "");
            exit_status = open_one(e, args, args->paths[f], policy, &told);
        }
        damaged = damaged || told;
    }
    um_emitter_end(e);
    if (exit_status == UM_EXIT_OK && !said)
        exit_status =
            um_say_usage("replay", "--open: none of these policies gives hints of its own");
    if (exit_status != UM_EXIT_OK) {
        um_emitter_abandon(e);
        return exit_status;
    }
    if (um_emitter_close(e))
        return UM_EXIT_FAILED;
    return damaged ? UM_EXIT_USAGE : UM_EXIT_OK;
}
