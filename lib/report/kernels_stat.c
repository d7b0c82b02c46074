#include "kernels_stat.h"

#include "units.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define EXECS_SEEN 4096u

um_status_t um_kernels_stat_init(um_kernels_stat_t *stat, um_regions_stat_t *regions)
{
    memset(stat, 0, sizeof(*stat));
    stat->regions = regions;
    stat->seen = calloc(EXECS_SEEN, sizeof(*stat->seen));
    return stat->seen ? UM_OK : UM_ERR_NO_MEMORY;
}

void um_kernels_stat_free(um_kernels_stat_t *stat)
{
    for (size_t i = 0; i < stat->n_kernels; i++)
        free(stat->kernels[i].name);
    free(stat->kernels);
    free(stat->pairs);
    free(stat->places);
    um_map_free(&stat->place_of);
    free(stat->seen);
    um_map_free(&stat->by_name);
    um_map_free(&stat->by_id);
    um_map_free(&stat->pair_of);
}

/* Kernel of a name; `copy` is the one that stands for copies. */
static um_status_t kernel_get(um_kernels_stat_t *stat, const char *name, bool copy, uint32_t *out)
{
    uint64_t key = um_map_hash(name, strlen(name), copy);
    um_kernel_stat_t *kernel;
    um_status_t status;

    *out = um_map_find(&stat->by_name, key);
    if (*out != UM_MAP_NONE)
        return UM_OK;
    if (!um_grow(&stat->kernels, &stat->kernels_size, stat->n_kernels + 1, sizeof(*stat->kernels)))
        return UM_ERR_NO_MEMORY;
    kernel = &stat->kernels[stat->n_kernels];
    *kernel = (um_kernel_stat_t){.name = strdup(name), .copy = copy};
    if (!kernel->name)
        return UM_ERR_NO_MEMORY;
    status = um_map_put(&stat->by_name, key, (uint32_t)stat->n_kernels);
    if (status) {
        free(kernel->name);
        return status;
    }
    *out = (uint32_t)stat->n_kernels++;
    return UM_OK;
}

static um_status_t kernel_of_id(um_kernels_stat_t *stat, uint32_t id, uint32_t *out)
{
    *out = id ? um_map_find(&stat->by_id, id) : UM_MAP_NONE;
    return *out != UM_MAP_NONE ? UM_OK : kernel_get(stat, "", false, out);
}

static um_status_t on_launch_place(um_kernels_stat_t *stat, const um_ev_launch_t *launch,
                                   const um_arg_t *arg, uint32_t kernel)
{
    um_live_t *live = um_regions_stat_by_id(stat->regions, arg->region);
    uint64_t key = (uint64_t)kernel << 32 | (live ? live->group : 0);
    um_launch_place_t *place;
    uint32_t i = live ? um_map_find(&stat->place_of, key) : UM_MAP_NONE;
    um_status_t status;

    if (!live)
        return UM_OK;
    if (i == UM_MAP_NONE) {
        if (!um_grow(&stat->places, &stat->places_size, stat->n_places + 1, sizeof(*place)))
            return UM_ERR_NO_MEMORY;
        status = um_map_put(&stat->place_of, key, (uint32_t)stat->n_places);
        if (status)
            return status;
        i = (uint32_t)stat->n_places++;
        stat->places[i] = (um_launch_place_t){.kernel = kernel,
                                              .group = live->group,
                                              .slot = arg->slot,
                                              .site = launch->call_site};
    }
    place = &stat->places[i];
    place->launches++;
    place->many |= place->site != launch->call_site || place->slot != arg->slot ||
                   arg->offset_bytes || arg->region_offset_bytes;
    return UM_OK;
}

const um_launch_place_t *um_kernels_stat_place(const um_kernels_stat_t *stat, uint32_t kernel,
                                               uint32_t group)
{
    uint32_t i = um_map_find(&stat->place_of, (uint64_t)kernel << 32 | group);

    return i == UM_MAP_NONE ? NULL : &stat->places[i];
}

um_status_t um_kernels_stat_event(um_kernels_stat_t *stat, const um_event_t *event)
{
    um_status_t status = UM_OK;
    uint32_t k;

    switch (event->type) {
    case UM_EV_KERNEL:
        status = kernel_get(stat, event->u.kernel.name, false, &k);
        if (!status)
            status = um_map_put(&stat->by_id, event->u.kernel.kernel, k);
        break;
    case UM_EV_LAUNCH:
        if (event->u.launch.flags & UM_LAUNCH_CAPTURED)
            break;
        status = kernel_of_id(stat, event->u.launch.kernel, &k);
        if (status)
            break;
        if (!stat->kernels[k].launches++)
            stat->kernels[k].stream = event->u.launch.stream;
        else if (stat->kernels[k].stream != event->u.launch.stream)
            stat->kernels[k].many_streams = true;
        stat->launches++;
        for (uint32_t a = 0; event->u.launch.call_site && a < event->u.launch.n_args && !status;
             a++)
            status = on_launch_place(stat, &event->u.launch, &event->u.launch.args[a], k);
        if (!stat->execs) /* attribution numbers launches until it sees times */
            stat->seen[stat->launches % EXECS_SEEN] =
                (struct um_exec_seen){.serial = stat->launches,
                                      .number = stat->kernels[k].launches};
        break;
    case UM_EV_KERNEL_EXEC:
        status = kernel_of_id(stat, event->u.kernel_exec.kernel, &k);
        if (status)
            break;
        stat->kernels[k].execs++;
        um_sum(&stat->kernels[k].exec_ns, event->u.kernel_exec.duration_ns);
        stat->execs++;
        stat->seen[stat->execs % EXECS_SEEN] =
            (struct um_exec_seen){.serial = stat->execs, .number = stat->kernels[k].execs};
        break;
    default:
        break;
    }
    return status;
}

static um_status_t pair_get(um_kernels_stat_t *stat, uint32_t kernel, uint32_t group, uint32_t *out)
{
    uint64_t key = (uint64_t)kernel << 32 | group;
    um_status_t status;

    *out = um_map_find(&stat->pair_of, key);
    if (*out != UM_MAP_NONE)
        return UM_OK;
    if (!um_grow(&stat->pairs, &stat->pairs_size, stat->n_pairs + 1, sizeof(*stat->pairs)))
        return UM_ERR_NO_MEMORY;
    status = um_map_put(&stat->pair_of, key, (uint32_t)stat->n_pairs);
    if (status)
        return status;
    *out = (uint32_t)stat->n_pairs++;
    stat->pairs[*out] = (um_kernel_region_t){.kernel = kernel, .group = group};
    return UM_OK;
}

static um_status_t on_fault(um_kernels_stat_t *stat, const um_event_t *event,
                            const um_attributed_t *who, uint32_t k)
{
    const um_ev_gpu_fault_t *fault = &event->u.gpu_fault;
    uint64_t charge =
        um_cover_charge(&stat->cover, fault->device, event->time_ns, fault->duration_ns);
    um_kernel_stat_t *kernel = &stat->kernels[k];
    um_live_t *live = um_regions_stat_find(stat->regions, fault->addr);
    um_kernel_region_t *pair;
    um_page_t *page;
    um_status_t status;
    uint32_t p;

    if (who->to == UM_TO_NOBODY)
        stat->unattributed++;
    else
        stat->attributed++;
    kernel->faults++;
    kernel->groups += fault->groups;
    um_sum(&kernel->ns, charge);
    kernel->confidence += who->confidence;
    if (who->first && who->to == UM_TO_KERNEL) {
        const struct um_exec_seen *seen = &stat->seen[who->serial % EXECS_SEEN];

        kernel->faulted++;
        stat->total_faulted++;
        if (seen->serial == who->serial && seen->number > kernel->last_faulted)
            kernel->last_faulted = seen->number;
        if (who->serial > stat->last_faulted_exec)
            stat->last_faulted_exec = who->serial;
    }
    if (!live)
        return UM_OK;
    status = pair_get(stat, k, live->group, &p);
    if (status)
        return status;
    pair = &stat->pairs[p];
    pair->faults++;
    pair->groups += fault->groups;
    um_sum(&pair->ns, charge);
    pair->launches += who->first;
    pair->confidence += who->confidence;
    page = um_regions_stat_page(stat->regions, live, fault->addr);
    /* Nothing had to be moved for it and the CPU was never seen there: nobody had written it. */
    if (page && !page->in_bytes && !page->out_bytes && !page->cpu_faults &&
        live->alloc_ns <= event->time_ns && (!page->first_faults || page->first_pair == p)) {
        pair->first_faults++;
        pair->first_ns += charge;
        page->first_faults++;
        page->first_ns += charge;
        page->first_pair = p;
    }
    return UM_OK;
}

typedef struct um_arriving {
    um_kernels_stat_t *stat;
    uint32_t kernel;
    bool from_host;
    um_status_t status;
} um_arriving_t;

static void arrive(void *ctx, um_live_t *live, uint64_t addr, uint64_t bytes)
{
    um_arriving_t *arriving = ctx;
    um_kernels_stat_t *stat = arriving->stat;
    um_page_t *page = um_regions_stat_page(stat->regions, live, addr);
    um_status_t status;
    uint32_t p;

    /* Data from the CPU for a page that the GPU alone seemed to know: somebody had written it. */
    if (arriving->from_host && page && page->first_faults && !page->out_bytes) {
        stat->pairs[page->first_pair].first_faults -= page->first_faults;
        stat->pairs[page->first_pair].first_ns -= page->first_ns;
        page->first_faults = 0;
        page->first_ns = 0;
    }
    status = pair_get(stat, arriving->kernel, live->group, &p);
    if (status)
        arriving->status = status;
    else
        stat->pairs[p].in_bytes += bytes;
}

um_status_t um_kernels_stat_attributed(um_kernels_stat_t *stat, const um_event_t *event,
                                       const um_attributed_t *who)
{
    um_arriving_t arriving;
    um_status_t status;
    uint32_t k;

    if (who->to == UM_TO_COPY)
        status = kernel_get(stat, "copies and sets of managed memory", true, &k);
    else
        status = kernel_of_id(stat, who->kernel, &k);
    if (status)
        return status;
    if (event->type == UM_EV_GPU_FAULT)
        return on_fault(stat, event, who, k);
    if (event->type == UM_EV_THROTTLE) {
        um_cover_charge(&stat->cover, event->u.throttle.device, event->time_ns,
                        event->u.throttle.duration_ns);
        um_sum(&stat->kernels[k].throttle_ns, event->u.throttle.duration_ns);
        return UM_OK;
    }
    if (event->u.migrate.dst < 0) {
        um_sum(&stat->kernels[k].evict_bytes, event->u.migrate.bytes);
        return UM_OK;
    }
    um_sum(&stat->kernels[k].in_bytes, event->u.migrate.bytes);
    arriving = (um_arriving_t){.stat = stat,
                               .kernel = k,
                               .from_host = event->u.migrate.src < 0,
                               .status = UM_OK};
    um_regions_stat_split(stat->regions, event->u.migrate.addr, event->u.migrate.bytes, arrive,
                          &arriving);
    return arriving.status;
}

void um_kernels_stat_end(um_kernels_stat_t *stat)
{
    um_map_free(&stat->by_id);
    memset(&stat->cover, 0, sizeof(stat->cover));
    memset(stat->seen, 0, EXECS_SEEN * sizeof(*stat->seen));
    stat->total_execs += stat->execs;
    stat->total_launches += stat->launches;
    stat->execs = stat->launches = 0;
}

uint64_t um_kernel_launches(const um_kernel_stat_t *kernel)
{
    return kernel->execs ? kernel->execs : kernel->launches;
}

const um_kernel_region_t *um_kernels_stat_worst(const um_kernels_stat_t *stat, uint32_t group)
{
    const um_kernel_region_t *worst = NULL;

    for (size_t i = 0; i < stat->n_pairs; i++) {
        const um_kernel_region_t *pair = &stat->pairs[i];

        if (pair->group == group && !stat->kernels[pair->kernel].copy &&
            *stat->kernels[pair->kernel].name && (!worst || pair->ns > worst->ns))
            worst = pair;
    }
    return worst;
}
