#include "collect.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < r->n_traces; i++)
        um_trace_stat_free(&r->traces[i]);
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

/* What fails sticks. */
static void stick(um_report_t *r, um_status_t status)
{
    if (status)
        r->status = status;
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
    stick(r, um_trace_stat_text(&r->traces[r->n_traces - 1].path, path));
    um_places_begin(r->places);
    r->open = true;
    r->now_ns = 0;
    for (size_t i = 0; i < n_facts; i++)
        stick(r, um_trace_stat_fact(&r->traces[r->n_traces - 1], facts[i].key, facts[i].value));
    return r->status;
}

um_status_t um_report_note(um_report_t *r, const char *line)
{
    if (!r || !line)
        return UM_ERR_INVALID;
    if (!r->n_traces)
        return UM_ERR_STATE;
    stick(r, um_trace_stat_text(&r->traces[r->n_traces - 1].note, line));
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
    stick(r, um_trace_stat_event(trace, event));
    if (event->type != UM_EV_FACT)
        r->counts[event->type]++;
    if (um_trace_stat_in_span(event))
        r->now_ns = event->time_ns;
    switch (event->type) {
    case UM_EV_FACT:
    case UM_EV_OPTION:
    case UM_EV_DEVICE:
    case UM_EV_LOSS:
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
