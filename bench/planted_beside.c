/* planted_beside.c - what no simulation tells, for the held-out programs: sizes and times by lot. */
#include "planted_beside.h"

#define KIB  (UINT64_C(1) << 10)
#define MIB  (UINT64_C(1) << 20)
#define HOST UM_DEVICE_HOST

#define AT UINT64_C(0x7e0000000000)

static uint64_t lot(um_beside_t *b, uint64_t least, uint64_t most)
{
    b->random = b->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (b->random >> 33) % (most - least + 1);
}

static void tell(um_beside_t *b, uint64_t after_ns, um_event_t event)
{
    event.time_ns = b->now_ns += after_ns;
    b->fn(b->ctx, &event);
}

static void region(um_beside_t *b, uint32_t id, uint64_t addr, uint64_t bytes, um_family_t family)
{
    tell(b, 1000,
         (um_event_t){
             .type = UM_EV_REGION_ALLOC,
             .u.region_alloc = {.region = id, .family = family, .addr = addr, .bytes = bytes}});
}

void um_beside_loses(um_beside_t *b)
{
    tell(b, 0,
         (um_event_t){.type = UM_EV_LOSS,
                      .u.loss = {.what = lot(b, 0, 1) ? UM_EV_MIGRATE : UM_EV_NONE,
                                 .count = lot(b, 0, 5000),
                                 .bytes = lot(b, 0, 1) * 3 * MIB,
                                 .reason = "buffers full"}});
}

void um_beside_is_blind(um_beside_t *b)
{
    b->fn(b->ctx, &(um_event_t){.type = UM_EV_OPTION,
                                .u.option = {lot(b, 0, 1) ? "nsys.cuda-um-cpu-page-faults"
                                                          : "nsys.cuda-um-gpu-page-faults",
                                             "off", "file"}});
}

void um_beside_pins(um_beside_t *b)
{
    uint32_t n = (uint32_t)lot(b, 2, 6);

    b->fn(b->ctx, &(um_event_t){.type = UM_EV_FACT,
                                .u.fact = {"host.memory_bytes", "135291469824"}}); /* 126 GiB */
    for (uint32_t i = 0; i < n; i++)
        region(b, 900 + i, AT + ((uint64_t)i << 40), (80 / n + 1) * (UINT64_C(1) << 30),
               i % 2 ? UM_FAMILY_REGISTERED : UM_FAMILY_PINNED);
}

void um_beside_copies_pageable(um_beside_t *b)
{
    uint32_t n = (uint32_t)lot(b, 9, 60), back = (uint32_t)lot(b, 2, 5);

    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = lot(b, 2, 40) * MIB + lot(b, 0, 9000), ns = bytes / 5;
        bool out = i % back == 0;

        tell(b, ns + lot(b, 0, 100000),
             (um_event_t){.type = UM_EV_COPY,
                          .u.copy = {.bytes = bytes,
                                     .duration_ns = ns,
                                     .src_memory = out ? UM_MEMORY_DEVICE : UM_MEMORY_PAGEABLE,
                                     .dst_memory = out ? UM_MEMORY_PAGEABLE : UM_MEMORY_DEVICE,
                                     .flags =
                                         UM_TRANSFER_ON_GPU | (i % 3 ? UM_TRANSFER_ASYNC : 0)}});
    }
}

void um_beside_thrashes(um_beside_t *b)
{
    uint32_t n = (uint32_t)lot(b, 20, 90);
    int32_t other = lot(b, 0, 1) ? 1 : HOST;

    region(b, 900, AT, lot(b, 2, 30) * MIB + 12 * KIB, UM_FAMILY_MANAGED);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t page = AT + lot(b, 0, 500) * UM_PAGE_BYTES;

        tell(b, 1000000 + lot(b, 0, 900000),
             (um_event_t){.type = UM_EV_THRASH,
                          .u.thrash = {.addr = page, .bytes = UM_PAGE_BYTES}});
        tell(b, 1000,
             (um_event_t){.type = UM_EV_THROTTLE,
                          .u.throttle = {.addr = page,
                                         .duration_ns = lot(b, 500000, 900000),
                                         .device = i % 2 ? other : 0}});
    }
}

void um_beside_shares(um_beside_t *b)
{
    uint64_t counters = lot(b, 1, 60) * 64, rounds = lot(b, 5, 30), pages = lot(b, 1, 3);

    for (uint32_t p = 0; p < pages; p++) {
        uint64_t at = AT + p * 4 * MIB;

        region(b, 900 + 2 * p, at, counters, UM_FAMILY_MANAGED);
        region(b, 901 + 2 * p, at + counters, 64 * KIB - counters, UM_FAMILY_MANAGED);
        for (uint32_t i = 0; i < rounds; i++) {
            tell(b, 200000,
                 (um_event_t){.type = UM_EV_GPU_FAULT,
                              .u.gpu_fault = {.addr = at + 32 * KIB,
                                              .duration_ns = 60000,
                                              .groups = 1,
                                              .access = UM_ACCESS_WRITE}});
            tell(b, 10000,
                 (um_event_t){.type = UM_EV_MIGRATE,
                              .u.migrate = {at, 64 * KIB, 9000, HOST, 0, UM_CAUSE_COHERENCE, 0}});
            tell(b, 300000,
                 (um_event_t){.type = UM_EV_CPU_FAULT,
                              .u.cpu_fault = {.addr = at + counters / 2, .pc = 0x401000}});
            tell(b, 900000,
                 (um_event_t){.type = UM_EV_MIGRATE,
                              .u.migrate = {at, 64 * KIB, 9000, 0, HOST, UM_CAUSE_COHERENCE, 0}});
        }
    }
}

void um_beside_copies_pinned(um_beside_t *b)
{
    for (uint32_t i = 0; i < 40; i++) {
        uint64_t bytes = lot(b, 0, 1) ? lot(b, 4, 60) * MIB : 256;

        tell(b, bytes / 50 + 2000,
             (um_event_t){.type = UM_EV_COPY,
                          .u.copy = {.bytes = bytes,
                                     .duration_ns = bytes / 50 + 1500,
                                     .src_memory = i % 2 ? UM_MEMORY_DEVICE : UM_MEMORY_PINNED,
                                     .dst_memory = i % 2 ? UM_MEMORY_PINNED : UM_MEMORY_DEVICE,
                                     .flags = UM_TRANSFER_ON_GPU | UM_TRANSFER_ASYNC}});
    }
}
