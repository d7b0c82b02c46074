#include "perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "demangle.h"
#include "map.h"
#include "tracks.h"

/* Tracks of a process that are no CPU thread. Streams and givers of hints follow. */
enum { FAULTS = 1, TO_GPU, TO_CPU, THRASHING, COPIES, CPU_FAULTS, CALLS, NAMED = 16 };

/* A counter has at most a value every so often. */
#define COUNTER_NS 10000u

typedef struct um_life {
    uint64_t from_ns, bytes, moved; /* moved: to GPUs, and not back */
    uint32_t family, region;
    int32_t device; /* that it moved to last */
    char *label;
} um_life_t;

/* A thread of the program. What it begins has an end, and what lasts in it nests, whatever the trace says. */
typedef struct um_thread {
    uint32_t tid, depth; /* begun and not ended */
    uint64_t until_ns;   /* of its last slice */
} um_thread_t;

#define RANGES_MAX 4096u /* at once */

/* A free range that is begun and not ended. */
typedef struct um_range {
    uint64_t id;
    char *name;
} um_range_t;

typedef struct um_counter {
    uint64_t bytes, said_ns;
    bool used, due;
} um_counter_t;

struct um_perfetto {
    um_tracks_t tracks;
    uint64_t now_ns;
    um_map_t kernel_of;
    char **kernels;
    size_t n_kernels, kernels_size;
    um_map_t life_of; /* region -> lives; a dead one's slot is used again */
    um_life_t *lives;
    size_t n_lives, lives_size;
    uint32_t *dead;
    size_t n_dead;
    um_map_t who_of; /* hash of who -> track */
    um_thread_t *threads;
    size_t n_threads, threads_size;
    um_map_t thread_of;
    um_range_t *ranges;
    size_t n_ranges, ranges_size;
    um_counter_t counters[UM_PART_GPUS];
};

static void put_place(um_perfetto_t *to, uint64_t addr, uint64_t bytes, uint32_t region)
{
    um_tracks_args(&to->tracks,
                   "addr\":\"0x%" PRIx64 "\",\"bytes\":%" PRIu64 ",\"region\":%" PRIu32, addr,
                   bytes, region);
}

/* NULL: no memory. */
static um_thread_t *thread(um_perfetto_t *to, uint32_t tid)
{
    uint32_t at = um_map_find(&to->thread_of, tid);

    if (at == UM_MAP_NONE) {
        at = (uint32_t)to->n_threads;
        if (!um_grow(&to->threads, &to->threads_size, to->n_threads + 1, sizeof(*to->threads)) ||
            um_map_put(&to->thread_of, tid, at)) {
            to->tracks.status = UM_ERR_NO_MEMORY;
            return NULL;
        }
        to->threads[to->n_threads++] = (um_thread_t){.tid = tid};
    }
    return &to->threads[at];
}

/* A thread of the program, or a track for what is known of no thread, or lasts while another thing does. */
static void put_call(um_perfetto_t *to, const um_event_t *event, uint64_t lasts_ns,
                     const char *name)
{
    um_thread_t *of = thread(to, event->tid);
    uint32_t pid;
    char thread_name[32];

    if (!event->tid || !of || (lasts_ns && event->time_ns < of->until_ns)) {
        um_tracks_slice(&to->tracks, UM_PART_CPU, CALLS, "calls", event->time_ns, lasts_ns, name);
        return;
    }
    pid = um_tracks_process(&to->tracks, UM_PART_CPU);
    if (lasts_ns)
        of->until_ns =
            lasts_ns > UINT64_MAX - event->time_ns ? UINT64_MAX : event->time_ns + lasts_ns;
    snprintf(thread_name, sizeof(thread_name), "thread %" PRIu32, event->tid);
    um_tracks_begin(&to->tracks, pid, um_tracks_thread(&to->tracks, pid, event->tid, thread_name),
                    event->time_ns, lasts_ns, name);
}

/* ---- regions ---------------------------------------------------------------------------------- */

static um_life_t *life(um_perfetto_t *to, uint32_t region)
{
    uint32_t at = region ? um_map_find(&to->life_of, region) : UM_MAP_NONE;

    return at == UM_MAP_NONE || to->lives[at].region != region ? NULL : &to->lives[at];
}

static void say_counter(um_perfetto_t *to, uint32_t device)
{
    um_counter_t *counter = &to->counters[device];

    um_tracks_head(&to->tracks, 'C', um_tracks_process(&to->tracks, UM_PART_GPU + device), 0,
                   to->now_ns, "moved here and still here");
    um_tracks_args(&to->tracks, ",\"args\":{\"bytes\":%" PRIu64 "}}", counter->bytes);
    counter->said_ns = to->now_ns;
    counter->due = false;
}

static void count(um_perfetto_t *to, int32_t device, int64_t bytes)
{
    uint32_t at = um_part_of_gpu(device) - UM_PART_GPU;
    um_counter_t *counter = &to->counters[at];

    counter->bytes += (uint64_t)bytes;
    counter->due = true;
    if (!counter->used || to->now_ns - counter->said_ns >= COUNTER_NS)
        say_counter(to, at);
    counter->used = true;
}

/* From allocation to free, when both are known: by then it has its label, too. */
static void put_life(um_perfetto_t *to, um_life_t *of)
{
    uint32_t pid = um_tracks_process(&to->tracks, UM_PART_MEMORY);
    char name[200];

    if (of->label)
        snprintf(name, sizeof(name), "%s", of->label);
    else
        snprintf(name, sizeof(name), "region %" PRIu32, of->region);
    for (int end = 0; end < 2; end++) {
        um_tracks_head(&to->tracks, end ? 'e' : 'b', pid, 0, end ? to->now_ns : of->from_ns, name);
        um_tracks_args(&to->tracks, ",\"cat\":\"region\",\"id\":\"%" PRIu32 ".%" PRIu32 "\"",
                       to->tracks.traces, of->region);
        if (!end)
            um_tracks_args(&to->tracks, ",\"args\":{\"bytes\":%" PRIu64 ",\"family\":\"%s\"}",
                           of->bytes, um_family_name((um_family_t)of->family));
        fputc('}', to->tracks.out);
    }
    if (of->moved)
        count(to, of->device, -(int64_t)of->moved);
    free(of->label);
    *of = (um_life_t){0};
}

/* The map keeps every region that ever was: begun again when it is mostly dead ones. */
static um_status_t forget_dead(um_perfetto_t *to)
{
    um_status_t status = UM_OK;

    if (to->life_of.n < 4 * (to->n_lives - to->n_dead) + 4096)
        return UM_OK;
    um_map_free(&to->life_of);
    memset(&to->life_of, 0, sizeof(to->life_of));
    for (size_t i = 0; !status && i < to->n_lives; i++) {
        if (to->lives[i].region)
            status = um_map_put(&to->life_of, to->lives[i].region, (uint32_t)i);
    }
    return status;
}

static um_status_t on_alloc(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_region_alloc_t *alloc = &event->u.region_alloc;
    size_t room = to->lives_size; /* all of them may be dead */
    uint32_t at;

    if (!alloc->region || life(to, alloc->region))
        return UM_OK;
    if (forget_dead(to))
        return UM_ERR_NO_MEMORY;
    if (to->n_dead) {
        at = to->dead[--to->n_dead];
    } else {
        at = (uint32_t)to->n_lives;
        if (!um_grow(&to->dead, &room, at + 1, sizeof(*to->dead)) ||
            !um_grow(&to->lives, &to->lives_size, at + 1, sizeof(*to->lives)))
            return UM_ERR_NO_MEMORY;
        to->n_lives++;
    }
    to->lives[at] = (um_life_t){.from_ns = event->time_ns,
                                .bytes = alloc->bytes,
                                .family = alloc->family,
                                .region = alloc->region};
    return um_map_put(&to->life_of, alloc->region, at);
}

static void on_free(um_perfetto_t *to, uint32_t region)
{
    um_life_t *of = life(to, region);

    if (!of)
        return;
    to->dead[to->n_dead++] = (uint32_t)(of - to->lives);
    put_life(to, of);
}

static void on_label(um_perfetto_t *to, const um_ev_region_label_t *label)
{
    um_life_t *of = life(to, label->region);

    if (!of || !*label->label)
        return;
    free(of->label);
    of->label = strdup(label->label);
}

/* What has moved to a GPU and neither back nor away with its region. */
static void follow(um_perfetto_t *to, const um_ev_migrate_t *move)
{
    um_life_t *of = life(to, move->region);
    uint64_t back;

    if (!of)
        return;
    if (move->src >= 0) {
        back = move->bytes < of->moved ? move->bytes : of->moved;
        of->moved -= back;
        count(to, move->src, -(int64_t)back);
    }
    if (move->dst >= 0) {
        of->moved += move->bytes;
        of->device = move->dst;
        count(to, move->dst, (int64_t)move->bytes);
    }
}

/* ---- kernels and hints ------------------------------------------------------------------------ */

static um_status_t on_kernel(um_perfetto_t *to, const um_ev_kernel_t *kernel)
{
    char *name;

    if (um_map_find(&to->kernel_of, kernel->kernel) != UM_MAP_NONE)
        return UM_OK;
    if (!um_grow(&to->kernels, &to->kernels_size, to->n_kernels + 1, sizeof(*to->kernels)))
        return UM_ERR_NO_MEMORY;
    name = um_demangle_short(kernel->name);
    if (!name)
        return UM_ERR_NO_MEMORY;
    to->kernels[to->n_kernels] = name;
    return um_map_put(&to->kernel_of, kernel->kernel, (uint32_t)to->n_kernels++);
}

static const char *kernel_name(const um_perfetto_t *to, uint32_t kernel)
{
    uint32_t at = um_map_find(&to->kernel_of, kernel);

    return at == UM_MAP_NONE ? "a kernel" : to->kernels[at];
}

static void on_exec(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_kernel_exec_t *exec = &event->u.kernel_exec;
    char stream[40];

    snprintf(stream, sizeof(stream), "kernels, stream %" PRIu32, exec->stream_id);
    um_tracks_slice(&to->tracks, um_part_of_gpu(exec->device), NAMED + (exec->stream_id & 0xffffff),
                    stream, event->time_ns, exec->duration_ns, kernel_name(to, exec->kernel));
    um_tracks_args(&to->tracks,
                   "correlation\":%" PRIu32 ",\"grid\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32
                   "],\"block\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]",
                   exec->correlation, exec->grid[0], exec->grid[1], exec->grid[2], exec->block[0],
                   exec->block[1], exec->block[2]);
    um_tracks_end(&to->tracks);
}

static void on_hint(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_hint_t *hint = &event->u.hint;
    uint64_t hash = um_map_hash(hint->who, strlen(hint->who), 0);
    uint32_t track = um_map_find(&to->who_of, hash);
    char name[100];

    if (track == UM_MAP_NONE) {
        track = NAMED + (uint32_t)to->who_of.n;
        if (um_map_put(&to->who_of, hash, track) && !to->tracks.status)
            to->tracks.status = UM_ERR_NO_MEMORY;
    }
    snprintf(name, sizeof(name), "%s: %s", um_hint_kind_name((um_hint_kind_t)hint->kind),
             um_hint_result_name((um_hint_result_t)hint->result));
    um_tracks_slice(&to->tracks, UM_PART_HINTS, track, *hint->who ? hint->who : "hints",
                    event->time_ns, hint->duration_ns, name);
    put_place(to, hint->addr, hint->bytes, hint->region);
    um_tracks_args(&to->tracks, ",\"device\":%" PRId32 ",\"why\":", hint->device);
    um_tracks_text(&to->tracks, hint->why);
    um_tracks_end(&to->tracks);
}

/* ---- the rest --------------------------------------------------------------------------------- */

static void on_gpu_fault(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_gpu_fault_t *fault = &event->u.gpu_fault;

    um_tracks_slice(&to->tracks, um_part_of_gpu(fault->device), FAULTS, "page faults",
                    event->time_ns, fault->duration_ns, "GPU fault");
    um_tracks_args(&to->tracks,
                   "addr\":\"0x%" PRIx64 "\",\"groups\":%" PRIu32 ",\"region\":%" PRIu32,
                   fault->addr, fault->groups, fault->region);
    um_tracks_end(&to->tracks);
}

static void on_cpu_fault(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_cpu_fault_t *fault = &event->u.cpu_fault;

    um_tracks_slice(&to->tracks, UM_PART_CPU, CPU_FAULTS, "page faults", event->time_ns, 0,
                    "CPU fault");
    um_tracks_args(&to->tracks,
                   "addr\":\"0x%" PRIx64 "\",\"pc\":\"0x%" PRIx64 "\",\"region\":%" PRIu32,
                   fault->addr, fault->pc, fault->region);
    um_tracks_end(&to->tracks);
}

static void on_migrate(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_migrate_t *move = &event->u.migrate;
    bool out = move->dst < 0;

    um_tracks_slice(&to->tracks, um_part_of_gpu(out ? move->src : move->dst), out ? TO_CPU : TO_GPU,
                    out ? "moves to the CPU" : "moves to the GPU", event->time_ns,
                    move->duration_ns, um_migrate_cause_name((um_migrate_cause_t)move->cause));
    put_place(to, move->addr, move->bytes, move->region);
    um_tracks_end(&to->tracks);
    follow(to, move);
}

static void on_trouble(um_perfetto_t *to, const um_event_t *event)
{
    bool throttle = event->type == UM_EV_THROTTLE, map = event->type == UM_EV_REMOTE_MAP;
    const um_event_t *e = event;

    um_tracks_slice(&to->tracks,
                    um_part_of_gpu(throttle ? e->u.throttle.device
                                   : map    ? e->u.remote_map.dst
                                            : 0),
                    THRASHING, "thrashing", e->time_ns, throttle ? e->u.throttle.duration_ns : 0,
                    um_event_type_name((um_event_type_t)e->type));
    if (throttle)
        put_place(to, e->u.throttle.addr, 0, e->u.throttle.region);
    else if (map)
        put_place(to, e->u.remote_map.addr, e->u.remote_map.bytes, e->u.remote_map.region);
    else
        put_place(to, e->u.thrash.addr, e->u.thrash.bytes, e->u.thrash.region);
    um_tracks_end(&to->tracks);
}

/* On the copy engine's track, or in the thread that waits for it. */
static void on_transfer(um_perfetto_t *to, const um_event_t *event)
{
    bool set = event->type == UM_EV_SET;
    uint64_t lasts = set ? event->u.set.duration_ns : event->u.copy.duration_ns;
    uint64_t bytes = set ? event->u.set.bytes : event->u.copy.bytes;
    uint32_t flags = set ? event->u.set.flags : event->u.copy.flags;
    int32_t device = set ? event->u.set.device : event->u.copy.device;

    if (flags & UM_TRANSFER_ON_GPU)
        um_tracks_slice(&to->tracks, um_part_of_gpu(device), COPIES, "copies", event->time_ns,
                        lasts, set ? "memset" : "memcpy");
    else
        put_call(to, event, lasts, set ? "memset" : "memcpy");
    um_tracks_args(&to->tracks, "bytes\":%" PRIu64, bytes);
    um_tracks_end(&to->tracks);
}

static void on_launch(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_launch_t *launch = &event->u.launch;

    put_call(to, event, 0,
             launch->flags & UM_LAUNCH_GRAPH ? "launch of a graph"
                                             : kernel_name(to, launch->kernel));
    um_tracks_args(&to->tracks, "correlation\":%" PRIu32 ",\"arguments\":%" PRIu32,
                   launch->correlation, launch->n_args);
    um_tracks_end(&to->tracks);
}

static void put_edge(um_perfetto_t *to, uint32_t tid, uint64_t ns, char phase, const char *name,
                     uint64_t id)
{
    uint32_t pid = um_tracks_process(&to->tracks, UM_PART_CPU);
    char thread_name[32];

    snprintf(thread_name, sizeof(thread_name), tid ? "thread %" PRIu32 : "threads", tid);
    um_tracks_head(&to->tracks, phase, pid, um_tracks_thread(&to->tracks, pid, tid, thread_name),
                   ns, name);
    if (phase == 'b' || phase == 'e')
        um_tracks_args(&to->tracks, ",\"cat\":\"range\",\"id\":\"%" PRIu32 ".%" PRIx64 "\"",
                       to->tracks.traces, id);
    if (phase == 'i')
        fputs(",\"s\":\"t\"", to->tracks.out);
    fputc('}', to->tracks.out);
}

/* Waits and nested ranges begin and end in their thread. */
static void put_nested(um_perfetto_t *to, const um_event_t *event, bool end, const char *name)
{
    um_thread_t *of = thread(to, event->tid);

    if (!of || (end && !of->depth))
        return;
    of->depth += end ? -1 : 1;
    if (event->time_ns > of->until_ns)
        of->until_ns = event->time_ns;
    put_edge(to, event->tid, of->until_ns, end ? 'E' : 'B', name, 0);
}

/* Free ranges are tracks of their own. */
static void put_range(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_mark_t *mark = &event->u.mark;
    size_t at = to->n_ranges;

    while (at > 0 && to->ranges[at - 1].id != mark->id)
        at--;
    if (mark->kind == UM_MARK_START) {
        if (at || to->n_ranges == RANGES_MAX ||
            !um_grow(&to->ranges, &to->ranges_size, to->n_ranges + 1, sizeof(*to->ranges)))
            return; /* begun already, or one too many to look through */
        to->ranges[to->n_ranges++] = (um_range_t){mark->id, strdup(mark->name)};
        put_edge(to, 0, event->time_ns, 'b', mark->name, mark->id);
    } else if (at) {
        um_range_t *range = &to->ranges[at - 1];

        put_edge(to, 0, event->time_ns, 'e', range->name ? range->name : "", mark->id);
        free(range->name);
        *range = to->ranges[--to->n_ranges];
    }
}

static void on_sync(um_perfetto_t *to, const um_event_t *event)
{
    static const char *const names[] = {"wait", "wait for the device", "wait for a stream",
                                        "wait for an event", "wait for a copy"};
    uint32_t kind = event->u.sync.kind;

    put_nested(to, event, event->u.sync.exit,
               names[kind < sizeof(names) / sizeof(names[0]) ? kind : 0]);
}

static void on_mark(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_mark_t *mark = &event->u.mark;

    if (mark->kind == UM_MARK_INSTANT)
        put_edge(to, event->tid, event->time_ns, 'i', mark->name, 0);
    else if (mark->kind == UM_MARK_PUSH || mark->kind == UM_MARK_POP)
        put_nested(to, event, mark->kind == UM_MARK_POP, mark->name);
    else if (mark->kind <= UM_MARK_END)
        put_range(to, event);
}

/* ---- life ------------------------------------------------------------------------------------- */

um_status_t um_perfetto_new(FILE *out, um_perfetto_t **result)
{
    *result = calloc(1, sizeof(**result));
    if (!*result)
        return UM_ERR_NO_MEMORY;
    (*result)->tracks.out = out;
    fputs(UM_PERFETTO_START, out);
    return UM_OK;
}

/* What the program was in when its trace ended. */
static void end_threads(um_perfetto_t *to)
{
    for (size_t i = 0; i < to->n_threads; i++) {
        um_thread_t *of = &to->threads[i];

        for (; of->depth; of->depth--)
            put_edge(to, of->tid, of->until_ns > to->now_ns ? of->until_ns : to->now_ns, 'E', "end",
                     0);
    }
    for (size_t i = 0; i < to->n_ranges; i++) {
        const char *name = to->ranges[i].name;

        put_edge(to, 0, to->now_ns, 'e', name ? name : "", to->ranges[i].id);
        free(to->ranges[i].name);
    }
    to->n_threads = to->n_ranges = 0;
    um_map_free(&to->thread_of);
    memset(&to->thread_of, 0, sizeof(to->thread_of));
}

/* What lives to the end of its trace ends with it. */
static void end_trace(um_perfetto_t *to)
{
    end_threads(to);
    for (size_t i = 0; i < to->n_lives; i++) {
        if (to->lives[i].region)
            put_life(to, &to->lives[i]);
    }
    for (uint32_t i = 0; i < UM_PART_GPUS; i++) {
        if (to->counters[i].due)
            say_counter(to, i);
    }
    memset(to->counters, 0, sizeof(to->counters));
    to->n_lives = to->n_dead = 0;
    um_map_free(&to->life_of);
    um_map_free(&to->kernel_of);
    memset(&to->life_of, 0, sizeof(to->life_of));
    memset(&to->kernel_of, 0, sizeof(to->kernel_of));
    for (size_t i = 0; i < to->n_kernels; i++)
        free(to->kernels[i]);
    to->n_kernels = 0;
}

um_status_t um_perfetto_begin(um_perfetto_t *to, const char *path)
{
    end_trace(to);
    free(to->tracks.path);
    to->tracks.path = strdup(path);
    to->tracks.traces++;
    to->now_ns = 0;
    return to->tracks.path ? UM_OK : UM_ERR_NO_MEMORY;
}

um_status_t um_perfetto_event(um_perfetto_t *to, const um_event_t *event)
{
    static void (*const shown[UM_EV_TYPE_COUNT])(um_perfetto_t * to, const um_event_t *event) = {
        [UM_EV_LAUNCH] = on_launch,       [UM_EV_KERNEL_EXEC] = on_exec,
        [UM_EV_GPU_FAULT] = on_gpu_fault, [UM_EV_CPU_FAULT] = on_cpu_fault,
        [UM_EV_MIGRATE] = on_migrate,     [UM_EV_THRASH] = on_trouble,
        [UM_EV_THROTTLE] = on_trouble,    [UM_EV_REMOTE_MAP] = on_trouble,
        [UM_EV_COPY] = on_transfer,       [UM_EV_SET] = on_transfer,
        [UM_EV_SYNC] = on_sync,           [UM_EV_HINT] = on_hint,
        [UM_EV_MARK] = on_mark,
    };
    um_status_t status = UM_OK;

    if (to->tracks.status)
        return to->tracks.status;
    if (event->type >= UM_EV_TYPE_COUNT)
        return UM_ERR_INVALID;
    if (event->time_ns > to->now_ns)
        to->now_ns = event->time_ns;
    if (event->type == UM_EV_REGION_ALLOC)
        status = on_alloc(to, event);
    else if (event->type == UM_EV_REGION_FREE)
        on_free(to, event->u.region_free.region);
    else if (event->type == UM_EV_REGION_LABEL)
        on_label(to, &event->u.region_label);
    else if (event->type == UM_EV_KERNEL)
        status = on_kernel(to, &event->u.kernel);
    else if (shown[event->type])
        shown[event->type](to, event);
    if (!to->tracks.status && status)
        to->tracks.status = status;
    if (!to->tracks.status && ferror(to->tracks.out))
        to->tracks.status = UM_ERR_IO;
    return to->tracks.status;
}

um_status_t um_perfetto_close(um_perfetto_t *to)
{
    um_status_t status;

    end_trace(to);
    fputs("\n]}\n", to->tracks.out);
    if ((fflush(to->tracks.out) || ferror(to->tracks.out)) && !to->tracks.status)
        to->tracks.status = UM_ERR_IO;
    status = to->tracks.status;
    free(to->threads);
    free(to->ranges);
    um_tracks_free(&to->tracks);
    um_map_free(&to->who_of);
    free(to->kernels);
    free(to->lives);
    free(to->dead);
    free(to);
    return status;
}
