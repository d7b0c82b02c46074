#include "finding.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../demangle.h"

#define FINDINGS_MAX 1024u

const um_finding_kind_t um_finding_table[] = {
    {"ping-pong", "pages travel to and fro between CPU and GPU", um_detect_ping_pong},
    {"first-touch", "the GPU faults on memory that nobody has written", um_detect_first_touch},
    {"demand-faulting", "a kernel faults dense data in, page by page", um_detect_demand_faulting},
    {"sparse-faulting", "a kernel faults scattered data in, page by page",
     um_detect_sparse_faulting},
    {"host-read-tail", "the CPU takes results back by page faults", um_detect_host_read_tail},
    {"false-sharing", "unrelated buffers share a page that moves", um_detect_false_sharing},
    {"thrashing", "the driver saw pages thrash and held processors back", um_detect_thrashing},
    {"allocation-churn", "the same memory is allocated and freed again and again", um_detect_churn},
    {"never-on-cpu", "managed memory that the CPU never touches", um_detect_never_on_cpu},
    {"pageable-copy", "copies from or to pageable host memory", um_detect_pageable_copy},
    {"used-once", "data that the CPU writes once and the GPU reads once", um_detect_used_once},
    {"not-evictable", "memory that cannot be evicted leaves too little room",
     um_detect_not_evictable},
    {"cyclic-sweep", "a sweep that is longer than the GPU's memory", um_detect_cyclic_sweep},
    {"eviction", "data is pushed out of the GPU and comes back", um_detect_eviction},
    {"read-mostly-written", "ReadMostly on data that the GPU writes",
     um_detect_read_mostly_written},
    {"wrong-location", "a preferred location where nobody works", um_detect_wrong_location},
    {"gpu-bounce", "GPUs take the same data from each other", um_detect_gpu_bounce},
    {"late-prefetch", "the program's own prefetch comes late", um_detect_late_prefetch},
    {"redundant-prefetch", "the program prefetches what is there", um_detect_redundant_prefetch},
    {"wasted-prefetch", "the program prefetches what nothing uses", um_detect_wasted_prefetch},
    {"harmful-prefetch", "the program's own prefetch pushes other data out",
     um_detect_harmful_prefetch},
    {"redundant-advice", "the program gives advice that holds already", um_detect_redundant_advice},
    {"pool-threshold", "a pool gives its memory back at every wait", um_detect_pool_threshold},
    {"pinned-pressure", "much of the host's memory is pinned", um_detect_pinned_pressure},
    {"lost-records", "records are missing from the trace", um_detect_lost_records},
    {"tracing-off", "faults or migrations were not recorded", um_detect_tracing_off},
    {NULL, NULL, NULL},
};

uint64_t um_finding_worth_ns(const um_finding_t *f)
{
    return !f->replayed ? f->win_ns : f->alone_ns > 0 ? (uint64_t)f->alone_ns : 0;
}

const char *um_finding_worth_by(const um_finding_t *f)
{
    return f->replayed ? "replay" : f->win_ns ? "estimate" : "none";
}

void um_finding_win_text(const um_finding_t *f, char *out, size_t bytes)
{
    uint64_t ns = um_finding_worth_ns(f);

    if (f->replayed && f->error_ns)
        snprintf(out, bytes, "%s +- %s to win", um_h(um_ns(ns)), um_h(um_ns(f->error_ns)));
    else if (ns || f->replayed)
        snprintf(out, bytes, "about %s to win", um_h(um_ns(ns)));
    else
        snprintf(out, bytes, "no time of its own");
}

static int by_win(const void *a, const void *b)
{
    const um_finding_t *x = a, *y = b;

    if (um_finding_worth_ns(x) != um_finding_worth_ns(y))
        return um_finding_worth_ns(x) < um_finding_worth_ns(y) ? 1 : -1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strcmp(x->where, y->where);
}

um_status_t um_findings_detect(const um_report_t *report, um_findings_t *out)
{
    memset(out, 0, sizeof(*out));
    for (const um_finding_kind_t *kind = um_finding_table; kind->name; kind++) {
        um_status_t status = kind->detect(report, kind, out);

        if (status)
            return status;
    }
    um_findings_rank(out);
    um_findings_fold(report, out);
    return UM_OK;
}

void um_findings_rank(um_findings_t *findings)
{
    if (findings->n)
        qsort(findings->list, findings->n, sizeof(*findings->list), by_win);
}

static bool is_worth_it(const um_report_t *report, const um_findings_t *findings,
                        const um_finding_t *f)
{
    uint64_t span = findings->base_ns && f->replayed ? findings->base_ns : 0;

    if (f->timeless && !f->replayed)
        return true;
    for (size_t i = 0; !span && i < report->n_traces; i++) {
        const um_trace_stat_t *t = &report->traces[i];

        span += t->last_ns > t->first_ns ? t->last_ns - t->first_ns : 0;
    }
    return um_finding_worth_ns(f) >= span / 100 * report->limits.win_percent &&
           um_finding_worth_ns(f) && (!f->replayed || um_finding_worth_ns(f) >= f->error_ns);
}

void um_findings_fold(const um_report_t *report, um_findings_t *findings)
{
    um_finding_t *sorted = findings->n ? malloc(findings->n * sizeof(*sorted)) : NULL;
    size_t n = 0;

    findings->worth = findings->n;
    if (!sorted)
        return; /* no memory: nothing is folded */
    for (int worth = 1; worth >= 0; worth--) {
        for (size_t i = 0; i < findings->n; i++) {
            if (is_worth_it(report, findings, &findings->list[i]) == (worth == 1))
                sorted[n++] = findings->list[i];
        }
        findings->worth = worth ? n : findings->worth;
    }
    memcpy(findings->list, sorted, n * sizeof(*sorted));
    free(sorted);
}

void um_findings_free(um_findings_t *findings)
{
    free(findings->list);
    memset(findings, 0, sizeof(*findings));
}

um_status_t um_findings_add(um_findings_t *findings, const um_finding_t *finding)
{
    findings->found++;
    if (findings->n == FINDINGS_MAX) {
        size_t least = 0;

        for (size_t i = 1; i < findings->n; i++) {
            if (findings->list[i].win_ns < findings->list[least].win_ns)
                least = i;
        }
        if (findings->list[least].win_ns < finding->win_ns)
            findings->list[least] = *finding;
        return UM_OK;
    }
    if (findings->n == findings->size) {
        size_t size = findings->size ? findings->size * 2 : 8;
        um_finding_t *array = realloc(findings->list, size * sizeof(*array));

        if (!array)
            return UM_ERR_NO_MEMORY;
        findings->list = array;
        findings->size = size;
    }
    findings->list[findings->n++] = *finding;
    return UM_OK;
}

void um_finding_evidence(um_finding_t *finding, const char *key, um_value_t value)
{
    if (finding->n_evidence < UM_EVIDENCE_MAX)
        finding->evidence[finding->n_evidence++] = (um_evidence_t){.key = key, .value = value};
}

void um_finding_say(char *field, size_t bytes, const char *format, ...)
{
    size_t n = strlen(field);
    va_list args;

    va_start(args, format);
    vsnprintf(field + n, bytes - n, format, args);
    va_end(args);
}

void um_finding_place(um_finding_t *finding, const um_report_t *report, uint32_t group,
                      um_place_t place)
{
    if (finding->n_places == UM_PLACES_MAX) {
        finding->places_left++;
        return;
    }
    um_group_name(&report->regions.groups[group], place.region, sizeof(place.region));
    place.group = group;
    finding->places[finding->n_places++] = place;
}

void um_finding_kernel(const um_kernel_stat_t *kernel, char *out, size_t bytes)
{
    char *name = kernel && *kernel->name && !kernel->copy ? um_demangle_short(kernel->name) : NULL;

    snprintf(out, bytes, "%s", name ? name : kernel && kernel->copy ? kernel->name : "a kernel");
    free(name);
}

void um_finding_region(const um_report_t *report, uint32_t group, char *out, size_t bytes)
{
    const um_group_t *of = &report->regions.groups[group];
    const char *place = um_report_place(report, of->call_site);
    const char *from = um_report_place_from(report, of->call_site);

    um_group_name(of, out, bytes);
    if (place)
        um_finding_say(out, bytes, " allocated at %s", place);
    if (from)
        um_finding_say(out, bytes, " from %s", from);
}

void um_finding_pc(char *field, size_t bytes, const um_report_t *report, uint64_t pc)
{
    const char *place = um_report_pc(report, pc);

    if (place)
        um_finding_say(field, bytes, "; CPU at %s", place);
    else
        um_finding_say(field, bytes, "; CPU at pc %s", um_h(um_addr(pc)));
}

um_human_t um_human(um_value_t value)
{
    um_human_t human;

    um_value_print(value, human.text, sizeof(human.text));
    return human;
}

void um_finding_win(um_finding_t *finding, const um_report_t *report, const char *what,
                    uint64_t spent_ns, um_direction_t direction, uint64_t bytes)
{
    um_rate_t rate = um_report_rate(report, direction);
    uint64_t cost = um_rate_ns(&rate, bytes);

    finding->win_ns = spent_ns > cost ? spent_ns - cost : 0;
    um_say_in(finding->basis, "%s %s", um_h(um_ns(spent_ns)), what);
    if (bytes && rate.bytes_per_s)
        um_say_in(finding->basis, ", less %s at %s (%s)", um_h(um_bytes(bytes)),
                  um_h(um_rate(rate.bytes_per_s)), rate.source);
}
