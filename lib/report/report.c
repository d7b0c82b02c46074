#include "collect.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/grow.h"

#define BIG_MOVE_BYTES UM_BIG_PAGE_BYTES
#define TRACES_MAX     65536u

um_status_t um_report_new(um_report_t **out)
{
    um_report_t *r;
    um_status_t status;

    if (!out)
        return UM_ERR_INVALID;
    r = calloc(1, sizeof(*r));
    if (!r)
        return UM_ERR_NO_MEMORY;
    r->limits = um_limits_default;
    status = um_regions_stat_init(&r->regions);
    if (!status)
        status = um_kernels_stat_init(&r->kernels, &r->regions);
    if (!status)
        status = um_places_new(&r->places);
    if (status) {
        um_report_free(r);
        return status;
    }
    *out = r;
    return UM_OK;
}

void um_report_free(um_report_t *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_traces; i++) {
        um_trace_stat_t *t = &r->traces[i];
        char *const text[] = {t->path,         t->exe,
                              t->command,      t->host,
                              t->kernel,       t->rank,
                              t->driver,       t->tool,
                              t->note,         t->loss_reason,
                              t->tracing_text, t->device,
                              t->uuid,         t->tracing_evidence,
                              t->accesses,     t->cuda};

        for (size_t k = 0; k < sizeof(text) / sizeof(text[0]); k++)
            free(text[k]);
    }
    free(r->traces);
    um_places_free(r->places);
    um_regions_stat_free(&r->regions);
    um_kernels_stat_free(&r->kernels);
    um_copies_stat_free(&r->copies);
    um_timeline_free(&r->timeline);
    um_heatmap_free(&r->heat);
    um_lanes_free(&r->lanes);
    um_attribution_free(r->attribution);
    free(r);
}

/* ---- facts ------------------------------------------------------------------------------------ */

static void set_text(um_report_t *r, char **to, const char *value)
{
    char *copy;

    if (*to || !value || !*value)
        return;
    copy = strdup(value);
    if (!copy)
        r->status = UM_ERR_NO_MEMORY;
    *to = copy;
}

static void set_tracing(um_report_t *r, um_trace_stat_t *trace, const char *value)
{
    static const struct {
        const char *begins;
        um_tracing_t tracing;
    } known[] = {
        {"unsupported", UM_TRACING_UNSUPPORTED},
        {"not supported", UM_TRACING_UNSUPPORTED},
        {"off or", UM_TRACING_UNKNOWN},
        {"off", UM_TRACING_OFF},
        {"0", UM_TRACING_OFF},
        {"false", UM_TRACING_OFF},
        {"no", UM_TRACING_OFF},
        {"on", UM_TRACING_ON},
        {"1", UM_TRACING_ON},
        {"true", UM_TRACING_ON},
        {"yes", UM_TRACING_ON},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!strncmp(value, known[i].begins, strlen(known[i].begins))) {
            trace->tracing = known[i].tracing;
            break;
        }
    }
    set_text(r, &trace->tracing_text, value);
}

/* "2026-11-30T03:41:47Z"; 0: it is no such time. */
static uint64_t time_of(const char *text)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    time_t seconds = end && !*end ? timegm(&tm) : 0;

    return seconds > 0 ? (uint64_t)seconds * UINT64_C(1000000000) : 0;
}

static void on_fact(um_report_t *r, const char *key, const char *value)
{
    um_trace_stat_t *trace = &r->traces[r->n_traces - 1];
    const struct {
        const char *key;
        char **to;
    } wanted[] = {
        {"process.exe", &trace->exe},
        {"process.command", &trace->command},
        {"host.name", &trace->host},
        {"host.kernel", &trace->kernel},
        {"rank.world", &trace->rank},
        {"driver.version", &trace->driver},
        {"cuda.driver", &trace->cuda},
        {"import.kind", &trace->tool},
        {"um.tracing.evidence", &trace->tracing_evidence},
        {"workload.accesses", &trace->accesses},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (!strcmp(key, wanted[i].key))
            set_text(r, wanted[i].to, value);
    }
    if (!strcmp(key, "host.memory_bytes") || !strcmp(key, "host.cgroup_memory_max")) {
        uint64_t bytes = strtoull(value, NULL, 10); /* "max" is 0 */

        if (bytes && (!trace->host_memory_bytes || bytes < trace->host_memory_bytes))
            trace->host_memory_bytes = bytes;
    }
    if (!strcmp(key, "process.recorded_at"))
        trace->recorded_ns = time_of(value);
    if (!strcmp(key, "um.tracing"))
        set_tracing(r, trace, value);
    if (!strcmp(key, "import.kind") &&
        !strncmp(value, "Nsight Systems", 14)) /* has no such tables */
        trace->off |= 1u << UM_EV_THRASH | 1u << UM_EV_THROTTLE | 1u << UM_EV_REMOTE_MAP;
}

static void on_option(um_report_t *r, const um_ev_option_t *option)
{
    static const struct {
        const char *name;
        um_event_type_t type;
    } faults[] = {{"nsys.cuda-um-cpu-page-faults", UM_EV_CPU_FAULT},
                  {"nsys.cuda-um-gpu-page-faults", UM_EV_GPU_FAULT}};
    um_trace_stat_t *trace = &r->traces[r->n_traces - 1];

    if (!strcmp(option->name, "unified-memory") && !trace->tracing_text)
        set_tracing(r, trace, option->value);
    /* What became of that: a refusal is CUPTI's reason. */
    if (!strcmp(option->name, "cupti.unified-memory") && strcmp(option->value, "on") != 0) {
        trace->tracing = UM_TRACING_UNSUPPORTED;
        set_text(r, &trace->tracing_evidence, option->value);
    }
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (strcmp(option->name, faults[i].name) != 0)
            continue;
        if (!strcmp(option->value, "off"))
            trace->off |= 1u << faults[i].type;
        else if (strcmp(option->value, "on") != 0)
            trace->unsure |= 1u << faults[i].type;
    }
}

/* ---- life of a trace -------------------------------------------------------------------------- */

static uint64_t since_start(const um_report_t *r, const um_event_t *event)
{
    uint64_t first_ns = r->traces[r->n_traces - 1].first_ns;

    return event->time_ns > first_ns ? event->time_ns - first_ns : 0;
}

/* Whose it was, for the map: a move counts where it begins. */
static void name_on_map(um_report_t *r, const um_event_t *event, uint32_t kernel)
{
    bool fault = event->type == UM_EV_GPU_FAULT;
    uint64_t addr = fault ? event->u.gpu_fault.addr : event->u.migrate.addr;
    um_live_t *live = um_regions_stat_find(&r->regions, addr);

    if (live && live->id && addr >= live->addr)
        um_heatmap_kernel(&r->heat, live->group, since_start(r, event), addr - live->addr, kernel,
                          1);
}

static void attributed(void *ctx, const um_event_t *event, const um_attributed_t *who)
{
    um_report_t *r = ctx;
    um_status_t status = um_kernels_stat_attributed(&r->kernels, event, who);

    if (status && !r->status)
        r->status = status;
    if (who->to == UM_TO_KERNEL && event->type != UM_EV_THROTTLE)
        name_on_map(r, event, um_map_find(&r->kernels.by_id, who->kernel));
}

void um_report_end_trace(um_report_t *r)
{
    um_trace_stat_t *trace;

    if (!r->open)
        return;
    r->open = false;
    trace = &r->traces[r->n_traces - 1];
    um_attribution_finish(r->attribution);
    um_regions_stat_end(&r->regions, r->now_ns);
    um_kernels_stat_end(&r->kernels);
    um_copies_stat_end(&r->copies);
    um_timeline_end(&r->timeline, r->now_ns);
    if (trace->counts[UM_EV_GPU_FAULT] || trace->counts[UM_EV_MIGRATE] ||
        trace->counts[UM_EV_CPU_FAULT])
        trace->tracing = UM_TRACING_ON;
}

um_status_t um_report_begin(um_report_t *r, const char *path, const um_ev_fact_t *facts,
                            size_t n_facts)
{
    if (!r || !path || (n_facts && !facts))
        return UM_ERR_INVALID;
    um_report_end_trace(r);
    if (r->n_traces == TRACES_MAX)
        return UM_ERR_FULL;
    if (!um_grow(&r->traces, &r->traces_size, r->n_traces + 1, sizeof(*r->traces)))
        return UM_ERR_NO_MEMORY;
    if (!r->attribution) {
        um_status_t status = um_attribution_new(attributed, r, &r->attribution);

        if (status)
            return status;
    }
    memset(&r->traces[r->n_traces++], 0, sizeof(*r->traces));
    set_text(r, &r->traces[r->n_traces - 1].path, path);
    um_places_begin(r->places);
    r->open = true;
    r->now_ns = 0;
    for (size_t i = 0; i < n_facts; i++)
        on_fact(r, facts[i].key, facts[i].value);
    return r->status;
}

um_status_t um_report_note(um_report_t *r, const char *line)
{
    if (!r || !line)
        return UM_ERR_INVALID;
    if (!r->n_traces)
        return UM_ERR_STATE;
    set_text(r, &r->traces[r->n_traces - 1].note, line);
    return r->status;
}

/* ---- events ----------------------------------------------------------------------------------- */

static void move_add(um_moves_t *to, const um_ev_migrate_t *migrate)
{
    to->records++;
    um_sum(&to->bytes, migrate->bytes);
    um_sum(&to->ns, migrate->duration_ns);
}

static void on_migrate(um_report_t *r, um_trace_stat_t *trace, const um_ev_migrate_t *migrate)
{
    um_direction_t direction = migrate->dst < 0   ? UM_TO_HOST
                               : migrate->src < 0 ? UM_TO_DEVICE
                                                  : UM_DEVICE_TO_DEVICE;
    uint32_t cause = migrate->cause < UM_CAUSES ? migrate->cause : UM_CAUSE_UNKNOWN;

    move_add(&r->moves[direction][cause], migrate);
    move_add(&trace->moves[direction], migrate);
    if (direction != UM_DEVICE_TO_DEVICE && migrate->bytes >= BIG_MOVE_BYTES)
        move_add(&r->big_moves[direction], migrate);
}

static void on_loss(um_report_t *r, um_trace_stat_t *trace, const um_ev_loss_t *loss)
{
    trace->losses++;
    um_sum(&trace->lost_records, loss->count);
    um_sum(&trace->lost_bytes, loss->bytes);
    set_text(r, &trace->loss_reason, loss->reason);
}

static void on_device(um_report_t *r, um_trace_stat_t *trace, const um_ev_device_t *device)
{
    trace->devices++;
    if (!trace->gpu_memory_bytes)
        trace->gpu_memory_bytes = device->memory_bytes;
    set_text(r, &trace->device, device->name);
    set_text(r, &trace->uuid, device->uuid);
}

typedef struct stroke {
    um_report_t *report;
    uint64_t at_ns;
    bool in;
    um_status_t status;
} stroke_t;

static void draw_piece(void *ctx, um_live_t *live, uint64_t addr, uint64_t bytes)
{
    stroke_t *stroke = ctx;

    if (live->id && !stroke->status)
        stroke->status = um_heatmap_move(&stroke->report->heat, live->group, live->bytes,
                                         stroke->at_ns, addr - live->addr, bytes, stroke->in);
}

/* What happened where and when, for the map. After regions_stat, which knows the region; one move may
 * take several small ones along. */
static um_status_t draw(um_report_t *r, const um_event_t *event)
{
    uint64_t addr =
        event->type == UM_EV_GPU_FAULT ? event->u.gpu_fault.addr : event->u.cpu_fault.addr;
    uint64_t at_ns = since_start(r, event);
    um_live_t *live;

    if (event->type == UM_EV_MIGRATE) {
        const um_ev_migrate_t *migrate = &event->u.migrate;
        stroke_t stroke = {.report = r, .at_ns = at_ns, .in = migrate->dst >= 0};

        um_regions_stat_split(&r->regions, migrate->addr, migrate->bytes, draw_piece, &stroke);
        return stroke.status;
    }
    live = um_regions_stat_find(&r->regions, addr);
    if (!live || !live->id)
        return UM_OK;
    return um_heatmap_fault(&r->heat, live->group, live->bytes, at_ns, addr - live->addr);
}

/* Facts and definitions carry the time of the recorder's start or none: not part of the span. */
static bool in_span(const um_event_t *event)
{
    switch (event->type) {
    case UM_EV_FACT:
    case UM_EV_DEVICE:
    case UM_EV_OPTION:
    case UM_EV_CALL_SITE:
    case UM_EV_MODULE:
    case UM_EV_KERNEL:
    case UM_EV_LOSS:
        return false;
    case UM_EV_REGION_ALLOC:
    case UM_EV_REGION_LABEL:
        return event->time_ns > 0; /* importers know no time of an allocation */
    default:
        return true;
    }
}

/* When it was over: what lasts is part of the span. */
static uint64_t ends(const um_event_t *event)
{
    uint64_t lasts = event->type == UM_EV_KERNEL_EXEC ? event->u.kernel_exec.duration_ns
                     : event->type == UM_EV_GPU_FAULT ? event->u.gpu_fault.duration_ns
                     : event->type == UM_EV_MIGRATE   ? event->u.migrate.duration_ns
                     : event->type == UM_EV_COPY      ? event->u.copy.duration_ns
                                                      : 0;

    return lasts > INT64_MAX - event->time_ns % INT64_MAX ? event->time_ns : event->time_ns + lasts;
}

/* No record is of more than a process can address, and none lasts for more than two weeks: so that forged
 * ones cannot turn sums over. */
#define BYTES_MOST (UINT64_C(1) << 47)
#define NS_MOST    (UINT64_C(1) << 50)

/* Where the amounts of an event are, 0 = it has none. */
static const struct {
    size_t bytes, ns;
} amounts[UM_EV_TYPE_COUNT] = {
    [UM_EV_KERNEL_EXEC] = {0, offsetof(um_event_t, u.kernel_exec.duration_ns)},
    [UM_EV_GPU_FAULT] = {0, offsetof(um_event_t, u.gpu_fault.duration_ns)},
    [UM_EV_MIGRATE] = {offsetof(um_event_t, u.migrate.bytes),
                       offsetof(um_event_t, u.migrate.duration_ns)},
    [UM_EV_THROTTLE] = {0, offsetof(um_event_t, u.throttle.duration_ns)},
    [UM_EV_COPY] = {offsetof(um_event_t, u.copy.bytes), offsetof(um_event_t, u.copy.duration_ns)},
    [UM_EV_SET] = {offsetof(um_event_t, u.set.bytes), offsetof(um_event_t, u.set.duration_ns)},
    [UM_EV_HINT] = {offsetof(um_event_t, u.hint.bytes), offsetof(um_event_t, u.hint.duration_ns)},
};

static bool beyond(const um_event_t *event, size_t at, uint64_t most)
{
    uint64_t amount;

    if (!at)
        return false;
    memcpy(&amount, (const char *)event + at, sizeof(amount));
    return amount > most;
}

static um_status_t take(um_report_t *r, const um_event_t *event);

um_status_t um_report_event(um_report_t *r, const um_event_t *event)
{
    um_event_t less;
    bool bytes, ns;

    if (!r || !event || event->type >= UM_EV_TYPE_COUNT)
        return UM_ERR_INVALID;
    bytes = beyond(event, amounts[event->type].bytes, BYTES_MOST);
    ns = beyond(event, amounts[event->type].ns, NS_MOST);
    if (!bytes && !ns)
        return take(r, event);
    less = *event;
    if (bytes)
        memcpy((char *)&less + amounts[event->type].bytes, &(uint64_t){BYTES_MOST},
               sizeof(uint64_t));
    if (ns)
        memcpy((char *)&less + amounts[event->type].ns, &(uint64_t){NS_MOST}, sizeof(uint64_t));
    return take(r, &less);
}

static um_status_t take(um_report_t *r, const um_event_t *event)
{
    um_trace_stat_t *trace;
    um_status_t status;
    bool running;

    if (!r->open)
        return UM_ERR_STATE;
    trace = &r->traces[r->n_traces - 1];
    if (event->type != UM_EV_FACT) { /* in the file's header or among its events: the same */
        trace->events++;
        trace->counts[event->type]++;
        r->counts[event->type]++;
    }
    if (in_span(event)) {
        if (!trace->first_ns || event->time_ns < trace->first_ns)
            trace->first_ns = event->time_ns;
        if (ends(event) > trace->last_ns)
            trace->last_ns = ends(event);
        r->now_ns = event->time_ns;
    }
    switch (event->type) {
    case UM_EV_FACT:
        on_fact(r, event->u.fact.key, event->u.fact.value);
        return r->status;
    case UM_EV_OPTION:
        on_option(r, &event->u.option);
        return r->status;
    case UM_EV_DEVICE:
        on_device(r, trace, &event->u.device);
        return r->status;
    case UM_EV_LOSS:
        on_loss(r, trace, &event->u.loss);
        return r->status;
    case UM_EV_CALL_SITE:
    case UM_EV_MODULE:
        return um_places_event(r->places, event);
    case UM_EV_MIGRATE:
        on_migrate(r, trace, &event->u.migrate);
        break;
    case UM_EV_HINT:
        if (event->u.hint.result < UM_HINT_RESULT_COUNT)
            r->hints[event->u.hint.result]++;
        r->hinted |= event->u.hint.result == UM_HINT_APPLIED;
        break;
    default:
        break;
    }
    if (event->type == UM_EV_CPU_FAULT && (status = um_places_event(r->places, event)) != UM_OK)
        return status;
    /* Attribution first: what it decides now ended before this event. */
    status = um_attribution_event(r->attribution, event);
    running = um_attribution_running(r->attribution, event->time_ns);
    if (!status)
        status = um_regions_stat_event(&r->regions, event, running);
    if (!status)
        status = um_kernels_stat_event(&r->kernels, event);
    if (!status)
        status = um_copies_stat_event(&r->copies, event);
    if (!status)
        status = um_timeline_event(&r->timeline, event);
    if (!status)
        status = um_lanes_event(&r->lanes, event, since_start(r, event),
                                event->type == UM_EV_KERNEL_EXEC
                                    ? um_map_find(&r->kernels.by_id, event->u.kernel_exec.kernel)
                                    : UM_MAP_NONE);
    if (!status && (event->type == UM_EV_MIGRATE || event->type == UM_EV_GPU_FAULT ||
                    event->type == UM_EV_CPU_FAULT))
        status = draw(r, event);
    return status ? status : r->status;
}

/* ---- questions -------------------------------------------------------------------------------- */

bool um_report_recorded(const um_report_t *r, um_event_type_t type)
{
    for (size_t i = 0; i < r->n_traces; i++) {
        if (r->traces[i].counts[type] || !((r->traces[i].off | r->traces[i].unsure) & 1u << type))
            return true;
    }
    return false;
}

um_value_t um_report_records(const um_report_t *r, um_event_type_t type, uint64_t count)
{
    return um_report_recorded(r, type) ? um_count(count) : um_none();
}

bool um_report_complete(const um_report_t *r)
{
    const uint32_t faults = 1u << UM_EV_CPU_FAULT | 1u << UM_EV_GPU_FAULT;

    for (size_t i = 0; i < r->n_traces; i++) {
        const um_trace_stat_t *trace = &r->traces[i];

        if (trace->losses || trace->note || trace->tracing != UM_TRACING_ON ||
            (trace->off | trace->unsure) & faults)
            return false;
    }
    return !r->regions.untracked && r->n_traces;
}

uint64_t um_report_total(const um_report_t *r, um_event_type_t type)
{
    return r->counts[type];
}

const char *um_report_site(const um_report_t *r, uint64_t call_site)
{
    return um_places_frames(r->places, call_site);
}

const char *um_report_place(const um_report_t *r, uint64_t call_site)
{
    um_call_place_t place;

    return um_places_site(r->places, call_site, &place) ? NULL : place.text;
}

const char *um_report_place_from(const um_report_t *r, uint64_t call_site)
{
    um_call_place_t place;

    return um_places_site(r->places, call_site, &place) || !*place.from ? NULL : place.from;
}

const char *um_report_pc(const um_report_t *r, uint64_t pc)
{
    um_call_place_t place;
    um_spot_t spot;

    /* An importer's CALL_SITE may have the PC for its id: what the foreign tool knew of it. */
    if (!um_places_pc(r->places, pc, &spot))
        return spot.text;
    return um_places_site(r->places, pc, &place) ? NULL : place.text;
}

/* Measured by hand on one card each: H200 over PCIe 5, one thread of 32 MiB prefetches to the GPU,
 * the middle of 9-15 GB/s to the host. */
static const struct um_known_rate {
    const char *device;
    uint64_t bytes_per_s[2];
} known_rates[] = {
    {"H200", {UINT64_C(45000000000), UINT64_C(12000000000)}},
};

static uint64_t move_rate(const um_moves_t *moves)
{
    return moves->ns ? (uint64_t)((double)moves->bytes * 1e9 / (double)moves->ns) : 0;
}

um_rate_t um_report_rate(const um_report_t *r, um_direction_t direction)
{
    const um_moves_t *user = &r->moves[direction][UM_CAUSE_USER];
    uint64_t pinned = direction == UM_TO_DEVICE ? r->copies.best_in_rate : r->copies.best_out_rate;
    um_rate_t rate = {0};

    if (user->bytes >= 16 * (uint64_t)UM_BLOCK_BYTES && user->ns) {
        rate.bytes_per_s = move_rate(user);
        strcpy(rate.source, "this trace's own prefetches");
        return rate;
    }
    for (size_t i = 0; i < sizeof(known_rates) / sizeof(known_rates[0]); i++) {
        if (r->n_traces && r->traces[0].device &&
            strstr(r->traces[0].device, known_rates[i].device)) {
            rate.bytes_per_s = known_rates[i].bytes_per_s[direction];
            strcpy(rate.source, "prefetches measured on an ");
            strcat(rate.source, known_rates[i].device);
            return rate;
        }
    }
    if (pinned) {
        rate.bytes_per_s = pinned;
        strcpy(rate.source, "this trace's largest pinned copy");
    } else if (r->big_moves[direction].ns) {
        rate.bytes_per_s = move_rate(&r->big_moves[direction]);
        strcpy(rate.source, "this trace's migrations of 64 KiB and more");
    } else if (r->big_moves[!direction].ns) {
        rate.bytes_per_s = move_rate(&r->big_moves[!direction]);
        strcpy(rate.source, "this trace's migrations the other way");
    }
    return rate;
}

uint64_t um_rate_ns(const um_rate_t *rate, uint64_t bytes)
{
    return rate->bytes_per_s ? (uint64_t)((double)bytes * 1e9 / (double)rate->bytes_per_s) : 0;
}
