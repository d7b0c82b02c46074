#include "limits.h"

#include <stdlib.h>
#include <string.h>

#define KIB        (UINT64_C(1) << 10)
#define MIB        (UINT64_C(1) << 20)
#define ANY        (UINT64_C(1) << 62)
#define OF_HUNDRED UINT64_C(100)

/* One line a threshold: the table and the defaults are made of the same list. */
#define UM_LIMITS(X)                                                                               \
    X("ping-pong.small-bytes", ping_pong_small_bytes, 256 * KIB, ANY,                              \
      "up to here (bytes) data is mapped for both sides rather than moved")                        \
    X("ping-pong.running-percent", ping_pong_running_percent, 10, OF_HUNDRED,                      \
      "share of CPU faults under a running kernel from which waiting is the advice")               \
    X("first-touch.faults", storm_faults, 16, ANY,                                                 \
      "fault records that make a storm; of sparse-faulting, too")                                  \
    X("first-touch.ns", storm_ns, 1000000, ANY, "or this long in them (ns)")                       \
    X("demand-faulting.dense-percent", dense_percent, 50, OF_HUNDRED,                              \
      "share of the touched 2 MiB blocks from which data is dense, not sparse")                    \
    X("allocation-churn.allocations", churn_allocations, 8, ANY,                                   \
      "allocations after a free of the same kind")                                                 \
    X("pageable-copy.trips", copy_trips, 3, ANY, "rounds that make a habit")                       \
    X("pageable-copy.bytes", copy_bytes, 64 * KIB, ANY, "bytes in such copies")                    \
    X("pageable-copy.ns", copy_ns, 50000, ANY, "or time in them (ns)")                             \
    X("eviction.bytes", evicted_bytes, 16 * MIB, ANY,                                              \
      "bytes that were evicted and came back; of cyclic-sweep and not-evictable, too")             \
    X("cyclic-sweep.percent", cyclic_percent, 80, OF_HUNDRED,                                      \
      "share of returns in order of address from which it is a sweep")                             \
    X("wrong-location.launches", location_launches, 16, ANY, "launches on what is kept elsewhere") \
    X("wrong-location.cpu-faults", location_cpu_faults, 16, ANY,                                   \
      "CPU faults on what is kept on a GPU")                                                       \
    X("used-once.bytes", once_bytes, MIB, ANY, "least size of a region (bytes)")                   \
    X("used-once.percent", once_percent, 50, OF_HUNDRED, "share of it that came by fault")         \
    X("used-once.launches", once_launches, 1, ANY, "launches a region at most")                    \
    X("pinned-pressure.percent", pinned_percent, 50, OF_HUNDRED,                                   \
      "share of the host's memory that is pinned")                                                 \
    X("pool-threshold.allocations", pool_allocations, 8, ANY,                                      \
      "allocations after a free and a wait")                                                       \
    X("gpu-bounce.moves", bounce_moves, 16, ANY, "moves of a block from GPU to GPU and on")        \
    X("not-evictable.percent", held_percent, 25, OF_HUNDRED,                                       \
      "share of the GPU's memory in memory that cannot be evicted")                                \
    X("own-hints.bytes", hint_bytes, MIB, ANY,                                                     \
      "least bytes of the program's own prefetches that are judged")                               \
    X("own-hints.percent", hint_percent, 50, OF_HUNDRED,                                           \
      "share of their bytes from which they are redundant, wasted or harmful")                     \
    X("own-hints.faults", hint_faults, 16, ANY, "GPU faults that make a prefetch late")            \
    X("own-hints.advice-calls", advice_calls, 8, ANY, "calls that say again what holds already")   \
    X("all.win-percent", win_percent, 1, OF_HUNDRED,                                               \
      "of the trace's time: with less than that to win a finding is folded away")

const um_limit_t um_limit_table[] = {
#define X(name, field, fallback, most, doc)                                                        \
    {name, offsetof(um_limits_t, field), fallback, most, doc},
    UM_LIMITS(X)
#undef X
        {NULL, 0, 0, 0, NULL},
};

const um_limits_t um_limits_default = {
#define X(name, field, fallback, most, doc) .field = (fallback),
    UM_LIMITS(X)
#undef X
};

uint64_t um_limit_value(const um_limits_t *limits, const um_limit_t *limit)
{
    uint64_t value;

    memcpy(&value, (const char *)limits + limit->offset, sizeof(value));
    return value;
}

um_status_t um_limits_set(um_limits_t *limits, const char *text)
{
    const char *is = strchr(text, '=');
    unsigned long long value;
    char *end;

    if (!is)
        return UM_ERR_INVALID;
    for (const um_limit_t *limit = um_limit_table; limit->name; limit++) {
        if (strlen(limit->name) != (size_t)(is - text) ||
            strncmp(limit->name, text, (size_t)(is - text)) != 0)
            continue;
        value = strtoull(is + 1, &end, 10);
        if (is[1] < '0' || is[1] > '9' || *end || value > limit->most)
            return UM_ERR_INVALID;
        memcpy((char *)limits + limit->offset, &(uint64_t){value}, sizeof(uint64_t));
        return UM_OK;
    }
    return UM_ERR_NOT_FOUND;
}
