/* program_fake.h - a program on a GPU that is not there: its page tables follow its touches and the hints
 * that umrt makes of them, so that an advisor can be watched over many rounds. */
#ifndef UM_PROGRAM_FAKE_H
#define UM_PROGRAM_FAKE_H

#include <stdio.h>
#include <stdlib.h>

#include "hints_fake.h"

#define PROGRAM_HINTS 4096u

typedef struct program {
    um_executor_t executor; /* first */
    fake_tables_t tables;
    um_regions_t *regions;
    um_hinter_t *hinter;
    um_sink_t sink;
    uint64_t free_bytes;
    _Atomic bool waiting;
    uint32_t correlation;
    struct {
        uint64_t offset, bytes;
    } region[16]; /* by id */
    um_hint_t hint[PROGRAM_HINTS];
    unsigned n_hints;
} program_t;

static program_t program = {.free_bytes = 4096 * MIB};

static inline void feed(um_event_t event)
{
    program.sink.event(program.sink.ctx, &event);
}

static inline void program_post(void *ctx, const um_event_t *event)
{
    um_event_t now = *event;

    (void)ctx;
    if (!now.time_ns) /* as the runtime's own */
        now.time_ns = ++program.tables.now_ns;
    feed(now);
}

/* Does at once what it is told. */
static inline bool program_submit(um_executor_t *executor, const um_hint_t *hint, uint32_t context)
{
    (void)context;
    cr_assert_lt(program.n_hints, PROGRAM_HINTS);
    program.hint[program.n_hints++] = *hint;
    if (hint->kind == UM_HINT_PREFETCH)
        fake_set(&program.tables, hint->addr - FAKE_BASE, hint->bytes,
                 hint->device == UM_DEVICE_HOST);
    executor->done(executor->done_ctx, hint, UM_HINT_APPLIED, 0, 0);
    return true;
}

static inline bool program_free_bytes(um_executor_t *executor, uint32_t context, uint64_t *free,
                                      uint64_t *total)
{
    (void)executor;
    (void)context;
    *free = *total = program.free_bytes;
    return true;
}

static inline void program_cancel_id(um_executor_t *executor, uint32_t id)
{
    (void)executor;
    (void)id;
}

static inline void program_overtake(um_executor_t *executor, uint64_t addr, uint64_t bytes,
                                    int32_t device)
{
    (void)executor;
    (void)addr;
    (void)bytes;
    (void)device;
}

static inline void program_start(const char *advisors, const um_advisor_ops_t *const *table)
{
    static const um_executor_ops_t ops = {.name = "program",
                                          .submit = program_submit,
                                          .cancel_launch = program_cancel_id,
                                          .cancel_context = program_cancel_id,
                                          .overtake = program_overtake,
                                          .wait_over = program_cancel_id,
                                          .free_bytes = program_free_bytes};
    um_page_tables_t tables = fake_interface(&program.tables);
    um_hinter_config_t config = {.page_tables = &tables,
                                 .advisors = advisors,
                                 .table = table,
                                 .executor = &program.executor,
                                 .gate = {.piece_bytes = 32 * MIB},
                                 .post = program_post,
                                 .waiting = &program.waiting};

    program.executor.ops = &ops;
    program.tables.now_ns = 1;
    cr_assert_eq(um_regions_new(&program.regions), UM_OK);
    config.regions = program.regions;
    cr_assert_eq(um_hinter_new(&config, &program.hinter), UM_OK);
    program.sink = um_hinter_sink(program.hinter);
    feed(event_device(FAKE_GOOD_GPU));
}

static inline void program_stop(void)
{
    um_hinter_free(program.hinter);
    um_regions_free(program.regions);
}

static inline uint64_t tick(void);

/* Until then nobody is asked about regions that are new: there is no context to act in. */
static inline void program_has_a_context(void)
{
    um_event_t event = {.type = UM_EV_CONTEXT, .time_ns = tick()};

    event.u.context = (um_ev_context_t){1, FAKE_GPU, UM_CONTEXT_CREATED};
    feed(event);
}

static inline uint64_t tick(void)
{
    return program.tables.now_ns += 1000;
}

static inline void allocate(uint32_t id, uint64_t offset, uint64_t bytes)
{
    um_region_t region = {.family = UM_FAMILY_MANAGED,
                          .addr = FAKE_BASE + offset,
                          .bytes = bytes,
                          .id = id};

    cr_assert_eq(um_regions_add(program.regions, &region, NULL, 0, NULL), UM_OK);
    program.region[id].offset = offset;
    program.region[id].bytes = bytes;
    feed(event_alloc(tick(), id, FAKE_BASE + offset, bytes));
}

/* A kernel on these regions, whole; its pages go to the GPU. Returns how many hints were made. */
static inline unsigned run_on(uint64_t stream, uint32_t kernel, uint32_t n, const uint32_t *region)
{
    um_arg_t arg[8];
    um_event_t event;
    unsigned before = program.n_hints;

    for (uint32_t i = 0; i < n; i++)
        arg[i] = (um_arg_t){.slot = i, .region = region[i]};
    event = event_launch(tick(), ++program.correlation, arg, n);
    event.u.launch.kernel = kernel;
    event.u.launch.stream = stream;
    tick();
    feed(event);
    for (uint32_t i = 0; i < n; i++)
        fake_set(&program.tables, program.region[region[i]].offset, program.region[region[i]].bytes,
                 false);
    return program.n_hints - before;
}

static inline unsigned run(uint32_t kernel, uint32_t region)
{
    return run_on(0, kernel, 1, &region);
}

/* The CPU waits; returns how many hints were made as it entered. */
static inline unsigned wait_on(uint32_t kind, uint64_t stream)
{
    um_event_t enter = event_sync(tick(), kind, stream, 0);
    um_event_t leave = event_sync(tick(), kind, stream, 1);
    unsigned before = program.n_hints;

    enter.u.sync.sync = leave.u.sync.sync = ++program.correlation;
    feed(enter);
    before = program.n_hints - before;
    feed(leave);
    return before;
}

static inline unsigned wait_all(void)
{
    return wait_on(UM_SYNC_DEVICE, 0);
}

/* The CPU touches memory: seen in the page tables only. */
static inline void touch(uint64_t offset, uint64_t bytes)
{
    tick();
    fake_set(&program.tables, offset, bytes, true);
}

static inline bool on_host(uint64_t offset, uint64_t bytes)
{
    for (uint64_t at = offset; at < offset + bytes; at += UM_PAGE_BYTES)
        if (!program.tables.page[at / UM_PAGE_BYTES])
            return false;
    return true;
}

/* Hints from number `first` on by `who`, NULL = anybody; and their bytes. */
static inline unsigned hints_by(unsigned first, const char *who, uint32_t kind, uint64_t *bytes)
{
    unsigned n = 0;

    if (bytes)
        *bytes = 0;
    for (unsigned i = first; i < program.n_hints; i++) {
        const um_hint_t *hint = &program.hint[i];

        if ((who && strcmp(hint->who, who) != 0) || hint->kind != kind)
            continue;
        n++;
        if (bytes)
            *bytes += hint->bytes;
    }
    return n;
}

/* ---- what else is told of a program ---- */

/* A kernel of one pointer, to what it may not write or to what it may. */
static inline void define_kernel(uint32_t kernel, bool is_const)
{
    um_param_t param = {.size_bytes = 8,
                        .flags = is_const ? UM_PARAM_CONST_POINTER | UM_PARAM_POINTER
                                          : UM_PARAM_POINTER};
    um_event_t event = {.type = UM_EV_KERNEL, .time_ns = tick()};

    event.u.kernel = (um_ev_kernel_t){
        .kernel = kernel, .name = "k", .n_params = 1, .layout_known = 1, .params = &param};
    feed(event);
}

/* What CUPTI would tell of a move. */
static inline void record(uint32_t region, uint64_t offset, uint64_t bytes, int32_t to,
                          uint32_t cause)
{
    um_event_t event = {.type = UM_EV_MIGRATE, .time_ns = tick()};

    event.u.migrate = (um_ev_migrate_t){.addr = FAKE_BASE + offset,
                                        .bytes = bytes,
                                        .src = to < 0 ? FAKE_GPU : UM_DEVICE_HOST,
                                        .dst = to,
                                        .cause = cause,
                                        .region = region};
    feed(event);
}

/* A hint of these bytes from region 1's start on is in force: an advisor's, the guard's in its name, the program's. */
static inline void hint_in_force(const char *who, um_hint_kind_t kind, int32_t device,
                                 uint64_t bytes)
{
    um_event_t event = {.type = UM_EV_HINT, .time_ns = tick()};

    event.u.hint = (um_ev_hint_t){.kind = kind,
                                  .result = UM_HINT_APPLIED,
                                  .addr = FAKE_BASE,
                                  .bytes = bytes,
                                  .device = device,
                                  .region = 1,
                                  .who = who,
                                  .why = ""};
    feed(event);
}

/* The user's word on a region: UM_REGION_HINT_*. */
static inline void say(uint32_t region, uint32_t flags)
{
    um_event_t event = {.type = UM_EV_REGION_HINT, .time_ns = tick()};

    event.u.region_hint = (um_ev_region_hint_t){.region = region, .flags = flags};
    feed(event);
}

/* ---- from run to run ---- */

typedef struct kept {
    um_event_t event[16];
    char kernel[16][64]; /* the names: those of the events go with the run */
    unsigned n;
} kept_t;

static kept_t kept;

static inline void program_keep_one(void *ctx, const um_event_t *event)
{
    const char *who = ctx;

    cr_assert_eq(event->type, UM_EV_LEARNED);
    if (who && strcmp(event->u.learned.who, who) != 0)
        return;
    cr_assert_lt(kept.n, 16);
    snprintf(kept.kernel[kept.n], sizeof(kept.kernel[0]), "%s", event->u.learned.kernel);
    kept.event[kept.n] = *event;
    kept.event[kept.n].u.learned.kernel = kept.kernel[kept.n];
    kept.n++;
}

/* The run ends; what `who` learned in it is kept, NULL = anybody. */
static inline void program_stop_and_keep(const char *who)
{
    kept.n = 0;
    um_hinter_learned(program.hinter, program_keep_one, (void *)who);
    program_stop();
}

/* Another run begins, and is told what was known `age` runs ago. */
static inline void program_start_again(const char *advisors, uint32_t age)
{
    program = (program_t){.free_bytes = 4096 * MIB};
    program_start(advisors, NULL);
    for (unsigned i = 0; i < kept.n; i++) {
        kept.event[i].u.learned.age = age;
        feed(kept.event[i]);
    }
}

#endif
