/* What every advisor and baseline promises, on every bundled trace: deciding changes nothing, hints lie in
 * live managed regions, equal events give equal hints, what it learns is told in its name. And what it is promised:
 * true accesses are never shown to it, even where a trace has them. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/regions.h"
#include "exec/hinter.h"
#include "sim/policy.h"
#include "um_trace.h"

#define WAITING 4096u

/* Carries out a hint when the next event comes, so that no outcome reaches an advisor inside decide. */
typedef struct later {
    um_executor_t base;
    um_hint_t waiting[WAITING];
    unsigned n;
    uint64_t hints, hash;
} later_t;

static later_t executor;
static um_regions_t *regions;
static um_sink_t sink;
static uint64_t now_ns;

/* ---- the advisor under test, wrapped ---- */

static const um_advisor_ops_t *inner;
static uint64_t decisions;
static uint64_t observed, accesses;
static bool deep;    /* the trace has every access, too */
static bool looking; /* there are page tables, and they say that the CPU has it all */

static bool start_inner(void *state)
{
    for (const um_advisor_option_t *o = inner->options; o && o->name; o++)
        *(uint64_t *)(void *)((char *)state + o->offset) = o->fallback;
    return !inner->init || inner->init(state);
}

static void observe(void *state, const um_event_t *event)
{
    observed++;
    cr_assert_neq(event->type, UM_EV_ACCESS, "%s is shown what no running program shows",
                  inner->name);
    if (inner->observe)
        inner->observe(state, event);
}

static void decide_and_compare(const void *state, const um_view_t *view, um_hints_t *hints,
                               void (*decide)(const void *, const um_view_t *, um_hints_t *))
{
    size_t bytes = inner->state_bytes;
    void *before = malloc(bytes + 1);

    decisions++;
    if (looking) { /* what a look finds is observed meanwhile */
        decide(state, view, hints);
        free(before);
        return;
    }
    memcpy(before, state, bytes);
    decide(state, view, hints);
    cr_assert_eq(memcmp(before, state, bytes), 0, "%s changes its state as it decides",
                 inner->name);
    free(before);
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    if (inner->decide)
        decide_and_compare(state, view, hints, inner->decide);
}

static void decide_sync(const void *state, const um_view_t *view, um_hints_t *hints)
{
    if (inner->decide_sync)
        decide_and_compare(state, view, hints, inner->decide_sync);
}

/* ---- the executor ---- */

static void mix(uint64_t value)
{
    executor.hash = (executor.hash ^ value) * 0x100000001b3u;
}

static bool submit(um_executor_t *self, const um_hint_t *hint, uint32_t context)
{
    um_region_t region;

    (void)self;
    (void)context;
    cr_assert(um_regions_find(regions, hint->addr, &region), "%s: outside", inner->name);
    cr_assert_eq(region.family, UM_FAMILY_MANAGED);
    cr_assert_leq(hint->addr + hint->bytes, region.addr + region.bytes);
    cr_assert_gt(hint->bytes, 0);
    cr_assert_str_eq(hint->who, inner->name);
    cr_assert(hint->why && *hint->why);
    mix(hint->kind << 8 | hint->order);
    mix(hint->addr);
    mix(hint->bytes);
    mix((uint64_t)hint->device);
    executor.hints++;
    if (executor.n == WAITING)
        return false;
    executor.waiting[executor.n++] = *hint;
    return true;
}

static void carry_out(void)
{
    for (unsigned i = 0; i < executor.n; i++)
        executor.base.done(executor.base.done_ctx, &executor.waiting[i], UM_HINT_APPLIED, 0, 0);
    executor.n = 0;
}

static void cancel_range(um_executor_t *self, uint64_t addr, uint64_t bytes)
{
    (void)self;
    (void)addr;
    (void)bytes;
}

static void overtake(um_executor_t *self, uint64_t addr, uint64_t bytes, int32_t device)
{
    (void)device;
    cancel_range(self, addr, bytes);
}

static void cancel_id(um_executor_t *self, uint32_t id)
{
    (void)self;
    (void)id;
}

static bool little_room(um_executor_t *self, uint32_t context, uint64_t *free, uint64_t *total)
{
    (void)self;
    (void)context;
    *free = *total = (uint64_t)96 << 20; /* so that evict has something to say */
    return true;
}

static const um_executor_ops_t executor_ops = {.name = "later",
                                               .submit = submit,
                                               .cancel_range = cancel_range,
                                               .cancel_context = cancel_id,
                                               .cancel_launch = cancel_id,
                                               .overtake = overtake,
                                               .wait_over = cancel_id,
                                               .free_bytes = little_room};

/* ---- a trace ---- */

static void post(void *ctx, const um_event_t *event)
{
    um_event_t copy = *event;

    (void)ctx;
    copy.time_ns = now_ns;
    sink.event(sink.ctx, &copy);
}

static void follow_regions(const um_event_t *event)
{
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;
    um_region_t region = {.id = alloc->region,
                          .family = alloc->family,
                          .addr = alloc->addr,
                          .bytes = alloc->bytes};

    if (event->type == UM_EV_REGION_ALLOC && alloc->bytes)
        um_regions_add(regions, &region, NULL, 0, NULL);
    else if (event->type == UM_EV_REGION_FREE)
        um_regions_remove(regions, event->u.region_free.addr, NULL);
}

/* What the launch's arguments point to is read and written, block by block. */
static void show_accesses(const um_event_t *event)
{
    const um_ev_launch_t *launch = &event->u.launch;

    for (uint32_t a = 0; event->type == UM_EV_LAUNCH && a < launch->n_args; a++) {
        um_event_t access = {.type = UM_EV_ACCESS, .time_ns = event->time_ns};
        um_region_t region;

        if (!um_regions_find_id(regions, launch->args[a].region, &region))
            continue;
        for (uint64_t at = 0; at < region.bytes; at += UM_BLOCK_BYTES, accesses++) {
            access.u.access = (um_ev_access_t){.addr = region.addr + at,
                                               .bytes = UM_PAGE_BYTES,
                                               .region = region.id,
                                               .device = launch->device,
                                               .kind = UM_ACCESS_WRITE};
            sink.event(sink.ctx, &access);
        }
    }
}

static void check_learned(void *ctx, const um_event_t *event)
{
    (void)ctx;
    cr_assert_eq(event->type, UM_EV_LEARNED);
    cr_assert(event->u.learned.who && *event->u.learned.who);
    cr_assert(event->u.learned.what && event->u.learned.kernel);
}

static um_status_t present(void *ctx, uint64_t addr, uint64_t bytes, um_extent_t *out, size_t max,
                           size_t *n, uint64_t *present_bytes)
{
    (void)ctx;
    *n = max ? 1 : 0;
    *present_bytes = bytes;
    if (max)
        out[0] = (um_extent_t){.addr = addr, .bytes = bytes, .where = UM_WHERE_HOST};
    return UM_OK;
}

static bool page(void *ctx, uint64_t addr)
{
    (void)ctx;
    (void)addr;
    return true;
}

static uint64_t last_event(void *ctx)
{
    (void)ctx;
    return now_ns;
}

static uint64_t play(const char *path)
{
    um_advisor_ops_t ops = {.abi = UM_ADVISOR_ABI,
                            .name = inner->name,
                            .state_bytes = inner->state_bytes,
                            .init = start_inner,
                            .observe = observe,
                            .decide = decide,
                            .decide_sync = decide_sync,
                            .learned = inner->learned,
                            .always = inner->always,
                            .blind = inner->blind,
                            .ahead = inner->ahead};
    const um_advisor_ops_t *const table[] = {&ops, NULL};
    const um_page_tables_t tables = {.present = present, .page = page, .now_ns = last_event};
    um_hinter_config_t config = {.page_tables = looking ? &tables : NULL,
                                 .table = table,
                                 .gate = {.piece_bytes = 32u << 20},
                                 .post = post};
    um_trace_reader_t *reader;
    um_hinter_stats_t stats;
    um_hinter_t *hinter;
    const um_event_t *event;

    executor = (later_t){.base = {.ops = &executor_ops}};
    cr_assert_eq(um_regions_new(&regions), UM_OK);
    config.regions = regions;
    config.executor = &executor.base;
    cr_assert_eq(um_hinter_new(&config, &hinter), UM_OK);
    sink = um_hinter_sink(hinter);
    cr_assert_eq(um_trace_reader_open(path, UM_TRACE_TIME_ORDER, &reader, NULL, 0), UM_OK);
    while (um_trace_reader_next(reader, &event) == UM_OK) {
        now_ns = event->time_ns;
        carry_out();
        follow_regions(event);
        sink.event(sink.ctx, event);
        if (deep)
            show_accesses(event);
        sink.idle(sink.ctx);
    }
    um_hinter_learned(hinter, check_learned, NULL);
    um_hinter_stats(hinter, &stats);
    cr_assert_eq(stats.gate.refused[UM_HINT_REFUSED_RANGE], 0, "%s proposes outside regions: %s",
                 inner->name, path);
    um_trace_reader_close(reader);
    um_hinter_free(hinter);
    um_regions_free(regions);
    return executor.hash;
}

static unsigned each_trace(uint64_t *hints)
{
    char folder[512], path[800];
    struct dirent *entry;
    unsigned n = 0;
    DIR *dir;

    snprintf(folder, sizeof(folder), "%s/tests/data/h200", getenv("UM_SRCDIR"));
    cr_assert_not_null(dir = opendir(folder));
    while ((entry = readdir(dir))) {
        uint64_t hash;

        if (!strstr(entry->d_name, ".umt"))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        for (int look = 0; look < 2; look++) {
            looking = look;
            hash = play(path);
            *hints += executor.hints;
            deep = true; /* as it is told no accesses, there being some changes nothing */
            cr_assert_eq(play(path), hash, "%s: %s differs from run to run", entry->d_name,
                         inner->name);
            deep = false;
        }
        n++;
    }
    closedir(dir);
    return n;
}

Test(advisor_contract, is_kept_by_every_advisor_on_every_trace)
{
    for (const um_advisor_ops_t *const *a = um_advisor_table; *a; a++) {
        uint64_t hints = 0;

        inner = *a;
        decisions = observed = accesses = 0;
        cr_assert_geq(each_trace(&hints), 7);
        cr_assert(decisions > 100 && observed > 1000, "%s is not asked", inner->name);
        cr_assert_gt(accesses, 100);
    }
}

Test(advisor_contract, is_kept_by_every_baseline_on_every_trace)
{
    unsigned n = 0;

    for (const um_advisor_ops_t *const *a = um_baseline_table; *a; a++) {
        uint64_t hints = 0;

        inner = *a;
        cr_assert_geq(each_trace(&hints), 7);
        cr_assert_gt(hints, 0, "%s", inner->name);
        n++;
    }
    cr_assert_eq(n, 2);
}

Test(advisor_contract, each_says_what_it_does_and_in_what_units)
{
    const um_advisor_ops_t *const *const tables[] = {um_advisor_table, um_baseline_table};

    for (int t = 0; t < 2; t++)
        for (const um_advisor_ops_t *const *a = tables[t]; *a; a++) {
            cr_assert_eq((*a)->abi, UM_ADVISOR_ABI);
            cr_assert((*a)->doc && *(*a)->doc);
            for (const um_advisor_option_t *o = (*a)->options; o && o->name; o++) {
                cr_assert(o->doc && *o->doc, "%s %s", (*a)->name, o->name);
                cr_assert_leq(o->min, o->fallback, "%s %s", (*a)->name, o->name);
                cr_assert_leq(o->fallback, o->max, "%s %s", (*a)->name, o->name);
                cr_assert_leq(o->offset + sizeof(uint64_t), (*a)->state_bytes);
            }
        }
}
