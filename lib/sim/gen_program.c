/* gen_program.c - a generated program runs: the clock of its thread, the clocks of its streams. */
#include "gen_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

#define TID          1u
#define START_NS     UINT64_C(1000000000)
#define CALL_NS      UINT64_C(4000) /* a launch, an allocation, a wait: 4.1 us measured on an H200 */
#define HOST_RATE    16.0e9         /* bytes a second of one CPU thread sweeping memory */
#define FIRST_ADDR   UINT64_C(0x100000000000)
#define GAP_BYTES    ((uint64_t)UM_BLOCK_BYTES)
#define FIRST_STREAM UINT64_C(0x5000) /* handles; below are CUDA's special values */
#define STREAMS      64u              /* of one GPU */
#define GPUS         8u
#define QUEUE        1024u /* launches ahead of the GPU: then a launch waits, as the driver's does */
#define MEMORY_BYTES (UINT64_C(141) << 30)

typedef struct gen_region {
    uint64_t addr, bytes; /* bytes 0 = released */
} gen_region_t;

struct um_gen {
    um_gen_options_t options;
    um_event_fn fn;
    void *ctx;
    um_status_t status;
    uint64_t random;
    uint64_t now_ns;
    uint64_t addr; /* where the next region goes */
    gen_region_t *regions;
    size_t n_regions, regions_size;
    uint32_t n_kernels, n_launches, n_syncs;
    uint64_t busy_ns[GPUS][STREAMS]; /* until then */
    uint64_t ends[QUEUE];            /* of the last launches */

    um_event_t launch; /* the one being put together */
    uint64_t start_ns, access_ns, bytes;
    uint32_t stream;
    um_arg_t args[UM_GEN_ARGS_MAX];
    um_ev_access_t *accesses;
    uint32_t *steps; /* accesses that come after each other count up */
    size_t n_accesses, accesses_size, steps_size;
};

const um_gen_options_t *um_gen_options(const um_gen_t *gen)
{
    return &gen->options;
}

bool um_gen_failed(const um_gen_t *gen)
{
    return gen->status != UM_OK;
}

static void put(um_gen_t *gen, um_event_t *event, uint64_t time_ns, uint32_t tid)
{
    event->time_ns = time_ns;
    event->tid = tid;
    if (gen->status == UM_OK)
        gen->fn(gen->ctx, event);
}

static void call(um_gen_t *gen, um_event_t *event)
{
    put(gen, event, gen->now_ns, TID);
    gen->now_ns += CALL_NS;
}

/* ---- lots -------------------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t draw(um_gen_t *gen)
{
    uint64_t z = gen->random += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t um_gen_random(um_gen_t *gen, uint64_t below)
{
    return draw(gen) % below; /* below is far under 2^64: even enough */
}

double um_gen_uniform(um_gen_t *gen)
{
    return (double)((draw(gen) >> 11) + 1) / 9007199254740992.0;
}

/* ---- memory ------------------------------------------------------------------------------------ */

static gen_region_t *region_of(um_gen_t *gen, uint32_t region)
{
    return &gen->regions[region - 1];
}

uint32_t um_gen_region(um_gen_t *gen, const char *label, uint64_t bytes)
{
    return um_gen_memory(gen, label, bytes, UM_FAMILY_MANAGED);
}

uint32_t um_gen_memory(um_gen_t *gen, const char *label, uint64_t bytes, um_family_t family)
{
    um_event_t event = {.type = UM_EV_REGION_ALLOC};

    if (!um_grow(&gen->regions, &gen->regions_size, gen->n_regions + 1, sizeof *gen->regions)) {
        gen->status = UM_ERR_NO_MEMORY;
        return 0;
    }
    gen->regions[gen->n_regions++] = (gen_region_t){gen->addr, bytes};
    event.u.region_alloc = (um_ev_region_alloc_t){.region = (uint32_t)gen->n_regions,
                                                  .family = family,
                                                  .addr = gen->addr,
                                                  .bytes = bytes,
                                                  .device = UM_DEVICE_NONE,
                                                  .flags = UM_REGION_ATTACH_GLOBAL};
    gen->addr += ((bytes + UM_BLOCK_BYTES - 1) & ~(uint64_t)(UM_BLOCK_BYTES - 1)) + GAP_BYTES;
    call(gen, &event);
    if (label) {
        event = (um_event_t){.type = UM_EV_REGION_LABEL};
        event.u.region_label = (um_ev_region_label_t){(uint32_t)gen->n_regions, label};
        put(gen, &event, gen->now_ns, TID);
    }
    return (uint32_t)gen->n_regions;
}

void um_gen_hint(um_gen_t *gen, um_hint_kind_t kind, int32_t device, uint32_t region, uint64_t at,
                 uint64_t bytes, uint32_t stream)
{
    um_event_t event = {.type = UM_EV_HINT};
    uint64_t on = (uint64_t)(device >= 0 ? device : 0) * STREAMS + stream % STREAMS;

    event.u.hint = (um_ev_hint_t){.kind = kind,
                                  .result = UM_HINT_APPLIED,
                                  .addr = region_of(gen, region)->addr + at,
                                  .bytes = bytes,
                                  .device = device,
                                  .region = region,
                                  .stream = FIRST_STREAM + on,
                                  .who = "app",
                                  .why = ""};
    call(gen, &event);
}

void um_gen_release(um_gen_t *gen, uint32_t region)
{
    um_event_t event = {.type = UM_EV_REGION_FREE};

    if (um_gen_failed(gen))
        return;
    event.u.region_free =
        (um_ev_region_free_t){.region = region, .addr = region_of(gen, region)->addr};
    region_of(gen, region)->bytes = 0;
    call(gen, &event);
}

/* Whole pages inside the region; false = nothing is left. */
static bool range(um_gen_t *gen, um_ev_access_t *access)
{
    const gen_region_t *r = region_of(gen, access->region);
    uint64_t from = access->addr & ~(uint64_t)(UM_PAGE_BYTES - 1);
    uint64_t end =
        (access->addr + access->bytes + UM_PAGE_BYTES - 1) & ~(uint64_t)(UM_PAGE_BYTES - 1);

    if (end > r->bytes)
        end = r->bytes;
    if (access->bytes == 0 || from >= end)
        return false;
    access->addr = r->addr + from;
    access->bytes = end - from;
    return true;
}

/* ---- work -------------------------------------------------------------------------------------- */

uint32_t um_gen_kernel(um_gen_t *gen, const char *mangled, const char *params)
{
    um_param_t list[UM_GEN_ARGS_MAX];
    um_event_t event = {.type = UM_EV_KERNEL};
    uint32_t n = 0, at = 0;

    for (; params[n] != '\0' && n < UM_GEN_ARGS_MAX; n++) {
        uint32_t bytes = params[n] == 'i' ? 4 : 8;

        at = (at + bytes - 1) & ~(bytes - 1);
        list[n] = (um_param_t){at, bytes, 0};
        if (params[n] == 'p' || params[n] == 'c')
            list[n].flags = UM_PARAM_POINTER;
        if (params[n] == 'c')
            list[n].flags |= UM_PARAM_CONST_POINTER;
        at += bytes;
    }
    event.u.kernel = (um_ev_kernel_t){.kernel = ++gen->n_kernels,
                                      .name = mangled,
                                      .n_params = n,
                                      .layout_known = 1,
                                      .params = list};
    put(gen, &event, gen->now_ns, TID);
    return gen->n_kernels;
}

void um_gen_launch(um_gen_t *gen, uint32_t kernel, uint32_t stream, int32_t device,
                   uint64_t threads)
{
    uint64_t blocks = (threads + 255) / 256;

    /* the x of a grid holds 2^31-1 */
    if (blocks > INT32_MAX)
        blocks = INT32_MAX;
    gen->stream = stream % STREAMS;
    gen->launch = (um_event_t){.type = UM_EV_LAUNCH};
    gen->launch.u.launch = (um_ev_launch_t){
        .correlation = ++gen->n_launches,
        .kernel = kernel,
        .stream = FIRST_STREAM + (uint64_t)device * STREAMS + gen->stream,
        .context = (uint32_t)device + 1,
        .device = device,
        .grid = {blocks > 0 ? (uint32_t)blocks : 1, 1, 1},
        .block = {256, 1, 1},
        .args = gen->args,
    };
    gen->n_accesses = 0;
    gen->bytes = 0;
}

void um_gen_arg(um_gen_t *gen, uint32_t slot, uint32_t region, uint64_t at)
{
    um_ev_launch_t *l = &gen->launch.u.launch;

    if (l->n_args < UM_GEN_ARGS_MAX)
        gen->args[l->n_args++] =
            (um_arg_t){.slot = slot, .region = region, .region_offset_bytes = at};
}

void um_gen_access(um_gen_t *gen, um_access_kind_t kind, uint32_t region, uint64_t at,
                   uint64_t bytes, um_gen_order_t order)
{
    size_t n = gen->n_accesses;
    um_ev_access_t access = {.addr = at,
                             .bytes = bytes,
                             .device = gen->launch.u.launch.device,
                             .kind = kind,
                             .correlation = gen->launch.u.launch.correlation,
                             .region = region};

    if (um_gen_failed(gen) || !range(gen, &access))
        return;
    if (!um_grow(&gen->accesses, &gen->accesses_size, n + 1, sizeof *gen->accesses) ||
        !um_grow(&gen->steps, &gen->steps_size, n + 1, sizeof *gen->steps)) {
        gen->status = UM_ERR_NO_MEMORY;
        return;
    }
    gen->accesses[n] = access;
    gen->steps[n] = n == 0 ? 0 : gen->steps[n - 1] + (order == UM_GEN_AFTER);
    gen->n_accesses++;
    gen->bytes += access.bytes;
}

void um_gen_end(um_gen_t *gen)
{
    um_ev_launch_t *l = &gen->launch.u.launch;
    uint64_t *busy_ns = &gen->busy_ns[l->device][gen->stream];
    uint64_t *slot = &gen->ends[l->correlation % QUEUE];
    uint64_t steps = gen->n_accesses > 0 ? gen->steps[gen->n_accesses - 1] + 1 : 0, start_ns;
    uint64_t duration_ns =
        (uint64_t)((double)gen->bytes / UM_GEN_RATE * 1e9 * gen->options.compute);
    um_event_t event = {.type = UM_EV_KERNEL_EXEC};

    if (gen->now_ns < *slot)
        gen->now_ns = *slot;
    if (duration_ns < 2000) /* no kernel is shorter */
        duration_ns = 2000;
    if (duration_ns <= steps) /* one time for each access */
        duration_ns = steps + 1;
    call(gen, &gen->launch);
    start_ns = gen->now_ns > *busy_ns ? gen->now_ns : *busy_ns;
    event.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = l->correlation,
                                                .kernel = l->kernel,
                                                .duration_ns = duration_ns,
                                                .device = l->device,
                                                .context = l->context,
                                                .stream_id = gen->stream + 1,
                                                .grid = {l->grid[0], 1, 1},
                                                .block = {256, 1, 1}};
    put(gen, &event, start_ns, 0);
    for (size_t i = 0; i < gen->n_accesses; i++) {
        event = (um_event_t){.type = UM_EV_ACCESS};
        event.u.access = gen->accesses[i];
        put(gen, &event, start_ns + duration_ns / (steps ? steps : 1) * gen->steps[i], 0);
    }
    *busy_ns = *slot = start_ns + duration_ns;
}

void um_gen_host(um_gen_t *gen, um_access_kind_t kind, uint32_t region, uint64_t at, uint64_t bytes)
{
    um_event_t event = {.type = UM_EV_ACCESS};
    um_ev_access_t access = {
        .addr = at, .bytes = bytes, .device = UM_DEVICE_HOST, .kind = kind, .region = region};

    if (um_gen_failed(gen) || !range(gen, &access))
        return;
    gen->now_ns += (uint64_t)((double)access.bytes / HOST_RATE * 1e9) + 1;
    event.u.access = access;
    put(gen, &event, gen->now_ns, TID);
}

static void wait_until(um_gen_t *gen, um_sync_kind_t kind, uint64_t stream, uint32_t context,
                       uint64_t until_ns)
{
    um_event_t event = {.type = UM_EV_SYNC};

    event.u.sync =
        (um_ev_sync_t){.sync = ++gen->n_syncs, .kind = kind, .context = context, .stream = stream};
    put(gen, &event, gen->now_ns, TID);
    gen->now_ns += CALL_NS;
    if (gen->now_ns < until_ns)
        gen->now_ns = until_ns;
    event.u.sync.exit = 1;
    put(gen, &event, gen->now_ns, TID);
}

void um_gen_wait(um_gen_t *gen)
{
    for (uint32_t gpu = 0; gpu < gen->options.gpus; gpu++) {
        uint64_t until_ns = 0;

        for (uint32_t i = 0; i < STREAMS; i++)
            if (gen->busy_ns[gpu][i] > until_ns)
                until_ns = gen->busy_ns[gpu][i];
        wait_until(gen, UM_SYNC_DEVICE, 0, gpu + 1, until_ns);
    }
}

void um_gen_wait_stream(um_gen_t *gen, uint32_t stream, int32_t device)
{
    stream %= STREAMS;
    wait_until(gen, UM_SYNC_STREAM, FIRST_STREAM + (uint64_t)device * STREAMS + stream,
               (uint32_t)device + 1, gen->busy_ns[device][stream]);
}

/* ---- the whole --------------------------------------------------------------------------------- */

static void begin(um_gen_t *gen)
{
    for (uint32_t gpu = 0; gpu < gen->options.gpus; gpu++) {
        um_event_t event = {.type = UM_EV_DEVICE};
        char uuid[64];

        snprintf(uuid, sizeof uuid, "GPU-00000000-0000-0000-0000-%012u", gpu);
        event.u.device =
            (um_ev_device_t){.device = (int32_t)gpu,
                             .cc_major = 9,
                             .sm_count = 132,
                             .memory_bytes = MEMORY_BYTES,
                             .attributes =
                                 UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED | UM_DEVICE_POOLS,
                             .name = UM_GEN_GPU,
                             .uuid = uuid,
                             .pci = ""};
        put(gen, &event, gen->now_ns, TID);
        event = (um_event_t){.type = UM_EV_CONTEXT};
        event.u.context = (um_ev_context_t){gpu + 1, (int32_t)gpu, UM_CONTEXT_CREATED};
        put(gen, &event, gen->now_ns, TID);
    }
}

static void end(um_gen_t *gen)
{
    um_gen_wait(gen);
    for (uint32_t i = 1; i <= gen->n_regions; i++)
        if (region_of(gen, i)->bytes > 0)
            um_gen_release(gen, i);
}

um_status_t um_gen_run(const um_gen_options_t *options, void (*run)(um_gen_t *gen), um_event_fn fn,
                       void *ctx)
{
    um_gen_t *gen = calloc(1, sizeof *gen);
    um_status_t status;

    if (!gen)
        return UM_ERR_NO_MEMORY;
    gen->options = *options;
    gen->fn = fn;
    gen->ctx = ctx;
    gen->random = options->seed;
    gen->now_ns = START_NS;
    gen->addr = FIRST_ADDR;
    begin(gen);
    run(gen);
    end(gen);
    status = gen->status;
    free(gen->regions);
    free(gen->accesses);
    free(gen->steps);
    free(gen);
    return status;
}
