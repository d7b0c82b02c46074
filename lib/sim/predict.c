#include "predict.h"

#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "replay.h"

/* About ten seconds of one core. */
#define WORK_DEFAULT  UINT64_C(20000000)
#define ALONE_MOST    24u
#define TOGETHER_MOST 6u

typedef struct predicting {
    const um_predict_t *with;
    const um_report_t *report;
    um_sim_result_t base;
    uint64_t cost, left; /* of one replay; what may still be spent */
    uint32_t percent;    /* of the error bar */
    uint64_t room_bytes; /* for managed memory on a GPU; what there would be without the rest */
    uint64_t memory_bytes;
    um_changed_region_t regions[ALONE_MOST][UM_PLACES_MAX];
    um_workload_change_t changes[ALONE_MOST];
} predicting_t;

static um_status_t run(const um_predict_t *with, const um_workload_t *workload, uint64_t gpu_bytes,
                       um_sim_result_t *out)
{
    um_sim_config_t config = {.workload = workload,
                              .machine = with->machine,
                              .policy = um_policy_find("app"),
                              .gpu_bytes = gpu_bytes,
                              .params = with->params};

    return um_sim_run(&config, out, NULL, 0);
}

/* What a kind is about; what the model's own run of the program does not show, it cannot say more of. */
static bool shows(const um_report_t *r, const um_finding_t *f, const um_sim_result_t *base)
{
    uint64_t evicted = 0, peer = 0, late = 0;
    const struct {
        const char *kind;
        uint64_t shown;
        const uint64_t *recorded; /* of which at least half is shown; NULL = some of it is */
    } about[] = {
        {"thrashing", base->thrash_throttles, NULL},
        {"eviction", base->evicted_bytes, &evicted},
        {"cyclic-sweep", base->evicted_bytes, &evicted},
        {"not-evictable", base->evicted_bytes, &evicted},
        {"harmful-prefetch", base->evicted_bytes, &evicted},
        {"gpu-bounce", base->bytes_peer, &peer},
        {"late-prefetch", base->late_bytes, &late},
        {"host-read-tail", base->cpu_faults, NULL},
        {"first-touch", base->gpu_faults, NULL},
        {"demand-faulting", base->gpu_faults, NULL},
        {"sparse-faulting", base->gpu_faults, NULL},
        {"wrong-location", base->bytes_remote + base->bytes_peer, NULL},
    };

    for (size_t g = 0; g < r->regions.n_groups; g++) {
        evicted += r->regions.groups[g].uses.evicted_bytes;
        peer += r->regions.groups[g].uses.peer_bytes;
    }
    if (f->own)
        late = r->regions.uses.own[f->own - 1].late_bytes;

    for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
        if (!strcmp(f->kind->name, about[i].kind))
            return about[i].shown &&
                   (!about[i].recorded || about[i].shown >= *about[i].recorded / 2);
    }
    return true;
}

/* The advice of a finding as a change of slot n; false where the model knows none. */
static bool make_change(predicting_t *p, const um_finding_t *f, size_t n)
{
    const um_regions_stat_t *stat = &p->report->regions;
    um_workload_change_t *change = &p->changes[n];

    if (f->change == UM_CHANGE_NONE || f->change > UM_CHANGE_REPLAYED ||
        (!f->n_places && f->change != UM_CHANGE_ROOM))
        return false;
    *change = (um_workload_change_t){.change = f->change, .regions = p->regions[n]};
    for (uint32_t i = 0; i < f->n_places; i++) {
        const um_group_t *group = &stat->groups[f->places[i].group];
        bool part = f->part_end > f->part_from && f->part_end <= group->bytes;

        if (!group->first_region)
            continue;
        p->regions[n][change->n_regions++] =
            (um_changed_region_t){.label = group->label,
                                  .call_site = group->call_site,
                                  .bytes = group->bytes,
                                  .first_region = group->first_region,
                                  .part_from = part ? f->part_from : 0,
                                  .part_end = part ? f->part_end : 0};
    }
    if (f->own) {
        const um_own_hint_t *own = &stat->uses.own[f->own - 1];

        change->call_site = own->call_site;
        change->hint_kind = own->kind;
        change->to_host = own->device < 0;
    }
    return change->n_regions > 0 || f->change == UM_CHANGE_ROOM;
}

typedef struct um_saving {
    int64_t ns;
    uint64_t error_ns;
} um_saving_t;

/* How much shorter the program is with these changes. UM_ERR_FULL: that would be too much work. */
static um_status_t saving(predicting_t *p, const um_workload_change_t *changes, size_t n,
                          um_saving_t *out)
{
    const um_predict_t *with = p->with;
    um_workload_t *changed = NULL;
    um_sim_result_t result = {0};
    um_status_t status;
    uint64_t room = p->room_bytes;

    if (p->left < p->cost)
        return UM_ERR_FULL;
    p->left -= p->cost;
    for (size_t k = 0; k < n; k++) {
        if (changes[k].change == UM_CHANGE_ROOM)
            room = p->memory_bytes;
    }
    status = n == 1 && changes->change == UM_CHANGE_ROOM
                 ? run(with, with->workload, room, &result)
                 : um_workload_changed(with->workload, changes, n, room, &changed);
    if (!status && changed)
        status = run(with, changed, room, &result);
    if (!status)
        *out = (um_saving_t){(int64_t)p->base.total_ns - (int64_t)result.total_ns,
                             um_saving_error_ns(with->machine, p->percent, &p->base, &result)};
    um_workload_free(changed);
    return status;
}

static uint64_t more(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static uint64_t by_fault(const um_sim_result_t *r)
{
    return more(r->bytes_to_device + r->bytes_to_host + r->bytes_peer, r->hinted_bytes);
}

/* What `b` has to move that `a` has not, as time of the link. */
static uint64_t brought_ns(const um_machine_t *machine, const um_sim_result_t *a,
                           const um_sim_result_t *b)
{
    uint64_t bytes = more(b->hinted_bytes, a->hinted_bytes) +
                     more(b->bytes_remote, a->bytes_remote) + more(by_fault(b), by_fault(a));

    return (uint64_t)((double)um_curve_ns(&machine->link_to_device, UM_BLOCK_BYTES) *
                      (double)bytes / UM_BLOCK_BYTES);
}

uint64_t um_saving_error_ns(const um_machine_t *machine, uint32_t percent,
                            const um_sim_result_t *as_it_is, const um_sim_result_t *changed)
{
    bool saved = changed->total_ns <= as_it_is->total_ns;
    const um_sim_result_t *slow = saved ? as_it_is : changed, *fast = saved ? changed : as_it_is;
    uint64_t ns = slow->total_ns - fast->total_ns + 2 * brought_ns(machine, slow, fast);

    return (uint64_t)((double)ns * percent / 100);
}

static void error_bar(const um_predict_t *with, const um_sim_result_t *base,
                      um_findings_t *findings)
{
    const um_error_bar_t *bar = um_error_bar_find(with->machine);

    snprintf(findings->machine, sizeof(findings->machine), "%s", with->machine->name);
    findings->base_ns = base->total_ns;
    findings->error_percent = bar ? bar->saving_percent : 0;
}

/* Where mapping does not pay, moving it ahead may: the data is used more than it seems. And where an earlier
 * prefetch keeps other work waiting, one right before the launch may not. */
static um_status_t try_prefetch(predicting_t *p, um_finding_t *f, size_t n)
{
    um_workload_change_t change = p->changes[n];
    bool both = !strcmp(f->kind->name, "ping-pong"), mapped = change.change == UM_CHANGE_MAP;
    um_saving_t alone;
    um_status_t status;

    change.change = both ? UM_CHANGE_BOTH_WAYS : UM_CHANGE_PREFETCH;
    status = saving(p, &change, 1, &alone);
    if (status || alone.ns <= f->alone_ns)
        return status == UM_ERR_FULL ? UM_OK : status;
    p->changes[n] = change;
    f->change = change.change;
    f->alone_ns = alone.ns;
    f->error_ns = alone.error_ns;
    f->asks = UM_CHANGE_NONE;
    *f->advice = '\0';
    um_say_in(f->advice,
              "prefetch it to the GPU right before the launch that takes it, on the same stream%s: "
              "replayed, that is better than to %s",
              both ? ", and back to the CPU behind it" : "",
              mapped ? "keep it with the CPU" : "call it earlier");
    return UM_OK;
}

static void say_basis(um_finding_t *f, const um_findings_t *findings)
{
    um_say_in(f->predicted, "with the advice, replayed on %s: %s %s of %s", findings->machine,
              um_h(um_ns((uint64_t)(f->alone_ns < 0 ? -f->alone_ns : f->alone_ns))),
              f->alone_ns < 0 ? "more" : "less", um_h(um_ns(findings->base_ns)));
    if (findings->error_percent)
        um_say_in(f->predicted, ", +- %s", um_h(um_ns(f->error_ns)));
    else
        um_say_in(f->predicted, ", never compared with such a machine");
}

/* The GPU's memory is what was recorded (a smaller card of that name, a part of one), less what the program
 * itself took that cannot be evicted. False, and why not: that leaves none. */
static bool find_room(predicting_t *p, um_findings_t *findings)
{
    uint64_t recorded = p->report->n_traces ? p->report->traces[0].gpu_memory_bytes : 0;
    uint64_t held = um_held_bytes(p->report), most = p->with->machine->memory_bytes;

    p->memory_bytes = recorded && recorded < most ? recorded : most;
    p->room_bytes = p->memory_bytes > held ? p->memory_bytes - held : 0;
    if (p->with->gpu_bytes) {
        p->room_bytes = p->with->gpu_bytes;
        p->memory_bytes = p->room_bytes + held < most ? p->room_bytes + held : most;
    }
    if (p->room_bytes >= UM_BLOCK_BYTES)
        return true;
    snprintf(findings->why_not, sizeof(findings->why_not),
             "the program's cudaMalloc, pool and mapped memory leaves managed memory no room on "
             "the GPU");
    return false;
}

/* The model's own run of the program takes about as long as it did, within the worst that it was ever off by;
 * else it is another program to it (work side by side that was recorded while it waited, say). */
static bool is_like_it(const predicting_t *p, um_findings_t *findings)
{
    const um_error_bar_t *bar = um_error_bar_find(p->with->machine);
    const um_trace_stat_t *trace = p->report->n_traces ? &p->report->traces[0] : NULL;
    uint64_t span =
        trace && trace->last_ns > trace->first_ns ? trace->last_ns - trace->first_ns : 0;
    double most = 1 + (bar ? bar->worst_percent : 100) / 100.0;

    if (!span || ((double)p->base.total_ns <= (double)span * most &&
                  (double)span <= (double)p->base.total_ns * most))
        return true;
    snprintf(findings->why_not, sizeof(findings->why_not),
             "the model's own run of this trace takes %s, not %s", um_h(um_ns(p->base.total_ns)),
             um_h(um_ns(span)));
    return false;
}

um_status_t um_predict_findings(void *predict, const um_report_t *report, um_findings_t *findings)
{
    const um_predict_t *with = predict;
    const um_workload_t *w = with->workload;
    predicting_t *p = calloc(1, sizeof(*p));
    um_workload_change_t together[TOGETHER_MOST];
    size_t tried = 0, n_together = 0;
    um_status_t status;

    if (!p)
        return UM_ERR_NO_MEMORY;
    p->with = with;
    p->report = report;
    p->left = with->work ? with->work : WORK_DEFAULT;
    p->cost = w->n_steps + w->n_touches + w->touched_bytes / UM_BIG_PAGE_BYTES;
    if (p->cost * 2 > p->left) {
        snprintf(findings->why_not, sizeof(findings->why_not), "the trace is too long for it");
        free(p);
        return UM_OK;
    }
    if (!find_room(p, findings)) {
        free(p);
        return UM_OK;
    }
    p->left -= p->cost;
    status = run(with, w, p->room_bytes, &p->base);
    if (!status && !is_like_it(p, findings)) {
        free(p);
        return UM_OK;
    }
    if (!status)
        error_bar(with, &p->base, findings);
    p->percent = findings->error_percent;
    for (size_t i = 0; !status && i < findings->n && tried < ALONE_MOST; i++) {
        um_finding_t *f = &findings->list[i];
        um_saving_t alone;
        um_status_t got;

        if (!make_change(p, f, tried))
            continue;
        if (!shows(report, f, &p->base)) {
            um_say_in(f->predicted,
                      "not replayed: the model's own run of this trace does not show it");
            continue;
        }
        got = saving(p, &p->changes[tried], 1, &alone);
        if (got == UM_OK) {
            f->alone_ns = alone.ns;
            f->error_ns = alone.error_ns;
        }
        if (got == UM_OK && f->alone_ns <= (int64_t)f->error_ns &&
            (f->change == UM_CHANGE_MAP || f->change == UM_CHANGE_EARLIER))
            got = try_prefetch(p, f, tried);
        if (got == UM_ERR_NO_MEMORY)
            status = got;
        if (got)
            continue;
        f->replayed = (uint32_t)++tried;
        say_basis(f, findings);
    }
    um_findings_rank(findings);
    for (size_t i = 0; !status && i < findings->n && n_together < TOGETHER_MOST; i++) {
        um_finding_t *f = &findings->list[i];
        um_saving_t all;

        if (!f->replayed || f->alone_ns <= 0 || (uint64_t)f->alone_ns < f->error_ns)
            continue;
        together[n_together++] = p->changes[f->replayed - 1];
        if (n_together == 1)
            f->together_ns = f->alone_ns;
        else if (saving(p, together, n_together, &all) == UM_OK)
            f->together_ns = all.ns;
        else
            break;
        f->together = (uint32_t)n_together;
    }
    free(p);
    return status;
}
