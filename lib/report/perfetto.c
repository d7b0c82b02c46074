#include "perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "emitter.h"
#include "map.h"

/* Processes of one trace: a thousand numbers each. */
enum { CPU = 1, MEMORY = 2, HINTS = 3, GPU = 10, A_TRACE = 1000, GPUS = A_TRACE - GPU };

/* Tracks of a process that are no CPU thread. Streams and givers of hints follow. */
enum { FAULTS = 1, TO_GPU, TO_CPU, THRASHING, COPIES, CPU_FAULTS, CALLS, NAMED = 16 };

#define LANES      32u
#define LANE_FIRST UINT32_C(0x40000000) /* above every Linux thread id */
/* A counter has at most a value every so often. */
#define COUNTER_NS 10000u

typedef struct um_lanes {
    uint64_t end_ns[LANES];
} um_lanes_t;

typedef struct um_life {
    uint64_t from_ns, bytes, moved; /* moved: to GPUs, and not back */
    uint32_t family, region;
    int32_t device; /* that it moved to last */
    char *label;
} um_life_t;

typedef struct um_counter {
    uint64_t bytes, said_ns;
    bool used, due;
} um_counter_t;

struct um_perfetto {
    FILE *out;
    um_status_t status;
    bool comma;
    uint32_t traces;
    char *path;
    uint64_t now_ns;
    um_map_t known; /* processes and threads that have been named; over traces */
    um_map_t lane_of;
    um_lanes_t *lanes;
    size_t n_lanes, lanes_size;
    um_map_t kernel_of;
    char **kernels;
    size_t n_kernels, kernels_size;
    um_map_t life_of; /* region -> lives; a dead one's slot is used again */
    um_life_t *lives;
    size_t n_lives, lives_size;
    uint32_t *dead;
    size_t n_dead;
    um_map_t who_of; /* hash of who -> track */
    um_counter_t counters[GPUS];
};

/* ---- JSON ------------------------------------------------------------------------------------- */

static void put_text(um_perfetto_t *to, const char *text)
{
    char *clean = um_text_clean(text);

    if (!clean && !to->status)
        to->status = UM_ERR_NO_MEMORY;
    fputc('"', to->out);
    for (const char *c = clean ? clean : ""; *c; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', to->out);
        fputc(*c, to->out);
    }
    fputc('"', to->out);
    free(clean);
}

/* {"ph":"X","pid":1,"tid":2,"ts":3.000,"name":"..." without the end. */
static void put_head(um_perfetto_t *to, char phase, uint32_t pid, uint32_t tid, uint64_t ns,
                     const char *name)
{
    fputs(to->comma ? ",\n" : "\n", to->out);
    to->comma = true;
    fprintf(to->out,
            "{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03" PRIu64
            ",\"name\":",
            phase, pid, tid, ns / 1000, ns % 1000);
    put_text(to, name);
}

static void put_meta(um_perfetto_t *to, uint32_t pid, uint32_t tid, const char *what,
                     const char *name)
{
    put_head(to, 'M', pid, tid, 0, what);
    fputs(",\"args\":{\"name\":", to->out);
    put_text(to, name);
    fputs("}}", to->out);
}

static bool is_new(um_perfetto_t *to, uint64_t key)
{
    um_status_t status;

    if (um_map_find(&to->known, key) != UM_MAP_NONE)
        return false;
    status = um_map_put(&to->known, key, 0);
    if (status && !to->status)
        to->status = status;
    return true;
}

/* The process number of this trace's part, named when it is new. */
static uint32_t process(um_perfetto_t *to, uint32_t part)
{
    static const char *const parts[] = {[CPU] = "CPU", [MEMORY] = "memory", [HINTS] = "hints"};
    uint32_t pid = (to->traces - 1) * A_TRACE + part;
    char *name = NULL;

    if (!is_new(to, (uint64_t)pid << 32))
        return pid;
    if ((part < GPU ? asprintf(&name, "%s: %s", parts[part], to->path)
                    : asprintf(&name, "GPU %" PRIu32 ": %s", part - GPU, to->path)) < 0)
        name = NULL;
    put_meta(to, pid, 0, "process_name", name ? name : "");
    put_head(to, 'M', pid, 0, 0, "process_sort_index");
    fprintf(to->out, ",\"args\":{\"sort_index\":%" PRIu32 "}}", pid);
    free(name);
    return pid;
}

static uint32_t gpu_of(int32_t device)
{
    return GPU + (device < 0 ? 0 : device >= GPUS ? GPUS - 1 : (uint32_t)device);
}

static uint32_t thread(um_perfetto_t *to, uint32_t pid, uint32_t tid, const char *name)
{
    if (is_new(to, (uint64_t)pid << 32 | (tid ? tid : UINT32_MAX)))
        put_meta(to, pid, tid, "thread_name", name);
    return tid;
}

/* ---- tracks ----------------------------------------------------------------------------------- */

/* A lane of the track that is free at start_ns, taken until end_ns; LANES when all are taken. */
static uint32_t take_lane(um_perfetto_t *to, uint32_t pid, uint32_t track, uint64_t start_ns,
                          uint64_t end_ns)
{
    uint64_t key = (uint64_t)pid << 32 | track;
    uint32_t at = um_map_find(&to->lane_of, key);

    if (at == UM_MAP_NONE) {
        at = (uint32_t)to->n_lanes;
        if (to->n_lanes == to->lanes_size) {
            size_t size = to->lanes_size ? to->lanes_size * 2 : 16;
            um_lanes_t *lanes = realloc(to->lanes, size * sizeof(*lanes));

            if (!lanes)
                goto no_memory;
            to->lanes = lanes;
            to->lanes_size = size;
        }
        if (um_map_put(&to->lane_of, key, at))
            goto no_memory;
        to->lanes[to->n_lanes++] = (um_lanes_t){{0}};
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        if (to->lanes[at].end_ns[lane] > start_ns)
            continue;
        to->lanes[at].end_ns[lane] = end_ns;
        return lane;
    }
    return LANES;
no_memory:
    if (!to->status)
        to->status = UM_ERR_NO_MEMORY;
    return 0;
}

/* Begins a slice; the caller adds arguments, if any, and calls put_end. */
static void put_slice(um_perfetto_t *to, uint32_t part, uint32_t track, const char *track_name,
                      uint64_t ns, uint64_t lasts_ns, const char *name)
{
    uint32_t pid = process(to, part), lane, tid;
    uint64_t end_ns = ns > UINT64_MAX - lasts_ns ? UINT64_MAX : ns + lasts_ns;
    char numbered[160];

    lane = take_lane(to, pid, track, ns, end_ns);
    if (lane == LANES) /* so many at once that only its begin is shown */
        lane = lasts_ns = 0;
    snprintf(numbered, sizeof(numbered), lane ? "%.120s (%" PRIu32 ")" : "%.120s", track_name,
             lane + 1);
    tid = thread(to, pid, LANE_FIRST + track * LANES + lane, numbered);
    put_head(to, lasts_ns ? 'X' : 'i', pid, tid, ns, name);
    if (lasts_ns)
        fprintf(to->out, ",\"dur\":%" PRIu64 ".%03" PRIu64, lasts_ns / 1000, lasts_ns % 1000);
    else
        fputs(",\"s\":\"t\"", to->out);
    fputs(",\"args\":{\"", to->out);
}

#define put_args(to, ...) fprintf((to)->out, __VA_ARGS__)

static void put_end(um_perfetto_t *to)
{
    fputs("}}", to->out);
}

static void put_place(um_perfetto_t *to, uint64_t addr, uint64_t bytes, uint32_t region)
{
    put_args(to, "addr\":\"0x%" PRIx64 "\",\"bytes\":%" PRIu64 ",\"region\":%" PRIu32, addr, bytes,
             region);
}

/* A thread of the program, or a track for what is known of no thread. */
static void put_call(um_perfetto_t *to, const um_event_t *event, uint64_t lasts_ns,
                     const char *name)
{
    uint32_t pid;
    char thread_name[32];

    if (!event->tid) {
        put_slice(to, CPU, CALLS, "calls", event->time_ns, lasts_ns, name);
        return;
    }
    pid = process(to, CPU);
    snprintf(thread_name, sizeof(thread_name), "thread %" PRIu32, event->tid);
    put_head(to, lasts_ns ? 'X' : 'i', pid, thread(to, pid, event->tid, thread_name),
             event->time_ns, name);
    if (lasts_ns)
        fprintf(to->out, ",\"dur\":%" PRIu64 ".%03" PRIu64, lasts_ns / 1000, lasts_ns % 1000);
    else
        fputs(",\"s\":\"t\"", to->out);
    fputs(",\"args\":{\"", to->out);
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

    put_head(to, 'C', process(to, GPU + device), 0, to->now_ns, "moved here and still here");
    put_args(to, ",\"args\":{\"bytes\":%" PRIu64 "}}", counter->bytes);
    counter->said_ns = to->now_ns;
    counter->due = false;
}

static void count(um_perfetto_t *to, int32_t device, int64_t bytes)
{
    uint32_t at = gpu_of(device) - GPU;
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
    uint32_t pid = process(to, MEMORY);
    char name[200];

    if (of->label)
        snprintf(name, sizeof(name), "%s", of->label);
    else
        snprintf(name, sizeof(name), "region %" PRIu32, of->region);
    for (int end = 0; end < 2; end++) {
        put_head(to, end ? 'e' : 'b', pid, 0, end ? to->now_ns : of->from_ns, name);
        put_args(to, ",\"cat\":\"region\",\"id\":\"%" PRIu32 ".%" PRIu32 "\"", to->traces,
                 of->region);
        if (!end)
            put_args(to, ",\"args\":{\"bytes\":%" PRIu64 ",\"family\":\"%s\"}", of->bytes,
                     um_family_name((um_family_t)of->family));
        fputc('}', to->out);
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
    uint32_t at;

    if (!alloc->region || life(to, alloc->region))
        return UM_OK;
    if (forget_dead(to))
        return UM_ERR_NO_MEMORY;
    if (to->n_dead) {
        at = to->dead[--to->n_dead];
    } else {
        at = (uint32_t)to->n_lives;
        if (to->n_lives == to->lives_size) {
            size_t size = to->lives_size ? to->lives_size * 2 : 64;
            um_life_t *lives = realloc(to->lives, size * sizeof(*lives));
            uint32_t *dead;

            if (!lives)
                return UM_ERR_NO_MEMORY;
            to->lives = lives;
            dead = realloc(to->dead, size * sizeof(*dead)); /* room for all of them */
            if (!dead)
                return UM_ERR_NO_MEMORY;
            to->dead = dead;
            to->lives_size = size;
        }
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
    if (to->n_kernels == to->kernels_size) {
        size_t size = to->kernels_size ? to->kernels_size * 2 : 64;
        char **kernels = realloc(to->kernels, size * sizeof(*kernels));

        if (!kernels)
            return UM_ERR_NO_MEMORY;
        to->kernels = kernels;
        to->kernels_size = size;
    }
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
    put_slice(to, gpu_of(exec->device), NAMED + (exec->stream_id & 0xffffff), stream,
              event->time_ns, exec->duration_ns, kernel_name(to, exec->kernel));
    put_args(to,
             "correlation\":%" PRIu32 ",\"grid\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32
             "],\"block\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]",
             exec->correlation, exec->grid[0], exec->grid[1], exec->grid[2], exec->block[0],
             exec->block[1], exec->block[2]);
    put_end(to);
}

static void on_hint(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_hint_t *hint = &event->u.hint;
    uint64_t hash = um_map_hash(hint->who, strlen(hint->who), 0);
    uint32_t track = um_map_find(&to->who_of, hash);
    char name[100];

    if (track == UM_MAP_NONE) {
        track = NAMED + (uint32_t)to->who_of.n;
        if (um_map_put(&to->who_of, hash, track) && !to->status)
            to->status = UM_ERR_NO_MEMORY;
    }
    snprintf(name, sizeof(name), "%s: %s", um_hint_kind_name((um_hint_kind_t)hint->kind),
             um_hint_result_name((um_hint_result_t)hint->result));
    put_slice(to, HINTS, track, *hint->who ? hint->who : "hints", event->time_ns, hint->duration_ns,
              name);
    put_place(to, hint->addr, hint->bytes, hint->region);
    put_args(to, ",\"device\":%" PRId32 ",\"why\":", hint->device);
    put_text(to, hint->why);
    put_end(to);
}

/* ---- the rest --------------------------------------------------------------------------------- */

static void on_gpu_fault(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_gpu_fault_t *fault = &event->u.gpu_fault;

    put_slice(to, gpu_of(fault->device), FAULTS, "page faults", event->time_ns, fault->duration_ns,
              "GPU fault");
    put_args(to, "addr\":\"0x%" PRIx64 "\",\"groups\":%" PRIu32 ",\"region\":%" PRIu32, fault->addr,
             fault->groups, fault->region);
    put_end(to);
}

static void on_cpu_fault(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_cpu_fault_t *fault = &event->u.cpu_fault;

    put_slice(to, CPU, CPU_FAULTS, "page faults", event->time_ns, 0, "CPU fault");
    put_args(to, "addr\":\"0x%" PRIx64 "\",\"pc\":\"0x%" PRIx64 "\",\"region\":%" PRIu32,
             fault->addr, fault->pc, fault->region);
    put_end(to);
}

static void on_migrate(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_migrate_t *move = &event->u.migrate;
    bool out = move->dst < 0;

    put_slice(to, gpu_of(out ? move->src : move->dst), out ? TO_CPU : TO_GPU,
              out ? "moves to the CPU" : "moves to the GPU", event->time_ns, move->duration_ns,
              um_migrate_cause_name((um_migrate_cause_t)move->cause));
    put_place(to, move->addr, move->bytes, move->region);
    put_end(to);
    follow(to, move);
}

static void on_trouble(um_perfetto_t *to, const um_event_t *event)
{
    bool throttle = event->type == UM_EV_THROTTLE, map = event->type == UM_EV_REMOTE_MAP;
    const um_event_t *e = event;

    put_slice(to,
              gpu_of(throttle ? e->u.throttle.device
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
    put_end(to);
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
        put_slice(to, gpu_of(device), COPIES, "copies", event->time_ns, lasts,
                  set ? "memset" : "memcpy");
    else
        put_call(to, event, lasts, set ? "memset" : "memcpy");
    put_args(to, "bytes\":%" PRIu64, bytes);
    put_end(to);
}

static void on_launch(um_perfetto_t *to, const um_event_t *event)
{
    const um_ev_launch_t *launch = &event->u.launch;

    put_call(to, event, 0,
             launch->flags & UM_LAUNCH_GRAPH ? "launch of a graph"
                                             : kernel_name(to, launch->kernel));
    put_args(to, "correlation\":%" PRIu32 ",\"arguments\":%" PRIu32, launch->correlation,
             launch->n_args);
    put_end(to);
}

/* Waits and nested ranges begin and end in their thread; free ranges are tracks of their own. */
static void put_edge(um_perfetto_t *to, const um_event_t *event, char phase, const char *name)
{
    uint32_t pid = process(to, CPU);
    char thread_name[32];

    snprintf(thread_name, sizeof(thread_name), event->tid ? "thread %" PRIu32 : "threads",
             event->tid);
    put_head(to, phase, pid, thread(to, pid, event->tid, thread_name), event->time_ns, name);
    if (phase == 'b' || phase == 'e')
        put_args(to, ",\"cat\":\"range\",\"id\":\"%" PRIu32 ".%" PRIx64 "\"", to->traces,
                 event->u.mark.id);
    if (phase == 'i')
        fputs(",\"s\":\"t\"", to->out);
    fputc('}', to->out);
}

static void on_sync(um_perfetto_t *to, const um_event_t *event)
{
    static const char *const names[] = {"wait", "wait for the device", "wait for a stream",
                                        "wait for an event", "wait for a copy"};
    uint32_t kind = event->u.sync.kind;

    put_edge(to, event, event->u.sync.exit ? 'E' : 'B',
             names[kind < sizeof(names) / sizeof(names[0]) ? kind : 0]);
}

static void on_mark(um_perfetto_t *to, const um_event_t *event)
{
    static const char phases[] = {'i', 'B', 'E', 'b', 'e'};
    const um_ev_mark_t *mark = &event->u.mark;

    if (mark->kind < sizeof(phases))
        put_edge(to, event, phases[mark->kind], mark->name);
}

/* ---- life ------------------------------------------------------------------------------------- */

um_status_t um_perfetto_new(FILE *out, um_perfetto_t **result)
{
    *result = calloc(1, sizeof(**result));
    if (!*result)
        return UM_ERR_NO_MEMORY;
    (*result)->out = out;
    fputs(UM_PERFETTO_START, out);
    return UM_OK;
}

/* What lives to the end of its trace ends with it. */
static void end_trace(um_perfetto_t *to)
{
    for (size_t i = 0; i < to->n_lives; i++) {
        if (to->lives[i].region)
            put_life(to, &to->lives[i]);
    }
    for (uint32_t i = 0; i < GPUS; i++) {
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
    free(to->path);
    to->path = strdup(path);
    to->traces++;
    to->now_ns = 0;
    return to->path ? UM_OK : UM_ERR_NO_MEMORY;
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

    if (to->status)
        return to->status;
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
    if (!to->status && status)
        to->status = status;
    if (!to->status && ferror(to->out))
        to->status = UM_ERR_IO;
    return to->status;
}

um_status_t um_perfetto_close(um_perfetto_t *to)
{
    um_status_t status;

    end_trace(to);
    fputs("\n]}\n", to->out);
    if ((fflush(to->out) || ferror(to->out)) && !to->status)
        to->status = UM_ERR_IO;
    status = to->status;
    um_map_free(&to->known);
    um_map_free(&to->lane_of);
    um_map_free(&to->who_of);
    free(to->lanes);
    free(to->kernels);
    free(to->lives);
    free(to->dead);
    free(to->path);
    free(to);
    return status;
}
