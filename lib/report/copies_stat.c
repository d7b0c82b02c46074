#include "copies_stat.h"

#include "units.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define CLASSES_MAX    1024u
#define RATE_MIN_BYTES (1u << 20) /* below it latency, not the link, is measured */

const char *um_memory_kind_name(uint32_t kind)
{
    static const char *const name[] = {"unknown", "pageable", "pinned",
                                       "device",  "array",    "managed"};

    return kind < sizeof(name) / sizeof(name[0]) ? name[kind] : "unknown";
}

static um_copy_class_t *class_get(um_copies_stat_t *stat, const um_ev_copy_t *copy)
{
    bool on_gpu = copy->flags & UM_TRANSFER_ON_GPU;
    uint64_t key[4] = {copy->src_memory, copy->dst_memory, copy->bytes, on_gpu}, hash;
    um_copy_class_t *of;
    uint32_t c;

    if (stat->n_classes >= CLASSES_MAX)
        key[2] = 0;
    hash = um_map_hash(key, sizeof(key), 0);
    c = um_map_find(&stat->class_of, hash);
    if (c != UM_MAP_NONE)
        return &stat->classes[c];
    if (!um_grow(&stat->classes, &stat->size, stat->n_classes + 1, sizeof(*stat->classes)))
        return NULL;
    if (um_map_put(&stat->class_of, hash, (uint32_t)stat->n_classes))
        return NULL;
    of = &stat->classes[stat->n_classes++];
    *of = (um_copy_class_t){.src = copy->src_memory,
                            .dst = copy->dst_memory,
                            .bytes = key[2],
                            .on_gpu = on_gpu};
    return of;
}

static bool is_host(uint32_t memory)
{
    return memory == UM_MEMORY_PAGEABLE || memory == UM_MEMORY_PINNED;
}

static bool is_device(uint32_t memory)
{
    return memory == UM_MEMORY_DEVICE || memory == UM_MEMORY_ARRAY || memory == UM_MEMORY_MANAGED;
}

static void round_trip(um_copies_stat_t *stat, const um_ev_copy_t *copy)
{
    uint64_t launches = stat->execs ? stat->execs : stat->launches;
    um_round_trip_t *trip = NULL;

    if (!copy->bytes || copy->bytes > UM_ROUND_TRIP_MAX_BYTES)
        return;
    for (uint32_t i = 0; i < stat->n_trips && !trip; i++) {
        if (stat->trip[i].bytes == copy->bytes)
            trip = &stat->trip[i];
    }
    if (!trip) {
        if (stat->n_trips == UM_ROUND_TRIPS)
            return;
        trip = &stat->trip[stat->n_trips++];
        *trip = (um_round_trip_t){.bytes = copy->bytes};
    }
    if (is_host(copy->src_memory) && is_device(copy->dst_memory)) {
        trip->out = true;
        trip->launches_at_out = launches;
    } else if (is_device(copy->src_memory) && is_host(copy->dst_memory)) {
        if (trip->out && launches > trip->launches_at_out) {
            trip->trips++;
            trip->launches += launches - trip->launches_at_out;
        }
        trip->out = false;
    }
}

static um_status_t on_copy(um_copies_stat_t *stat, const um_ev_copy_t *copy)
{
    um_copy_class_t *of;

    if (copy->flags & UM_TRANSFER_CAPTURED)
        return UM_OK;
    of = class_get(stat, copy);
    if (!of)
        return UM_ERR_NO_MEMORY;
    of->count++;
    of->async += (copy->flags & UM_TRANSFER_ASYNC) != 0;
    um_sum(&of->ns, copy->duration_ns);
    um_sum(&of->total_bytes, copy->bytes);
    if (of->on_gpu)
        stat->gpu_records++;
    else
        stat->calls++;
    /* Where both are recorded, the calls alone make round trips. */
    if (!of->on_gpu || !stat->calls)
        round_trip(stat, copy);
    if (of->on_gpu && copy->duration_ns && copy->bytes >= RATE_MIN_BYTES) {
        bool in = copy->src_memory == UM_MEMORY_PINNED && copy->dst_memory == UM_MEMORY_DEVICE;
        bool out = copy->src_memory == UM_MEMORY_DEVICE && copy->dst_memory == UM_MEMORY_PINNED;
        uint64_t rate = (uint64_t)((double)copy->bytes * 1e9 / (double)copy->duration_ns);

        if (in && copy->bytes > stat->best_in_bytes) {
            stat->best_in_bytes = copy->bytes;
            stat->best_in_rate = rate;
        } else if (out && copy->bytes > stat->best_out_bytes) {
            stat->best_out_bytes = copy->bytes;
            stat->best_out_rate = rate;
        }
    }
    return UM_OK;
}

um_status_t um_copies_stat_event(um_copies_stat_t *stat, const um_event_t *event)
{
    switch (event->type) {
    case UM_EV_COPY:
        return on_copy(stat, &event->u.copy);
    case UM_EV_LAUNCH:
        stat->launches++;
        break;
    case UM_EV_KERNEL_EXEC:
        stat->execs++;
        break;
    default:
        break;
    }
    return UM_OK;
}

bool um_copies_counted(const um_copies_stat_t *stat, const um_copy_class_t *of)
{
    return !stat->gpu_records || !stat->calls || of->on_gpu;
}

void um_copies_stat_end(um_copies_stat_t *stat)
{
    stat->launches = stat->execs = 0;
    for (uint32_t i = 0; i < stat->n_trips; i++)
        stat->trip[i].out = false;
}

void um_copies_stat_free(um_copies_stat_t *stat)
{
    free(stat->classes);
    um_map_free(&stat->class_of);
}
