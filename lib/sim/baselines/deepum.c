/*
 * deepum - a baseline: DeepUM's correlation tables (ASPLOS'23), as its public description has them.
 *
 * One table of kernels: after these three executions comes that one. For each kernel one table of 2 MiB
 * blocks: after a fault on this block come faults on those, the latest first, and where the faults of
 * the kernel begin. At a launch the chain of blocks is followed through the kernels predicted to come, and
 * prefetched; where room is short, what moved in longest ago and no predicted kernel uses is sent out
 * first. What differs: DeepUM sits in the driver, sees each fault as it is raised and chains at once; here
 * faults arrive as records and the chain is followed when a kernel is launched. Its rule for PyTorch's
 * inactive blocks has no counterpart.
 */
#include <string.h>

#include "advisors/mix.h"
#include "um_advisor.h"

#define EXECS      256u
#define ROWS       1024u /* blocks of one kernel, two places each */
#define SUCCESSORS 4u
#define SEQUENCES  4096u
#define FLIGHTS    256u
#define MOVED      65536u
#define AHEAD_MAX  32u
#define SCAN       4096u /* of the moved ones, for a victim */

typedef struct row {
    uint64_t block; /* 0 = free */
    uint32_t region;
    uint64_t next[SUCCESSORS]; /* the latest first */
} row_t;

/* A kernel with these arguments. */
typedef struct exec {
    uint64_t signature; /* 0 = free */
    uint64_t start, end;
    uint64_t current; /* faulted last in the present run, 0 = none yet */
    row_t row[ROWS];
} exec_t;

typedef struct sequence {
    uint64_t key, next;
} sequence_t;

typedef struct moved {
    uint64_t block;
    uint32_t region;
} moved_t;

typedef struct deepum {
    uint64_t ahead;
    uint64_t history[3]; /* signatures, the latest first */
    uint64_t path[AHEAD_MAX + 1];
    uint32_t n_path, first_new; /* of them, not yet chained at an earlier launch from there on */
    uint32_t first_flight, n_flights;
    struct {
        uint64_t signature;
        uint32_t correlation;
    } flight[FLIGHTS];
    uint64_t n_moved, oldest; /* numbers in `moved` */
    moved_t moved[MOVED];     /* a ring, in order of migration */
    struct {
        uint64_t block, number;
    } last_moved[MOVED]; /* by block */
    sequence_t sequence[SEQUENCES];
    exec_t exec[EXECS];
} deepum_t;

static const um_advisor_option_t options[] = {
    {"ahead", "kernels looked ahead", 8, 0, AHEAD_MAX, offsetof(deepum_t, ahead)},
    {0},
};

/* ---- tables ---- */

static exec_t *exec_at(deepum_t *self, uint64_t signature)
{
    return &self->exec[signature % EXECS];
}

static const exec_t *find_exec(const deepum_t *self, uint64_t signature)
{
    const exec_t *exec = &self->exec[signature % EXECS];

    return signature && exec->signature == signature ? exec : NULL;
}

/* NULL = not there. */
static const row_t *find_row(const exec_t *exec, uint64_t block)
{
    uint64_t at = um_mix(block, 0);

    for (uint32_t i = 0; i < 2; i++)
        if (exec->row[(at + i) % ROWS].block == block)
            return &exec->row[(at + i) % ROWS];
    return NULL;
}

static row_t *make_row(exec_t *exec, uint64_t block, uint32_t region)
{
    const row_t *found = find_row(exec, block);
    uint64_t at = um_mix(block, 0);
    row_t *row = &exec->row[at % ROWS];

    if (found)
        return &exec->row[found - exec->row];
    if (row->block)
        row = &exec->row[(at + 1) % ROWS];
    *row = (row_t){.block = block, .region = region};
    return row;
}

static void link_to(exec_t *exec, uint64_t from, uint64_t to)
{
    const row_t *found = find_row(exec, from);
    row_t *row = found ? &exec->row[found - exec->row] : NULL;
    uint32_t i = 0;

    if (!row || from == to)
        return;
    while (i < SUCCESSORS - 1 && row->next[i] != to)
        i++;
    memmove(&row->next[1], &row->next[0], i * sizeof(row->next[0]));
    row->next[0] = to;
}

static uint64_t key_of(const uint64_t history[3])
{
    return um_mix(um_mix(history[2], history[1]), history[0]);
}

static uint64_t next_of(const deepum_t *self, const uint64_t history[3])
{
    uint64_t key = key_of(history);
    const sequence_t *sequence = &self->sequence[key % SEQUENCES];

    return sequence->key == key ? sequence->next : 0;
}

/* ---- what moved ---- */

static void note_moved(deepum_t *self, uint64_t block, uint32_t region, bool in)
{
    uint64_t slot = um_mix(block, 1) % MOVED, number = ++self->n_moved;

    if (in)
        self->moved[number % MOVED] = (moved_t){.block = block, .region = region};
    self->last_moved[slot].block = block;
    self->last_moved[slot].number = in ? number : 0;
    if (self->n_moved - self->oldest >= MOVED)
        self->oldest = self->n_moved - MOVED + 1;
}

/* Still the latest that is known of its block? */
static bool is_in(const deepum_t *self, uint64_t number)
{
    uint64_t block = self->moved[number % MOVED].block;
    uint64_t slot = um_mix(block, 1) % MOVED;

    return block && self->last_moved[slot].block == block &&
           self->last_moved[slot].number == number;
}

static void note_range(deepum_t *self, uint32_t region, uint64_t addr, uint64_t bytes, bool in)
{
    for (uint64_t b = addr / UM_BLOCK_BYTES; bytes && b <= (addr + bytes - 1) / UM_BLOCK_BYTES; b++)
        note_moved(self, b, region, in);
}

/* ---- events ---- */

/* What comes now and after, as far as it is known. */
static void predict(deepum_t *self, uint64_t signature)
{
    uint64_t history[3] = {self->history[0], self->history[1], self->history[2]};
    uint64_t before[AHEAD_MAX + 1];
    uint32_t n_before = self->n_path;

    memcpy(before, self->path, sizeof(before));
    self->n_path = 0;
    while (signature && self->n_path <= self->ahead) {
        self->path[self->n_path++] = signature;
        signature = next_of(self, history);
        memmove(&history[1], &history[0], 2 * sizeof(history[0]));
        history[0] = signature;
    }
    self->first_new = 0;
    while (self->first_new + 1 < n_before && self->first_new < self->n_path &&
           before[self->first_new + 1] == self->path[self->first_new])
        self->first_new++;
}

static void on_launch(deepum_t *self, const um_ev_launch_t *launch)
{
    uint64_t signature = um_mix(launch->kernel, um_mix(launch->grid[0], launch->grid[1])), key;
    exec_t *exec;

    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    for (uint32_t i = 0; i < launch->n_args; i++)
        signature =
            um_mix(signature, um_mix(launch->args[i].region, launch->args[i].region_offset_bytes));
    signature = um_mix(signature, launch->graph) | 1;
    key = key_of(self->history);
    self->sequence[key % SEQUENCES] = (sequence_t){.key = key, .next = signature};
    memmove(&self->history[1], &self->history[0], 2 * sizeof(self->history[0]));
    self->history[0] = signature;
    exec = exec_at(self, signature);
    if (exec->signature != signature) {
        memset(exec, 0, sizeof(*exec));
        exec->signature = signature;
    }
    if (self->n_flights == FLIGHTS) {
        self->first_flight++;
        self->n_flights--;
    }
    self->flight[(self->first_flight + self->n_flights) % FLIGHTS].signature = signature;
    self->flight[(self->first_flight + self->n_flights++) % FLIGHTS].correlation =
        launch->correlation;
    predict(self, signature);
}

/* It has ended; the next in the row runs. */
static void on_exec(deepum_t *self, uint32_t correlation)
{
    for (uint32_t i = 0; i < self->n_flights; i++) {
        uint32_t at = (self->first_flight + i) % FLIGHTS;
        exec_t *exec = exec_at(self, self->flight[at].signature);

        if (self->flight[at].correlation != correlation)
            continue;
        if (exec->signature == self->flight[at].signature)
            exec->current = 0;
        self->first_flight += i + 1;
        self->n_flights -= i + 1;
        return;
    }
}

static void on_fault(deepum_t *self, const um_ev_gpu_fault_t *fault)
{
    uint64_t block = fault->addr / UM_BLOCK_BYTES;
    exec_t *exec;

    if (!self->n_flights || !fault->region)
        return;
    exec = exec_at(self, self->flight[self->first_flight % FLIGHTS].signature);
    if (exec->signature != self->flight[self->first_flight % FLIGHTS].signature ||
        exec->current == block)
        return;
    make_row(exec, block, fault->region);
    if (!exec->start)
        exec->start = block;
    else /* a first fault that is not the usual one comes after all that did not fault */
        link_to(exec, exec->current ? exec->current : exec->end, block);
    exec->current = exec->end = block;
    note_moved(self, block, fault->region, true);
}

static void observe(void *state, const um_event_t *event)
{
    deepum_t *self = state;
    const um_ev_hint_t *hint = &event->u.hint;
    const um_ev_migrate_t *move = &event->u.migrate;

    switch (event->type) {
    case UM_EV_LAUNCH:
        on_launch(self, &event->u.launch);
        break;
    case UM_EV_KERNEL_EXEC:
        on_exec(self, event->u.kernel_exec.correlation);
        break;
    case UM_EV_GPU_FAULT:
        on_fault(self, &event->u.gpu_fault);
        break;
    case UM_EV_MIGRATE:
        if (move->dst == UM_DEVICE_HOST)
            note_range(self, move->region, move->addr, move->bytes, false);
        break;
    case UM_EV_HINT:
        if (hint->kind == UM_HINT_PREFETCH && hint->result == UM_HINT_APPLIED)
            note_range(self, hint->region, hint->addr, hint->bytes, hint->device >= 0);
        break;
    default:
        break;
    }
    for (uint32_t i = 0; i < 4 && self->oldest < self->n_moved && !is_in(self, self->oldest); i++)
        self->oldest++;
}

/* ---- deciding ---- */

/* Neighbouring blocks become one call. */
typedef struct run {
    um_hints_t *hints;
    int32_t device;
    const char *why;
    uint64_t addr, end;
} run_t;

static void flush(run_t *run)
{
    if (run->end > run->addr)
        um_hints_add(run->hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                              .order = UM_ORDER_RACING,
                                              .addr = run->addr,
                                              .bytes = run->end - run->addr,
                                              .device = run->device,
                                              .why = run->why});
    run->addr = run->end = 0;
}

/* The block's part of its region that is on the device, or that is not: adds it, returns its bytes. */
static uint64_t put(run_t *run, const um_view_t *view, uint32_t region, uint64_t block,
                    bool is_there)
{
    uint64_t addr, bytes, from = block * UM_BLOCK_BYTES, to = from + UM_BLOCK_BYTES;
    um_extent_t extent;

    if (!um_view_region(view, region, &addr, &bytes))
        return 0;
    from = from > addr ? from : addr;
    to = to < addr + bytes ? to : addr + bytes;
    if (from >= to || !um_view_extents(view, region, from, to - from, &extent, 1) ||
        (extent.where == UM_WHERE_DEVICE || extent.where == UM_WHERE_BOTH) != is_there)
        return 0;
    if (run->hints) {
        if (from != run->end)
            flush(run);
        run->addr = run->addr ? run->addr : from;
        run->end = to;
    }
    return to - from;
}

/* Follows a kernel's chain from its first block, each block once. */
static uint64_t chain(const exec_t *exec, const um_view_t *view, run_t *run)
{
    uint64_t seen[ROWS / 64] = {0}, bytes = 0;
    uint16_t queue[ROWS];
    uint32_t n = 0, head = 0;
    uint64_t block = exec->start;

    for (uint32_t i = SUCCESSORS;;) {
        const row_t *row = block ? find_row(exec, block) : NULL;
        uint32_t at = row ? (uint32_t)(row - exec->row) : 0;

        if (row && !(seen[at / 64] >> at % 64 & 1)) {
            seen[at / 64] |= (uint64_t)1 << at % 64;
            queue[n++] = (uint16_t)at;
            bytes += put(run, view, row->region, row->block, false);
        }
        if (i == SUCCESSORS) {
            if (head == n)
                break;
            i = 0;
            head++;
        }
        block = exec->row[queue[head - 1]].next[i++];
    }
    return bytes;
}

static bool is_wanted(const deepum_t *self, uint64_t block)
{
    for (uint32_t i = 0; i < self->n_path; i++) {
        const exec_t *exec = find_exec(self, self->path[i]);

        if (exec && find_row(exec, block))
            return true;
    }
    return false;
}

static void send_out(const deepum_t *self, const um_view_t *view, um_hints_t *hints, uint64_t bytes)
{
    run_t run = {.hints = hints, .device = UM_DEVICE_HOST, .why = "no kernel in sight uses it"};
    uint64_t sent = 0;

    for (uint64_t i = self->oldest; i <= self->n_moved && i < self->oldest + SCAN && sent < bytes;
         i++) {
        const moved_t *moved = &self->moved[i % MOVED];

        if (is_in(self, i) && !is_wanted(self, moved->block))
            sent += put(&run, view, moved->region, moved->block, true);
    }
    flush(&run);
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const deepum_t *self = state;
    int32_t device = um_view_launch(view)->device;
    run_t counting = {.device = device};
    run_t run = {.hints = hints, .device = device, .why = "the chain of its kernel"};
    uint64_t missing = 0, room = um_view_room_bytes(view, device);

    if (!um_view_stretch(view)->first_of_launch)
        return; /* once is enough */
    for (uint32_t i = self->first_new; i < self->n_path; i++)
        if (find_exec(self, self->path[i]))
            missing += chain(find_exec(self, self->path[i]), view, &counting);
    if (missing > room)
        send_out(self, view, hints, missing - room);
    for (uint32_t i = self->first_new; i < self->n_path && missing; i++)
        if (find_exec(self, self->path[i]))
            chain(find_exec(self, self->path[i]), view, &run);
    flush(&run);
}

const um_advisor_ops_t um_baseline_deepum = {
    .abi = UM_ADVISOR_ABI,
    .name = "deepum",
    .doc =
        "what faulted in the kernels predicted to come, by kernel and block correlation (DeepUM)",
    .state_bytes = sizeof(deepum_t),
    .options = options,
    .observe = observe,
    .decide = decide,
    .blind = true,
};
