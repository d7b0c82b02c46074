#include "families.h"

#include "findings/finding.h"
#include "sections.h"

/* Uses of a trip up to which a mapping beats moving the data (measured on an H200: pingpong, dense,
 * pipeline, graph replay: 1.5 to 2.5 times faster than the best prefetching). */
#define FEW_USES 4000u
/* What a trip takes at least, thousandths. */
#define OFTEN 1500u
#define HALF  500u

typedef struct um_facts {
    const um_report_t *report;
    const um_group_t *group;
    uint64_t all_bytes; /* of all its regions */
    uint64_t trips, uses, density;
    bool gpu, cpu; /* used it */
    bool gpu_alone, comes_back, sparse, fetched;
    bool part; /* alone goes to and fro by fault: the rest of it does not */
} um_facts_t;

/* As the finding on it has it, where there is one that asks for a part. */
static bool is_part(const um_report_t *r, uint32_t g, uint64_t all_bytes, uint64_t shared)
{
    const um_group_t *group = &r->regions.groups[g];
    uint64_t in = group->uses.in_bytes, part_in = group->ping_pong.in_bytes;
    double rest = (double)all_bytes - (double)shared;

    if (!shared || rest <= 0 || (shared > all_bytes / 4 && !um_ping_pong_maps_part(r, g)))
        return false;
    return in <= part_in || (double)(in - part_in) * 1000 < rest * OFTEN;
}

static um_facts_t facts_of(const um_report_t *r, uint32_t g)
{
    const um_group_t *group = &r->regions.groups[g];
    const um_uses_t *uses = &group->uses;
    um_facts_t f = {.report = r, .group = group, .all_bytes = group->bytes * group->regions};
    uint64_t trips, shared;

    f.trips = f.all_bytes ? (uint64_t)((double)uses->in_bytes * 1000 / (double)f.all_bytes) : 0;
    /* By fault, page by page. */
    shared = group->ping_pong.pages * UM_BIG_PAGE_BYTES;
    f.part = is_part(r, g, f.all_bytes, shared);
    trips = (group->ping_pong.most_turns + 1) / 2 * 1000;
    if (group->bytes <= UM_BIG_PAGE_BYTES) /* bytes are its neighbours', too */
        f.trips = trips;
    else if (shared && !f.part && trips > f.trips)
        f.trips = trips;
    if (uses->launches && group->regions)
        f.uses = (uint64_t)((double)uses->launches * 1000 / group->regions /
                            (f.trips > 1000 ? (double)f.trips / 1000 : 1));
    f.density = group->block_pages ? group->pages_in * 100 / group->block_pages : UINT64_MAX;
    f.gpu = group->gpu_used || uses->launches || group->sums.gpu_faults;
    f.cpu = group->sums.cpu_faults || uses->in_bytes || uses->out_bytes ||
            group->first[UM_TOUCHED_BY_CPU];
    f.gpu_alone = group->gpu_only && group->gpu_only == group->regions && um_report_complete(r) &&
                  r->counts[UM_EV_CPU_FAULT];
    f.comes_back = uses->out_bytes - (uses->evicted_bytes < uses->out_bytes ? uses->evicted_bytes
                                                                            : uses->out_bytes) >
                   uses->in_bytes / 4;
    f.sparse = group->pages_in && f.density < r->limits.dense_percent;
    f.fetched = uses->prefetched_bytes > 0;
    return f;
}

/* ---- what speaks for what, the first that holds --------------------------------------------- */

static bool no_gpu(const um_facts_t *f)
{
    return !f->gpu;
}

static bool scratch(const um_facts_t *f)
{
    return f->gpu_alone && f->group->reused >= f->report->limits.churn_allocations;
}

static bool device_only(const um_facts_t *f)
{
    return f->gpu_alone;
}

static bool bounces(const um_facts_t *f)
{
    return f->group->uses.peer_turns >= f->report->limits.bounce_moves;
}

static bool too_large(const um_facts_t *f)
{
    return f->group->uses.returned_bytes >= f->report->limits.evicted_bytes;
}

static bool here_and_there(const um_facts_t *f)
{
    return f->sparse && f->group->bytes > UM_BLOCK_BYTES && !f->group->first[UM_TOUCHED_BY_GPU];
}

static bool small_shared(const um_facts_t *f)
{
    return f->cpu && f->trips >= OFTEN && f->group->bytes <= UM_BIG_PAGE_BYTES;
}

static bool part_shared(const um_facts_t *f)
{
    return f->part;
}

static bool to_and_fro(const um_facts_t *f)
{
    return f->trips >= OFTEN && f->uses && f->uses <= FEW_USES;
}

static bool to_and_fro_perhaps(const um_facts_t *f)
{
    return f->trips >= OFTEN && !f->uses;
}

static bool to_and_fro_used_well(const um_facts_t *f)
{
    return f->trips >= OFTEN && f->comes_back;
}

static bool renewed(const um_facts_t *f)
{
    return f->trips >= OFTEN;
}

static bool once(const um_facts_t *f)
{
    return f->trips >= HALF && f->group->uses.launches && !f->comes_back &&
           f->group->uses.launches <= f->group->regions * f->report->limits.once_launches;
}

static bool results(const um_facts_t *f)
{
    return f->comes_back && f->trips < HALF &&
           f->group->uses.out_bytes >= f->report->limits.once_bytes;
}

static bool uploaded_fetched(const um_facts_t *f)
{
    return f->fetched;
}

static bool uploaded(const um_facts_t *f)
{
    return f->group->sums.gpu_ns && f->group->uses.in_bytes >= f->report->limits.once_bytes;
}

static bool filled_by_gpu(const um_facts_t *f)
{
    return f->group->first[UM_TOUCHED_BY_GPU] && f->group->sums.gpu_ns &&
           f->group->bytes >= f->report->limits.once_bytes;
}

static bool always(const um_facts_t *f)
{
    (void)f;
    return true;
}

typedef struct um_rule {
    bool (*holds)(const um_facts_t *f);
    um_best_t best;
    uint32_t confidence;
    const char *why, *measured;
} um_rule_t;

static const um_rule_t managed_rules[] = {
    {no_gpu, UM_BEST_MANAGED, 60, "no GPU was seen to use it", ""},
    {scratch, UM_BEST_POOL, 90, "GPU alone, allocated again and again",
     "scratch memory from a pool that keeps it: 13 to 50 times faster on an H200"},
    {device_only, UM_BEST_COPIED, 80, "GPU alone: cudaMalloc, and no copies",
     "first touch by fault takes 75 ms a GiB on an H200, device memory has none"},
    {bounces, UM_BEST_HINTED, 85, "GPUs take it from each other",
     "prefer it on one, map it for the others"},
    {too_large, UM_BEST_HINTED, 80, "more than there is room for",
     "keep a part on the GPU, map the rest"},
    {part_shared, UM_BEST_HINTED, 75, "a part of it goes to and fro",
     "prefer that part on the CPU and map it for the GPU, or give it memory of its own"},
    {here_and_there, UM_BEST_MAPPED, 75, "the GPU reads a little here and there",
     "a fault brings 64 KiB and more for a few bytes"},
    {small_shared, UM_BEST_MAPPED, 90, "a few bytes that both use every round",
     "one page to and fro costs two faults a round"},
    {to_and_fro, UM_BEST_MAPPED, 85, "to and fro, few uses a trip",
     "over the link it need not move: 1.5 to 2.5 times faster than the best prefetching on an "
     "H200, "
     "as fast as pinned copies"},
    {to_and_fro_perhaps, UM_BEST_MAPPED, 60, "to and fro, uses a trip not known",
     "with few uses a trip it need not move; with many, copy it from and to pinned memory"},
    {to_and_fro_used_well, UM_BEST_COPIED, 75, "to and fro, many uses a trip",
     "pinned copies come back at 55 GB/s on an H200, prefetches to the CPU at 9 to 15"},
    {renewed, UM_BEST_HINTED, 75, "renewed by the CPU, many uses a trip", "prefetch it each time"},
    {once, UM_BEST_MAPPED, 80, "written once, read once",
     "over the link it need not move; a copy from pinned memory is as fast"},
    {results, UM_BEST_COPIED, 70, "results for the CPU",
     "pinned copies come back at 55 GB/s on an H200, prefetches at 9 to 15, faults at 5"},
    {uploaded_fetched, UM_BEST_HINTED, 80, "prefetched, as it is", ""},
    {uploaded, UM_BEST_HINTED, 80, "comes once, used there often",
     "prefetched it comes at 45 to 50 GB/s on an H200, by fault at 8 to 10"},
    {filled_by_gpu, UM_BEST_HINTED, 80, "the GPU touches it first",
     "populated by prefetch it costs a 13th of what faults cost on an H200"},
    {always, UM_BEST_MANAGED, 60, "nothing that was seen speaks against it", ""},
};

static bool churns(const um_facts_t *f)
{
    return f->group->reused >= f->report->limits.churn_allocations;
}

/* The others stay what they are, but for these. */
static const struct um_family_rule {
    uint32_t family; /* um_family_t */
    um_rule_t rule;
} other_rules[] = {
    {UM_FAMILY_DEVICE,
     {churns, UM_BEST_POOL, 85, "allocated again and again", "cudaFree waits for the GPU"}},
    {UM_FAMILY_DEVICE, {always, UM_BEST_COPIED, 70, "device memory, as it is", ""}},
    {UM_FAMILY_POOL,
     {always, UM_BEST_POOL, 70, "from a pool, as it is", "mind its release threshold"}},
    {UM_FAMILY_VMM, {always, UM_BEST_COPIED, 60, "physical memory mapped, as it is", ""}},
    {UM_FAMILY_PINNED, {always, UM_BEST_COPIED, 60, "pinned side of copies, as it is", ""}},
    {UM_FAMILY_MAPPED, {always, UM_BEST_MAPPED, 60, "mapped, as it is", ""}},
    {UM_FAMILY_REGISTERED, {always, UM_BEST_REGISTERED, 60, "registered, as it is", ""}},
    {UM_FAMILY_SYSTEM,
     {always, UM_BEST_REGISTERED, 70, "the GPU reaches malloc memory by fault", "pin it"}},
    {UM_FAMILY_UNKNOWN, {always, UM_BEST_MANAGED, 0, "its family is not known", ""}},
};

static bool changes(const um_facts_t *f, um_best_t best)
{
    switch (f->group->family) {
    case UM_FAMILY_MANAGED:
        return best != UM_BEST_MANAGED && !(best == UM_BEST_HINTED && f->fetched);
    case UM_FAMILY_DEVICE:
        return best == UM_BEST_POOL;
    default:
        return f->group->family == UM_FAMILY_SYSTEM;
    }
}

um_family_verdict_t um_family_judge(const um_report_t *report, uint32_t g)
{
    um_facts_t f = facts_of(report, g);
    um_family_verdict_t v = {
        .trips = f.trips, .uses = f.uses, .density = f.density, .why = "", .measured = ""};
    const um_rule_t *rule = NULL;

    if (f.group->family == UM_FAMILY_MANAGED) {
        rule = managed_rules;
        while (!rule->holds(&f))
            rule++;
    } else {
        size_t n = sizeof(other_rules) / sizeof(other_rules[0]);

        for (size_t i = 0; i < n && !rule; i++) {
            if ((other_rules[i].family == f.group->family || i == n - 1) &&
                other_rules[i].rule.holds(&f))
                rule = &other_rules[i].rule;
        }
    }
    v.best = rule->best;
    v.why = rule->why;
    v.measured = rule->measured;
    v.confidence = rule->confidence;
    v.change = changes(&f, rule->best);
    return v;
}

const char *um_best_name(um_best_t best)
{
    static const char *const name[UM_BEST_COUNT] = {"managed", "managed-hints", "device-copies",
                                                    "mapped",  "pool",          "registered"};

    return name[best];
}

const char *um_best_title(um_best_t best)
{
    static const char *const title[UM_BEST_COUNT] = {
        "managed as it is", "managed, hints", "cudaMalloc, copies", "mapped", "pool", "registered"};

    return title[best];
}

/* ---- the table -------------------------------------------------------------------------------- */

/* Host memory that is copied and not pinned has no allocation in a trace: one row for all of it. */
static void pageable_row(um_emitter_t *e, const um_report_t *r)
{
    uint64_t bytes[2] = {0};

    for (size_t i = 0; i < r->copies.n_classes; i++) {
        const um_copy_class_t *c = &r->copies.classes[i];

        if (!um_copies_counted(&r->copies, c))
            continue;
        bytes[0] += c->src == UM_MEMORY_PAGEABLE ? c->total_bytes : 0;
        bytes[1] += c->dst == UM_MEMORY_PAGEABLE ? c->total_bytes : 0;
    }
    if (bytes[0] + bytes[1] < r->limits.copy_bytes)
        return;
    um_emitter_row(e,
                   (um_value_t[]){um_text("(pageable host memory)"), um_none(), um_text("pageable"),
                                  um_text(um_best_title(UM_BEST_REGISTERED)),
                                  um_text(um_best_name(UM_BEST_REGISTERED)), um_bool(true),
                                  um_percent(80), um_text("copied from or to"),
                                  um_text("pinned, they need no second copy and can overlap"),
                                  um_none(), um_none(), um_bytes(bytes[0]), um_bytes(bytes[1]),
                                  um_none(), um_none(), um_none(), um_none(), um_none(),
                                  um_none()});
}

void um_section_families(um_emitter_t *e, const um_report_t *r)
{
    static const um_column_t columns[] = {
        {"name", "buffer", true, false, NULL},
        {"region", NULL, false, false, NULL},
        {"family", "now", true, false, "managed"},
        {NULL, "best", true, false, NULL},
        {"best", NULL, true, false, NULL},
        {"change", NULL, false, false, NULL},
        {"confidence", NULL, false, false, NULL},
        {"why", "because", true, true, NULL},
        {"measured", NULL, true, false, NULL},
        {"bytes", "size", false, true, NULL},
        {"regions", "n", false, true, "1"},
        {"to_device_bytes", "to GPU", false, true, NULL},
        {"to_host_bytes", "to CPU", false, true, NULL},
        {"trips", "trips", false, true, NULL},
        {"uses_per_trip", "uses", false, true, NULL},
        {"density_percent", NULL, false, false, NULL},
        {"launches", NULL, false, false, NULL},
        {"mean_lifetime_ns", NULL, false, false, NULL},
        {"reallocations", NULL, false, false, NULL},
    };
    uint32_t top = um_emitter_options(e)->top;
    uint64_t rows = 0;

    um_emitter_heading(e, "Families (what memory would serve each buffer best)");
    um_emitter_table(e, "families", columns, sizeof(columns) / sizeof(columns[0]));
    for (uint32_t g = 0; g < r->regions.n_groups; g++) {
        const um_group_t *group = &r->regions.groups[g];
        um_family_verdict_t v;
        char name[200];

        if (!group->regions || !group->first_region || rows++ >= top)
            continue;
        v = um_family_judge(r, g);
        if (!um_emitter_is_text(e))
            um_finding_region(r, g, name, sizeof(name));
        else if (group->label)
            um_group_name(group, name, sizeof(name));
        else /* the size has a column */
            snprintf(name, sizeof(name), "region %u%s", group->first_region,
                     group->regions > 1 ? ".." : "");
        um_emitter_row(
            e, (um_value_t[]){um_text(name), um_count(group->first_region),
                              um_text(um_family_name(group->family)),
                              um_text(um_best_title(v.best)), um_text(um_best_name(v.best)),
                              um_bool(v.change), um_percent(v.confidence), um_text(v.why),
                              um_text(v.measured), um_bytes(group->bytes), um_count(group->regions),
                              um_bytes(group->uses.in_bytes), um_bytes(group->uses.out_bytes),
                              um_ratio(v.trips), v.uses ? um_ratio(v.uses) : um_none(),
                              v.density != UINT64_MAX ? um_percent(v.density) : um_none(),
                              um_count(group->uses.launches),
                              group->freed ? um_ns(group->lifetime_ns / group->freed) : um_none(),
                              um_count(group->reused)});
    }
    pageable_row(e, r);
    um_emitter_table_end(e, rows > top ? rows - top : 0);
}
