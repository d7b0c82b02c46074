/* report_kinds.h - streams of more than faults, for findings and for families. */
#ifndef UM_REPORT_KINDS_H
#define UM_REPORT_KINDS_H

#include "report_found.h"

/* The first finding of a kind in a stream, which ends here. */
static inline json_t *found_in(um_report_t *r, const char *kind)
{
    close_stream(r);
    return found(kind);
}

static inline void launch(um_report_t *r, uint64_t us, int32_t device, uint32_t region)
{
    um_arg_t arg = {.region = region};

    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_LAUNCH,
                               .u.launch = {.kernel = 1,
                                            .device = device,
                                            .grid = {1, 1, 1},
                                            .block = {1, 1, 1},
                                            .n_args = region ? 1 : 0,
                                            .args = &arg}});
}

static inline void hint(um_report_t *r, uint64_t us, um_hint_kind_t kind, int32_t device,
                        uint32_t region, uint64_t addr, uint64_t bytes)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_HINT,
                               .u.hint = {.kind = kind,
                                          .result = UM_HINT_APPLIED,
                                          .addr = addr,
                                          .bytes = bytes,
                                          .device = device,
                                          .region = region,
                                          .duration_ns = 50 * US,
                                          .who = "app",
                                          .why = ""}});
}

static inline void wait_for_it(um_report_t *r, uint64_t us)
{
    stream_put(r, (um_event_t){.time_ns = us * US, .type = UM_EV_SYNC, .u.sync = {.exit = 1}});
}

static inline void writes(um_report_t *r, uint64_t us, uint64_t addr)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_GPU_FAULT,
                               .u.gpu_fault = {.addr = addr,
                                               .duration_ns = 100 * US,
                                               .groups = 4,
                                               .access = UM_ACCESS_WRITE}});
}

static inline void moves(um_report_t *r, uint64_t us, uint64_t addr, int32_t src, int32_t dst,
                         um_migrate_cause_t cause)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_MIGRATE,
                               .u.migrate = {.addr = addr,
                                             .bytes = 2 * MIB,
                                             .duration_ns = 50 * US,
                                             .src = src,
                                             .dst = dst,
                                             .cause = cause}});
}

static inline um_report_t *has(uint64_t bytes, um_family_t family)
{
    um_report_t *r = stream_new("kind.umt");

    stream_kernel(r, 1, "_Z4stepPf");
    stream_put(r, (um_event_t){.time_ns = US,
                               .type = UM_EV_REGION_ALLOC,
                               .u.region_alloc = {.region = 1,
                                                  .family = family,
                                                  .addr = BASE,
                                                  .bytes = bytes,
                                                  .device = UM_DEVICE_NONE}});
    stream_put(r, (um_event_t){.time_ns = US,
                               .type = UM_EV_REGION_LABEL,
                               .u.region_label = {1, "field"}});
    return r;
}

#define BLOCKS 16u

/* All of it to the GPU, out again, and back in some order: the same each time, or another one. */
static inline um_report_t *evicted(const uint32_t order[BLOCKS], uint32_t times, bool same)
{
    um_report_t *r = has(BLOCKS * 2 * MIB, UM_FAMILY_MANAGED);
    uint64_t us = 100;

    for (uint32_t i = 0; i < BLOCKS; i++)
        stream_cpu_fault(r, us++, BASE + i * 2 * MIB);
    for (uint32_t n = 0; n <= times; n++) {
        launch(r, us++, 0, 1);
        stream_exec(r, us++, 100, 1);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            uint64_t addr = BASE + order[same ? i : i * (2 * n + 1) % BLOCKS] * 2 * MIB;

            stream_gpu_fault(r, us++, 300, addr);
            moves(r, us++, addr, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE);
            us += 300;
        }
        for (uint32_t i = 0; n < times && i < BLOCKS; i++)
            moves(r, us++, BASE + order[i] * 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_EVICTION);
    }
    return r;
}

static const uint32_t in_order[BLOCKS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint32_t at_random[BLOCKS] = {9, 2, 14, 0, 7, 1, 12, 4, 15, 3, 11, 6, 13, 5, 10, 8};

static inline um_report_t *prefetches(uint32_t times, bool cpu_takes_it)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    stream_cpu_fault(r, 5, BASE);
    for (uint32_t n = 0; n < times; n++) {
        uint64_t us = 100 + n * 1000;

        hint(r, us, UM_HINT_PREFETCH, 0, 1, BASE, 8 * MIB);
        launch(r, us + 10, 0, 1);
        for (uint32_t i = 0; (!n || cpu_takes_it) && i < 4; i++)
            moves(r, us + 20 + i, BASE + i * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_USER);
        wait_for_it(r, us + 500);
        for (uint32_t i = 0; cpu_takes_it && i < 4; i++) {
            stream_cpu_fault(r, us + 600 + i * 10, BASE + i * 2 * MIB);
            moves(r, us + 601 + i * 10, BASE + i * 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_COHERENCE);
        }
    }
    return r;
}

static inline um_report_t *goes_once(uint32_t launches)
{
    um_report_t *r = has(8 * MIB, UM_FAMILY_MANAGED);

    for (uint32_t i = 0; i < 4; i++)
        stream_cpu_fault(r, 5 + i, BASE + i * 2 * MIB);
    for (uint32_t n = 0; n < launches; n++) {
        launch(r, 100 + n * 5000, 0, 1);
        stream_exec(r, 101 + n * 5000, 3000, 1);
        for (uint32_t i = 0; !n && i < 4; i++) {
            stream_gpu_fault(r, 110 + i * 500, 400, BASE + i * 2 * MIB);
            moves(r, 120 + i * 500, BASE + i * 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE);
        }
    }
    return r;
}

#endif
