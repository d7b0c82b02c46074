#include "gate.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "advised.h"
#include "core/log.h"
#include "in_force.h"
#include "uses.h"

#define MAX_DEVICES     32
#define MAX_IN_FLIGHT   1024u
#define MAX_GOING       256u
#define MAX_FAILURES    4u        /* in a row: the kind is switched off */
#define ASK_PERIOD_NS   5000000u  /* free memory is asked at most so often, */
#define ASK_REFUSING_NS 1000000u  /* or so often when a hint would be refused for it */
#define ASK_HOST_NS     50000000u /* and what the machine has left, which takes files */
#define FEWEST          16u       /* pieces in flight, whatever number of processes share a GPU */
#define FORGET_NS       10000000000u /* an outcome that takes longer was lost */

typedef struct piece {
    uint64_t addr, bytes, stream, submitted_ns;
    uint32_t kind, order, correlation, context;
    int32_t device;
    bool overtaken; /* cancelled by us; the outcome is still to come */
} piece_t;

typedef struct device {
    const char *no; /* why no hints are made for it */
    bool known, asked;
    uint64_t free_bytes;  /* at asked_ns */
    uint64_t share_bytes; /* of what is ours to fill: left then; UINT64_MAX = no limit */
    uint64_t asked_ns;
    uint64_t reserved_bytes; /* in flight then, and admitted since */
    uint64_t since_bytes;    /* admitted since */
} device_t;

/* A range or a context on its way out, and since when. */
typedef struct going {
    bool is_context;
    uint32_t context; /* 0 = all */
    uint64_t addr, bytes, when_ns;
} going_t;

struct um_gate {
    um_gate_config_t config;
    device_t device[MAX_DEVICES], host;
    piece_t *piece;
    uint64_t leaving_bytes;  /* on their way to the CPU, in front of whatever is submitted next */
    uint32_t most_in_flight; /* pieces: max_in_flight, or this process's part of it */
    uint32_t n_pieces, n_waiting;          /* n_waiting: of them, a wait's end is of interest to */
    uint32_t failures[UM_HINT_KIND_COUNT]; /* in a row */
    uint64_t second_ns;                    /* start of the second that in_second counts */
    uint32_t in_second;
    um_advised_t advised;
    um_uses_t uses;

    pthread_mutex_t lock;     /* held while a piece is submitted; guards what follows */
    going_t going[MAX_GOING]; /* a ring: the latest ones */
    uint32_t n_going;

    /* read by any thread */
    _Atomic uint64_t proposed, admitted, applied, failed, cancelled, applied_bytes;
    _Atomic uint64_t refused[UM_HINT_RESULT_COUNT];
    _Atomic uint32_t processes; /* on a GPU, the most */
};

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- devices and their memory ---- */

const char *um_gate_refuses(const um_ev_device_t *device)
{
    /* In order; the first that holds is the reason. */
    static const struct {
        uint32_t mask, value;
        const char *why;
    } rule[] = {
        {UM_DEVICE_MANAGED, 0, "the gpu has no managed memory"},
        {UM_DEVICE_CONCURRENT_MANAGED, 0,
         "concurrentManagedAccess is 0: the driver takes no prefetches here"},
        {UM_DEVICE_INTEGRATED, UM_DEVICE_INTEGRATED,
         "the gpu shares the cpu's memory: nothing has to move"},
        {UM_DEVICE_HOST_PAGE_TABLES, UM_DEVICE_HOST_PAGE_TABLES,
         "cpu and gpu share page tables: the hardware moves what is used"},
    };

    if (device->device < 0 || device->device >= MAX_DEVICES)
        return "more gpus than umrt knows to handle";
    for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++)
        if ((device->attributes & rule[i].mask) == rule[i].value)
            return rule[i].why;
    return NULL;
}

const char *um_gate_device(um_gate_t *gate, const um_ev_device_t *device)
{
    const char *no = um_gate_refuses(device);

    if (device->device < 0 || device->device >= MAX_DEVICES)
        return no;
    gate->device[device->device].known = true;
    gate->device[device->device].no = no;
    if (gate->config.share)
        um_share_device(gate->config.share, device);
    return no;
}

static uint64_t in_flight_bytes(const um_gate_t *gate, int32_t device)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < gate->n_pieces; i++)
        if (gate->piece[i].kind == UM_HINT_PREFETCH && gate->piece[i].device == device)
            bytes += gate->piece[i].bytes;
    return bytes;
}

/* Of its share of the device what it does not have there yet. */
static uint64_t left_of_share(const um_gate_t *gate, int32_t ordinal, uint64_t total,
                              uint64_t now_ns)
{
    const um_gate_config_t *config = &gate->config;
    uint64_t bytes, used;

    if (!config->share)
        return UINT64_MAX;
    bytes = um_share_bytes(config->share, ordinal, total, config->headroom_bytes, now_ns);
    if (bytes == UINT64_MAX)
        return bytes;
    used = config->device_bytes ? config->device_bytes(config->device_bytes_ctx, ordinal) : 0;
    return bytes > used ? bytes - used : 0;
}

/* Who shares a GPU shares its link: as much less is put into the queue. */
static void share_queue(um_gate_t *gate, uint32_t processes)
{
    uint32_t most = gate->config.max_in_flight / processes;

    if (processes > atomic_load_explicit(&gate->processes, memory_order_relaxed))
        atomic_store_explicit(&gate->processes, processes, memory_order_relaxed);
    gate->most_in_flight = most > FEWEST                         ? most
                           : FEWEST < gate->config.max_in_flight ? FEWEST
                                                                 : gate->config.max_in_flight;
}

static void ask(um_gate_t *gate, device_t *device, int32_t ordinal, uint32_t context,
                uint64_t now_ns)
{
    uint64_t total = 0;

    device->share_bytes = UINT64_MAX;
    if (ordinal == UM_DEVICE_HOST) {
        device->free_bytes = gate->config.host_bytes(gate->config.host_bytes_ctx);
    } else {
        if (!gate->config.executor->ops->free_bytes(gate->config.executor, context,
                                                    &device->free_bytes, &total))
            device->free_bytes = 0;
        device->share_bytes = left_of_share(gate, ordinal, total, now_ns);
        if (gate->config.share)
            share_queue(gate, um_share_processes(gate->config.share, ordinal, now_ns));
    }
    device->asked = true;
    device->asked_ns = now_ns;
    device->reserved_bytes = in_flight_bytes(gate, ordinal);
    device->since_bytes = 0;
}

static uint64_t less(uint64_t bytes, uint64_t taken)
{
    return bytes == UINT64_MAX ? bytes : bytes > taken ? bytes - taken : 0;
}

static uint64_t room(um_gate_t *gate, int32_t ordinal, uint32_t context, uint64_t now_ns,
                     uint64_t max_age_ns)
{
    device_t *device = ordinal == UM_DEVICE_HOST ? &gate->host : &gate->device[ordinal];
    uint64_t free, share;

    if (!device->asked || now_ns - device->asked_ns >= max_age_ns)
        ask(gate, device, ordinal, context, now_ns);
    if (ordinal == UM_DEVICE_HOST)
        return less(device->free_bytes, device->reserved_bytes);
    free = less(device->free_bytes + gate->leaving_bytes,
                gate->config.headroom_bytes + device->reserved_bytes);
    share = device->share_bytes == UINT64_MAX
                ? UINT64_MAX
                : less(device->share_bytes + gate->leaving_bytes, device->since_bytes);
    return free < share ? free : share;
}

static bool has_room(um_gate_t *gate, int32_t device, uint32_t context, uint64_t bytes,
                     uint64_t now_ns)
{
    if (device == UM_DEVICE_HOST)
        return room(gate, device, context, now_ns, ASK_HOST_NS) >= bytes;
    return room(gate, device, context, now_ns, ASK_PERIOD_NS) >= bytes ||
           room(gate, device, context, now_ns, ASK_REFUSING_NS) >= bytes;
}

uint64_t um_gate_room_bytes(um_gate_t *gate, const um_ev_launch_t *launch, uint64_t now_ns)
{
    if (launch->device < 0 || launch->device >= MAX_DEVICES)
        return 0;
    return room(gate, launch->device, launch->context, now_ns, ASK_PERIOD_NS);
}

/* ---- what is in flight ---- */

static uint64_t leaving(const piece_t *piece)
{
    return piece->kind == UM_HINT_PREFETCH && piece->device == UM_DEVICE_HOST &&
                   piece->order == UM_ORDER_RACING
               ? piece->bytes
               : 0;
}

/* Is it lost once the launch that it is made for is over? */
static bool is_racing(const piece_t *piece)
{
    return piece->kind == UM_HINT_PREFETCH && piece->order != UM_ORDER_AFTER &&
           piece->order != UM_ORDER_IDLE;
}

static void set_waiting(um_gate_t *gate, const piece_t *piece, int by)
{
    if (is_racing(piece) || piece->order == UM_ORDER_AFTER)
        gate->n_waiting += (uint32_t)by;
    if (gate->config.pending)
        atomic_store_explicit(gate->config.pending, gate->n_waiting, memory_order_relaxed);
}

static void drop(um_gate_t *gate, uint32_t i)
{
    set_waiting(gate, &gate->piece[i], -1);
    gate->leaving_bytes -= leaving(&gate->piece[i]);
    gate->piece[i] = gate->piece[--gate->n_pieces];
}

static void add(um_gate_t *gate, const piece_t *piece)
{
    gate->piece[gate->n_pieces++] = *piece;
    gate->leaving_bytes += leaving(piece);
    set_waiting(gate, piece, 1);
}

/* Of a wait whose end never came by its piece would be held for ever. */
static void give_up(um_gate_t *gate, uint32_t i)
{
    const piece_t *piece = &gate->piece[i];

    if (piece->order == UM_ORDER_AFTER)
        gate->config.executor->ops->overtake(gate->config.executor, piece->addr, piece->bytes,
                                             UM_DEVICE_NONE);
    count(&gate->cancelled, 1);
    drop(gate, i);
}

static void forget_lost(um_gate_t *gate, uint64_t now_ns)
{
    for (uint32_t i = gate->n_pieces; i-- > 0;)
        if (now_ns - gate->piece[i].submitted_ns > FORGET_NS &&
            now_ns > gate->piece[i].submitted_ns)
            give_up(gate, i);
}

uint32_t um_gate_idle(const um_gate_t *gate)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < gate->n_pieces; i++)
        n += gate->piece[i].order == UM_ORDER_IDLE && gate->piece[i].kind == UM_HINT_PREFETCH;
    return n;
}

static bool on_its_way(const um_gate_t *gate, const um_hint_t *hint)
{
    for (uint32_t i = 0; i < gate->n_pieces; i++) {
        const piece_t *piece = &gate->piece[i];

        if (piece->kind == hint->kind && piece->device == hint->device && !piece->overtaken &&
            piece->addr <= hint->addr && piece->addr + piece->bytes >= hint->addr + hint->bytes)
            return true;
    }
    return false;
}

/* Is it being given the CPU as its place? Whoever advised that cannot hold it before it is told that it
 * holds; brought to a GPU meanwhile, it would be mapped there and stay. */
static bool is_being_kept(const um_gate_t *gate, const um_hint_t *hint)
{
    for (uint32_t i = 0; i < gate->n_pieces; i++) {
        const piece_t *piece = &gate->piece[i];

        if ((piece->kind == UM_HINT_ACCESSED_BY ||
             (piece->kind == UM_HINT_PREFERRED_LOCATION && piece->device == UM_DEVICE_HOST)) &&
            piece->addr < hint->addr + hint->bytes && hint->addr < piece->addr + piece->bytes)
            return true;
    }
    return false;
}

void um_gate_done(um_gate_t *gate, const um_ev_hint_t *outcome)
{
    uint32_t i = 0;

    while (i < gate->n_pieces &&
           (gate->piece[i].addr != outcome->addr || gate->piece[i].bytes != outcome->bytes ||
            gate->piece[i].kind != outcome->kind || gate->piece[i].device != outcome->device))
        i++;
    if (i == gate->n_pieces)
        return;
    drop(gate, i);
    switch (outcome->result) {
    case UM_HINT_APPLIED:
        if (outcome->kind == UM_HINT_PREFETCH && outcome->device == UM_DEVICE_HOST)
            for (uint32_t d = 0; d < MAX_DEVICES; d++)
                gate->device[d].asked = false; /* one of them has more room now */
        count(&gate->applied, 1);
        count(&gate->applied_bytes, outcome->bytes);
        gate->failures[outcome->kind] = 0;
        break;
    case UM_HINT_FAILED:
        count(&gate->failed, 1);
        if (++gate->failures[outcome->kind] == MAX_FAILURES)
            um_log(UM_LOG_WARN,
                   "%s hints are switched off: the driver refused %u in a row (error %d)",
                   um_hint_kind_name((um_hint_kind_t)outcome->kind), MAX_FAILURES, outcome->error);
        break;
    default:
        count(&gate->cancelled, 1);
    }
}

/* ---- the program's side ---- */

void um_gate_app(um_gate_t *gate, const um_ev_hint_t *hint)
{
    um_advised_add(&gate->advised, hint);
}

void um_gate_region_gone(um_gate_t *gate, uint32_t region)
{
    um_advised_region_gone(&gate->advised, region);
}

static bool over(const piece_t *piece, const um_ev_sync_t *sync)
{
    if (!is_racing(piece))
        return false;
    switch (sync->kind) {
    case UM_SYNC_DEVICE:
        return piece->context == sync->context;
    case UM_SYNC_STREAM:
    case UM_SYNC_COPY:
        return piece->context == sync->context && piece->stream == sync->stream;
    default:
        return false;
    }
}

void um_gate_sync(um_gate_t *gate, const um_event_t *event)
{
    const um_ev_sync_t *sync = &event->u.sync;
    um_executor_t *executor = gate->config.executor;
    uint32_t told = 0;
    bool held = false;

    um_uses_sync(&gate->uses, event);
    for (uint32_t i = 0; sync->exit && i < gate->n_pieces; i++) {
        const piece_t *piece = &gate->piece[i];

        held |= piece->order == UM_ORDER_AFTER && piece->correlation == sync->sync;
        if (piece->correlation == told || !over(piece, sync))
            continue;
        told = piece->correlation;
        executor->ops->cancel_launch(executor, told);
    }
    if (held)
        executor->ops->wait_over(executor, sync->sync);
}

void um_gate_taken(um_gate_t *gate, const um_event_t *launch, uint64_t addr, uint64_t bytes)
{
    um_executor_t *executor = gate->config.executor;
    int32_t device = launch->u.launch.device;
    bool any = false;

    um_uses_launch(&gate->uses, launch, addr, bytes);
    for (uint32_t i = 0; i < gate->n_pieces; i++) {
        piece_t *piece = &gate->piece[i];

        if (piece->kind != UM_HINT_PREFETCH || piece->overtaken || piece->addr >= addr + bytes ||
            addr >= piece->addr + piece->bytes ||
            (piece->device == device && piece->order != UM_ORDER_IDLE))
            continue;
        piece->overtaken = any = true;
    }
    if (any)
        executor->ops->overtake(executor, addr, bytes, device);
}

/* ---- going ---- */

static void remember_going(um_gate_t *gate, const going_t *going)
{
    pthread_mutex_lock(&gate->lock);
    gate->going[gate->n_going++ % MAX_GOING] = *going;
    pthread_mutex_unlock(&gate->lock);
}

void um_gate_region_going(um_gate_t *gate, uint64_t addr, uint64_t bytes, uint64_t now_ns)
{
    remember_going(gate, &(going_t){.addr = addr, .bytes = bytes, .when_ns = now_ns});
    gate->config.executor->ops->cancel_range(gate->config.executor, addr, bytes);
}

void um_gate_context_going(um_gate_t *gate, uint32_t context, uint64_t now_ns)
{
    remember_going(gate, &(going_t){.is_context = true, .context = context, .when_ns = now_ns});
    gate->config.executor->ops->cancel_context(gate->config.executor, context);
}

/* Was what the hint needs on its way out after the launch that it is made for? Under lock. */
static bool is_going(const um_gate_t *gate, const um_hint_t *hint, uint32_t context,
                     uint64_t launch_ns)
{
    for (uint32_t i = 0; i < gate->n_going && i < MAX_GOING; i++) {
        const going_t *going = &gate->going[i];

        if (going->when_ns < launch_ns)
            continue;
        if (going->is_context
                ? !going->context || going->context == context
                : going->addr < hint->addr + hint->bytes && hint->addr < going->addr + going->bytes)
            return true;
    }
    return false;
}

/* ---- the checks ---- */

static bool quota_used_up(um_gate_t *gate, uint64_t now_ns)
{
    if (now_ns - gate->second_ns >= 1000000000u) {
        gate->second_ns = now_ns;
        gate->in_second = 0;
    }
    return gate->n_pieces >= gate->most_in_flight ||
           (gate->config.max_per_second && gate->in_second >= gate->config.max_per_second);
}

/* Might it be taken from under a kernel? */
static bool outlives_wait(const um_gate_t *gate, const um_hint_t *piece,
                          const um_gate_cause_t *cause)
{
    um_uses_stream_t own = um_uses_stream(cause->stream, cause->context, cause->tid);

    return piece->kind == UM_HINT_PREFETCH &&
           um_uses_outlive(&gate->uses, cause->wait, &own, piece->addr, piece->bytes);
}

/* What one piece would be refused for, PROPOSED when nothing is against it. */
static um_hint_result_t check(um_gate_t *gate, const um_hint_t *piece, const um_gate_cause_t *cause)
{
    const um_executor_t *executor = gate->config.executor;
    bool to_device = piece->device >= 0;

    if (piece->kind == UM_HINT_NONE || piece->kind >= UM_HINT_KIND_COUNT ||
        piece->order > UM_ORDER_AFTER || piece->device >= MAX_DEVICES || !piece->region)
        return UM_HINT_REFUSED_RANGE;
    /* Discarding loses data: the program alone may say that. */
    if (piece->kind == UM_HINT_DISCARD || gate->config.disabled_kinds & 1u << piece->kind)
        return UM_HINT_REFUSED_DISABLED;
    if (gate->failures[piece->kind] >= MAX_FAILURES)
        return UM_HINT_REFUSED_COOLDOWN;
    if (cause->captured)
        return UM_HINT_REFUSED_CAPTURE;
    if (executor->lacks_kinds & 1u << piece->kind ||
        (piece->kind == UM_HINT_PREFETCH && executor->lacks_orders & 1u << piece->order) ||
        piece->device < UM_DEVICE_HOST ||
        (to_device && (!gate->device[piece->device].known || gate->device[piece->device].no)))
        return UM_HINT_REFUSED_CAPABILITY;
    if (piece->blind)
        return gate->n_pieces < gate->config.max_in_flight ? UM_HINT_PROPOSED
                                                           : UM_HINT_REFUSED_QUOTA;
    if (um_advised_forbids(&gate->advised, piece->kind, piece->region, piece->addr, piece->bytes))
        return UM_HINT_REFUSED_DISABLED;
    if (piece->order == UM_ORDER_AFTER && outlives_wait(gate, piece, cause))
        return UM_HINT_REFUSED_BUSY;
    if (on_its_way(gate, piece))
        return UM_HINT_REFUSED_DUPLICATE;
    if (to_device && piece->kind == UM_HINT_PREFETCH && is_being_kept(gate, piece))
        return UM_HINT_REFUSED_BUSY;
    if (quota_used_up(gate, cause->now_ns))
        return UM_HINT_REFUSED_QUOTA;
    if (piece->kind == UM_HINT_PREFETCH && (to_device || gate->config.host_bytes) &&
        !has_room(gate, piece->device, cause->context, piece->bytes, cause->now_ns))
        return UM_HINT_REFUSED_CAPACITY;
    return UM_HINT_PROPOSED;
}

static um_hint_result_t submit(um_gate_t *gate, const um_hint_t *hint, const um_gate_cause_t *cause)
{
    um_executor_t *executor = gate->config.executor;
    um_hint_result_t result = UM_HINT_PROPOSED;
    piece_t piece = {.addr = hint->addr,
                     .bytes = hint->bytes,
                     .stream = cause->stream,
                     .submitted_ns = cause->now_ns,
                     .kind = hint->kind,
                     .order = hint->order,
                     .correlation = hint->correlation,
                     .context = cause->context,
                     .device = hint->device};

    /* In the table first: the executor may be done before submit returns. */
    add(gate, &piece);
    pthread_mutex_lock(&gate->lock);
    if (is_going(gate, hint, cause->context, cause->now_ns))
        result = UM_HINT_REFUSED_RANGE;
    else if (!executor->ops->submit(executor, hint, cause->context))
        result = UM_HINT_REFUSED_QUOTA;
    pthread_mutex_unlock(&gate->lock);
    if (result != UM_HINT_PROPOSED) {
        drop(gate, gate->n_pieces - 1);
        return result;
    }
    gate->in_second++;
    if (hint->kind == UM_HINT_PREFETCH) {
        device_t *target = hint->device >= 0 ? &gate->device[hint->device] : &gate->host;

        target->reserved_bytes += hint->bytes;
        target->since_bytes += hint->bytes;
    }
    return result;
}

/* The end of the piece that starts at addr: whole blocks, as many as a call should have. */
static uint64_t piece_end(const um_gate_t *gate, const um_hint_t *piece, uint64_t end)
{
    uint64_t stop = (piece->addr + gate->config.piece_bytes) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;

    return stop > piece->addr && stop < end && !piece->blind && piece->kind == UM_HINT_PREFETCH
               ? stop
               : end;
}

uint32_t um_gate_propose(um_gate_t *gate, const um_hint_t *hint, const um_gate_cause_t *cause)
{
    um_hint_t piece = *hint;
    um_region_t region;
    uint64_t end = hint->addr + hint->bytes;
    uint32_t admitted = 0;
    bool pooled = false;

    forget_lost(gate, cause->now_ns);
    piece.wait = cause->wait;
    piece.stream = cause->stream;
    piece.region = 0;
    if (hint->bytes && end > hint->addr &&
        um_regions_find(gate->config.regions, hint->addr, &region) &&
        region.family == UM_FAMILY_MANAGED) {
        piece.region = region.id;
        pooled = region.flags & UM_REGION_POOL;
        if (end > region.addr + region.bytes)
            end = region.addr + region.bytes;
    }
    do {
        um_hint_result_t result;

        if (piece.region)
            piece.bytes = piece_end(gate, &piece, end) - piece.addr;
        result = check(gate, &piece, cause);
        /* The pages go to another allocation, and what lasts would stay with them. */
        if (result == UM_HINT_PROPOSED && pooled && um_in_force_is_advice(piece.kind))
            result = UM_HINT_REFUSED_CAPABILITY;
        if (result == UM_HINT_PROPOSED)
            result = submit(gate, &piece, cause);
        count(&gate->proposed, 1);
        if (result == UM_HINT_PROPOSED) {
            count(&gate->admitted, 1);
            admitted++;
        } else {
            count(&gate->refused[result], 1);
        }
        piece.addr += piece.bytes;
    } while (piece.region && piece.addr < end);
    return admitted;
}

/* ---- life ---- */

um_status_t um_gate_new(const um_gate_config_t *config, um_gate_t **out)
{
    um_gate_t *gate = calloc(1, sizeof(*gate));

    if (!gate)
        return UM_ERR_NO_MEMORY;
    gate->config = *config;
    if (!gate->config.max_in_flight)
        gate->config.max_in_flight = MAX_IN_FLIGHT;
    gate->most_in_flight = gate->config.max_in_flight;
    gate->config.piece_bytes =
        (config->piece_bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    if (!gate->config.piece_bytes)
        gate->config.piece_bytes = UM_BLOCK_BYTES;
    gate->piece = calloc(gate->config.max_in_flight, sizeof(*gate->piece));
    if (!gate->piece) {
        free(gate);
        return UM_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&gate->lock, NULL);
    *out = gate;
    return UM_OK;
}

void um_gate_free(um_gate_t *gate)
{
    if (!gate)
        return;
    pthread_mutex_destroy(&gate->lock);
    free(gate->piece);
    free(gate);
}

void um_gate_stats(const um_gate_t *gate, um_gate_stats_t *out)
{
    *out = (um_gate_stats_t){.proposed = atomic_load(&gate->proposed),
                             .admitted = atomic_load(&gate->admitted),
                             .applied = atomic_load(&gate->applied),
                             .failed = atomic_load(&gate->failed),
                             .cancelled = atomic_load(&gate->cancelled),
                             .applied_bytes = atomic_load(&gate->applied_bytes),
                             .processes = atomic_load(&gate->processes)};
    for (int r = 0; r < UM_HINT_RESULT_COUNT; r++)
        out->refused[r] = atomic_load(&gate->refused[r]);
}

uint64_t um_gate_proposed(const um_gate_t *gate)
{
    return atomic_load(&gate->proposed);
}
