/* hints_fake.h - a program made of events and a page table made of a byte a page, for the hint tests. */
#ifndef UM_HINTS_FAKE_H
#define UM_HINTS_FAKE_H

#include <string.h>

#include "core/regions.h"
#include "core/log.h"
#include "exec/hinter.h"

#define MIB         ((uint64_t)1 << 20)
#define FAKE_BASE   ((uint64_t)0x7f4000000000)
#define FAKE_PAGES  (64u * 1024u) /* 256 MiB */
#define FAKE_REGION 1u
#define FAKE_GPU    0

typedef struct fake_tables {
    bool page[FAKE_PAGES];
    uint64_t now_ns;
    unsigned looks, pages_asked;
    um_status_t status; /* of the next look */
} fake_tables_t;

static inline um_status_t fake_present(void *ctx, uint64_t addr, uint64_t bytes, um_extent_t *out,
                                       size_t max, size_t *n, uint64_t *present_bytes)
{
    fake_tables_t *fake = ctx;

    fake->looks++;
    *n = 0;
    *present_bytes = 0;
    for (uint64_t a = addr; a < addr + bytes; a += UM_PAGE_BYTES) {
        uint64_t i = (a - FAKE_BASE) / UM_PAGE_BYTES;

        if (i >= FAKE_PAGES || !fake->page[i])
            continue;
        *present_bytes += UM_PAGE_BYTES;
        if (*n && out[*n - 1].addr + out[*n - 1].bytes == a)
            out[*n - 1].bytes += UM_PAGE_BYTES;
        else if (*n < max)
            out[(*n)++] = (um_extent_t){.addr = a, .bytes = UM_PAGE_BYTES, .where = UM_WHERE_HOST};
    }
    return fake->status;
}

static inline bool fake_page(void *ctx, uint64_t addr)
{
    fake_tables_t *fake = ctx;

    fake->pages_asked++;
    return fake->page[(addr - FAKE_BASE) / UM_PAGE_BYTES];
}

static inline uint64_t fake_now(void *ctx)
{
    return ((fake_tables_t *)ctx)->now_ns;
}

static inline um_page_tables_t fake_interface(fake_tables_t *fake)
{
    return (um_page_tables_t){.ctx = fake,
                              .present = fake_present,
                              .page = fake_page,
                              .now_ns = fake_now};
}

/* The CPU touches [offset, offset+bytes) of the fake memory, or the GPU takes it. */
static inline void fake_set(fake_tables_t *fake, uint64_t offset, uint64_t bytes, bool present)
{
    memset(fake->page + offset / UM_PAGE_BYTES, present, bytes / UM_PAGE_BYTES);
}

static inline um_event_t event_alloc(uint64_t time_ns, uint32_t region, uint64_t addr,
                                     uint64_t bytes)
{
    um_event_t event = {.type = UM_EV_REGION_ALLOC, .time_ns = time_ns};

    event.u.region_alloc = (um_ev_region_alloc_t){.region = region,
                                                  .family = UM_FAMILY_MANAGED,
                                                  .addr = addr,
                                                  .bytes = bytes,
                                                  .device = UM_DEVICE_NONE};
    return event;
}

static inline um_event_t event_free(uint64_t time_ns, uint32_t region, uint64_t addr)
{
    um_event_t event = {.type = UM_EV_REGION_FREE, .time_ns = time_ns};

    event.u.region_free = (um_ev_region_free_t){.region = region, .addr = addr};
    return event;
}

static inline um_event_t event_sync(uint64_t time_ns, uint32_t kind, uint64_t stream, uint32_t exit)
{
    um_event_t event = {.type = UM_EV_SYNC, .time_ns = time_ns};

    event.u.sync = (um_ev_sync_t){.kind = kind, .stream = stream, .exit = exit, .context = 1};
    return event;
}

static inline um_event_t event_launch(uint64_t time_ns, uint32_t correlation, const um_arg_t *args,
                                      uint32_t n)
{
    um_event_t event = {.type = UM_EV_LAUNCH, .time_ns = time_ns};

    event.u.launch = (um_ev_launch_t){
        .correlation = correlation, .context = 1, .device = FAKE_GPU, .n_args = n, .args = args};
    return event;
}

static inline um_event_t event_device(uint32_t attributes)
{
    um_event_t event = {.type = UM_EV_DEVICE};

    event.u.device = (um_ev_device_t){
        .device = FAKE_GPU, .attributes = attributes, .name = "fake", .uuid = "", .pci = ""};
    return event;
}

#define FAKE_GOOD_GPU (UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED)

#endif
