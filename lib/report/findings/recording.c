/* What is wrong with the trace itself: records were lost, or not asked for. No time to win, but what the
 * other findings are worth depends on it. */
#include "finding.h"

UM_DETECTOR(um_detect_lost_records)
{
    um_finding_t f = {.kind = kind, .confidence = 100, .timeless = true};
    uint64_t traces = 0, records = 0, bytes = 0;
    const char *reason = NULL;

    for (size_t i = 0; i < report->n_traces; i++) {
        const um_trace_stat_t *t = &report->traces[i];

        if (!t->losses)
            continue;
        traces++;
        records += t->lost_records;
        bytes += t->lost_bytes;
        reason = reason ? reason : t->loss_reason;
        um_say_in(f.where, "%s%s", *f.where ? ", " : "", t->path);
    }
    if (!traces)
        return UM_OK;
    um_say_in(f.title, "Records were lost");
    um_say_in(f.seen, "%s record%s %s missing (%s)",
              records ? um_h(um_count(records)) : "an unknown number of", records == 1 ? "" : "s",
              records == 1 ? "is" : "are", reason ? reason : "no reason given");
    um_say_in(f.advice,
              "nothing is concluded from what is not in the trace; record a shorter run, or "
              "with larger buffers, before you act on small figures");
    f.asks = UM_CHANGE_RECORD;
    um_say_in(f.command, "umrt record -- PROGRAM  # a shorter run");
    um_say_in(f.basis, "figures are lower bounds");
    um_finding_evidence(&f, "lost_records", records ? um_count(records) : um_none());
    um_finding_evidence(&f, "lost_bytes", um_bytes(bytes));
    um_finding_evidence(&f, "traces", um_count(traces));
    return um_findings_add(out, &f);
}

static bool blind(const um_trace_stat_t *t)
{
    const uint32_t faults = 1u << UM_EV_GPU_FAULT | 1u << UM_EV_CPU_FAULT;

    if (t->accesses) /* a made-up or deep trace says what was accessed instead */
        return false;
    return t->tracing == UM_TRACING_OFF || t->tracing == UM_TRACING_UNSUPPORTED ||
           (t->off & faults);
}

UM_DETECTOR(um_detect_tracing_off)
{
    um_finding_t f = {.kind = kind, .confidence = 100, .timeless = true};
    uint64_t traces = 0;

    for (size_t i = 0; i < report->n_traces; i++) {
        const um_trace_stat_t *t = &report->traces[i];

        if (!blind(t))
            continue;
        if (!traces++)
            um_say_in(f.seen, "%s",
                      t->tracing == UM_TRACING_OFF ? "unified memory was not recorded at all"
                      : t->tracing == UM_TRACING_UNSUPPORTED
                          ? "unified memory could not be recorded on that machine"
                      : t->off & 1u << UM_EV_GPU_FAULT ? "GPU page faults were not recorded"
                                                       : "CPU page faults were not recorded");
        um_say_in(f.where, "%s%s", *f.where ? ", " : "", t->path);
    }
    if (!traces)
        return UM_OK;
    um_say_in(f.title, "Faults or migrations were not recorded");
    um_say_in(f.advice, "switch them on and record again: 0 faults here means nothing");
    f.asks = UM_CHANGE_RECORD;
    um_say_in(f.command, "umrt record -- PROGRAM  # or nsys profile --cuda-um-gpu-page-faults=true "
                         "--cuda-um-cpu-page-faults=true");
    um_say_in(f.basis, "what was not recorded is not estimated");
    um_finding_evidence(&f, "traces", um_count(traces));
    return um_findings_add(out, &f);
}
