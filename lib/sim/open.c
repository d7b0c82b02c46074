#include "open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/regions.h"
#include "exec/hinter.h"
#include "um_trace.h"

#define PIECE ((uint64_t)32 << 20) /* as by default in a live program */
#define FREE  ((uint64_t)1 << 46)  /* nothing is known of the memory that was free */

/* Which pages the CPU has mapped, as far as the recorded faults and migrations say. */
typedef struct shadow {
    uint64_t addr, bytes;
    uint8_t *page; /* one bit each */
} shadow_t;

typedef struct queued {
    struct queued *next;
    um_event_t event; /* of a hint: its texts are static */
} queued_t;

#define SHADOW_MOST (UINT64_C(1) << 42) /* bytes of a region; larger ones are no program's */

typedef struct loop {
    um_event_fn fn;
    void *ctx;
    bool app; /* the program's own hints are what is asked for */
    um_regions_t *regions;
    um_executor_t *executor;
    um_hinter_t *hinter;
    um_sink_t sink;
    uint64_t now_ns;
    shadow_t *shadows;
    size_t n_shadows, shadows_size;
    queued_t *first, **last;
    um_open_stats_t stats;
    um_status_t status;
} loop_t;

/* ---- page tables out of the trace --------------------------------------------------------------- */

static shadow_t *shadow_of(loop_t *loop, uint64_t addr)
{
    for (size_t i = loop->n_shadows; i-- > 0;) {
        if (addr - loop->shadows[i].addr < loop->shadows[i].bytes)
            return &loop->shadows[i];
    }
    return NULL;
}

/* Pages count from the one that the region begins in, wherever in it. */
static uint64_t page_of(const shadow_t *shadow, uint64_t addr)
{
    return addr / UM_PAGE_BYTES - shadow->addr / UM_PAGE_BYTES;
}

static bool page_get(const shadow_t *shadow, uint64_t addr)
{
    uint64_t page = page_of(shadow, addr);

    return shadow->page[page / 8] >> page % 8 & 1;
}

static void shadow_set(loop_t *loop, uint64_t addr, uint64_t bytes, bool present)
{
    shadow_t *shadow = shadow_of(loop, addr);
    uint64_t first, end;

    if (!shadow || !bytes)
        return;
    if (bytes > shadow->bytes - (addr - shadow->addr))
        bytes = shadow->bytes - (addr - shadow->addr);
    first = page_of(shadow, addr);
    end = page_of(shadow, addr + bytes - 1) + 1;
    for (uint64_t p = first; p < end; p++) {
        if (p % 8 == 0 && end - p >= 8) { /* whole bytes at once */
            memset(&shadow->page[p / 8], present ? 0xff : 0, (end - p) / 8);
            p += (end - p) / 8 * 8 - 1;
        } else if (present) {
            shadow->page[p / 8] |= (uint8_t)(1u << p % 8);
        } else {
            shadow->page[p / 8] &= (uint8_t) ~(1u << p % 8);
        }
    }
}

static void shadow_add(loop_t *loop, uint64_t addr, uint64_t bytes)
{
    shadow_t shadow = {addr, bytes, calloc(bytes / UM_PAGE_BYTES / 8 + 2, 1)};

    if (!shadow.page ||
        !um_grow(&loop->shadows, &loop->shadows_size, loop->n_shadows + 1, sizeof(shadow))) {
        free(shadow.page);
        loop->status = UM_ERR_NO_MEMORY;
        return;
    }
    loop->shadows[loop->n_shadows++] = shadow;
}

static void shadow_remove(loop_t *loop, uint64_t addr)
{
    shadow_t *shadow = shadow_of(loop, addr);

    if (!shadow)
        return;
    free(shadow->page);
    *shadow = loop->shadows[--loop->n_shadows];
}

static um_status_t present(void *ctx, uint64_t addr, uint64_t bytes, um_extent_t *out, size_t max,
                           size_t *n, uint64_t *present_bytes)
{
    const shadow_t *shadow = shadow_of(ctx, addr);
    uint64_t end = addr + bytes;

    *n = 0;
    *present_bytes = 0;
    if (shadow && end > shadow->addr + shadow->bytes)
        end = shadow->addr + shadow->bytes;
    for (uint64_t at = addr / UM_PAGE_BYTES * UM_PAGE_BYTES; shadow && at < end;
         at += UM_PAGE_BYTES) {
        if (!page_get(shadow, at))
            continue;
        *present_bytes += UM_PAGE_BYTES;
        if (*n && (out[*n - 1].addr + out[*n - 1].bytes == at || *n == max))
            out[*n - 1].bytes = at + UM_PAGE_BYTES - out[*n - 1].addr;
        else if (*n < max)
            out[(*n)++] = (um_extent_t){.addr = at, .bytes = UM_PAGE_BYTES, .where = UM_WHERE_HOST};
    }
    return UM_OK;
}

static bool page_present(void *ctx, uint64_t addr)
{
    const shadow_t *shadow = shadow_of(ctx, addr);

    return shadow && page_get(shadow, addr);
}

static uint64_t now_ns(void *ctx)
{
    return ((loop_t *)ctx)->now_ns;
}

/* ---- events ------------------------------------------------------------------------------------- */

/* A hint is carried out: said when the event that led to it is over, as a live bus would. */
static void post(void *ctx, const um_event_t *event)
{
    loop_t *loop = ctx;
    queued_t *queued = malloc(sizeof(*queued));

    if (!queued) {
        loop->status = UM_ERR_NO_MEMORY;
        return;
    }
    *queued = (queued_t){NULL, *event};
    queued->event.time_ns = loop->now_ns;
    *loop->last = queued;
    loop->last = &queued->next;
}

static void outcomes(loop_t *loop)
{
    while (loop->first) {
        queued_t *queued = loop->first;

        loop->first = queued->next;
        if (!loop->first)
            loop->last = &loop->first;
        if (!loop->status) {
            if (queued->event.u.hint.kind == UM_HINT_PREFETCH)
                shadow_set(loop, queued->event.u.hint.addr, queued->event.u.hint.bytes,
                           queued->event.u.hint.device == UM_DEVICE_HOST);
            loop->sink.event(loop->sink.ctx, &queued->event);
            loop->fn(loop->ctx, &queued->event);
        }
        free(queued);
    }
}

static void follow_memory(loop_t *loop, const um_event_t *event)
{
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;

    switch (event->type) {
    case UM_EV_REGION_ALLOC: {
        um_region_t region = um_region_of(alloc, event->time_ns);
        um_status_t status = um_regions_add(loop->regions, &region, NULL, 0, NULL);

        if (status == UM_ERR_NO_MEMORY)
            loop->status = UM_ERR_NO_MEMORY;
        if (!status && alloc->family == UM_FAMILY_MANAGED && alloc->bytes &&
            alloc->bytes <= SHADOW_MOST && alloc->bytes <= UINT64_MAX - alloc->addr)
            shadow_add(loop, alloc->addr, alloc->bytes);
        break;
    }
    case UM_EV_REGION_FREE:
        um_hinter_region_going(loop->hinter, event->u.region_free.addr, event->time_ns);
        um_regions_remove(loop->regions, event->u.region_free.addr, NULL);
        shadow_remove(loop, event->u.region_free.addr);
        break;
    case UM_EV_CPU_FAULT:
        shadow_set(loop, event->u.cpu_fault.addr, UM_PAGE_BYTES, true);
        break;
    case UM_EV_ACCESS: /* advisors never see it, page tables do */
        shadow_set(loop, event->u.access.addr, event->u.access.bytes,
                   event->u.access.device == UM_DEVICE_HOST);
        break;
    case UM_EV_MIGRATE:
        shadow_set(loop, event->u.migrate.addr, event->u.migrate.bytes,
                   event->u.migrate.dst == UM_DEVICE_HOST);
        break;
    default:
        break;
    }
}

static void feed(loop_t *loop, const um_event_t *event)
{
    loop->now_ns = event->time_ns;
    loop->stats.launches += event->type == UM_EV_LAUNCH;
    if (loop->app) {
        if (event->type == UM_EV_HINT && !strcmp(event->u.hint.who, "app"))
            loop->fn(loop->ctx, event);
        return;
    }
    /* umrt's own hints of the recorded run are not part of what the program did. */
    if (event->type == UM_EV_HINT && strcmp(event->u.hint.who, "app") != 0)
        return;
    follow_memory(loop, event);
    if (!loop->status && event->type != UM_EV_ACCESS)
        loop->sink.event(loop->sink.ctx, event);
    outcomes(loop);
}

/* ---- life --------------------------------------------------------------------------------------- */

static um_status_t begin(loop_t *loop, const um_policy_t *policy)
{
    const um_page_tables_t tables = {loop, present, page_present, now_ns};
    um_hinter_config_t config = {.page_tables = &tables,
                                 .table = policy->table,
                                 .advisors = policy->advisors,
                                 .gate = {.piece_bytes = PIECE},
                                 .post = post,
                                 .post_ctx = loop};
    um_status_t status = um_regions_new(&loop->regions);

    if (!status)
        status = um_executor_null_new(FREE, &loop->executor);
    config.regions = loop->regions;
    config.executor = loop->executor;
    if (!status)
        status = um_hinter_new(&config, &loop->hinter);
    if (!status)
        loop->sink = um_hinter_sink(loop->hinter);
    return status;
}

static void end(loop_t *loop)
{
    um_hinter_free(loop->hinter);
    if (loop->executor)
        loop->executor->ops->free(loop->executor);
    um_regions_free(loop->regions);
    for (size_t i = 0; i < loop->n_shadows; i++)
        free(loop->shadows[i].page);
    free(loop->shadows);
}

um_status_t um_open_run(const char *path, const um_policy_t *policy, um_event_fn fn, void *ctx,
                        um_open_stats_t *out, char *error, size_t error_bytes)
{
    loop_t loop = {.fn = fn, .ctx = ctx, .app = policy->app_hints && !policy->advisors};
    um_trace_reader_t *reader;
    const um_event_t *event;
    um_hinter_stats_t stats;
    um_status_t status;

    if (!loop.app && !policy->advisors)
        return UM_ERR_UNSUPPORTED;
    status = um_trace_reader_open(path, UM_TRACE_TIME_ORDER, &reader, error, error_bytes);
    if (status)
        return status;
    loop.last = &loop.first;
    if (!loop.app)
        status = begin(&loop, policy);
    while (!status && !(status = um_trace_reader_next(reader, &event))) {
        feed(&loop, event);
        status = loop.status;
    }
    loop.stats.whole = status == UM_ERR_NOT_FOUND;
    snprintf(error, error_bytes, "%s", um_trace_reader_error(reader));
    if (status == UM_ERR_NOT_FOUND || status == UM_ERR_TRUNCATED || status == UM_ERR_FORMAT)
        status = UM_OK;
    if (!status && loop.hinter) {
        um_hinter_stats(loop.hinter, &stats);
        loop.stats.hinted_launches = stats.hinted_launches;
        for (int i = 0; i < UM_HINT_RESULT_COUNT; i++)
            loop.stats.refused += stats.gate.refused[i];
    }
    if (status && !(status == UM_ERR_IO && *error))
        snprintf(error, error_bytes, "%s: %s", path, um_status_string(status));
    else if (!status)
        *out = loop.stats;
    end(&loop);
    um_trace_reader_close(reader);
    return status;
}
