#include "top_frame.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/emitter.h"
#include "report/units.h"
#include "um_tools.h"

static const char *const column_names[UM_TOP_COLUMNS] = {
    [UM_TOP_ADDRESS] = "address", [UM_TOP_SIZE] = "size", [UM_TOP_FAMILY] = "family",
    [UM_TOP_GPU] = "gpu",         [UM_TOP_HOST] = "host", [UM_TOP_FAULTS] = "faults",
    [UM_TOP_MOVED] = "moved",     [UM_TOP_NAME] = "name",
};

const char *um_top_column_name(um_top_column_t column)
{
    return column_names[column];
}

bool um_top_column_parse(const char *name, um_top_column_t *out)
{
    for (int i = 0; i < UM_TOP_COLUMNS; i++)
        if (strcmp(name, column_names[i]) == 0) {
            *out = (um_top_column_t)i;
            return true;
        }
    return false;
}

/* ---- figures ---- */

/* What came to a counter in a second. */
static double rate(const um_top_view_t *view, uint64_t now, uint64_t before)
{
    double seconds = (double)(view->now->time_ns - view->before->time_ns) * 1e-9;

    return seconds > 0 && now >= before ? (double)(now - before) / seconds : 0;
}
#define RATE(field) rate(view, view->now->field, view->before->field)

static double seconds(const um_top_figures_t *figures)
{
    return figures->time_ns > figures->start_ns
               ? (double)(figures->time_ns - figures->start_ns) * 1e-9
               : 0;
}

static uint64_t refused(const um_top_figures_t *figures)
{
    uint64_t n = 0;

    for (int r = 0; r < UM_HINT_RESULT_COUNT; r++)
        n += figures->stats.hints_refused[r];
    return n;
}

static const char *mode_name(const um_top_figures_t *figures)
{
    static const char *const names[] = {[UM_MODE_OFF] = "off",
                                        [UM_MODE_OBSERVE] = "observe",
                                        [UM_MODE_RECORD] = "record",
                                        [UM_MODE_HINT] = "hint",
                                        [UM_MODE_TRIAL] = "trial"};
    const char *name = figures->mode < sizeof names / sizeof names[0] ? names[figures->mode] : NULL;

    return name != NULL ? name : "starting";
}

static const char *refusal(int r)
{
    const char *name = um_hint_result_name((um_hint_result_t)r), *colon = strstr(name, ": ");

    return colon != NULL ? colon + 2 : name;
}

#define NOT_KNOWN UINT64_MAX

/* Bytes on a GPU and with the CPU. What is duplicated is on both. */
static void where(const um_top_region_t *region, uint64_t *gpu, uint64_t *host)
{
    *gpu = *host = NOT_KNOWN;
    switch ((um_family_t)region->family) {
    case UM_FAMILY_DEVICE:
    case UM_FAMILY_POOL:
    case UM_FAMILY_VMM:
        *gpu = region->bytes;
        *host = 0;
        return;
    case UM_FAMILY_PINNED:
    case UM_FAMILY_MAPPED:
    case UM_FAMILY_REGISTERED:
        *gpu = 0;
        *host = region->bytes;
        return;
    default:
        if (region->where_known != UM_TOP_UNKNOWN)
            *gpu = region->where_bytes[UM_WHERE_DEVICE] + region->where_bytes[UM_WHERE_BOTH];
        if (region->where_known == UM_TOP_BY_MODEL)
            *host = region->where_bytes[UM_WHERE_HOST] + region->where_bytes[UM_WHERE_BOTH];
    }
}

/* The program's word, else where it was allocated. */
static const char *name_of(const um_top_view_t *view, const um_top_region_t *region, char *buffer,
                           size_t bytes)
{
    um_call_place_t place;

    if (region->label[0] != '\0')
        return region->label;
    if (view->places != NULL && region->call_site != 0 &&
        um_places_site(view->places, region->call_site, &place) == UM_OK)
        return place.brief;
    snprintf(buffer, bytes, "%.*s", (int)strcspn(region->frames, ";"), region->frames);
    return buffer[0] != '\0' ? buffer : "-";
}

/* ---- sorted ---- */

static uint64_t key_of(const um_top_region_t *region, um_top_column_t column)
{
    uint64_t gpu, host;

    where(region, &gpu, &host);
    switch (column) {
    case UM_TOP_ADDRESS:
        return UINT64_MAX - region->addr; /* these two begin with the least */
    case UM_TOP_FAMILY:
        return UM_FAMILY_COUNT -
               (uint64_t)(region->family == UM_FAMILY_MANAGED ? 0 : region->family);
    case UM_TOP_SIZE:
        return region->bytes;
    case UM_TOP_GPU:
        return gpu == NOT_KNOWN ? 0 : gpu;
    case UM_TOP_HOST:
        return host == NOT_KNOWN ? 0 : host;
    case UM_TOP_FAULTS:
        return region->gpu_faults + region->cpu_faults;
    case UM_TOP_MOVED:
        return region->to_gpu_bytes + region->to_host_bytes;
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *ctx)
{
    const um_top_region_t *x = *(const um_top_region_t *const *)a;
    const um_top_region_t *y = *(const um_top_region_t *const *)b;
    const um_top_view_t *view = ctx;
    uint64_t kx = key_of(x, view->sort), ky = key_of(y, view->sort);
    int order = (kx < ky) - (kx > ky);
    char one[256], other[256];

    if (view->sort == UM_TOP_NAME)
        order = strcmp(name_of(view, x, one, sizeof one), name_of(view, y, other, sizeof other));
    if (order == 0)
        order = (x->addr > y->addr) - (x->addr < y->addr);
    return view->reverse ? -order : order;
}

static uint32_t sorted(const um_top_view_t *view, const um_top_region_t **out)
{
    uint32_t n = view->now->n_regions;

    for (uint32_t i = 0; i < n; i++)
        out[i] = &view->now->region[i];
    qsort_r(out, n, sizeof *out, compare, (void *)view);
    return n;
}

/* ---- the plain view ---- */

static void plain_region(const um_top_view_t *view, const um_top_region_t *region, FILE *to)
{
    char buffer[256], *name = um_text_clean(name_of(view, region, buffer, sizeof buffer));
    static const char *const names[UM_TOP_WHERES] = {"unknown", "untouched", "host", "gpu", "both"};

    fprintf(to, "region id=%u addr=0x%" PRIx64 " bytes=%" PRIu64 " family=%s", region->id,
            region->addr, region->bytes, um_family_name((um_family_t)region->family));
    for (uint32_t w = 0; w < UM_TOP_WHERES && region->where_known; w++)
        fprintf(to, " %s_bytes=%" PRIu64, names[w], region->where_bytes[w]);
    if (view->now->recorded)
        fprintf(to,
                " gpu_faults=%" PRIu64 " cpu_faults=%" PRIu64 " to_gpu_bytes=%" PRIu64
                " to_host_bytes=%" PRIu64,
                region->gpu_faults, region->cpu_faults, region->to_gpu_bytes,
                region->to_host_bytes);
    fprintf(to, " name=%s\n", name != NULL ? name : "-"); /* the last: it may have blanks */
    free(name);
}

static void plain_all(const um_top_view_t *view, const char *before, FILE *to)
{
    const um_top_region_t *region[UM_TOP_REGIONS];
    uint32_t n = sorted(view, region);

    for (uint32_t i = 0; i < view->now->n_advisors; i++) {
        const um_top_advisor_t *a = &view->now->advisor[i];

        fprintf(to,
                "%sadvisor name=%s proposals=%" PRIu64 " proposed_bytes=%" PRIu64
                " admitted=%" PRIu64 " refused=%" PRIu64 " applied=%" PRIu64 " failed=%" PRIu64
                " cancelled=%" PRIu64 " applied_bytes=%" PRIu64 " driver_ns=%" PRIu64 "\n",
                before, a->who, a->proposals, a->proposed_bytes, a->admitted, a->refused,
                a->applied, a->failed, a->cancelled, a->applied_bytes, a->driver_ns);
    }
    for (uint32_t i = 0; i < n; i++) {
        fputs(before, to);
        plain_region(view, region[i], to);
    }
}

void um_top_plain(const um_top_view_t *view, const char *before, bool all, FILE *to)
{
    const um_top_figures_t *f = view->now;
    const um_runtime_stats_t *s = &f->stats;

    fprintf(to,
            "%spid=%d mode=%s over=%d seconds=%.1f launches=%" PRIu64
            " launches_per_s=%.1f launches_managed=%" PRIu64 " launches_hinted=%" PRIu64
            " regions=%" PRIu64 " regions_managed=%" PRIu64 " managed_bytes=%" PRIu64
            " prefetched_bytes=%" PRIu64 " prefetched_bytes_per_s=%.0f hints_proposed=%" PRIu64
            " hints_admitted=%" PRIu64 " hints_refused=%" PRIu64 " hints_applied=%" PRIu64
            " hints_failed=%" PRIu64 " hints_cancelled=%" PRIu64,
            before, view->pid, mode_name(f), view->over, seconds(f), s->launches,
            RATE(stats.launches), s->launches_managed, f->hinted_launches, s->regions_live,
            s->regions_managed_live, f->managed_bytes, s->prefetched_bytes,
            RATE(stats.prefetched_bytes), s->hints_proposed, s->hints_admitted, refused(f),
            s->hints_applied, s->hints_failed, s->hints_cancelled);
    fprintf(to, " guard_places=%" PRIu64 " guard_given_up=%" PRIu64 " guard_withheld=%" PRIu64,
            f->guard_groups, f->guard_lost, f->guard_withheld);
    if (f->guard_at_once)
        fprintf(to, " threads_at_once=%" PRIu32, f->guard_at_once);
    if (f->guard_measured)
        fprintf(to, " saved_ns=%" PRId64 " saved_error_ns=%" PRIu64, f->guard_saved_ns,
                f->guard_error_ns);
    if (f->recorded)
        fprintf(to,
                " gpu_faults=%" PRIu64 " gpu_faults_per_s=%.1f cpu_faults=%" PRIu64
                " cpu_faults_per_s=%.1f to_gpu_bytes=%" PRIu64
                " to_gpu_bytes_per_s=%.0f to_host_bytes=%" PRIu64 " to_host_bytes_per_s=%.0f",
                f->gpu_faults, RATE(gpu_faults), f->cpu_faults, RATE(cpu_faults), f->to_gpu_bytes,
                RATE(to_gpu_bytes), f->to_host_bytes, RATE(to_host_bytes));
    fprintf(to, " events=%" PRIu64 " events_lost=%" PRIu64 " trace_bytes=%" PRIu64 "\n", s->events,
            s->events_lost, s->trace_bytes);
    if (all)
        plain_all(view, before, to);
    fflush(to);
}

/* ---- the screen ---- */

static void say(um_top_line_fn line, void *ctx, bool heading, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void say(um_top_line_fn line, void *ctx, bool heading, const char *format, ...)
{
    char text[512], *clean;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    clean = um_text_clean(text);
    line(ctx, clean != NULL ? clean : "", heading);
    free(clean);
}

/* Buffers for the numbers of one line. */
typedef char number_t[32];

static const char *bytes(number_t buffer, uint64_t n)
{
    um_units_bytes(n, buffer, sizeof(number_t));
    return buffer;
}

static const char *count(number_t buffer, uint64_t n)
{
    return um_say_count(buffer, n);
}

static const char *time_of(number_t buffer, uint64_t ns)
{
    um_units_ns(ns, buffer, sizeof(number_t));
    return buffer;
}

/* "; refused 3 capacity, 2 duplicate" */
static void refusals(const um_top_figures_t *figures, char *out, size_t size)
{
    const char *lead = "; refused ";
    size_t used = 0;

    *out = '\0';
    for (int r = 0; r < UM_HINT_RESULT_COUNT && used < size; r++)
        if (figures->stats.hints_refused[r] != 0) {
            used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64 " %s", lead,
                                     figures->stats.hints_refused[r], refusal(r));
            lead = ", ";
        }
}

static void guard_line(const um_top_figures_t *f, um_top_line_fn line, void *ctx)
{
    number_t saved, error, withheld, rounds;
    bool lost = f->guard_saved_ns < 0;

    if (f->guard_groups == 0)
        return;
    if (f->guard_measured)
        say(line, ctx, false,
            "worth       %s %s +- %s so far; %s of %s rounds withheld; given up in %" PRIu64
            " of %" PRIu64 " places",
            lost ? "lost" : "saved",
            time_of(saved, (uint64_t)(lost ? -f->guard_saved_ns : f->guard_saved_ns)),
            time_of(error, f->guard_error_ns), count(withheld, f->guard_withheld),
            count(rounds, f->guard_rounds + f->guard_withheld), f->guard_lost, f->guard_groups);
    else if (f->guard_at_once)
        say(line, ctx, false,
            "worth       not measured: %" PRIu32 " threads launch at once; given up in %" PRIu64
            " of %" PRIu64 " places",
            f->guard_at_once, f->guard_lost, f->guard_groups);
    else
        say(line, ctx, false,
            "worth       not measured yet; %s of %s rounds withheld, %" PRIu64 " places",
            count(withheld, f->guard_withheld), count(rounds, f->guard_rounds + f->guard_withheld),
            f->guard_groups);
}

static void moved_lines(const um_top_view_t *view, um_top_line_fn line, void *ctx)
{
    const um_top_figures_t *f = view->now;
    number_t a, b, c, d;

    if (!f->recorded) {
        say(line, ctx, false, "faults      not recorded in this mode (umrt record does)");
        return;
    }
    say(line, ctx, false, "faults      GPU %s (%.0f/s), CPU %s (%.0f/s)", count(a, f->gpu_faults),
        RATE(gpu_faults), count(b, f->cpu_faults), RATE(cpu_faults));
    say(line, ctx, false, "migrated    to the GPU %s (%s/s), back %s (%s/s)",
        bytes(a, f->to_gpu_bytes), bytes(b, (uint64_t)RATE(to_gpu_bytes)),
        bytes(c, f->to_host_bytes), bytes(d, (uint64_t)RATE(to_host_bytes)));
}

void um_top_totals(const um_top_view_t *view, um_top_line_fn line, void *ctx)
{
    const um_top_figures_t *f = view->now;
    const um_runtime_stats_t *s = &f->stats;
    number_t a, b, c, d;
    char refused_text[256];

    say(line, ctx, false, "umrt top    process %d, %s, %.1f s%s%s%s", view->pid, mode_name(f),
        seconds(f),
        view->over     ? "  [ended]"
        : view->paused ? "  [paused]"
                       : "",
        f->reason[0] != '\0' ? "; " : "", f->reason);
    say(line, ctx, false, "launches    %s (%.0f/s), %s with managed memory, %s hinted",
        count(a, s->launches), RATE(stats.launches), count(b, s->launches_managed),
        count(c, f->hinted_launches));
    say(line, ctx, false, "memory      %s managed in %s regions, %s regions in all",
        bytes(a, f->managed_bytes), count(b, s->regions_managed_live), count(c, s->regions_live));
    moved_lines(view, line, ctx);
    if (f->n_advisors > 0 || s->hints_proposed != 0) {
        refusals(f, refused_text, sizeof refused_text);
        say(line, ctx, false, "prefetched  %s (%s/s)", bytes(a, s->prefetched_bytes),
            bytes(b, (uint64_t)RATE(stats.prefetched_bytes)));
        say(line, ctx, false, "hints       %s proposed, %s applied, %s failed, %s cancelled%s",
            count(a, s->hints_proposed), count(b, s->hints_applied), count(c, s->hints_failed),
            count(d, s->hints_cancelled), refused_text);
    }
    guard_line(f, line, ctx);
    if (s->trace_bytes != 0 || s->events_lost != 0)
        say(line, ctx, false, "trace       %s, %s events, %s lost", bytes(a, s->trace_bytes),
            count(b, s->events), count(c, s->events_lost));
}

void um_top_advisors(const um_top_view_t *view, um_top_line_fn line, void *ctx)
{
    const um_top_figures_t *f = view->now;

    if (f->n_advisors == 0)
        return;
    say(line, ctx, true, "%-12s %9s %9s %9s %7s %9s %11s %10s", "ADVISOR", "PROPOSALS", "APPLIED",
        "REFUSED", "FAILED", "CANCELLED", "BYTES", "IN DRIVER");
    for (uint32_t i = 0; i < f->n_advisors; i++) {
        const um_top_advisor_t *a = &f->advisor[i];
        number_t size, in_driver;

        say(line, ctx, false,
            "%-12s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %7" PRIu64 " %9" PRIu64 " %11s %10s",
            a->who, a->proposals, a->applied, a->refused, a->failed, a->cancelled,
            bytes(size, a->applied_bytes), time_of(in_driver, a->driver_ns));
    }
}

static void region_line(const um_top_view_t *view, const um_top_region_t *r, um_top_line_fn line,
                        void *ctx)
{
    char buffer[256];
    number_t size, on_gpu, on_host, faults, moved;
    uint64_t gpu, host;

    where(r, &gpu, &host);
    say(line, ctx, false, "%-14" PRIx64 " %10s %-10s %10s %10s %9s %10s  %s", r->addr,
        bytes(size, r->bytes), um_family_name((um_family_t)r->family),
        gpu == NOT_KNOWN ? "-" : bytes(on_gpu, gpu), host == NOT_KNOWN ? "-" : bytes(on_host, host),
        view->now->recorded ? count(faults, r->gpu_faults + r->cpu_faults) : "-",
        view->now->recorded ? bytes(moved, r->to_gpu_bytes + r->to_host_bytes) : "-",
        name_of(view, r, buffer, sizeof buffer));
}

void um_top_regions(const um_top_view_t *view, uint32_t first, um_top_line_fn line, void *ctx)
{
    const um_top_region_t *region[UM_TOP_REGIONS];
    uint32_t n = sorted(view, region);

    say(line, ctx, true, "%-14s %10s %-10s %10s %10s %9s %10s  %s", "ADDRESS", "SIZE", "FAMILY",
        "ON GPU", "ON HOST", "FAULTS", "MOVED", "NAME");
    for (uint32_t i = first; i < n; i++)
        region_line(view, region[i], line, ctx);
}

/* ---- places ---- */

static void learn_modules(um_places_t *places, const um_top_figures_t *figures)
{
    for (uint32_t i = 0; i < figures->n_modules; i++) {
        const um_top_module_t *module = &figures->module[i];
        um_event_t event = {.type = UM_EV_MODULE};

        event.u.module = (um_ev_module_t){.file_bytes = module->file_bytes,
                                          .modified_ns = module->modified_ns,
                                          .name = module->name,
                                          .path = module->path,
                                          .build_id = module->build_id};
        um_places_event(places, &event);
    }
}

void um_top_learn(um_places_t *places, const um_top_figures_t *figures)
{
    bool modules = false;

    for (uint32_t i = 0; i < figures->n_regions; i++) {
        const um_top_region_t *region = &figures->region[i];
        um_event_t event = {.type = UM_EV_CALL_SITE};

        if (region->call_site == 0 || region->frames[0] == '\0' ||
            um_places_frames(places, region->call_site) != NULL)
            continue;
        if (!modules)
            learn_modules(places, figures);
        modules = true;
        event.u.call_site.call_site = region->call_site;
        event.u.call_site.frames = region->frames;
        um_places_event(places, &event);
    }
}
