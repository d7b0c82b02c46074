/*
 * Random operations on machines of one to four GPUs. After each: the invariants hold, the counters of
 * the work agree with the events that told of it, and what an access needs is there afterwards.
 */
#include <stdio.h>

#include "sim_uvm.h"

#define REGIONS       12
#define SPACE         (24 * BLOCK) /* in which regions begin */
#define PAGES         ((SPACE + 8 * BLOCK) / PAGE)
#define PAGE_OF(addr) (((addr)-BASE) / PAGE)

typedef struct world {
    um_uvm_t *uvm;
    uint64_t state; /* of the generator */
    uint32_t gpus;
    uint64_t now_ns;
    struct {
        uint32_t id;
        uint64_t addr, bytes;
    } region[REGIONS];
    uint32_t next_id;
    bool alive[PAGES]; /* touched, and not given up since */
    /* From the events of one operation. */
    uint64_t bytes_to_device, bytes_to_host, bytes_peer, tree_bytes, remote_bytes;
    uint32_t moves, cpu_faults, gpu_faults, throttles;
} world_t;

static uint64_t draw(world_t *world, uint64_t below)
{
    world->state ^= world->state << 13;
    world->state ^= world->state >> 7;
    world->state ^= world->state << 17;
    return world->state % below;
}

static void hear(void *ctx, const um_event_t *event)
{
    world_t *world = ctx;
    const um_ev_migrate_t *move = &event->u.migrate;

    switch (event->type) {
    case UM_EV_MIGRATE:
        world->moves++;
        if (move->dst == HOST)
            world->bytes_to_host += move->bytes;
        else if (move->src == HOST)
            world->bytes_to_device += move->bytes;
        else
            world->bytes_peer += move->bytes;
        if (move->src == HOST && move->cause == UM_CAUSE_PREFETCH)
            world->tree_bytes += move->bytes;
        break;
    case UM_EV_CPU_FAULT:
        world->cpu_faults++;
        break;
    case UM_EV_GPU_FAULT:
        world->gpu_faults += event->u.gpu_fault.groups;
        break;
    case UM_EV_REMOTE_MAP:
        world->remote_bytes += event->u.remote_map.bytes;
        break;
    case UM_EV_THROTTLE:
        world->throttles++;
        break;
    default:
        break;
    }
}

static int32_t anybody(world_t *world)
{
    return (int32_t)draw(world, world->gpus + 1) - 1;
}

static void set_alive(world_t *world, uint64_t addr, uint64_t bytes, bool alive)
{
    for (uint64_t page = PAGE_OF(addr); page <= PAGE_OF(addr + bytes - 1); page++)
        world->alive[page] = alive;
}

static void come_or_go(world_t *world)
{
    uint32_t i = (uint32_t)draw(world, REGIONS);
    bool small = draw(world, 2);

    if (world->region[i].id) {
        cr_assert_eq(um_uvm_release(world->uvm, world->region[i].id), UM_OK);
        set_alive(world, world->region[i].addr, world->region[i].bytes, false);
        world->region[i].id = 0;
        return;
    }
    world->region[i].addr = BASE + draw(world, SPACE / 512) * 512;
    world->region[i].bytes = 1 + draw(world, small ? 100000 : 6 * BLOCK);
    if (um_uvm_alloc(world->uvm, world->next_id, world->region[i].addr, world->region[i].bytes) ==
        UM_OK)
        world->region[i].id = world->next_id++;
}

/* A touch of a random piece of one block; a processor that naps comes back. */
static void touch(world_t *world, uint64_t addr, uint64_t bytes, um_uvm_work_t *work)
{
    um_access_kind_t kind = draw(world, 3) ? UM_ACCESS_READ : UM_ACCESS_WRITE;
    int32_t who = anybody(world);
    bool faults;
    uint64_t stop = (addr / BLOCK + 1) * BLOCK;
    uint32_t throttles = 0;

    if (draw(world, 2))
        bytes = 1 + draw(world, bytes < 20 * PAGE ? bytes : 20 * PAGE);
    if (addr + bytes > stop)
        bytes = stop - addr;
    faults = um_uvm_would_fault(world->uvm, who, addr, bytes, kind);
    for (int tries = 0; tries < 600; tries++) {
        um_uvm_work_t once = {0};

        cr_assert_eq(um_uvm_touch(world->uvm, who, addr, bytes, kind, world->now_ns, &once), UM_OK);
        um_uvm_work_add(work, &once);
        cr_assert(faults || !(once.throttles + once.gpu_faults + once.cpu_faults));
        if (!once.throttles) {
            set_alive(world, addr, bytes, true);
            cr_assert_not(um_uvm_would_fault(world->uvm, who, addr, bytes, kind));
            cr_assert(!faults || once.gpu_faults + once.cpu_faults);
            return;
        }
        throttles += once.throttles;
        world->now_ns += once.nap_ns;
    }
    cr_assert(false, "throttled %u times in one touch", throttles);
}

static void operate(world_t *world, um_uvm_work_t *work)
{
    static const um_hint_kind_t advice[] = {UM_HINT_READ_MOSTLY,
                                            UM_HINT_UNSET_READ_MOSTLY,
                                            UM_HINT_PREFERRED_LOCATION,
                                            UM_HINT_UNSET_PREFERRED_LOCATION,
                                            UM_HINT_ACCESSED_BY,
                                            UM_HINT_UNSET_ACCESSED_BY};
    uint32_t i = (uint32_t)draw(world, REGIONS);
    uint64_t addr, bytes, what = draw(world, 100);

    world->now_ns += draw(world, 3) ? draw(world, 300000) : draw(world, 3000000);
    if (!world->region[i].id || what < 3) {
        come_or_go(world);
        return;
    }
    addr = world->region[i].addr + draw(world, world->region[i].bytes);
    bytes = 1 + draw(world, world->region[i].addr + world->region[i].bytes - addr);
    if (what < 70)
        touch(world, addr, bytes, work);
    else if (what < 85)
        cr_assert_eq(um_uvm_prefetch(world->uvm, anybody(world), addr, bytes, world->now_ns, work),
                     UM_OK);
    else if (what < 97)
        cr_assert_eq(um_uvm_advise(world->uvm, advice[draw(world, 6)], anybody(world), addr, bytes,
                                   work),
                     UM_OK);
    else {
        cr_assert_eq(um_uvm_discard(world->uvm, addr, bytes, work), UM_OK);
        set_alive(world, addr, bytes, false);
    }
}

static void compare(const world_t *world, const um_uvm_work_t *work)
{
    cr_assert_eq(work->bytes_to_device, world->bytes_to_device);
    cr_assert_eq(work->bytes_to_host, world->bytes_to_host);
    cr_assert_eq(work->bytes_peer, world->bytes_peer);
    cr_assert_eq(work->prefetched_bytes, world->tree_bytes);
    cr_assert_eq(work->mapped_remote_bytes, world->remote_bytes);
    cr_assert_eq(work->cpu_faults, world->cpu_faults);
    cr_assert_eq(work->gpu_faults, world->gpu_faults);
    cr_assert_eq(work->throttles, world->throttles);
    cr_assert_eq(sim_transfers(work->transfers_to_device) + sim_transfers(work->transfers_to_host) +
                     sim_transfers(work->transfers_peer),
                 world->moves);
}

/* Extents follow each other over a whole region, and nothing that was touched is lost. */
static void look_around(const world_t *world)
{
    static um_extent_t extent[4096];

    for (uint32_t i = 0; i < REGIONS; i++) {
        uint64_t at = world->region[i].addr / PAGE * PAGE;
        size_t n;

        if (!world->region[i].id)
            continue;
        n = um_uvm_extents(world->uvm, world->region[i].addr, world->region[i].bytes, extent, 4096);
        cr_assert_leq(n, 4096);
        for (size_t k = 0; k < n; k++) {
            cr_assert_eq(extent[k].addr, at);
            for (uint64_t end = at + extent[k].bytes; at < end; at += PAGE)
                cr_assert(extent[k].where != UM_WHERE_UNTOUCHED || !world->alive[PAGE_OF(at)],
                          "page %llu is lost", (unsigned long long)PAGE_OF(at));
        }
        cr_assert_geq(at, world->region[i].addr + world->region[i].bytes);
    }
}

static void run(uint64_t seed, uint32_t gpus, uint64_t capacity, bool peers, uint32_t threshold)
{
    static world_t world;
    um_uvm_config_t config = {.n_gpus = gpus, .peers = peers, .event = hear, .event_ctx = &world};
    char error[200];

    world = (world_t){.state = seed * 0x9e3779b97f4a7c15ull + 1, .gpus = gpus, .next_id = 1};

    for (uint32_t i = 0; i < gpus; i++)
        config.capacity_bytes[i] = capacity;
    um_uvm_params_default(&config.params);
    config.params.uvm_perf_prefetch_threshold = threshold;
    cr_assert_eq(um_uvm_new(&config, &world.uvm), UM_OK);
    for (int i = 0; i < 4000; i++) {
        um_uvm_work_t work = {0};

        world.bytes_to_device = world.bytes_to_host = world.bytes_peer = 0;
        world.tree_bytes = world.remote_bytes = 0;
        world.moves = world.cpu_faults = world.gpu_faults = world.throttles = 0;
        operate(&world, &work);
        cr_assert(um_uvm_check(world.uvm, error, sizeof(error)), "seed %llu step %d: %s",
                  (unsigned long long)seed, i, error);
        compare(&world, &work);
        for (uint32_t gpu = 0; gpu < gpus; gpu++)
            cr_assert_leq(um_uvm_resident_bytes(world.uvm, (int32_t)gpu), capacity);
        if (i % 50 == 0)
            look_around(&world);
    }
    um_uvm_free(world.uvm);
}

Test(sim_uvm_random, one_gpu_with_little_memory)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        run(seed, 1, 5 * BLOCK, false, 51);
}

Test(sim_uvm_random, one_gpu_with_one_block)
{
    for (uint64_t seed = 11; seed <= 14; seed++)
        run(seed, 1, BLOCK, false, 51);
}

Test(sim_uvm_random, one_gpu_with_enough_memory_and_any_threshold)
{
    run(21, 1, 64 * BLOCK, false, 1);
    run(22, 1, 64 * BLOCK, false, 51);
    run(23, 1, 64 * BLOCK, false, 100);
}

Test(sim_uvm_random, peers)
{
    for (uint64_t seed = 31; seed <= 34; seed++)
        run(seed, 2 + seed % 3, 6 * BLOCK, true, 51);
}

Test(sim_uvm_random, gpus_without_a_link)
{
    for (uint64_t seed = 41; seed <= 44; seed++)
        run(seed, 2 + seed % 3, 6 * BLOCK, false, 51);
}
