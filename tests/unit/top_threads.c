/* One thread writes the page as fast as it can, others read it: what they get is of one time. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/bus.h"
#include "tools/top_page.h"

#define READS 2000

static _Atomic bool done;
static uint64_t written;

static void figures(void *ctx, um_top_figures_t *out)
{
    uint64_t n = ++written;

    (void)ctx;
    out->stats.launches = out->guard_error_ns = n;
    out->n_advisors = UM_TOP_ADVISORS;
    for (unsigned i = 0; i < UM_TOP_ADVISORS; i++)
        out->advisor[i].applied = n;
}

static bool where(void *ctx, uint32_t region, uint64_t bytes[UM_TOP_WHERES])
{
    (void)ctx;
    (void)region;
    bytes[UM_WHERE_BOTH] = written;
    return true;
}

static void *write_on(void *top)
{
    while (!atomic_load(&done))
        um_top_end(top);
    return NULL;
}

static void *read_on(void *reader)
{
    um_top_figures_t got;
    uint64_t last = 0, whole = 0;

    for (int i = 0; i < READS; i++) {
        if (!um_top_read(reader, &got))
            continue;
        whole++;
        cr_assert_geq(got.stats.launches, last);
        last = got.stats.launches;
        cr_assert_eq(got.guard_error_ns, last);
        for (unsigned k = 0; k < got.n_advisors; k++)
            cr_assert_eq(got.advisor[k].applied, last);
        for (unsigned k = 0; k < got.n_regions; k++)
            cr_assert_eq(got.region[k].where_bytes[UM_WHERE_BOTH], last);
        um_top_ask(reader, 0);
    }
    return (void *)(uintptr_t)whole;
}

Test(top_threads, nobody_reads_what_is_torn)
{
    const um_top_source_t source = {.figures = figures, .where = where};
    pthread_t writer, readers[2];
    um_top_reader_t reader;
    um_sink_t sink;
    um_top_t *top;
    char error[256] = "";
    void *whole;

    cr_assert_eq(um_top_new(&source, &top), UM_OK);
    um_top_sink(top, &sink);
    for (uint32_t id = 1; id <= 2 * UM_TOP_REGIONS; id++) {
        um_event_t event = {.type = UM_EV_REGION_ALLOC};

        event.u.region_alloc = (um_ev_region_alloc_t){.region = id,
                                                      .family = UM_FAMILY_MANAGED,
                                                      .addr = id << 20,
                                                      .bytes = 4096};
        sink.event(sink.ctx, &event);
    }
    cr_assert_eq(um_top_open(getpid(), &reader, error, sizeof error), UM_OK, "%s", error);
    um_top_end(top);
    pthread_create(&writer, NULL, write_on, top);
    for (int i = 0; i < 2; i++)
        pthread_create(&readers[i], NULL, read_on, &reader);
    for (int i = 0; i < 2; i++) {
        pthread_join(readers[i], &whole);
        cr_assert_gt((uintptr_t)whole, 0);
    }
    atomic_store(&done, true);
    pthread_join(writer, NULL);
    um_top_close(&reader);
    um_top_free(top);
}
