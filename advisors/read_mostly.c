/*
 * read_mostly - duplicate what the GPU only reads and the CPU reads again and again.
 *
 * On an H200 a region with ReadMostly costs 89 ms a GiB once, and then both sides read it for nothing; but
 * a GPU that writes it takes 140 times as long. So: every launch that takes the region must do so through
 * a pointer to const (a fault's access type proves nothing: a kernel that reads and then writes reports
 * only reads), one block goes on trial first, and the first sign of a write takes it all back. A CPU that
 * writes shows in the trial: what is duplicated moves to the GPU again.
 *
 * The verdict is kept by place: a region that is allocated anew is spared the trial where the one before it
 * was worth its copies, and so is another run where two have come to the same verdict.
 */
#include <string.h>

#include "place.h"
#include "um_advisor.h"

#define REGIONS   1024u /* by id modulo this: the latest ones */
#define KERNELS   4096u /* likewise */
#define FIRST_BAN 64u   /* launches after a withdrawal; doubled each time */
#define TRIALS    3u    /* phases in which the block on trial must stay where it is */
#define TIGHT     256u  /* launches after an eviction without new copies */
#define CLEAN     8u    /* launches without a write before a range is tried */
#define VERDICTS  512u
#define PROBES    8u
#define PROVEN    2u /* runs that came to a verdict */
#define STALE     4u /* runs after which it has to be reached again */

typedef enum state {
    WATCHED = 0,
    TRYING,   /* one block is to be advised */
    ON_TRIAL, /* and is */
    CHOSEN,   /* the whole range is to be advised */
    FILLING,  /* and is; each side is to get its copy */
    KEPT,     /* and has */
    WITHDRAWN /* all is to be taken back */
} state_t;

/* AGAINST: somebody writes it, or its copies did not pay. */
typedef enum judgement { UNKNOWN = 0, WORTH_COPIES = 1, AGAINST = 2 } judgement_t;

typedef struct verdict {
    uint64_t place; /* 0 = free */
    uint64_t role;
    uint32_t judgement; /* judgement_t */
    uint32_t runs, age; /* how many came to it; how long ago the last one */
    bool own;           /* this run did */
    bool paid;          /* in this run: it was read often enough after */
    uint64_t from, to;  /* from the start of the region */
} verdict_t;

typedef struct region {
    uint32_t id;
    uint64_t role, place;
    bool spared;                  /* the trial: the verdict is known */
    bool promised;                /* the program says that nobody writes it */
    uint32_t takes;               /* launches that took it */
    uint32_t state;               /* state_t */
    uint32_t phase;               /* the CPU's phase in which it was last read */
    uint32_t reads, reads_before; /* phases in which it was read; when the trial began */
    uint32_t ban_until, ban;      /* in takes */
    bool foreign;                 /* the program advises on it itself */
    uint64_t addr, bytes;         /* of the allocation */
    uint64_t from, to;            /* what the CPU reads, whole blocks */
    uint64_t moved_bytes;         /* to the GPU since the advice, of what is advised */
    uint64_t others_bytes;        /* and of the rest, during the trial */
    uint64_t taken_bytes;         /* moved back to the CPU so far */
    uint64_t done_bytes;          /* of what the state asks for */
} region_t;

typedef struct kernel {
    uint32_t id;
    uint64_t is_const; /* bit i = parameter i points to const */
} kernel_t;

typedef struct read_mostly {
    uint64_t rounds, min, limit;
    uint64_t launches, tight; /* so far; until which one the GPU is taken to be full */
    uint32_t phase;           /* of the CPU: from a wait that follows a launch to the next such */
    bool launched;
    bool unknown; /* a launch whose arguments are not known may write anything */
    bool records; /* migrations are told: without them a trial shows nothing */
    region_t region[REGIONS];
    kernel_t kernel[KERNELS];
    um_places_t places;
    verdict_t verdict[VERDICTS];
} read_mostly_t;

static const um_advisor_option_t options[] = {
    {"rounds", "phases of the cpu that must have read a range before it is tried", 3, 1, 1000000,
     offsetof(read_mostly_t, rounds)},
    {"min", "bytes of the smallest range worth it", 65536, 0, UINT64_MAX,
     offsetof(read_mostly_t, min)},
    {"limit", "bytes of the largest range that is duplicated", (uint64_t)2 << 30, 0, UINT64_MAX,
     offsetof(read_mostly_t, limit)},
    {0},
};

static region_t *find(read_mostly_t *self, uint32_t id)
{
    region_t *region = &self->region[id % REGIONS];

    return id && region->id == id ? region : NULL;
}

static bool is_advised(const region_t *region)
{
    return region->state >= ON_TRIAL && region->state <= KEPT;
}

static uint64_t trial_end(const region_t *region)
{
    return region->to - region->from < UM_BLOCK_BYTES ? region->to : region->from + UM_BLOCK_BYTES;
}

/* The hint that takes the region to its next state; bytes 0 = none. */
static um_hint_t wanted(const region_t *region)
{
    static const struct {
        um_hint_kind_t kind;
        const char *why;
    } table[] = {[TRYING] = {UM_HINT_READ_MOSTLY, "only read by both: on trial"},
                 [CHOSEN] = {UM_HINT_READ_MOSTLY, "only read by both"},
                 [FILLING] = {UM_HINT_PREFETCH, "a copy of what both read"},
                 [KEPT] = {UM_HINT_NONE, ""},
                 [WITHDRAWN] = {UM_HINT_UNSET_READ_MOSTLY, "somebody writes it"}};
    um_hint_t hint = {.kind = table[region->state].kind,
                      .order = UM_ORDER_BEFORE,
                      .addr = region->from,
                      .device = UM_DEVICE_HOST,
                      .why = table[region->state].why};

    if (hint.kind != UM_HINT_NONE)
        hint.bytes = (region->state == TRYING ? trial_end(region) : region->to) - region->from;
    return hint;
}

/* ---- verdicts ---- */

static verdict_t *find_verdict(read_mostly_t *self, uint64_t place)
{
    for (uint32_t i = 0; place && i < PROBES; i++)
        if (self->verdict[(place + i) % VERDICTS].place == place)
            return &self->verdict[(place + i) % VERDICTS];
    return NULL;
}

/* Found, or a free one; NULL when there is no room. */
static verdict_t *verdict_of(read_mostly_t *self, uint64_t place, uint64_t role)
{
    verdict_t *verdict = find_verdict(self, place);

    for (uint32_t i = 0; place && !verdict && i < PROBES; i++)
        if (!self->verdict[(place + i) % VERDICTS].place) {
            verdict = &self->verdict[(place + i) % VERDICTS];
            *verdict = (verdict_t){.place = place, .role = role};
        }
    return verdict;
}

static void reach(read_mostly_t *self, const region_t *region, judgement_t judgement)
{
    verdict_t *verdict = verdict_of(self, region->place, region->role);

    if (!verdict)
        return;
    if (verdict->judgement != judgement)
        verdict->runs = 1;
    else if (!verdict->own)
        verdict->runs++;
    verdict->judgement = judgement;
    verdict->own = true;
    verdict->age = 0;
    verdict->from = region->from - region->addr;
    verdict->to = region->to - region->addr;
}

/* What is known of its place, when a region is new. */
static void inherit(read_mostly_t *self, region_t *region)
{
    const verdict_t *verdict = find_verdict(self, region->place);

    if (!verdict || verdict->to > region->bytes)
        return;
    if (verdict->judgement == AGAINST) {
        region->ban = region->ban_until = FIRST_BAN;
    } else if (verdict->own ? verdict->paid : verdict->runs >= PROVEN && verdict->age <= STALE) {
        region->spared = true;
        region->from = region->addr + verdict->from;
        region->to = region->addr + verdict->to;
    }
}

/* ---- evidence ---- */

static void withdraw(read_mostly_t *self, region_t *region)
{
    if (is_advised(region))
        reach(self, region, AGAINST);
    region->spared = region->promised = false;
    region->ban = region->ban ? 2 * region->ban : FIRST_BAN;
    region->ban_until = region->takes + region->ban;
    region->state = is_advised(region) ? WITHDRAWN : WATCHED;
    region->done_bytes = 0;
    region->reads = 0;
    region->taken_bytes = 0;
}

static void on_written(read_mostly_t *self, uint32_t id)
{
    region_t *region = find(self, id);

    if (!region)
        return;
    if (region->state != WATCHED && region->state != WITHDRAWN)
        withdraw(self, region);
    else if (region->ban_until < region->takes + CLEAN)
        region->ban_until = region->takes + CLEAN;
}

/* Adds what the CPU read to what it is known to read, by whole blocks; true when that grew. */
static bool widen(region_t *region, uint64_t addr, uint64_t end)
{
    uint64_t from = region->from, to = region->to;

    addr = addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    end = (end + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    if (addr < region->addr)
        addr = region->addr;
    if (end > region->addr + region->bytes)
        end = region->addr + region->bytes;
    if (from == to || addr < from)
        region->from = addr;
    if (from == to || end > to)
        region->to = end;
    return region->from != from || region->to != to;
}

/* As a skier buys skis once renting has cost as much: when as much has moved as a copy of it all would. */
static bool may_be_tried(const read_mostly_t *self, const region_t *region)
{
    return region->reads >= self->rounds && self->records && !region->foreign && !self->unknown &&
           region->takes >= region->ban_until && region->to - region->from >= self->min &&
           region->to - region->from <= self->limit &&
           region->taken_bytes >= region->to - region->from && self->launches >= self->tight;
}

static void on_read(read_mostly_t *self, uint32_t id, uint64_t addr, uint64_t end)
{
    region_t *region = find(self, id);

    if (!region || !region->takes || end <= addr)
        return;
    if (widen(region, addr, end) && region->state == KEPT)
        region->state = CHOSEN;
    if (region->phase == self->phase && region->reads)
        return;
    region->phase = self->phase;
    region->reads++;
    /* The rest went on moving, what is on trial did not. */
    if (region->state == ON_TRIAL && region->reads >= region->reads_before + TRIALS &&
        region->others_bytes)
        region->state = CHOSEN;
    if (region->state == WATCHED && may_be_tried(self, region))
        region->state = TRYING;
}

static uint64_t overlap(const um_ev_migrate_t *move, uint64_t from, uint64_t to)
{
    uint64_t end = move->addr + move->bytes;

    from = from > move->addr ? from : move->addr;
    to = to < end ? to : end;
    return to > from ? to - from : 0;
}

/* To the GPU. What is duplicated moves once: more, and the CPU writes it. */
static void on_moved(read_mostly_t *self, const um_ev_migrate_t *move)
{
    region_t *region = find(self, move->region);
    uint64_t advised, end;

    self->records = true;
    if (!region || !is_advised(region))
        return;
    end = region->state == ON_TRIAL ? trial_end(region) : region->to;
    advised = end - region->from;
    region->moved_bytes += overlap(move, region->from, end);
    region->others_bytes += overlap(move, end, region->to);
    if (region->moved_bytes > advised + advised / 2)
        withdraw(self, region);
}

static void on_migrate(read_mostly_t *self, const um_ev_migrate_t *move)
{
    region_t *region = find(self, move->region);

    if (move->cause == UM_CAUSE_EVICTION) {
        self->tight = self->launches + TIGHT;
    } else if (move->dst >= 0) {
        on_moved(self, move);
    } else if (region && move->dst == UM_DEVICE_HOST && move->cause != UM_CAUSE_USER) {
        region->taken_bytes += move->bytes;
        on_read(self, move->region, move->addr, move->addr + move->bytes);
    }
}

static void on_launch(read_mostly_t *self, const um_ev_launch_t *launch)
{
    const kernel_t *kernel = &self->kernel[launch->kernel % KERNELS];
    bool known = launch->kernel && kernel->id == launch->kernel && !launch->graph;

    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    self->launched = true;
    self->launches++;
    if (launch->flags & UM_LAUNCH_ARGS_UNKNOWN)
        self->unknown = true;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const um_arg_t *arg = &launch->args[i];
        region_t *region = find(self, arg->region);

        if (!region)
            continue;
        region->takes++;
        if (!region->promised && (!known || arg->slot >= 64 || arg->offset_bytes ||
                                  !(kernel->is_const >> arg->slot & 1)))
            on_written(self, arg->region);
        else if (self->unknown && !region->promised && is_advised(region))
            withdraw(self, region);
        else if (region->spared && region->state == WATCHED && !region->foreign &&
                 (!self->unknown || region->promised) && region->takes >= region->ban_until &&
                 self->launches >= self->tight)
            region->state = CHOSEN;
    }
}

static void on_kernel(read_mostly_t *self, const um_ev_kernel_t *kernel)
{
    kernel_t *entry = &self->kernel[kernel->kernel % KERNELS];

    *entry = (kernel_t){.id = kernel->kernel};
    for (uint32_t i = 0; kernel->layout_known && i < kernel->n_params && i < 64; i++)
        if (kernel->params[i].flags & UM_PARAM_CONST_POINTER)
            entry->is_const |= (uint64_t)1 << i;
}

/* By the guard: it did not win. All that is advised goes, range by range. */
static void on_taken_back(read_mostly_t *self, region_t *region)
{
    if (!is_advised(region))
        return;
    withdraw(self, region);
    region->state = WATCHED;
}

/* Our advice has been taken, or will not be. */
static void on_hint(read_mostly_t *self, const um_ev_hint_t *hint)
{
    region_t *region = find(self, hint->region);
    bool own = strcmp(hint->who, "read_mostly") == 0;

    if (!region)
        return;
    if (!own) {
        region->foreign |= hint->kind != UM_HINT_PREFETCH && strcmp(hint->who, "app") == 0;
        return;
    }
    if (hint->result != UM_HINT_APPLIED) {
        region->foreign |= hint->result == UM_HINT_FAILED;
        return;
    }
    if (region->state == WATCHED && hint->kind == UM_HINT_READ_MOSTLY)
        region->state = WITHDRAWN; /* somebody wrote while the advice was on its way */
    if (region->state != WITHDRAWN && hint->kind == UM_HINT_UNSET_READ_MOSTLY)
        on_taken_back(self, region);
    if (hint->kind != wanted(region).kind)
        return; /* said of a state that is over */
    region->done_bytes += hint->bytes;
    if (region->done_bytes < wanted(region).bytes)
        return;
    region->moved_bytes = region->others_bytes = region->done_bytes = 0;
    region->reads_before = region->reads;
    if (region->state == TRYING)
        region->state = trial_end(region) == region->to ? FILLING : ON_TRIAL;
    else if (region->state == CHOSEN)
        region->state = FILLING;
    else if (region->state == FILLING) {
        region->state = KEPT;
        reach(self, region, WORTH_COPIES);
    } else if (region->state == WITHDRAWN)
        region->state = WATCHED;
}

static void on_alloc(read_mostly_t *self, const um_ev_region_alloc_t *alloc)
{
    region_t *region = &self->region[alloc->region % REGIONS];

    /* One that is advised must not be forgotten. */
    if (alloc->family != UM_FAMILY_MANAGED || (region->id && region->state != WATCHED))
        return;
    if (region->id)
        um_place_leave(&self->places, region->place, region->id);
    *region = (region_t){.id = alloc->region,
                         .addr = alloc->addr,
                         .bytes = alloc->bytes,
                         .role = um_region_role(alloc),
                         .place = um_place_enter(&self->places, alloc)};
    inherit(self, region);
}

/* The program's word is as good as a verdict, until a write shows that it is not so. */
static void on_region_hint(read_mostly_t *self, const um_ev_region_hint_t *hint)
{
    region_t *region = find(self, hint->region);

    if (!region)
        return;
    region->promised = hint->flags & UM_REGION_HINT_READ_ONLY;
    if (!region->promised && is_advised(region))
        withdraw(self, region);
    if (!region->promised || region->state != WATCHED)
        return;
    region->spared = true;
    region->ban_until = region->takes;
    region->from = region->addr;
    region->to = region->addr + region->bytes;
}

static void on_free(read_mostly_t *self, uint32_t id)
{
    region_t *region = find(self, id);
    verdict_t *verdict = region ? find_verdict(self, region->place) : NULL;

    if (!region)
        return;
    if (verdict)
        verdict->paid =
            region->state == KEPT && region->reads >= region->reads_before + self->rounds;
    um_place_leave(&self->places, region->place, id);
    region->id = 0;
}

/* ---- from run to run ---- */

enum { JUDGEMENT = 0, FROM, TO };

static void on_learned(read_mostly_t *self, const um_ev_learned_t *learned)
{
    const uint64_t *value = learned->value;
    verdict_t *verdict;

    if (strcmp(learned->who, "read_mostly") != 0 || value[TO] <= value[FROM] ||
        (value[JUDGEMENT] != WORTH_COPIES && value[JUDGEMENT] != AGAINST) ||
        !(verdict = verdict_of(self, learned->shape, learned->role)))
        return;
    verdict->judgement = (uint32_t)value[JUDGEMENT];
    verdict->runs = learned->count < UINT32_MAX ? (uint32_t)learned->count : UINT32_MAX - 1;
    verdict->age = learned->age;
    verdict->from = value[FROM];
    verdict->to = value[TO];
}

static void tell_learned(const void *state, um_event_fn emit, void *ctx)
{
    const read_mostly_t *self = state;

    for (uint32_t i = 0; i < VERDICTS; i++) {
        const verdict_t *verdict = &self->verdict[i];
        um_event_t event = {.type = UM_EV_LEARNED};

        if (!verdict->judgement)
            continue;
        event.u.learned = (um_ev_learned_t){
            .what = "verdict",
            .kernel = "",
            .shape = verdict->place,
            .role = verdict->role,
            .slot = UM_SLOT_NONE,
            .age = verdict->own ? 0 : verdict->age,
            .count = verdict->runs,
            .value = {
                [JUDGEMENT] = verdict->judgement, [FROM] = verdict->from, [TO] = verdict->to}};
        emit(ctx, &event);
    }
}

static void observe(void *state, const um_event_t *event)
{
    read_mostly_t *self = state;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        on_alloc(self, &event->u.region_alloc);
        break;
    case UM_EV_REGION_FREE:
        on_free(self, event->u.region_free.region);
        break;
    case UM_EV_REGION_HINT:
        on_region_hint(self, &event->u.region_hint);
        break;
    case UM_EV_LEARNED:
        on_learned(self, &event->u.learned);
        break;
    case UM_EV_KERNEL:
        on_kernel(self, &event->u.kernel);
        break;
    case UM_EV_LAUNCH:
        on_launch(self, &event->u.launch);
        break;
    case UM_EV_SYNC:
        self->phase += event->u.sync.exit && self->launched;
        self->launched = self->launched && !event->u.sync.exit;
        break;
    case UM_EV_SET:
        on_written(self, event->u.set.region);
        break;
    case UM_EV_COPY:
        on_written(self, event->u.copy.dst_region);
        break;
    case UM_EV_GPU_FAULT:
        if (event->u.gpu_fault.access == UM_ACCESS_WRITE ||
            event->u.gpu_fault.access == UM_ACCESS_ATOMIC)
            on_written(self, event->u.gpu_fault.region);
        break;
    case UM_EV_THRASH:
        on_written(self, event->u.thrash.region);
        break;
    case UM_EV_CPU_FAULT:
        if (event->u.cpu_fault.access == UM_ACCESS_WRITE) /* where the source says so */
            on_written(self, event->u.cpu_fault.region);
        on_read(self, event->u.cpu_fault.region, event->u.cpu_fault.addr,
                event->u.cpu_fault.addr + 1);
        break;
    case UM_EV_RESIDENCY:
        if (event->u.residency.present_bytes == event->u.residency.bytes)
            on_read(self, event->u.residency.region, event->u.residency.addr,
                    event->u.residency.addr + event->u.residency.bytes);
        break;
    case UM_EV_MIGRATE:
        on_migrate(self, &event->u.migrate);
        break;
    case UM_EV_HINT:
        on_hint(self, &event->u.hint);
        break;
    default:
        break;
    }
}

/* ---- deciding ---- */

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const read_mostly_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    const region_t *region = &self->region[stretch->region % REGIONS];
    um_hint_t hint;
    um_extent_t extent;

    if (region->id != stretch->region || stretch->range_bytes > self->limit)
        return;
    /* So that what the CPU took is told. */
    um_view_extents(view, stretch->region, stretch->addr, stretch->bytes, &extent, 1);
    if (!stretch->first_of_region)
        return; /* once a launch is enough */
    hint = wanted(region);
    if (!hint.bytes)
        return;
    if (hint.kind != UM_HINT_PREFETCH) {
        um_hints_add(hints, &hint);
        return;
    }
    hint.order = UM_ORDER_RACING; /* copies: nothing is taken from the kernel */
    um_hints_add(hints, &hint);
    hint.device = um_view_launch(view)->device;
    um_hints_add(hints, &hint);
}

const um_advisor_ops_t um_advisor_read_mostly = {
    .abi = UM_ADVISOR_ABI,
    .name = "read_mostly",
    .doc = "what the gpu reads through pointers to const and the cpu reads often: a copy on each",
    .state_bytes = sizeof(read_mostly_t),
    .options = options,
    .observe = observe,
    .decide = decide,
    .learned = tell_learned,
};
