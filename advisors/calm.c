/*
 * calm - stop a range from going to and fro: keep it with the CPU and let the GPU reach it there.
 *
 * A range that the CPU takes back after a few launches each time is given the CPU as its place
 * (PreferredLocation) and the GPU access to it (AccessedBy), and nobody prefetches it meanwhile. On an H200
 * a kernel goes once through 1 GiB over the link in 21-25 ms, as long as bringing it takes, and the CPU
 * has it for nothing instead of in 180 ms. (The driver has a detector of its own, but every migration asked for
 * resets it, and ours are asked for.)
 *
 * Two things can be wrong with that. The kernel may go through the range many times: so a quarter is
 * kept first, and the time the CPU then waits for the GPU tells. And the CPU may stop using the range,
 * which what is kept no longer shows: so of a large range its last block is left out, as a witness that
 * is to go on going to and fro; a small one is let go from time to time.
 */
#include <string.h>

#include "roles.h"
#include "um_advisor.h"

#define REGIONS      1024u                          /* by id modulo this: the latest ones */
#define PHASES       64u                            /* looked back over */
#define BEFORE       4u                             /* phases that say how long one takes */
#define AFTER        8u                             /* likewise, once it is kept */
#define SMALL        ((uint64_t)32 << 20)           /* below, it is worth waiting for BEFORE */
#define LARGE        ((uint64_t)4 * UM_BLOCK_BYTES) /* from here on with a trial and a witness */
#define TINY         ((uint64_t)256 << 10)          /* so much costs a launch next to nothing */
#define TINY_THREADS 16384u /* of so few threads: an atomic over the link takes 1 us (H200) */

typedef enum state {
    WATCHED = 0,
    TRIED, /* a quarter is kept */
    KEPT,
    RELEASING /* is to be let go */
} state_t;

/* From the end of one wait that followed a launch to the end of the next. */
typedef struct phase {
    uint64_t total_ns;    /* all of it; 0 = it was the first */
    uint64_t waited_ns;   /* from the last launch to the end of the wait */
    uint64_t moved_bytes; /* what the launches found with the CPU, or kept there */
    uint64_t saved_ns;    /* of the CPU's time, by what was kept */
    uint64_t advice_ns;   /* inside the driver, for our own advice */
} phase_t;

typedef struct region {
    uint32_t id;
    uint32_t state; /* state_t */
    uint64_t addr, bytes, role;
    uint32_t takes;                   /* launches that took it */
    uint32_t used_phase;              /* of the last of them */
    uint64_t threads;                 /* of the largest launch */
    uint32_t phases;                  /* in a row in which it was taken */
    uint32_t phase_takes, last_takes; /* launches in the latest of them and in the one before */
    int32_t device;
    bool foreign;   /* the program advises on it itself, several GPUs use it, or it is a pool's */
    bool told;      /* keeping regions of its role has been found to win */
    bool gpu_first; /* the GPU was the first to touch it */
    /* going to and fro */
    uint32_t rounds, wanted;        /* in a row; how many it takes */
    uint32_t seen;                  /* the launch (of `takes`) before which the CPU took it last */
    uint32_t uses;                  /* launches since the time before */
    uint64_t seen_from, seen_to;    /* what it took then */
    uint64_t from, to;              /* what goes to and fro; of what is kept, witness and all */
    uint64_t least_ns, most_ns;     /* waited in a round but the first; 0 = not known */
    uint64_t first_ns, first_bytes; /* waited in the first, and moved */
    uint64_t before_ns,
        before_least_ns; /* a phase before it was kept: the mean of the latest, the least */
    uint32_t before;     /* of so many */
    /* kept */
    uint64_t kept_to;     /* [from, kept_to) is */
    uint32_t since, term; /* `takes` when it began; how long it may last without a witness */
    uint32_t passed;      /* waits since that were short enough */
    uint64_t after_ns, after_least_ns; /* the first phases since: added up, the least */
    uint32_t after;                    /* so many */
} region_t;

typedef struct calm {
    uint64_t rounds, limit, term, link, worth;
    uint32_t phase;
    bool launched;
    uint64_t launch_ns; /* of the last launch */
    uint64_t left_ns;   /* when the last phase ended; 0 = there was none */
    phase_t now;
    phase_t past[PHASES];
    region_t region[REGIONS];
    um_roles_t roles;
} calm_t;

static const um_advisor_option_t options[] = {
    {"rounds", "times in a row that a range must have gone to and fro", 1, 1, 1000000,
     offsetof(calm_t, rounds)},
    {"limit", "bytes of the largest range that is kept with the cpu", (uint64_t)2 << 30, 0,
     UINT64_MAX, offsetof(calm_t, limit)},
    {"term", "launches after which a small range is let go to see; doubled each time", 128, 8,
     1000000, offsetof(calm_t, term)},
    {"link", "GB/s, of the link", 45, 1, 10000, offsetof(calm_t, link)},
    {"worth", "times over the link that a kernel may take longer for what the cpu saves", 6, 1,
     1000, offsetof(calm_t, worth)},
    {0},
};

#define FAULT_NS 65000u  /* a fault of the CPU; H200 */
#define SLACK_NS 200000u /* of a wait */
#define SURE     2u      /* waits that were short enough */
#define MANY     64u     /* rounds after which what has lost is tried again */

static const char WHY_TRIAL[] = "goes to and fro: a quarter first";
static const char WHY_SMALL[] = "goes to and fro";
static const char WHY_TOLD[] = "goes to and fro, as it did before";
static const char WHY_REST[] = "the quarter did well";

static region_t *find(calm_t *self, uint32_t id)
{
    region_t *region = &self->region[id % REGIONS];

    return id && region->id == id ? region : NULL;
}

/* Of what is kept the last block is left out. */
static bool has_witness(const region_t *region)
{
    return region->state == TRIED || region->to > region->kept_to;
}

static uint64_t whole_blocks(uint64_t addr)
{
    return addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
}

/* ---- roles ---- */

static void conclude(calm_t *self, const region_t *region, um_verdict_t verdict)
{
    um_role_t *role = um_roles_conclude(&self->roles, region->role, verdict);

    role->first = region->from - region->addr;
    role->end = region->to - region->addr;
    role->gpu_first = region->gpu_first;
}

/* What a region of its role is best kept of; NULL = nothing is known, or it does not fit. */
static const um_role_t *winning(const calm_t *self, const region_t *region)
{
    const um_role_t *role = um_roles_find(&self->roles, region->role);

    return role && role->verdict == UM_WINS && role->end <= region->bytes ? role : NULL;
}

/* ---- to and fro ---- */

static bool half_the_same(const region_t *region)
{
    uint64_t from = region->from > region->seen_from ? region->from : region->seen_from;
    uint64_t to = region->to < region->seen_to ? region->to : region->seen_to;
    uint64_t both = to > from ? to - from : 0;

    return 2 * both >= region->to - region->from && 2 * both >= region->seen_to - region->seen_from;
}

/* What the CPU is spared by keeping so many bytes: at least a fault. */
static uint64_t saved_ns(const calm_t *self, uint64_t bytes)
{
    return self->worth * bytes / self->link + FAULT_NS;
}

/* Is the GPU through it so often in a round that moving it is worth while? */
static bool too_often(const calm_t *self, uint64_t bytes, uint32_t uses)
{
    return uses * (bytes / self->link) > saved_ns(self, bytes);
}

/* How many rounds in a row there are, the one that this launch ends included. */
static uint32_t rounds_now(const calm_t *self, const region_t *region)
{
    if (region->seen != region->takes || region->seen_to == region->seen_from ||
        too_often(self, region->seen_to - region->seen_from, region->uses))
        return 0;
    return region->rounds && half_the_same(region) ? region->rounds + 1 : 1;
}

/* What was seen before an earlier launch becomes a round. */
static void end_round(const calm_t *self, region_t *region)
{
    if (too_often(self, region->seen_to - region->seen_from, region->uses)) {
        region->rounds = 0;
    } else if (region->rounds && half_the_same(region)) {
        region->rounds++;
        region->from = region->seen_from < region->from ? region->seen_from : region->from;
        region->to = region->seen_to > region->to ? region->seen_to : region->to;
    } else {
        region->rounds = 1;
        region->from = region->seen_from;
        region->to = region->seen_to;
    }
}

static void on_taken(calm_t *self, uint32_t id, uint64_t addr, uint64_t end)
{
    region_t *region = find(self, id);
    uint32_t launch;

    if (!region || !region->takes || end <= addr)
        return;
    self->now.moved_bytes += end - addr;
    addr = addr / UM_PAGE_BYTES * UM_PAGE_BYTES;
    end = (end + UM_PAGE_BYTES - 1) / UM_PAGE_BYTES * UM_PAGE_BYTES;
    if (region->state != WATCHED && (addr >= region->to || end <= region->kept_to))
        return; /* not what was left out */
    /* Between the launches of two phases it is told for the one that comes. */
    launch = region->takes + !self->launched;
    if (launch != region->seen || region->seen_to == region->seen_from) {
        if (region->seen_to > region->seen_from && region->state == WATCHED)
            end_round(self, region);
        region->uses = launch - (region->seen ? region->seen : 1);
        region->seen = launch;
        region->seen_from = addr;
        region->seen_to = end;
    }
    region->seen_from = addr < region->seen_from ? addr : region->seen_from;
    region->seen_to = end > region->seen_to ? end : region->seen_to;
}

/* ---- launches ---- */

static void release(calm_t *self, region_t *region, uint32_t wanted, um_verdict_t verdict)
{
    region->state = RELEASING;
    region->wanted = wanted;
    if (verdict != UM_VERDICT_NONE)
        conclude(self, region, verdict);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t scaled(uint64_t ns, uint64_t by, uint64_t over)
{
    return over ? (uint64_t)((double)ns * (double)by / (double)over) : 0;
}

/* Is the wait as long as the link makes it, or as it was before, and no longer than that by more than
 * what the CPU saves? */
static bool short_enough(const calm_t *self, const region_t *region, const phase_t *phase)
{
    uint64_t base_ns = 2 * phase->moved_bytes / self->link;

    base_ns = larger(base_ns, region->least_ns);
    if (!region->least_ns) /* as the first round, which may have had more in it, but no less */
        base_ns =
            larger(base_ns, scaled(region->first_ns, phase->moved_bytes, region->first_bytes));
    if (region->kept_to - region->from <= TINY) /* it is other things that waits differ by */
        base_ns = 2 * larger(base_ns, region->most_ns);
    return phase->waited_ns <= base_ns + phase->saved_ns + phase->advice_ns + SLACK_NS;
}

/* Are whole phases longer than they were before? Phases differ, and so do the mean of a few and the mean of
 * a few others; the shortest is to be longer, too. Only the first few tell: the program goes on, and a later one may
 * be longer by itself. */
static bool slows_down(region_t *region, const phase_t *phase)
{
    if (region->after == AFTER)
        return false;
    if (!region->after || phase->total_ns < region->after_least_ns)
        region->after_least_ns = phase->total_ns;
    region->after_ns += phase->total_ns;
    if (++region->after < AFTER)
        return false;
    return region->before >= BEFORE &&
           region->after_ns / AFTER > region->before_ns + region->before_ns / 16 &&
           region->after_least_ns > region->before_least_ns + region->before_least_ns / 16;
}

/* A phase is over in which the range was kept. */
static void judge(calm_t *self, region_t *region, const phase_t *phase)
{
    if (slows_down(region, phase)) {
        release(self, region, MANY, UM_LOSES);
    } else if (short_enough(self, region, phase)) {
        if (++region->passed == SURE && region->state == KEPT)
            conclude(self, region, UM_WINS);
    } else if (region->least_ns || region->state == KEPT) {
        release(self, region, MANY, UM_LOSES);
    } else {
        /* Long, but so it may have been before. Others may be on trial at the same time. */
        release(self, region, 3 + region->id % 4, UM_VERDICT_NONE);
    }
}

static void learn_before(region_t *region, const phase_t *phase)
{
    if (!region->least_ns || phase->waited_ns < region->least_ns)
        region->least_ns = phase->waited_ns;
    if (phase->waited_ns > region->most_ns)
        region->most_ns = phase->waited_ns;
    if (!region->before || phase->total_ns < region->before_least_ns)
        region->before_least_ns = phase->total_ns;
    region->before += region->before < BEFORE;
    region->before_ns += ((int64_t)phase->total_ns - (int64_t)region->before_ns) / region->before;
}

/* The launch before was in an earlier phase. */
static void on_new_phase(calm_t *self, region_t *region)
{
    const phase_t *phase = &self->past[region->used_phase % PHASES];

    if (self->phase - region->used_phase >= PHASES)
        return; /* long ago */
    if (region->takes == 1 && region->state == WATCHED) {
        region->first_ns = phase->waited_ns;
        region->first_bytes = phase->moved_bytes;
    }
    if (region->state == TRIED || region->state == KEPT)
        judge(self, region, phase);
    else if (region->takes == 1 &&
             phase->waited_ns > 3 * phase->moved_bytes / self->link + SLACK_NS)
        region->wanted++; /* much computing, or the first time of all: let it be seen once more */
    else if (region->takes > 1)
        learn_before(region, phase);
}

/* The CPU has not come back for what it was left, or nobody can tell any more. */
static bool gone_quiet(const calm_t *self, const region_t *region)
{
    uint32_t last = region->seen > region->since ? region->seen : region->since;

    if (!has_witness(region))
        return region->takes >= region->since + region->term;
    return too_often(self, region->kept_to - region->from, region->takes - last);
}

static void on_take(calm_t *self, region_t *region, const um_ev_launch_t *launch)
{
    bool kept = region->state == TRIED || region->state == KEPT;
    uint64_t threads;

    if (region->takes && region->device != launch->device) {
        region->foreign = true;
        if (kept)
            release(self, region, MANY, UM_VERDICT_NONE);
    }
    region->device = launch->device;
    if (region->takes && region->used_phase != self->phase)
        on_new_phase(self, region);
    if (region->used_phase != self->phase || !region->takes) {
        region->phases = self->phase - region->used_phase <= 1 ? region->phases + 1 : 1;
        region->last_takes = region->phase_takes;
        region->phase_takes = 0;
    }
    region->phase_takes++;
    threads = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2] * launch->block[0] *
              launch->block[1] * launch->block[2];
    region->threads = threads > region->threads ? threads : region->threads;
    if (!region->takes++)
        self->now.moved_bytes += region->bytes; /* nobody tells at the first time */
    region->used_phase = self->phase;
    if (region->state != TRIED && region->state != KEPT)
        return;
    self->now.moved_bytes += region->kept_to - region->from;
    self->now.saved_ns += saved_ns(self, region->kept_to - region->from);
    if (gone_quiet(self, region))
        release(self, region, region->wanted < MANY ? 2 * region->wanted + 1 : MANY,
                UM_VERDICT_NONE);
}

static void on_launch(calm_t *self, const um_ev_launch_t *launch, uint64_t now_ns)
{
    if (launch->flags & UM_LAUNCH_CAPTURED)
        return;
    self->launched = true;
    self->launch_ns = now_ns;
    for (uint32_t i = 0; i < launch->n_args; i++) {
        region_t *region = find(self, launch->args[i].region);
        bool again = false;

        for (uint32_t k = 0; k < i && !again; k++)
            again = launch->args[k].region == launch->args[i].region;
        if (region && !again)
            on_take(self, region, launch);
    }
}

/* 0 = by the clock it was the other way round: events of other threads may come late. */
static uint64_t since(uint64_t then_ns, uint64_t now_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

static void on_left(calm_t *self, uint64_t now_ns)
{
    if (!self->launched)
        return;
    self->now.waited_ns = since(self->launch_ns, now_ns);
    self->now.total_ns = self->left_ns ? since(self->left_ns, now_ns) : 0;
    self->left_ns = now_ns;
    self->past[self->phase % PHASES] = self->now;
    self->now = (phase_t){0};
    self->launched = false;
    self->phase++;
}

/* ---- our advice, taken or not ---- */

/* So much is kept from now on: the launch under way has it there already. */
static void begin_keeping(calm_t *self, region_t *region, uint64_t from, uint64_t to)
{
    region->kept_to = to;
    region->passed = 0;
    if (self->launched) {
        self->now.moved_bytes += to - from;
        self->now.saved_ns += saved_ns(self, to - from);
    }
}

static void on_hint(calm_t *self, const um_ev_hint_t *hint)
{
    region_t *region = find(self, hint->region);
    uint64_t end = hint->addr + hint->bytes;

    if (!region)
        return;
    if (hint->kind == UM_HINT_PREFETCH && hint->device == UM_DEVICE_HOST &&
        hint->result == UM_HINT_APPLIED)
        on_taken(self, hint->region, hint->addr, end); /* for the CPU, which takes it there */
    if (strcmp(hint->who, "first_touch") == 0)
        region->gpu_first = true;
    if (strcmp(hint->who, "calm") != 0) {
        region->foreign |= hint->kind != UM_HINT_PREFETCH && strcmp(hint->who, "app") == 0;
        return;
    }
    self->now.advice_ns += hint->duration_ns;
    region->foreign |= hint->result == UM_HINT_FAILED;
    if (hint->result != UM_HINT_APPLIED)
        return;
    if (hint->kind == UM_HINT_UNSET_ACCESSED_BY) {
        if (region->state == TRIED || region->state == KEPT)
            region->wanted = MANY; /* the guard took it back: it did not win */
        region->state = WATCHED;
        region->told = false;
        region->rounds = region->phases = 0;
        region->seen_from = region->seen_to = 0;
    } else if (hint->kind == UM_HINT_ACCESSED_BY && region->state == WATCHED) {
        region->state = strcmp(hint->why, WHY_TRIAL) == 0 ? TRIED : KEPT;
        region->from = hint->addr;
        begin_keeping(self, region, hint->addr, end);
        region->to = strcmp(hint->why, WHY_SMALL) == 0 ? end : end + UM_BLOCK_BYTES;
        if (region->state == TRIED && region->seen_to > region->to)
            region->to = region->seen_to;
        region->since = region->takes;
        region->after_ns = region->after = 0;
        region->term = region->term ? 2 * region->term : (uint32_t)self->term;
    } else if (hint->kind == UM_HINT_ACCESSED_BY && end > region->kept_to) {
        region->state = KEPT;
        begin_keeping(self, region, region->kept_to, end);
    }
}

static void on_alloc(calm_t *self, const um_ev_region_alloc_t *alloc)
{
    region_t *region = &self->region[alloc->region % REGIONS];
    const um_role_t *role;

    /* One that is kept must not be forgotten. */
    if (alloc->family != UM_FAMILY_MANAGED || (region->id && region->state != WATCHED))
        return;
    *region = (region_t){.id = alloc->region,
                         .addr = alloc->addr,
                         .bytes = alloc->bytes,
                         .role = um_region_role(alloc),
                         .foreign = (alloc->flags & UM_REGION_POOL) != 0};
    region->told = winning(self, region) != NULL;
    role = um_roles_find(&self->roles, region->role);
    region->wanted = role && role->verdict == UM_LOSES ? MANY : (uint32_t)self->rounds;
}

static void learned(const void *state, um_event_fn emit, void *ctx)
{
    um_roles_tell(&((const calm_t *)state)->roles, "kept", emit, ctx);
}

static void observe(void *state, const um_event_t *event)
{
    calm_t *self = state;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        on_alloc(self, &event->u.region_alloc);
        break;
    case UM_EV_REGION_FREE:
        if (find(self, event->u.region_free.region))
            *find(self, event->u.region_free.region) = (region_t){0};
        break;
    case UM_EV_LAUNCH:
        on_launch(self, &event->u.launch, event->time_ns);
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit)
            on_left(self, event->time_ns);
        break;
    case UM_EV_CPU_FAULT:
        on_taken(self, event->u.cpu_fault.region, event->u.cpu_fault.addr,
                 event->u.cpu_fault.addr + 1);
        break;
    case UM_EV_MIGRATE:
        if (event->u.migrate.dst == UM_DEVICE_HOST && event->u.migrate.cause != UM_CAUSE_EVICTION)
            on_taken(self, event->u.migrate.region, event->u.migrate.addr,
                     event->u.migrate.addr + event->u.migrate.bytes);
        break;
    case UM_EV_RESIDENCY:
        if (event->u.residency.present_bytes == event->u.residency.bytes)
            on_taken(self, event->u.residency.region, event->u.residency.addr,
                     event->u.residency.addr + event->u.residency.bytes);
        break;
    case UM_EV_HINT:
        on_hint(self, &event->u.hint);
        break;
    case UM_EV_LEARNED:
        um_roles_learn_verdict(&self->roles, &event->u.learned, "calm", "kept");
        break;
    default:
        break;
    }
}

/* ---- deciding ---- */

/* Has the CPU written most of it? */
static bool is_on_host(const um_view_t *view, const region_t *region, uint64_t from, uint64_t to)
{
    um_extent_t extent[UM_VIEW_STRETCH_EXTENTS];
    uint64_t bytes = 0;

    for (uint64_t at = from; at < to; at += UM_VIEW_STRETCH_BYTES) {
        uint64_t part = to - at < UM_VIEW_STRETCH_BYTES ? to - at : UM_VIEW_STRETCH_BYTES;
        size_t n = um_view_extents(view, region->id, at, part, extent, UM_VIEW_STRETCH_EXTENTS);

        for (size_t i = 0; i < n; i++)
            bytes += extent[i].where == UM_WHERE_HOST ? extent[i].bytes : 0;
    }
    return 2 * bytes > to - from;
}

static bool is_tiny(const region_t *region)
{
    return region->bytes <= TINY && region->threads <= TINY_THREADS;
}

/* Of a tiny region nobody can tell whether it went to the GPU at all. It has been used there phase after
 * phase and is with the CPU: if the CPU did not take it back, keeping it costs nothing either. */
static bool is_tiny_and_back(const calm_t *self, const um_view_t *view, const region_t *region)
{
    return is_tiny(region) && region->phases >= 2 + region->wanted &&
           !too_often(self, region->bytes, region->last_takes) &&
           is_on_host(view, region, region->addr, region->addr + region->bytes);
}

/* What is to be kept from now on; false = nothing more. */
static bool plan(const calm_t *self, const um_view_t *view, const region_t *region, um_hint_t *out)
{
    const um_role_t *role = winning(self, region);
    uint64_t from = region->kept_to, to = whole_blocks(region->to - 1);
    uint64_t span = region->seen_to - region->seen_from;

    out->why = WHY_REST;
    if (region->state == WATCHED) {
        if (region->foreign)
            return false;
        if (region->told && region->takes == 1 && role &&
            is_on_host(view, region, region->addr + role->first, region->addr + role->end)) {
            from = region->addr + role->first;
            to = region->addr + role->end;
        } else if (rounds_now(self, region) >= region->wanted + (span < LARGE && !region->told) &&
                   (span >= SMALL || region->told || is_tiny(region) || region->before >= BEFORE)) {
            from = region->seen_from;
            to = region->seen_to;
        } else if (is_tiny_and_back(self, view, region)) {
            from = region->addr;
            to = region->addr + region->bytes;
        } else {
            return false;
        }
        out->why = to - from < LARGE ? WHY_SMALL : region->told ? WHY_TOLD : WHY_TRIAL;
        if (out->why == WHY_TRIAL)
            to = whole_blocks(from + (to - from) / 4);
        else if (out->why == WHY_TOLD)
            to = whole_blocks(to - 1); /* the witness */
    } else if (region->state != TRIED || !region->passed || !rounds_now(self, region) ||
               2 * (region->seen_to - region->seen_from) < region->to - region->kept_to) {
        return false;
    }
    out->addr = from;
    out->bytes = to - from;
    return to > from && to <= region->addr + region->bytes && to - from <= self->limit;
}

static void advise(um_hints_t *hints, um_hint_t hint, um_hint_kind_t kind, int32_t device)
{
    hint.kind = kind;
    hint.device = device;
    um_hints_add(hints, &hint);
}

/* So that what the CPU took of all of it is told before anything is said about the first part. */
static void look(const um_view_t *view, uint32_t region, uint64_t from, uint64_t end)
{
    um_extent_t extent;

    for (uint64_t at = from, stop; at < end; at = stop) {
        stop = end - at < UM_VIEW_STRETCH_BYTES ? end : at + UM_VIEW_STRETCH_BYTES;
        um_view_extents(view, region, at, stop - at, &extent, 1);
    }
}

static void decide(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const calm_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    const region_t *region = &self->region[stretch->region % REGIONS];
    bool first = stretch->first_of_region;
    um_hint_t hint = {.order = UM_ORDER_RACING};

    if (region->id != stretch->region || stretch->range_bytes > self->limit)
        return;
    if (first && region->state != RELEASING)
        look(view, region->id, region->state == WATCHED ? stretch->addr : region->kept_to,
             region->state == WATCHED ? stretch->addr + stretch->range_bytes : region->to);
    if (region->state == RELEASING && first) {
        hint.addr = region->from;
        hint.bytes = region->kept_to - region->from;
        hint.why = "it goes to and fro no more, or the link is too slow";
        advise(hints, hint, UM_HINT_UNSET_ACCESSED_BY, region->device);
        advise(hints, hint, UM_HINT_UNSET_PREFERRED_LOCATION, UM_DEVICE_HOST);
        return;
    }
    if (region->state == TRIED || region->state == KEPT)
        um_hints_hold(hints, region->from, region->kept_to - region->from);
    if (!plan(self, view, region, &hint))
        return;
    if (first) {
        advise(hints, hint, UM_HINT_PREFERRED_LOCATION, UM_DEVICE_HOST);
        advise(hints, hint, UM_HINT_ACCESSED_BY, region->device);
    }
    um_hints_hold(hints, hint.addr, hint.bytes);
}

static void decide_alloc(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const calm_t *self = state;
    const um_stretch_t *stretch = um_view_stretch(view);
    const region_t *region = &self->region[stretch->region % REGIONS];
    const um_role_t *role = region->id == stretch->region ? winning(self, region) : NULL;
    um_hint_t hint = {.order = UM_ORDER_RACING, .why = WHY_SMALL};
    uint64_t bytes = role ? role->end - role->first : 0;

    /* What the GPU touches first would be faulted in on the host, page by page. */
    if (!role || role->gpu_first || bytes > self->limit)
        return;
    hint.addr = stretch->addr + role->first;
    hint.bytes = bytes;
    if (bytes >= LARGE) {
        hint.why = WHY_TOLD;
        hint.bytes = whole_blocks(hint.addr + bytes - 1) - hint.addr; /* but for the witness */
    }
    advise(hints, hint, UM_HINT_PREFERRED_LOCATION, UM_DEVICE_HOST);
    advise(hints, hint, UM_HINT_ACCESSED_BY, um_view_device(view));
}

const um_advisor_ops_t um_advisor_calm = {
    .abi = UM_ADVISOR_ABI,
    .name = "calm",
    .doc = "what goes to and fro between cpu and gpu: kept with the cpu and reached from the gpu",
    .state_bytes = sizeof(calm_t),
    .options = options,
    .observe = observe,
    .decide = decide,
    .decide_alloc = decide_alloc,
    .learned = learned,
};
