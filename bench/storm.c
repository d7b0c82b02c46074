#include "storm.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 512u /* 1 GiB */
#define PAGES  512u /* of a block */

static uint64_t random_below(storm_t *s, uint64_t n)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (s->random >> 11) % n;
}

static um_event_t *add(storm_t *s, uint32_t type, uint64_t time_ns)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 65536;
        s->events = realloc(s->events, s->room * sizeof(*s->events));
        if (!s->events) {
            perror("bench");
            exit(1);
        }
    }
    um_event_t *e = &s->events[s->n++];
    *e = (um_event_t){.time_ns = time_ns, .type = type};
    return e;
}

/* Moving n bytes: a fixed cost and a rate that grows with the size, give or take a quarter. */
static uint64_t move_ns(storm_t *s, uint64_t bytes)
{
    uint64_t ns = 900 + bytes / 24;
    return ns * 3 / 4 + random_below(s, ns / 2);
}

static void migrate(storm_t *s, uint64_t addr, uint64_t bytes, bool to_gpu, uint32_t cause)
{
    um_event_t *e = add(s, UM_EV_MIGRATE, s->now_ns);
    e->u.migrate = (um_ev_migrate_t){.addr = addr,
                                     .bytes = bytes,
                                     .duration_ns = move_ns(s, bytes),
                                     .src = to_gpu ? UM_DEVICE_HOST : 0,
                                     .dst = to_gpu ? 0 : UM_DEVICE_HOST,
                                     .cause = cause,
                                     .region = s->region};
    s->now_ns += e->u.migrate.duration_ns / 2 + random_below(s, 800);
}

static void gpu_fault(storm_t *s, uint64_t addr, uint64_t start_ns)
{
    um_event_t *e = add(s, UM_EV_GPU_FAULT, start_ns);
    e->u.gpu_fault =
        (um_ev_gpu_fault_t){.addr = addr,
                            .duration_ns = s->now_ns - start_ns + random_below(s, 9000),
                            .groups = 1 + (uint32_t)random_below(s, 24),
                            .access = UM_ACCESS_READ,
                            .device = 0,
                            .region = s->region};
}

/* Part of a block comes in: pieces that faulted and pieces that the prefetcher added, in turn. */
static uint32_t serve_block(storm_t *s, uint64_t block, uint32_t from, uint32_t pages)
{
    uint32_t at = from, end = from + pages < PAGES ? from + pages : PAGES;
    while (at < end) {
        bool faulted = random_below(s, 100) < 45;
        uint32_t n = faulted ? 1 + (uint32_t)random_below(s, 4)
                             : 1 + (uint32_t)random_below(s, random_below(s, 8) ? 10 : 60);
        n = n < end - at ? n : end - at;
        migrate(s, block + at * UM_PAGE_BYTES, n * (uint64_t)UM_PAGE_BYTES, true,
                faulted ? UM_CAUSE_COHERENCE : UM_CAUSE_PREFETCH);
        at += n;
    }
    return at;
}

/* The kernel sweeps the region; about four blocks are in the air at a time. */
static void fault_in(storm_t *s)
{
    uint32_t done[BLOCKS] = {0}, first = 0;
    while (first < BLOCKS) {
        uint64_t start_ns = s->now_ns;
        s->now_ns += 8000 + random_below(s, 12000);
        for (uint32_t b = first; b < first + 4 && b < BLOCKS; b++) {
            if (done[b] == PAGES || random_below(s, 3) == 0)
                continue;
            uint64_t block = s->base + (uint64_t)b * UM_BLOCK_BYTES;
            if (random_below(s, 40) == 0 && done[b] == 0) { /* whole, in one piece */
                migrate(s, block, UM_BLOCK_BYTES, true, UM_CAUSE_PREFETCH);
                done[b] = PAGES;
            } else {
                uint64_t page = block + done[b] * UM_PAGE_BYTES;
                done[b] = serve_block(s, block, done[b], 64 + (uint32_t)random_below(s, 320));
                gpu_fault(s, page, start_ns + random_below(s, 3000));
            }
        }
        while (first < BLOCKS && done[first] == PAGES)
            first++;
    }
}

/* The CPU reads it front to back: six faults a block, each with what the tree prefetch adds. */
static void take_back(storm_t *s)
{
    static const uint32_t parts[6] = {16, 16, 32, 64, 128, 256}; /* pages */
    for (uint32_t b = 0; b < BLOCKS; b++) {
        uint64_t addr = s->base + (uint64_t)b * UM_BLOCK_BYTES;
        for (uint32_t i = 0; i < 6; i++) {
            uint64_t bytes = parts[i] * (uint64_t)UM_PAGE_BYTES;
            um_event_t *e = add(s, UM_EV_CPU_FAULT, s->now_ns);
            e->u.cpu_fault = (um_ev_cpu_fault_t){.addr = addr,
                                                 .pc = 0x5604c0de1000 + random_below(s, 4) * 24,
                                                 .access = UM_ACCESS_READ,
                                                 .region = s->region};
            s->now_ns += 20000 + random_below(s, 15000);
            migrate(s, addr, UM_PAGE_BYTES, false, UM_CAUSE_COHERENCE);
            migrate(s, addr + UM_PAGE_BYTES, bytes - UM_PAGE_BYTES, false, UM_CAUSE_PREFETCH);
            s->now_ns += 10000 + random_below(s, 9000);
            addr += bytes;
        }
    }
}

void storm_add(storm_t *s)
{
    fault_in(s);
    s->now_ns += 1000000;
    take_back(s);
    s->now_ns += 1000000;
}
