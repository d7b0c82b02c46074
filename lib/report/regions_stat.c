#include "regions_stat.h"

#include <stdlib.h>
#include <string.h>

#include "region_parts.h"

#define CPU_SEEN 4096u
/* Page states: 32768 blocks are 64 GiB of touched managed memory and about 150 MiB of ours. */
#define BLOCKS_MAX 32768u
/* A copy answers a CPU fault of its block when it comes this soon after (the slowest seen: 0.3 ms). */
#define ANSWER_NS 5000000u

um_status_t um_regions_stat_init(um_regions_stat_t *stat)
{
    memset(stat, 0, sizeof(*stat));
    stat->blocks_left = BLOCKS_MAX;
    um_uses_init(&stat->uses);
    stat->cpu_seen = calloc(CPU_SEEN, sizeof(*stat->cpu_seen));
    return stat->cpu_seen ? UM_OK : UM_ERR_NO_MEMORY;
}

void um_regions_stat_free(um_regions_stat_t *stat)
{
    for (size_t i = 0; i < stat->n_live; i++)
        um_live_free(stat, stat->live[i]);
    for (size_t i = 0; i < stat->n_groups; i++)
        free(stat->groups[i].label);
    free(stat->live);
    free(stat->by_id);
    free(stat->groups);
    free(stat->shared);
    free(stat->cpu_seen);
    um_map_free(&stat->group_of);
    um_map_free(&stat->shared_of);
    um_uses_free(&stat->uses);
}

void um_regions_stat_end(um_regions_stat_t *stat, uint64_t now_ns)
{
    (void)now_ns;
    while (stat->n_live)
        um_live_retire(stat, stat->n_live - 1);
    memset(stat->cpu_seen, 0, CPU_SEEN * sizeof(*stat->cpu_seen));
    memset(&stat->cover, 0, sizeof(stat->cover));
    um_map_free(&stat->shared_of);
    um_uses_end(&stat->uses);
    stat->trace++;
}

/* ---- events ----------------------------------------------------------------------------------- */

static um_status_t on_alloc(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;
    um_live_t *live;
    um_status_t status;
    size_t at;

    if (!alloc->bytes || alloc->bytes > UM_ADDR_MAX || alloc->addr > UM_ADDR_MAX - alloc->bytes)
        return UM_OK;
    /* What overlaps is gone: its free was not seen, or it stood for unknown surroundings. */
    at = um_live_index(stat, alloc->addr);
    while (at < stat->n_live && stat->live[at]->addr < alloc->addr + alloc->bytes)
        um_live_retire(stat, at);
    live = calloc(1, sizeof(*live));
    if (!live)
        return UM_ERR_NO_MEMORY;
    live->id = alloc->region;
    live->addr = alloc->addr;
    live->bytes = alloc->bytes;
    live->family = alloc->family;
    live->call_site = alloc->call_site;
    live->flags = alloc->flags;
    live->alloc_ns = event->time_ns;
    status = um_group_get(stat, um_group_key(stat, live, NULL), &live->group);
    if (!status)
        status = um_live_insert(stat, live);
    if (status) {
        free(live);
        return status;
    }
    um_group_join(stat, live);
    at = um_live_index(stat, live->addr);
    if (at > 0)
        status = um_shared_meet(stat, stat->live[at - 1], live);
    if (!status && at + 1 < stat->n_live)
        status = um_shared_meet(stat, live, stat->live[at + 1]);
    return status;
}

static void on_free(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_region_free_t *freed = &event->u.region_free;
    size_t at = um_live_index(stat, freed->addr);

    if (at < stat->n_live && stat->live[at]->addr == freed->addr &&
        (!freed->region || stat->live[at]->id == freed->region)) {
        um_group_t *group = &stat->groups[stat->live[at]->group];

        if (group->freed && group->waits_at_free < stat->live[at]->use.waits_at_alloc)
            stat->live[at]->use.sums.syncs_between++;
        group->freed++;
        group->waits_at_free = stat->uses.waits;
        if (event->time_ns > stat->live[at]->alloc_ns)
            group->lifetime_ns += event->time_ns - stat->live[at]->alloc_ns;
        um_live_retire(stat, at);
    }
}

static void touched(um_live_t *live, bool gpu)
{
    live->active = true;
    if (gpu)
        live->gpu = true;
    else
        live->cpu = true;
    if (!live->first_toucher)
        live->first_toucher = gpu ? UM_TOUCHED_BY_GPU : UM_TOUCHED_BY_CPU;
}

/* The CPU's faults populate whole surroundings: none of the block's regions is untouched by it. */
static void cpu_in_block(um_regions_stat_t *stat, uint64_t addr)
{
    uint64_t block = addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES;

    for (size_t at = um_live_index(stat, block);
         at < stat->n_live && stat->live[at]->addr <= block + (UM_BLOCK_BYTES - 1); at++)
        stat->live[at]->cpu = true;
}

static struct um_cpu_fault_seen *cpu_seen(um_regions_stat_t *stat, uint64_t addr)
{
    return &stat->cpu_seen[addr / UM_BLOCK_BYTES % CPU_SEEN];
}

static void on_cpu_fault(um_regions_stat_t *stat, const um_event_t *event, bool running)
{
    const um_ev_cpu_fault_t *fault = &event->u.cpu_fault;
    um_live_t *live = um_regions_stat_find(stat, fault->addr);
    um_shared_page_t *shared = um_shared_at(stat, fault->addr);
    um_page_t *page;

    if (!live)
        return;
    touched(live, false);
    cpu_in_block(stat, fault->addr);
    live->sums.cpu_faults++;
    page = um_regions_stat_page(stat, live, fault->addr);
    if (page) {
        page->cpu_faults++;
        page->cpu_faults_running += running;
        page->pc = fault->pc;
    } else {
        stat->untracked++;
    }
    if (shared)
        um_shared_fault(shared, fault->addr, fault->pc, true);
    *cpu_seen(stat, fault->addr) = (struct um_cpu_fault_seen){.block = fault->addr / UM_BLOCK_BYTES,
                                                              .time_ns = event->time_ns,
                                                              .addr = fault->addr,
                                                              .pc = fault->pc,
                                                              .valid = true};
}

/* Returns what it adds to the time of faults. */
static uint64_t on_gpu_fault(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_gpu_fault_t *fault = &event->u.gpu_fault;
    um_live_t *live = um_regions_stat_find(stat, fault->addr);
    um_shared_page_t *shared = um_shared_at(stat, fault->addr);
    uint64_t charge =
        um_cover_charge(&stat->cover, fault->device, event->time_ns, fault->duration_ns);
    um_page_t *page;

    if (!live)
        return charge;
    touched(live, true);
    live->sums.gpu_faults++;
    live->sums.gpu_groups += fault->groups;
    live->sums.gpu_ns += charge;
    page = um_regions_stat_page(stat, live, fault->addr);
    if (page) {
        page->gpu_faults++;
        page->gpu_ns += charge;
        page->tail_bytes = page->tail_ns = 0;
        page->tail_copies = page->tail_faults = 0;
    } else {
        stat->untracked++;
    }
    if (shared) {
        um_shared_fault(shared, fault->addr, 0, false);
        shared->gpu_ns += charge;
    }
    return charge;
}

/* The copy answers a fault: the CPU waited from the fault to its end. */
static void charge_wait(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_migrate_t *migrate = &event->u.migrate;
    struct um_cpu_fault_seen *seen = cpu_seen(stat, migrate->addr);
    um_shared_page_t *shared;
    um_live_t *live;
    um_page_t *page;
    uint64_t wait;

    if (!seen->valid || seen->block != migrate->addr / UM_BLOCK_BYTES ||
        event->time_ns - seen->time_ns > ANSWER_NS)
        return;
    wait = um_cover_charge(&stat->cover, UM_DEVICE_HOST, seen->time_ns,
                           event->time_ns - seen->time_ns + migrate->duration_ns);
    live = um_regions_stat_find(stat, seen->addr);
    if (!live)
        return;
    live->sums.wait_ns += wait;
    shared = um_shared_at(stat, seen->addr);
    if (shared)
        shared->wait_ns += wait;
    page = um_regions_stat_page(stat, live, seen->addr);
    if (page) {
        page->wait_ns += wait;
        page->tail_ns += wait;
        page->tail_faults += !seen->answered;
    }
    seen->answered = true;
}

static void move_page(um_page_t *page, uint64_t bytes, bool in, bool begins, bool running)
{
    int8_t direction = in ? 1 : -1;

    page->turns += page->direction && page->direction != direction;
    page->direction = direction;
    if (in) {
        page->in_bytes += bytes;
        page->in_copies += begins;
        page->tail_bytes = page->tail_ns = 0;
        page->tail_copies = page->tail_faults = 0;
    } else {
        page->out_bytes += bytes;
        page->out_copies += begins;
        page->out_running += begins && running;
        page->tail_bytes += bytes;
        page->tail_copies += begins;
    }
}

typedef struct um_moving {
    um_regions_stat_t *stat;
    bool in, running, begins;
} um_moving_t;

static void move_piece(void *ctx, um_live_t *live, uint64_t addr, uint64_t bytes)
{
    um_moving_t *moving = ctx;
    um_regions_stat_t *stat = moving->stat;
    um_shared_page_t *shared = um_shared_at(stat, addr);
    um_page_t *page = um_regions_stat_page(stat, live, addr);

    live->active = true;
    live->cpu = live->gpu = true; /* there was something to move */
    if (moving->in) {
        /* The CPU had it, though nobody was seen to put it there. */
        if (live->first_toucher == UM_TOUCHED_BY_GPU && !live->sums.in_bytes &&
            !live->sums.out_bytes)
            live->first_toucher = UM_TOUCHED_BY_CPU_SURELY;
        live->sums.in_bytes += bytes;
        live->sums.in_copies += moving->begins;
    } else {
        live->sums.out_bytes += bytes;
        live->sums.out_copies += moving->begins;
    }
    if (page)
        move_page(page, bytes, moving->in, moving->begins, moving->running);
    else
        stat->untracked++;
    if (shared)
        um_shared_move(shared, addr, addr + bytes, moving->in);
    moving->begins = false;
}

/* A move that nobody asked for. */
static void on_fault_move(um_regions_stat_t *stat, const um_event_t *event, bool in, bool running)
{
    um_moving_t moving = {.stat = stat, .in = in, .running = running, .begins = true};

    if (!in) {
        stat->out_copies++;
        charge_wait(stat, event);
    }
    um_regions_stat_split(stat, event->u.migrate.addr, event->u.migrate.bytes, move_piece, &moving);
}

static void on_migrate(um_regions_stat_t *stat, const um_event_t *event, bool running)
{
    const um_ev_migrate_t *migrate = &event->u.migrate;
    bool in = migrate->dst >= 0 && migrate->src < 0, out = migrate->dst < 0 && migrate->src >= 0;
    um_live_t *live;

    if (!migrate->bytes || (!in && !out))
        return;
    if (migrate->cause != UM_CAUSE_USER && migrate->cause != UM_CAUSE_EVICTION) {
        on_fault_move(stat, event, in, running);
        return;
    }
    live = um_regions_stat_find(stat, migrate->addr);
    if (!live)
        return;
    live->active = true;
    live->gpu = true;
    if (migrate->cause == UM_CAUSE_EVICTION) {
        live->sums.evict_bytes += migrate->bytes;
    } else if (in) {
        live->cpu = true;
        live->sums.user_in_bytes += migrate->bytes;
    } else {
        live->cpu = true;
        live->sums.user_out_bytes += migrate->bytes;
    }
}

static void on_thrash(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_thrash_t *thrash = &event->u.thrash;
    um_live_t *live = um_regions_stat_find(stat, thrash->addr);
    uint64_t pages = thrash->bytes < UM_PAGE_BYTES ? 1 : thrash->bytes / UM_PAGE_BYTES;
    um_page_t *page;

    if (!live)
        return;
    live->active = true;
    live->sums.thrash += pages;
    page = um_regions_stat_page(stat, live, thrash->addr);
    if (page)
        page->thrash += pages > UINT16_MAX ? UINT16_MAX : (uint32_t)pages;
}

static void on_throttle(um_regions_stat_t *stat, const um_event_t *event)
{
    const um_ev_throttle_t *throttle = &event->u.throttle;
    um_live_t *live = um_regions_stat_find(stat, throttle->addr);
    uint64_t charge =
        um_cover_charge(&stat->cover, throttle->device, event->time_ns, throttle->duration_ns);
    um_page_t *page;

    if (!live)
        return;
    live->active = true;
    live->sums.throttles++;
    live->sums.throttle_ns += throttle->duration_ns;
    live->sums.gpu_ns += charge;
    page = um_regions_stat_page(stat, live, throttle->addr);
    if (page) {
        page->throttle_ns += throttle->duration_ns;
        page->gpu_ns += charge;
    }
}

static um_status_t collect(um_regions_stat_t *stat, const um_event_t *event, bool running,
                           uint64_t *charged_ns)
{
    um_live_t *live;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        return on_alloc(stat, event);
    case UM_EV_REGION_FREE:
        on_free(stat, event);
        break;
    case UM_EV_REGION_LABEL:
        live = um_regions_stat_by_id(stat, event->u.region_label.region);
        return live ? um_group_set_label(stat, live, event->u.region_label.label) : UM_OK;
    case UM_EV_CPU_FAULT:
        on_cpu_fault(stat, event, running);
        break;
    case UM_EV_GPU_FAULT:
        *charged_ns = on_gpu_fault(stat, event);
        break;
    case UM_EV_MIGRATE:
        on_migrate(stat, event, running);
        break;
    case UM_EV_THRASH:
        on_thrash(stat, event);
        break;
    case UM_EV_THROTTLE:
        on_throttle(stat, event);
        break;
    case UM_EV_REMOTE_MAP:
        live = um_regions_stat_find(stat, event->u.remote_map.addr);
        if (live) {
            live->active = true;
            live->gpu |= event->u.remote_map.dst >= 0;
            live->cpu |= event->u.remote_map.dst < 0 || event->u.remote_map.src < 0;
            live->sums.remote_maps++;
            live->sums.remote_bytes += event->u.remote_map.bytes;
        }
        break;
    case UM_EV_RESIDENCY:
        if (event->u.residency.present_bytes) {
            live = um_regions_stat_find(stat, event->u.residency.addr);
            if (live)
                live->cpu = true;
        }
        break;
    case UM_EV_HINT: /* to the host: somebody there wants it */
        if (event->u.hint.kind == UM_HINT_PREFETCH && event->u.hint.device < 0) {
            live = um_regions_stat_by_id(stat, event->u.hint.region);
            if (live)
                live->cpu = true;
        }
        break;
    case UM_EV_LAUNCH:
        for (uint32_t i = 0; i < event->u.launch.n_args; i++) {
            live = um_regions_stat_by_id(stat, event->u.launch.args[i].region);
            if (live)
                live->gpu = true;
        }
        break;
    default:
        break;
    }
    return UM_OK;
}

um_status_t um_regions_stat_event(um_regions_stat_t *stat, const um_event_t *event, bool running)
{
    uint64_t charged_ns = 0;
    um_status_t status = collect(stat, event, running, &charged_ns);

    return status ? status : um_uses_event(stat, event, charged_ns);
}
