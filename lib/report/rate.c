/* How fast data can move, and how that is known. */
#include "collect.h"

#include <string.h>

/* Measured by hand on one card each: H200 over PCIe 5, one thread of 32 MiB prefetches to the GPU,
 * the middle of 9-15 GB/s to the host. */
static const struct um_known_rate {
    const char *device;
    uint64_t bytes_per_s[2];
} known_rates[] = {
    {"H200", {UINT64_C(45000000000), UINT64_C(12000000000)}},
};

static uint64_t move_rate(const um_moves_t *moves)
{
    return moves->ns ? (uint64_t)((double)moves->bytes * 1e9 / (double)moves->ns) : 0;
}

um_rate_t um_report_rate(const um_report_t *r, um_direction_t direction)
{
    const um_moves_t *user = &r->moves[direction][UM_CAUSE_USER];
    uint64_t pinned = direction == UM_TO_DEVICE ? r->copies.best_in_rate : r->copies.best_out_rate;
    um_rate_t rate = {0};

    if (user->bytes >= 16 * (uint64_t)UM_BLOCK_BYTES && user->ns) {
        rate.bytes_per_s = move_rate(user);
        strcpy(rate.source, "this trace's own prefetches");
        return rate;
    }
    for (size_t i = 0; i < sizeof(known_rates) / sizeof(known_rates[0]); i++) {
        if (r->n_traces && r->traces[0].device &&
            strstr(r->traces[0].device, known_rates[i].device)) {
            rate.bytes_per_s = known_rates[i].bytes_per_s[direction];
            strcpy(rate.source, "prefetches measured on an ");
            strcat(rate.source, known_rates[i].device);
            return rate;
        }
    }
    if (pinned) {
        rate.bytes_per_s = pinned;
        strcpy(rate.source, "this trace's largest pinned copy");
    } else if (r->big_moves[direction].ns) {
        rate.bytes_per_s = move_rate(&r->big_moves[direction]);
        strcpy(rate.source, "this trace's migrations of 64 KiB and more");
    } else if (r->big_moves[!direction].ns) {
        rate.bytes_per_s = move_rate(&r->big_moves[!direction]);
        strcpy(rate.source, "this trace's migrations the other way");
    }
    return rate;
}

uint64_t um_rate_ns(const um_rate_t *rate, uint64_t bytes)
{
    return rate->bytes_per_s ? (uint64_t)((double)bytes * 1e9 / (double)rate->bytes_per_s) : 0;
}
