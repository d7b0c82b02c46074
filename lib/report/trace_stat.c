#include "trace_stat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "units.h"

um_status_t um_trace_stat_text(char **to, const char *value)
{
    if (*to || !value || !*value)
        return UM_OK;
    *to = strdup(value);
    return *to ? UM_OK : UM_ERR_NO_MEMORY;
}

void um_trace_stat_free(um_trace_stat_t *t)
{
    char *const text[] = {t->path,         t->exe,
                          t->command,      t->host,
                          t->kernel,       t->rank,
                          t->driver,       t->tool,
                          t->note,         t->loss_reason,
                          t->tracing_text, t->device,
                          t->uuid,         t->tracing_evidence,
                          t->accesses,     t->cuda};

    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
        free(text[i]);
}

/* ---- what it says of itself ------------------------------------------------------------------- */

static um_status_t set_tracing(um_trace_stat_t *trace, const char *value)
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
    return um_trace_stat_text(&trace->tracing_text, value);
}

/* "2026-11-30T03:41:47Z"; 0: it is no such time. */
static uint64_t time_of(const char *text)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    time_t seconds = end && !*end ? timegm(&tm) : 0;

    return seconds > 0 ? (uint64_t)seconds * UINT64_C(1000000000) : 0;
}

um_status_t um_trace_stat_fact(um_trace_stat_t *trace, const char *key, const char *value)
{
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
    um_status_t status = UM_OK;

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (!strcmp(key, wanted[i].key))
            status = um_trace_stat_text(wanted[i].to, value);
    }
    if (!strcmp(key, "host.memory_bytes") || !strcmp(key, "host.cgroup_memory_max")) {
        uint64_t bytes = strtoull(value, NULL, 10); /* "max" is 0 */

        if (bytes && (!trace->host_memory_bytes || bytes < trace->host_memory_bytes))
            trace->host_memory_bytes = bytes;
    }
    if (!strcmp(key, "process.recorded_at"))
        trace->recorded_ns = time_of(value);
    if (!strcmp(key, "um.tracing"))
        status = set_tracing(trace, value);
    if (!strcmp(key, "import.kind") &&
        !strncmp(value, "Nsight Systems", 14)) /* has no such tables */
        trace->off |= 1u << UM_EV_THRASH | 1u << UM_EV_THROTTLE | 1u << UM_EV_REMOTE_MAP;
    return status;
}

static um_status_t on_option(um_trace_stat_t *trace, const um_ev_option_t *option)
{
    static const struct {
        const char *name;
        um_event_type_t type;
    } faults[] = {{"nsys.cuda-um-cpu-page-faults", UM_EV_CPU_FAULT},
                  {"nsys.cuda-um-gpu-page-faults", UM_EV_GPU_FAULT}};
    um_status_t status = UM_OK;

    /* A trace of `umrt run`: whatever the setting, only the recorder has these records. */
    if (!strcmp(option->name, "mode") &&
        (!strcmp(option->value, "hint") || !strcmp(option->value, "trial"))) {
        status = um_trace_stat_text(&trace->tracing_evidence,
                                    "a trace of umrt run; umrt record has them");
        if (!status && !trace->tracing_text)
            status = set_tracing(trace, "off");
    }
    if (!strcmp(option->name, "unified-memory") && !trace->tracing_text)
        status = set_tracing(trace, option->value);
    /* What became of that: a refusal is CUPTI's reason. */
    if (!strcmp(option->name, "cupti.unified-memory") && strcmp(option->value, "on") != 0) {
        trace->tracing = UM_TRACING_UNSUPPORTED;
        status = um_trace_stat_text(&trace->tracing_evidence, option->value);
    }
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (strcmp(option->name, faults[i].name) != 0)
            continue;
        if (!strcmp(option->value, "off"))
            trace->off |= 1u << faults[i].type;
        else if (strcmp(option->value, "on") != 0)
            trace->unsure |= 1u << faults[i].type;
    }
    return status;
}

/* ---- its events ------------------------------------------------------------------------------- */

static um_status_t on_device(um_trace_stat_t *trace, const um_ev_device_t *device)
{
    um_status_t status = um_trace_stat_text(&trace->device, device->name);

    trace->devices++;
    if (!trace->gpu_memory_bytes)
        trace->gpu_memory_bytes = device->memory_bytes;
    return um_trace_stat_text(&trace->uuid, device->uuid) ? UM_ERR_NO_MEMORY : status;
}

static um_status_t on_loss(um_trace_stat_t *trace, const um_ev_loss_t *loss)
{
    trace->losses++;
    um_sum(&trace->lost_records, loss->count);
    um_sum(&trace->lost_bytes, loss->bytes);
    return um_trace_stat_text(&trace->loss_reason, loss->reason);
}

bool um_trace_stat_in_span(const um_event_t *event)
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

um_status_t um_trace_stat_event(um_trace_stat_t *trace, const um_event_t *event)
{
    if (event->type == UM_EV_FACT)
        return um_trace_stat_fact(trace, event->u.fact.key, event->u.fact.value);
    trace->events++;
    trace->counts[event->type]++;
    if (um_trace_stat_in_span(event)) {
        if (!trace->first_ns || event->time_ns < trace->first_ns)
            trace->first_ns = event->time_ns;
        if (ends(event) > trace->last_ns)
            trace->last_ns = ends(event);
    }
    switch (event->type) {
    case UM_EV_OPTION:
        return on_option(trace, &event->u.option);
    case UM_EV_DEVICE:
        return on_device(trace, &event->u.device);
    case UM_EV_LOSS:
        return on_loss(trace, &event->u.loss);
    default:
        return UM_OK;
    }
}
