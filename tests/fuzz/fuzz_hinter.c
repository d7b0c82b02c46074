/* The hint loop with every advisor, fed with any events in any order: clocks that go back, regions that are
 * nobody's, collide, or lie at the ends of memory, profiles that lie, drivers that fail, options as far as they go.
 * Never a crash; what is proposed lies in a live managed region, and nothing is left on its way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/regions.h"
#include "exec/hinter.h"

#define MIB       ((uint64_t)1 << 20)
#define REGIONS   64u
#define ARGS      1000u
#define IN_FLIGHT 256u

static const uint8_t *at, *end;

static uint64_t take(unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes && at < end; i++)
        value |= (uint64_t)*at++ << 8 * i;
    return value;
}

/* ---- a machine ---- */

static um_executor_t executor;
static um_hint_t flight[IN_FLIGHT];
static unsigned n_flight;
static um_regions_t *regions;
static uint64_t now, answers;

static bool submit(um_executor_t *self, const um_hint_t *hint, uint32_t context)
{
    um_region_t region;

    (void)self;
    (void)context;
    if (!um_regions_find(regions, hint->addr, &region) || region.family != UM_FAMILY_MANAGED ||
        !hint->bytes || hint->bytes > region.addr + region.bytes - hint->addr || !hint->why)
        abort();
    if (n_flight == IN_FLIGHT)
        return false;
    flight[n_flight++] = *hint;
    return true;
}

static void number(um_executor_t *self, uint32_t value)
{
    (void)self;
    (void)value;
}

static void range(um_executor_t *self, uint64_t addr, uint64_t bytes)
{
    (void)self;
    (void)addr;
    (void)bytes;
}

static void overtake(um_executor_t *self, uint64_t addr, uint64_t bytes, int32_t device)
{
    (void)self;
    (void)addr;
    (void)bytes;
    (void)device;
}

static bool free_bytes(um_executor_t *self, uint32_t context, uint64_t *free, uint64_t *total)
{
    (void)self;
    *free = context % 3 ? UINT64_MAX >> context % 64 : 0;
    *total = *free;
    return context % 5;
}

static uint64_t random_of(uint64_t seed)
{
    answers = (answers ^ seed) * 0x9e3779b97f4a7c15u;
    return answers >> 32;
}

static um_status_t present(void *ctx, uint64_t addr, uint64_t bytes, um_extent_t *out, size_t max,
                           size_t *n, uint64_t *present_bytes)
{
    uint64_t first = addr / UM_PAGE_BYTES * UM_PAGE_BYTES, pages = 1 + random_of(addr) % 2048;

    (void)ctx;
    *n = 0;
    *present_bytes = 0;
    if (random_of(bytes) % 8 == 0)
        return UM_ERR_IO;
    for (uint64_t to; first < addr + bytes && *n < max && *n < 8; first = to + UM_PAGE_BYTES) {
        to = first + pages * UM_PAGE_BYTES < addr + bytes ? first + pages * UM_PAGE_BYTES
                                                          : addr + bytes;
        out[(*n)++] = (um_extent_t){.addr = first < addr ? addr : first,
                                    .bytes = to - (first < addr ? addr : first)};
        *present_bytes += out[*n - 1].bytes;
    }
    return UM_OK;
}

static uint64_t host_bytes(void *ctx)
{
    (void)ctx;
    return answers % 3 ? UINT64_MAX >> answers % 64 : 0;
}

static bool page(void *ctx, uint64_t addr)
{
    (void)ctx;
    return random_of(addr) % 2;
}

static uint64_t now_ns(void *ctx)
{
    (void)ctx;
    return now;
}

/* ---- events ---- */

static um_hinter_t *hinter;
static um_sink_t sink;
static uint32_t id[REGIONS];
static uint64_t start[REGIONS], size[REGIONS];

static void feed(um_event_t *event)
{
    uint8_t step = (uint8_t)take(1);

    now = step < 8 ? now - step * MIB : now + ((uint64_t)1 << step % 40);
    event->time_ns = now;
    event->tid = step % 4;
    sink.event(sink.ctx, event);
}

static void post(void *ctx, const um_event_t *event)
{
    um_event_t copy = *event;

    (void)ctx;
    copy.time_ns = now;
    sink.event(sink.ctx, &copy);
}

/* Some outcome for what is on its way, in any order. */
static void outcome(void)
{
    unsigned i = n_flight ? (unsigned)take(1) % n_flight : 0;
    um_hint_t hint = flight[i];
    uint8_t how = (uint8_t)take(1);

    if (!n_flight)
        return;
    flight[i] = flight[--n_flight];
    executor.done(executor.done_ctx, &hint,
                  how % 8 == 0   ? UM_HINT_FAILED
                  : how % 8 == 1 ? UM_HINT_CANCELLED
                                 : UM_HINT_APPLIED,
                  how % 8 == 0, (uint64_t)1 << how % 32);
}

static void release(unsigned n)
{
    um_event_t event = {.type = UM_EV_REGION_FREE};

    if (!id[n])
        return;
    um_hinter_region_going(hinter, start[n], now);
    um_regions_remove(regions, start[n], NULL);
    event.u.region_free = (um_ev_region_free_t){.region = id[n], .addr = start[n]};
    feed(&event);
    id[n] = 0;
}

static const uint64_t length[] = {1,           512,     4096,     65536,     2 * MIB - 1, 2 * MIB,
                                  2 * MIB + 1, 3 * MIB, 64 * MIB, 300 * MIB, 5ULL << 30};

static void allocate(unsigned n)
{
    static const uint64_t base[] = {0x7e0000000000, 0x1000, 0,          UINT64_MAX - 64 * MIB,
                                    0x7fffffe00000, 1,      1ULL << 63, 0x7e0000000200};
    uint8_t where = (uint8_t)take(1), what = (uint8_t)take(1);
    um_region_t region = {.family = what % 16 ? UM_FAMILY_MANAGED : UM_FAMILY_DEVICE,
                          .addr = base[where % 8] + (where / 8) * length[what % 11],
                          .bytes = length[what % 11],
                          .device = -1,
                          .call_site = what % 3};
    um_event_t event = {.type = UM_EV_REGION_ALLOC};
    uint32_t stale[8];
    size_t n_stale = 0;

    release(n);
    if (um_regions_add(regions, &region, stale, 8, &n_stale) != UM_OK)
        return;
    for (unsigned k = 0; k < REGIONS; k++)
        for (size_t s = 0; s < n_stale && s < 8; s++)
            if (id[k] == stale[s])
                id[k] = 0;
    id[n] = region.id;
    start[n] = region.addr;
    size[n] = region.bytes;
    event.u.region_alloc = (um_ev_region_alloc_t){.region = region.id,
                                                  .family = region.family,
                                                  .addr = region.addr,
                                                  .bytes = region.bytes,
                                                  .device = UM_DEVICE_NONE,
                                                  .call_site = region.call_site};
    feed(&event);
}

/* Of what is there already, so that seeds stay what they are: integers, counters, addresses, floating point. */
static uint32_t scalars_of(uint8_t shape, um_scalar_t *out)
{
    static const uint64_t odd[] = {0,          1,          1000000,       UINT32_MAX,
                                   1ULL << 63, UINT64_MAX, 0x7e0000000000};
    uint32_t n = shape % 11;

    for (uint32_t i = 0; i < n; i++)
        out[i] = (um_scalar_t){.slot = i % 7 == 6 ? UINT32_MAX - i : 8 + i,
                               .size_bytes = shape % 13 == 12 ? shape : 4 + 4 * (i % 2),
                               .value = (answers + i) % 3   ? (shape / 11 + 1) * (100000 + i)
                                        : (answers + i) % 5 ? odd[(answers + i) / 8 % 7]
                                                            : answers};
    return n;
}

static void launch(void)
{
    static um_arg_t args[ARGS];
    static um_scalar_t scalars[11];
    um_event_t event = {.type = UM_EV_LAUNCH};
    uint8_t shape = (uint8_t)take(1), which = 0;
    uint32_t n = shape % 32 == 31 ? ARGS : shape % 8;

    for (uint32_t a = 0; a < n; a++) {
        unsigned k;

        which = a < 8 ? (uint8_t)take(1) : (uint8_t)(which + 7);
        k = which % REGIONS;
        args[a] = (um_arg_t){.slot = a,
                             .region = id[k] ? id[k] : which,
                             .region_offset_bytes = size[k] * (which / 64) / 2};
    }
    event.u.launch = (um_ev_launch_t){.correlation = (uint32_t)take(1),
                                      .kernel = shape / 8 % 8,
                                      .stream = shape % 3,
                                      .context = 1 + shape % 2,
                                      .device = shape / 64 - 1,
                                      .grid = {shape % 5 == 4 ? UINT32_MAX : shape % 5, 1, 1},
                                      .block = {shape % 7 * 32, 1, 1},
                                      .flags = shape == 77 ? UM_LAUNCH_CAPTURED : 0,
                                      .graph = shape % 11 == 0,
                                      .n_args = n,
                                      .n_scalars = scalars_of(shape, scalars),
                                      .args = args,
                                      .scalars = scalars};
    feed(&event);
}

/* A range of a region, or of anything. */
static void somewhere(uint32_t *region, uint64_t *addr, uint64_t *bytes)
{
    uint8_t which = (uint8_t)take(1), part = (uint8_t)take(1);
    unsigned k = which % REGIONS;

    *region = id[k];
    *addr = start[k] + size[k] / 16 * (part % 16);
    *bytes = part / 16 ? size[k] / 16 * (part / 16) : take(8);
}

static void sync_(void)
{
    um_event_t event = {.type = UM_EV_SYNC};
    uint8_t how = (uint8_t)take(1);

    event.u.sync = (um_ev_sync_t){.kind = how % 8,
                                  .stream = how % 3,
                                  .sync = how / 16,
                                  .context = 1 + how % 2,
                                  .exit = how / 8 % 2};
    feed(&event);
}

static void record(void)
{
    um_event_t event = {0};
    uint8_t what = (uint8_t)take(1);

    switch (what % 8) {
    case 0: {
        um_ev_migrate_t *m = &event.u.migrate;
        event.type = UM_EV_MIGRATE;
        somewhere(&m->region, &m->addr, &m->bytes);
        m->src = what / 8 % 4 - 1;
        m->dst = what / 32 % 4 - 1;
        m->cause = what % 5;
        break;
    }
    case 1:
        event.type = UM_EV_CPU_FAULT;
        somewhere(&event.u.cpu_fault.region, &event.u.cpu_fault.addr, &event.u.cpu_fault.pc);
        event.u.cpu_fault.access = what / 8 % 3;
        break;
    case 2:
        event.type = UM_EV_GPU_FAULT;
        somewhere(&event.u.gpu_fault.region, &event.u.gpu_fault.addr,
                  &event.u.gpu_fault.duration_ns);
        event.u.gpu_fault.access = what / 8 % 4;
        break;
    case 3: {
        um_ev_residency_t *r = &event.u.residency;
        event.type = UM_EV_RESIDENCY;
        somewhere(&r->region, &r->addr, &r->bytes);
        r->present_bytes = what / 8 % 2 ? r->bytes : 1;
        r->sync = what / 16;
        break;
    }
    case 4:
        event.type = UM_EV_SET;
        somewhere(&event.u.set.region, &event.u.set.addr, &event.u.set.bytes);
        break;
    case 5:
        event.type = UM_EV_COPY;
        somewhere(&event.u.copy.dst_region, &event.u.copy.dst_addr, &event.u.copy.bytes);
        break;
    case 6:
        event.type = UM_EV_REGION_HINT;
        event.u.region_hint.region = id[what / 8 % REGIONS];
        event.u.region_hint.flags = (uint32_t)take(1) % 8;
        break;
    default: {
        um_ev_hint_t *h = &event.u.hint;
        event.type = UM_EV_HINT;
        somewhere(&h->region, &h->addr, &h->bytes);
        h->kind = what / 8 % UM_HINT_KIND_COUNT;
        h->device = what / 64 - 1;
        h->result = UM_HINT_APPLIED;
        h->who = what % 2 ? "app" : "calm";
        h->why = "";
    }
    }
    feed(&event);
}

static void context(void)
{
    um_event_t event = {.type = UM_EV_CONTEXT};

    event.u.context = (um_ev_context_t){1, 0, UM_CONTEXT_CREATED};
    feed(&event);
}

static void kernel(void)
{
    static const char *const names[] = {"", "_Z1kPKfPf", "_Z1kPf", "k"};
    um_event_t event = {.type = UM_EV_KERNEL};
    uint8_t what = (uint8_t)take(1);
    um_param_t params[2] = {{0, 8, UM_PARAM_CONST_POINTER}, {8, 8, 0}};

    event.u.kernel = (um_ev_kernel_t){.kernel = what % 16 == 15 ? (uint32_t)take(4) : what % 8,
                                      .module_hash = what / 8 % 2,
                                      .name = names[what / 16 % 4],
                                      .n_params = what / 64 % 3,
                                      .layout_known = 1,
                                      .params = params};
    feed(&event);
}

static void learned(void)
{
    static const char *const who[] = {"footprint", "guard",       "calm",      "readback",
                                      "ahead",     "read_mostly", "placement", "sequence"};
    static const char *const what[] = {"extent",   "read",  "kept",   "copies", "calm",
                                       "readback", "",      "mapped", "used",   "stride",
                                       "launch",   "takes", "next"};
    um_event_t event = {.type = UM_EV_LEARNED};
    um_ev_learned_t *l = &event.u.learned;
    um_ev_region_alloc_t like = {0};
    uint8_t pick = (uint8_t)take(1);

    l->who = who[pick < 224 ? pick % 7 : 7];
    pick = (uint8_t)take(1);
    l->what = pick > 240 ? "integer" : what[pick < 128 ? pick % 7 : pick % 13];
    l->kernel = "_Z1kPKfPf";
    l->shape = take(2);
    l->role = take(1);
    like.bytes = length[l->role % 11];
    like.call_site = l->role / 11 % 3;
    if (l->role >= 64)
        l->role = um_region_role(&like);
    l->slot = (uint32_t)take(1);
    l->age = (uint32_t)take(1);
    l->count = take(2);
    for (int i = 0; i < UM_LEARNED_VALUES; i++)
        l->value[i] = take(1) % 2 ? take(8) : take(2);
    feed(&event);
}

/* What it has learned it can be told. */
static void learned_again(void *ctx, const um_event_t *event)
{
    (void)ctx;
    if (event->type != UM_EV_LEARNED || !event->u.learned.who || !event->u.learned.what)
        abort();
}

/* ---- a run ---- */

static void options(uint8_t how)
{
    static const char *const names[] = {"UMRT_CALM_LIMIT",      "UMRT_CALM_ROUNDS",
                                        "UMRT_CALM_TERM",       "UMRT_READBACK_MIN",
                                        "UMRT_READBACK_LIMIT",  "UMRT_READBACK_CHECK",
                                        "UMRT_AHEAD_MIN",       "UMRT_AHEAD_DENSE_LIMIT",
                                        "UMRT_FIRST_TOUCH_MIN", "UMRT_FIRST_TOUCH_LIMIT",
                                        "UMRT_PLACEMENT_MIN",   "UMRT_EVICT_RESERVE",
                                        "UMRT_READ_MOSTLY_MIN"};
    static const char *const values[] = {"0", "1", "18446744073709551615", "4096"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (how)
            setenv(names[i], values[(how + i * (how / 4)) % 4], 1);
        else
            unsetenv(names[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const um_executor_ops_t ops = {.name = "fuzz",
                                          .submit = submit,
                                          .cancel_range = range,
                                          .cancel_context = number,
                                          .cancel_launch = number,
                                          .overtake = overtake,
                                          .wait_over = number,
                                          .free_bytes = free_bytes};
    const um_page_tables_t tables = {.present = present, .page = page, .now_ns = now_ns};
    um_hinter_config_t config = {.executor = &executor, .advisors = "all", .post = post};
    um_share_config_t share = {.gpus = "/nowhere"};
    um_hinter_stats_t stats;

    at = data;
    end = data + bytes;
    executor = (um_executor_t){.ops = &ops};
    n_flight = 0;
    now = take(1) % 2 ? 1000000000000 : 1;
    answers = take(1);
    memset(id, 0, sizeof(id));
    memset(start, 0, sizeof(start));
    memset(size, 0, sizeof(size));
    um_log_set(UM_LOG_ERROR, NULL, NULL);
    options((uint8_t)take(1));
    config.page_tables = take(1) % 4 ? &tables : NULL;
    config.guard_per_mille = (uint32_t)take(1) % 2 ? 10 : 1000;
    config.guard_trial = take(1) % 4 == 0;
    config.gate.piece_bytes = take(1) % 4 ? 32 * MIB : take(8);
    /* Of a byte that is there already, so that seeds stay what they are. */
    config.gate.host_bytes = answers % 2 ? host_bytes : NULL;
    share.budget = (um_budget_t){(um_budget_kind_t)(answers / 2 % 4), answers << answers % 40};
    share.local_ranks = (uint32_t)answers % 9;
    if (answers % 3 && um_share_new(&share, &config.gate.share) != UM_OK)
        return 0;
    if (um_regions_new(&regions) != UM_OK)
        return 0;
    config.regions = regions;
    if (um_hinter_new(&config, &hinter) != UM_OK)
        abort();
    sink = um_hinter_sink(hinter);
    for (int32_t d = 0; d < 1 + (int32_t)(answers / 4 % 2); d++) {
        um_event_t event = {.type = UM_EV_DEVICE};
        event.u.device =
            (um_ev_device_t){.device = d,
                             .attributes = UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED,
                             .name = "gpu",
                             .uuid = "",
                             .pci = ""};
        feed(&event);
    }
    context();
    while (at < end) {
        uint8_t what = (uint8_t)take(1);

        switch (what % 16) {
        case 0:
        case 1:
            allocate(what / 16 % 4 ? what / 16 : (unsigned)take(1) % REGIONS);
            break;
        case 2:
            release((unsigned)take(1) % REGIONS);
            break;
        case 3:
            um_hinter_context_going(hinter, what / 16 % 3, now);
            break;
        case 4:
            kernel();
            break;
        case 5:
            learned();
            break;
        case 6:
        case 7:
            outcome();
            break;
        case 8:
        case 9:
            sync_();
            break;
        case 10:
            if (sink.idle)
                sink.idle(sink.ctx);
            break;
        case 11:
            record();
            break;
        default:
            launch();
        }
    }
    while (n_flight)
        outcome();
    um_hinter_learned(hinter, learned_again, NULL);
    um_hinter_stats(hinter, &stats);
    if (stats.gate.admitted != stats.gate.applied + stats.gate.failed + stats.gate.cancelled)
        abort();
    um_hinter_free(hinter);
    um_share_free(config.gate.share);
    um_regions_free(regions);
    return 0;
}
