#include "summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void um_summary_bytes(uint64_t bytes, char out[32])
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    size_t n = 0;

    if (bytes < 1024) {
        snprintf(out, 32, "%" PRIu64 " bytes", bytes);
        return;
    }
    for (; value >= 1024 && n < 3; n++)
        value /= 1024;
    snprintf(out, 32, "%.1f %s", value, unit[n]);
}

void um_summary_ns(uint64_t ns, char out[32])
{
    if (ns < 1000000)
        snprintf(out, 32, "%" PRIu64 " us", ns / 1000);
    else if (ns < 1000000000)
        snprintf(out, 32, "%.1f ms", (double)ns * 1e-6);
    else
        snprintf(out, 32, "%.2f s", (double)ns * 1e-9);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "; refused 3 capacity, 2 duplicate; 1 failed": only what is not zero. */
static void troubles(const um_summary_t *summary, char *out, size_t bytes)
{
    const um_runtime_stats_t *stats = &summary->stats;
    const char *lead = "; refused ";
    size_t used = 0;

    *out = '\0';
    for (uint32_t r = 0; r < UM_HINT_RESULT_COUNT && used < bytes; r++) {
        const char *name = um_hint_result_name((um_hint_result_t)r);

        if (!stats->hints_refused[r])
            continue;
        name = strchr(name, ':') ? strchr(name, ':') + 2 : name;
        used += (size_t)snprintf(out + used, bytes - used, "%s%" PRIu64 " %s", lead,
                                 stats->hints_refused[r], name);
        lead = ", ";
    }
    if (stats->hints_failed && used < bytes)
        used +=
            (size_t)snprintf(out + used, bytes - used, "; %" PRIu64 " failed", stats->hints_failed);
    if (stats->hints_cancelled && used < bytes)
        used += (size_t)snprintf(out + used, bytes - used, "; %" PRIu64 " cancelled",
                                 stats->hints_cancelled);
    if (summary->declined && used < bytes)
        used += (size_t)snprintf(out + used, bytes - used,
                                 "; %" PRIu64 " argument%s too large to guess", summary->declined,
                                 plural(summary->declined));
    if (summary->processes > 1 && stats->hints_refused[UM_HINT_REFUSED_CAPACITY] && used < bytes)
        snprintf(out + used, bytes - used, "; a gpu is shared by %" PRIu32 " processes",
                 summary->processes);
}

/* What hints were worth: against the rounds that were left without. */
static void worth(const um_guard_stats_t *guard, char *out, size_t bytes)
{
    char time[32], error[32];
    size_t used;

    *out = '\0';
    if (!guard->groups)
        return;
    um_summary_ns((uint64_t)(guard->saved_ns < 0 ? -guard->saved_ns : guard->saved_ns), time);
    um_summary_ns(guard->error_ns, error);
    if (guard->at_once)
        used = (size_t)snprintf(out, bytes,
                                "; what that saved is not measured: %" PRIu32
                                " threads launch at once",
                                guard->at_once);
    else if (guard->measured)
        used = (size_t)snprintf(out, bytes, "; %s %s +- %s, by %" PRIu64 " round%s without hints",
                                guard->saved_ns < 0 ? "lost" : "saved", time, error,
                                guard->withheld, plural(guard->withheld));
    else
        used = (size_t)snprintf(out, bytes, "; too short a run to measure what that saved");
    if (guard->lost && used < bytes)
        snprintf(out + used, bytes - used, "; given up in %" PRIu64 " of %" PRIu64 " places",
                 guard->lost, guard->groups);
}

static int hint_line(const um_summary_t *summary, char *out, size_t bytes)
{
    const um_runtime_stats_t *stats = &summary->stats;
    char size[32], rest[256], gain[160];

    troubles(summary, rest, sizeof(rest));
    worth(&summary->guard, gain, sizeof(gain));
    if (stats->hints_applied) {
        um_summary_bytes(stats->prefetched_bytes, size);
        return snprintf(out, bytes,
                        "prefetched %s in %" PRIu64 " piece%s ahead of %" PRIu64 " of %" PRIu64
                        " launch%s%s%s",
                        size, stats->hints_applied, plural(stats->hints_applied),
                        summary->hinted_launches, stats->launches, stats->launches == 1 ? "" : "es",
                        gain, rest);
    }
    if (*rest)
        return snprintf(out, bytes, "nothing prefetched%s", rest);
    if (!stats->launches_managed)
        return snprintf(out, bytes, "nothing to do: no kernel was launched with managed memory");
    return snprintf(out, bytes, "nothing to do: what %" PRIu64 " launch%s needed was there already",
                    stats->launches_managed, stats->launches_managed == 1 ? "" : "es");
}

int um_summary_line(const um_summary_t *summary, char *out, size_t bytes)
{
    const um_runtime_stats_t *stats = &summary->stats;

    switch (summary->state) {
    case UM_RUNTIME_HINT:
        if (*summary->reason)
            return snprintf(out, bytes, "observed only: %s", summary->reason);
        return hint_line(summary, out, bytes);
    case UM_RUNTIME_RECORD:
        return snprintf(out, bytes, "recorded %" PRIu64 " event%s to %s, %" PRIu64 " lost",
                        stats->events, plural(stats->events), summary->trace_path,
                        stats->events_lost);
    case UM_RUNTIME_OBSERVE:
        if (!stats->launches) /* those before the first managed memory are not seen */
            return snprintf(out, bytes,
                            "observed nothing: no kernel was launched with managed memory");
        return snprintf(out, bytes,
                        "observed %" PRIu64 " launch%s, %" PRIu64 " of them with managed memory",
                        stats->launches, stats->launches == 1 ? "" : "es", stats->launches_managed);
    default:
        return snprintf(out, bytes, "not active: %s",
                        *summary->reason ? summary->reason : "switched off");
    }
}
