/* Clocks, what is shared, and one run from its first step to its result. */
#include "engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_PER_SM 2048
#define SM_COUNT       132 /* where the workload does not say: an H200's */
#define WORKERS        2   /* as the live library has them */

/* ---- the queue ---- */

static bool earlier(const um_actor_t *a, const um_actor_t *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void put(um_engine_t *engine, uint32_t place, um_actor_t *actor)
{
    engine->queue[place - 1] = actor;
    actor->place = place;
}

static void sift(um_engine_t *engine, um_actor_t *actor)
{
    uint32_t place = actor->place;

    while (place > 1 && earlier(actor, engine->queue[place / 2 - 1])) {
        put(engine, place, engine->queue[place / 2 - 1]);
        place /= 2;
    }
    for (;;) {
        uint32_t child = 2 * place;

        if (child < engine->n_queue && earlier(engine->queue[child], engine->queue[child - 1]))
            child++;
        if (child > engine->n_queue || !earlier(engine->queue[child - 1], actor))
            break;
        put(engine, place, engine->queue[child - 1]);
        place = child;
    }
    put(engine, place, actor);
}

void um_actor_init(um_engine_t *engine, um_actor_t *actor,
                   void (*act)(um_engine_t *engine, um_actor_t *actor))
{
    *actor = (um_actor_t){.act = act, .order = engine->n_actors++};
}

void um_actor_wake(um_engine_t *engine, um_actor_t *actor, uint64_t at_ns)
{
    actor->at_ns = at_ns > engine->now_ns ? at_ns : engine->now_ns;
    if (!actor->place) {
        if (engine->n_queue == engine->queue_room) {
            uint32_t room = engine->queue_room ? 2 * engine->queue_room : 64;
            um_actor_t **grown = realloc(engine->queue, room * sizeof(um_actor_t *));

            if (!grown) {
                um_engine_fail(engine, UM_ERR_NO_MEMORY);
                return;
            }
            engine->queue = grown;
            engine->queue_room = room;
        }
        put(engine, ++engine->n_queue, actor);
    }
    sift(engine, actor);
}

static um_actor_t *next_actor(um_engine_t *engine)
{
    um_actor_t *first = engine->queue[0], *last = engine->queue[--engine->n_queue];

    first->place = 0;
    if (last != first) {
        put(engine, 1, last);
        sift(engine, last);
    }
    return first;
}

/* ---- small things ---- */

void um_engine_fail(um_engine_t *engine, um_status_t status)
{
    if (engine->status == UM_OK)
        engine->status = status;
}

void um_engine_tell(um_engine_t *engine, const um_event_t *event, bool is_record)
{
    if (engine->config.event)
        engine->config.event(engine->config.event_ctx, event);
    if (engine->loop)
        um_hint_loop_tell(engine->loop, event, is_record);
}

int32_t um_engine_context_device(const um_engine_t *engine, uint32_t context)
{
    return context < 64 && engine->context_device[context] >= 0 ? engine->context_device[context]
                                                                : 0;
}

/* ---- regions ---- */

um_sim_region_t *um_engine_region(um_engine_t *engine, uint32_t region)
{
    return region < engine->n_regions ? engine->region[region] : NULL;
}

um_block_t *um_engine_block(um_engine_t *engine, uint32_t id, uint64_t addr)
{
    um_sim_region_t *region = um_engine_region(engine, id);
    uint64_t block = addr / UM_BLOCK_BYTES;

    return region && block >= region->first && block - region->first < region->n
               ? &region->block[block - region->first]
               : NULL;
}

static bool grow_regions(um_engine_t *engine, uint32_t id)
{
    uint32_t n = engine->n_regions ? engine->n_regions : 64;
    um_sim_region_t **grown;

    while (n <= id)
        n *= 2;
    grown = realloc(engine->region, n * sizeof(*grown));
    if (!grown)
        return false;
    memset(grown + engine->n_regions, 0, (n - engine->n_regions) * sizeof(*grown));
    engine->region = grown;
    engine->n_regions = n;
    return true;
}

um_status_t um_engine_region_add(um_engine_t *engine, const um_ev_region_alloc_t *alloc,
                                 uint64_t now_ns)
{
    um_region_t live = um_region_of(alloc, now_ns);
    um_sim_region_t *region;
    um_status_t status;

    if (engine->regions &&
        (status = um_regions_add(engine->regions, &live, NULL, 0, NULL)) != UM_OK)
        return status;
    if (alloc->family != UM_FAMILY_MANAGED)
        return UM_OK;
    if ((status = um_uvm_alloc(engine->uvm, alloc->region, alloc->addr, alloc->bytes)) != UM_OK)
        return status;
    if (alloc->region >= engine->n_regions && !grow_regions(engine, alloc->region))
        return UM_ERR_NO_MEMORY;
    region = calloc(1, sizeof(*region));
    if (!region)
        return UM_ERR_NO_MEMORY;
    region->id = alloc->region;
    region->addr = alloc->addr;
    region->bytes = alloc->bytes;
    region->first = alloc->addr / UM_BLOCK_BYTES;
    region->n = (alloc->addr + alloc->bytes - 1) / UM_BLOCK_BYTES - region->first + 1;
    region->block = calloc(region->n, sizeof(*region->block));
    if (!region->block) {
        free(region);
        return UM_ERR_NO_MEMORY;
    }
    for (uint64_t i = 0; i < region->n; i++)
        region->block[i].faulted_ns = UM_NEVER;
    engine->region[region->id] = region;
    if (engine->oracle)
        um_oracle_poke(engine->oracle);
    return UM_OK;
}

static void forget_region(um_engine_t *engine, uint32_t id)
{
    um_sim_region_t *region = um_engine_region(engine, id);

    if (!region)
        return;
    engine->region[id] = NULL;
    free(region->block);
    free(region);
}

void um_engine_region_remove(um_engine_t *engine, uint32_t id)
{
    um_region_t live;

    if (engine->regions && um_regions_find_id(engine->regions, id, &live))
        um_regions_remove(engine->regions, live.addr, NULL);
    if (!um_engine_region(engine, id))
        return;
    um_uvm_release(engine->uvm, id);
    engine->n_heard = 0;
    forget_region(engine, id);
}

void um_engine_touched(um_engine_t *engine, int32_t processor, const um_piece_t *piece)
{
    engine->result.touches += (piece->bytes + UM_PAGE_BYTES - 1) / UM_PAGE_BYTES;
    if (engine->oracle)
        um_oracle_used(engine->oracle, processor, piece);
    if (engine->config.event) {
        um_event_t event = {.type = UM_EV_ACCESS, .time_ns = engine->now_ns};

        event.u.access = (um_ev_access_t){.addr = piece->addr,
                                          .bytes = piece->bytes,
                                          .device = processor,
                                          .kind = piece->kind,
                                          .region = piece->region};
        engine->config.event(engine->config.event_ctx, &event);
    }
}

/* ---- set-up ---- */

static um_status_t refuse(char *error, size_t bytes, const char *what, uint64_t value)
{
    snprintf(error, bytes, "%s %" PRIu64, what, value);
    return UM_ERR_INVALID;
}

static uint64_t capacity_of(const um_sim_config_t *config)
{
    return config->gpu_bytes ? config->gpu_bytes : config->machine->memory_bytes;
}

double um_sim_time_scale(const um_workload_t *workload, const um_machine_t *machine)
{
    um_machine_t source;

    if (*workload->source_gpu && strcmp(workload->source_gpu, machine->gpu) == 0)
        return 1;
    if (!*workload->source_gpu || um_machine_for_gpu(workload->source_gpu, &source) != UM_OK)
        return machine->kernel_time_scale;
    return machine->kernel_time_scale / source.kernel_time_scale;
}

static um_status_t new_uvm(um_engine_t *engine)
{
    um_uvm_config_t config = {.n_gpus = engine->workload->n_gpus,
                              .peers = engine->machine->link_peer.n > 0,
                              .coherent = engine->machine->coherent,
                              .params = engine->params,
                              .event = um_cost_heard,
                              .event_ctx = engine};

    for (uint32_t i = 0; i < config.n_gpus; i++)
        config.capacity_bytes[i] = engine->capacity_bytes;
    return um_uvm_new(&config, &engine->uvm);
}

static void find_sm_counts(um_engine_t *engine)
{
    for (int i = 0; i < UM_UVM_GPUS_MAX; i++)
        engine->gpu[i].threads = (double)SM_COUNT * THREADS_PER_SM;
    for (uint64_t i = 0; i < engine->workload->n_steps && i < 64; i++) {
        const um_event_t *event = engine->workload->steps[i].event;

        if (event && event->type == UM_EV_DEVICE && event->u.device.sm_count &&
            (uint32_t)event->u.device.device < UM_UVM_GPUS_MAX)
            engine->gpu[event->u.device.device].threads =
                (double)event->u.device.sm_count * THREADS_PER_SM;
    }
}

/* The machine's GPUs, whatever the workload was recorded on. */
static void tell_devices(um_engine_t *engine)
{
    for (uint32_t i = 0; i < engine->workload->n_gpus; i++) {
        um_event_t event = {.type = UM_EV_DEVICE};

        event.u.device =
            (um_ev_device_t){.device = (int32_t)i,
                             .sm_count = (uint32_t)(engine->gpu[i].threads / THREADS_PER_SM),
                             .memory_bytes = engine->capacity_bytes,
                             .attributes = UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED |
                                           (engine->machine->coherent
                                                ? UM_DEVICE_PAGEABLE | UM_DEVICE_HOST_PAGE_TABLES
                                                : 0u),
                             .name = engine->machine->gpu,
                             .uuid = "",
                             .pci = ""};
        um_engine_tell(engine, &event, false);
    }
}

static um_status_t set_up(um_engine_t *engine, char *error, size_t error_bytes)
{
    const um_sim_config_t *config = &engine->config;
    um_status_t status;

    if (config->params)
        engine->params = *config->params;
    else
        um_uvm_params_default(&engine->params);
    if (!config->policy->tree_prefetch)
        engine->params.uvm_perf_prefetch_enable = 0;
    engine->capacity_bytes = capacity_of(config);
    engine->time_scale = config->kernel_time_scale > 0
                             ? config->kernel_time_scale
                             : um_sim_time_scale(config->workload, config->machine);
    engine->app_hints = config->policy->app_hints;
    for (int i = 0; i < 64; i++)
        engine->context_device[i] = UM_DEVICE_NONE;
    find_sm_counts(engine);
    um_cost_init(engine);
    if ((status = new_uvm(engine)) != UM_OK) {
        snprintf(error, error_bytes, "the driver's rules: %s", um_status_string(status));
        return status;
    }
    if (config->policy->advisors && (status = um_hint_loop_new(engine, &engine->loop)) != UM_OK)
        return status;
    if (config->policy->oracle && (status = um_oracle_new(engine, &engine->oracle)) != UM_OK)
        return status;
    engine->listening = config->event || engine->loop;
    if (engine->listening)
        tell_devices(engine);
    return um_program_start(engine);
}

static void tear_down(um_engine_t *engine)
{
    um_hint_loop_free(engine->loop);
    um_oracle_free(engine->oracle);
    um_program_free(engine);
    for (uint32_t i = 0; i < engine->n_streams; i++)
        um_stream_free(engine->stream[i]);
    for (uint32_t i = 0; i < engine->n_regions; i++)
        forget_region(engine, i);
    free(engine->stream);
    free(engine->region);
    um_regions_free(engine->regions);
    um_uvm_free(engine->uvm);
    free(engine->heard);
    free(engine->queue);
}

/* ---- a run ---- */

um_status_t um_sim_run(const um_sim_config_t *config, um_sim_result_t *out, char *error,
                       size_t error_bytes)
{
    um_engine_t engine = {.config = *config,
                          .workload = config->workload,
                          .machine = config->machine};
    um_status_t status;

    if (error_bytes)
        *error = '\0';
    if (capacity_of(config) < UM_BLOCK_BYTES)
        return refuse(error, error_bytes,
                      "a GPU needs at least one block of 2097152 bytes for managed memory, not",
                      capacity_of(config));
    if (!config->workload->n_gpus || config->workload->n_gpus > UM_UVM_GPUS_MAX)
        return refuse(error, error_bytes, "from 1 to 8 GPUs can be simulated, not",
                      config->workload->n_gpus);
    status = set_up(&engine, error, error_bytes);
    while (status == UM_OK && engine.n_queue) {
        um_actor_t *actor = next_actor(&engine);

        engine.now_ns = actor->at_ns;
        actor->act(&engine, actor);
        status = engine.status;
    }
    engine.result.total_ns = engine.end_ns;
    if (engine.loop)
        um_hint_loop_count(engine.loop, &engine.result);
    tear_down(&engine);
    if (status == UM_OK)
        *out = engine.result;
    else if (error_bytes && !*error)
        snprintf(error, error_bytes, "simulation of %s: %s", config->workload->name,
                 um_status_string(status));
    return status;
}
