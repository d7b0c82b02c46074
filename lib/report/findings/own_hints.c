/*
 * The program's own prefetches and advice, judged call site by call site: one ledger (uses_stat) says
 * what became of what they asked for, one verdict follows from it, and what is wrong is a finding.
 */
#include "finding.h"

um_own_verdict_t um_own_verdict(const um_report_t *r, const um_own_hint_t *own)
{
    const um_limits_t *limits = &r->limits;
    uint64_t share = own->bytes / 100 * limits->hint_percent;

    if (own->failed == own->calls)
        return UM_OWN_FAILED;
    if (own->kind != UM_HINT_PREFETCH) {
        if (own->kind == UM_HINT_READ_MOSTLY && r->regions.groups[own->group].uses.written_faults)
            return UM_OWN_HARMFUL;
        return own->redundant_calls >= limits->advice_calls ? UM_OWN_REDUNDANT : UM_OWN_USEFUL;
    }
    if (own->bytes < limits->hint_bytes)
        return UM_OWN_USEFUL;
    if (own->evicting_bytes && own->evicting_bytes >= share &&
        own->evicting_bytes >= limits->evicted_bytes)
        return UM_OWN_HARMFUL;
    if (own->wasted_bytes && own->wasted_bytes >= share)
        return UM_OWN_WASTED;
    if (own->late_faults >= limits->hint_faults)
        return UM_OWN_LATE;
    if (own->redundant_bytes && own->redundant_bytes >= share)
        return UM_OWN_REDUNDANT;
    return UM_OWN_USEFUL;
}

const char *um_own_verdict_name(um_own_verdict_t verdict)
{
    static const char *const name[] = {
        [UM_OWN_USEFUL] = "useful", [UM_OWN_LATE] = "late",       [UM_OWN_REDUNDANT] = "redundant",
        [UM_OWN_WASTED] = "wasted", [UM_OWN_HARMFUL] = "harmful", [UM_OWN_FAILED] = "failed",
    };

    return name[verdict];
}

void um_own_name(const um_report_t *r, const um_own_hint_t *own, char *out, size_t bytes)
{
    const char *place = um_report_place(r, own->call_site);

    snprintf(out, bytes, "%s", um_hint_kind_name(own->kind));
    if (own->kind == UM_HINT_PREFETCH || own->kind == UM_HINT_PREFERRED_LOCATION) {
        if (own->device < 0)
            um_finding_say(out, bytes, " to the CPU");
        else
            um_finding_say(out, bytes, " to GPU %d", own->device);
    }
    if (place)
        um_finding_say(out, bytes, " at %s", place);
}

void um_finding_advised(um_finding_t *f, const um_report_t *r, uint32_t group, uint32_t hint_kind)
{
    for (size_t i = 0; i < r->regions.uses.n_own; i++) {
        const um_own_hint_t *own = &r->regions.uses.own[i];
        const char *place = um_report_place(r, own->call_site);

        if (own->group == group && own->kind == hint_kind && place) {
            um_say_in(f->where, "; advised at %s", place);
            return;
        }
    }
}

/* What each verdict says; the waste itself is told with figures. */
typedef struct um_own_text {
    um_own_verdict_t verdict;
    bool advice;
    const char *title, *says, *basis;
    um_change_t change, asks;
} um_own_text_t;

static uint64_t lost_ns(const um_report_t *r, const um_own_hint_t *own, um_own_verdict_t verdict)
{
    um_rate_t in = um_report_rate(r, UM_TO_DEVICE), out = um_report_rate(r, UM_TO_HOST);
    double share = own->bytes ? (double)own->redundant_bytes / (double)own->bytes : 0;

    switch (verdict) {
    case UM_OWN_LATE:
        return own->late_ns;
    case UM_OWN_WASTED:
        return um_rate_ns(&in, own->wasted_bytes) + um_rate_ns(&out, own->wasted_bytes);
    case UM_OWN_HARMFUL:
        return um_rate_ns(&in, own->evicting_bytes) + um_rate_ns(&out, own->evicting_bytes);
    default:
        return (uint64_t)((double)own->ns * (share < 1 ? share : 1));
    }
}

static um_status_t tell(const um_report_t *r, const um_finding_kind_t *kind,
                        const um_own_text_t *text, um_findings_t *out)
{
    for (size_t i = 0; i < r->regions.uses.n_own; i++) {
        const um_own_hint_t *own = &r->regions.uses.own[i];
        um_finding_t f = {.kind = kind, .confidence = 85, .own = (uint32_t)i + 1};
        char name[200], call[240];
        um_status_t status;

        if ((own->kind != UM_HINT_PREFETCH) != text->advice || own->group >= r->regions.n_groups ||
            um_own_verdict(r, own) != text->verdict)
            continue;
        um_finding_region(r, own->group, name, sizeof(name));
        um_own_name(r, own, call, sizeof(call));
        um_say_in(f.title, "%s", text->title);
        um_say_in(f.where, "%s; of %s", call, name);
        um_say_in(f.seen, "%s call%s for %s", um_h(um_count(own->calls)),
                  own->calls == 1 ? "" : "s", um_h(um_bytes(own->bytes)));
        if (own->redundant_bytes)
            um_say_in(f.seen, ", %s of them there already", um_h(um_bytes(own->redundant_bytes)));
        if (own->wasted_bytes)
            um_say_in(f.seen, ", %s gone again before a kernel used them",
                      um_h(um_bytes(own->wasted_bytes)));
        if (own->late_faults)
            um_say_in(f.seen, ", %s GPU fault records on what had been asked for",
                      um_h(um_count(own->late_faults)));
        if (own->evicting_bytes)
            um_say_in(f.seen, ", %s pushed out of the GPU right behind it",
                      um_h(um_bytes(own->evicting_bytes)));
        um_say_in(f.advice, "%s", text->says);
        f.win_ns = lost_ns(r, own, text->verdict);
        f.timeless = !f.win_ns; /* the calls' own time was not recorded */
        um_say_in(f.basis, "%s", text->basis);
        f.change = text->change;
        f.asks = text->asks;
        um_finding_evidence(&f, "calls", um_count(own->calls));
        um_finding_evidence(&f, "bytes", um_bytes(own->bytes));
        um_finding_evidence(&f, "call_ns", um_ns(own->ns));
        um_finding_evidence(&f, "redundant_calls", um_count(own->redundant_calls));
        um_finding_evidence(&f, "redundant_bytes", um_bytes(own->redundant_bytes));
        um_finding_evidence(&f, "wasted_bytes", um_bytes(own->wasted_bytes));
        um_finding_evidence(&f, "late_faults", um_count(own->late_faults));
        um_finding_evidence(&f, "late_ns", um_ns(own->late_ns));
        um_finding_evidence(&f, "evicting_bytes", um_bytes(own->evicting_bytes));
        um_finding_place(&f, r, own->group, (um_place_t){.bytes = own->bytes});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}

UM_DETECTOR(um_detect_late_prefetch)
{
    static const um_own_text_t text = {
        .verdict = UM_OWN_LATE,
        .change = UM_CHANGE_EARLIER,
        .title = "A prefetch that comes late",
        .says =
            "call it earlier, on a stream that is idle by then, in pieces of 32 MiB; the kernel "
            "must come behind it in its stream or by an event",
        .basis = "GPU fault service on what had been asked for",
    };

    return tell(report, kind, &text, out);
}

UM_DETECTOR(um_detect_redundant_prefetch)
{
    static const um_own_text_t text = {
        .verdict = UM_OWN_REDUNDANT,
        .change = UM_CHANGE_DROP_REPEATS,
        .title = "A prefetch of what is there",
        .says =
            "call it only after the other side has had the data; each call costs about a launch",
        .basis = "the share of the calls' own time",
    };

    return tell(report, kind, &text, out);
}

UM_DETECTOR(um_detect_wasted_prefetch)
{
    static const um_own_text_t text = {
        .verdict = UM_OWN_WASTED,
        .change = UM_CHANGE_DROP_HINT,
        .title = "A prefetch that nothing uses",
        .says = "leave it out, or prefetch only the part that the next kernel takes",
        .basis = "the bytes' way there and back at the link's rates",
    };

    return tell(report, kind, &text, out);
}

UM_DETECTOR(um_detect_harmful_prefetch)
{
    static const um_own_text_t text = {
        .verdict = UM_OWN_HARMFUL,
        .change = UM_CHANGE_DROP_HINT,
        .asks = UM_CHANGE_LIMIT,
        .title = "A prefetch that pushes other data out",
        .says = "prefetch no more than there is room for, in the order of use, or drop it",
        .basis = "the evicted bytes' way out and back at the link's rates",
    };

    return tell(report, kind, &text, out);
}

UM_DETECTOR(um_detect_redundant_advice)
{
    static const um_own_text_t text = {
        .verdict = UM_OWN_REDUNDANT,
        .change = UM_CHANGE_DROP_REPEATS,
        .advice = true,
        .title = "Advice that holds already",
        .says = "give it once, after the allocation: each call walks the range's pages",
        .basis = "the share of the calls' own time",
    };

    return tell(report, kind, &text, out);
}
