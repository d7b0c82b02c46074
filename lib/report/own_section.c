/* The program's own prefetches and advice, each place judged. */
#include "collect.h"
#include "sections.h"

void um_section_own_hints(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {"call", "the program's own hints", true, false, NULL},
        {"region", "region", true, true, NULL},
        {"calls", "calls", false, false, NULL},
        {"bytes", "bytes", false, false, NULL},
        {"verdict", "verdict", true, false, NULL},
        {"redundant_bytes", "there already", false, false, "0 B"},
        {"wasted_bytes", "unused", false, false, "0 B"},
        {"late_faults", "late faults", false, false, "0"},
        {"evicting_bytes", "pushed out", false, true, "0 B"},
        {"call_ns", "in calls", false, true, "0 ns"},
    };
    const um_uses_stat_t *uses = &r->regions.uses;
    uint32_t top = um_emitter_options(e)->top;

    if (!uses->n_own && um_emitter_is_text(e))
        return;
    um_emitter_heading(e, "Own hints (what the program asked for, and what became of it)");
    um_emitter_table(e, "own_hints", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < uses->n_own && i < top; i++) {
        const um_own_hint_t *own = &uses->own[i];
        char call[240], region[200];

        um_own_name(r, own, call, sizeof(call));
        um_group_name(&r->regions.groups[own->group], region, sizeof(region));
        um_emitter_row(e, (um_value_t[]){um_text(call), um_text(region), um_count(own->calls),
                                         um_bytes(own->bytes),
                                         um_text(um_own_verdict_name(um_own_verdict(r, own))),
                                         um_bytes(own->redundant_bytes),
                                         um_bytes(own->wasted_bytes), um_count(own->late_faults),
                                         um_bytes(own->evicting_bytes), um_ns(own->ns)});
    }
    um_emitter_table_end(e, uses->n_own > top ? uses->n_own - top : 0);
}
