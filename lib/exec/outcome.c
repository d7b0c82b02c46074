#include "outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/recorder.h"
#include "core/summary.h"
#include "view.h"

#define MAX_NAMES    1000u
#define MAX_ACCOUNTS 32

/* ---- JSON ---- */

static void string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
            fprintf(out, "\\u%04x", (unsigned char)*text); /* names are ASCII; anything goes */
        else
            putc(*text, out);
    putc('"', out);
}

static void member(FILE *out, const char *key, const char *text)
{
    fprintf(out, "  \"%s\": ", key);
    string(out, text);
    fputs(",\n", out);
}

static void json_hints(FILE *out, const um_runtime_stats_t *stats)
{
    const char *lead = "";

    fprintf(out,
            "  \"hints\": {\"proposed\": %" PRIu64 ", \"admitted\": %" PRIu64
            ", \"applied\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"cancelled\": %" PRIu64
            ", \"prefetched_bytes\": %" PRIu64 ", \"refused\": {",
            stats->hints_proposed, stats->hints_admitted, stats->hints_applied, stats->hints_failed,
            stats->hints_cancelled, stats->prefetched_bytes);
    for (uint32_t r = UM_HINT_REFUSED_RANGE; r < UM_HINT_CANCELLED; r++) {
        const char *name = um_hint_result_name((um_hint_result_t)r);

        name = strchr(name, ':') ? strchr(name, ':') + 2 : name;
        fprintf(out, "%s\"%s\": %" PRIu64, lead, name, stats->hints_refused[r]);
        lead = ", ";
    }
    fputs("}},\n", out);
}

static void json_advisors(FILE *out, const um_account_t *account, size_t n)
{
    fputs("  \"advisors\": [", out);
    for (size_t i = 0; i < n; i++, account++)
        fprintf(out,
                "%s\n    {\"name\": \"%s\", \"proposals\": %" PRIu64
                ", \"proposed_bytes\": %" PRIu64 ", \"pieces_admitted\": %" PRIu64
                ", \"pieces_applied\": %" PRIu64 ", \"pieces_failed\": %" PRIu64
                ", \"pieces_cancelled\": %" PRIu64 ", \"applied_bytes\": %" PRIu64
                ", \"driver_ns\": %" PRIu64 "}",
                i ? "," : "", account->who, account->proposals, account->proposed_bytes,
                account->admitted, account->applied, account->failed, account->cancelled,
                account->applied_bytes, account->driver_ns);
    fputs("\n  ],\n", out);
}

static void json_guard(FILE *out, const um_guard_stats_t *guard)
{
    fprintf(out,
            "  \"guard\": {\"groups\": %" PRIu64 ", \"won\": %" PRIu64 ", \"lost\": %" PRIu64
            ", \"rounds\": %" PRIu64 ", \"withheld\": %" PRIu64 ", \"threads_at_once\": %" PRIu32
            ", \"measured\": %s",
            guard->groups, guard->won, guard->lost, guard->rounds, guard->withheld, guard->at_once,
            guard->measured ? "true" : "false");
    if (guard->measured)
        fprintf(out, ", \"saved_ns\": %" PRId64 ", \"error_ns\": %" PRIu64, guard->saved_ns,
                guard->error_ns);
    fputs("},\n", out);
}

/* ---- what was learned ---- */

typedef struct listing {
    FILE *out;
    bool as_json;
    bool verdicts; /* those of the guard, or all else */
    unsigned n;
} listing_t;

static const char *verdict_name(uint64_t verdict)
{
    return verdict == 1 ? "won" : verdict == 2 ? "lost" : "open";
}

static void list_verdict(const listing_t *list, const um_ev_learned_t *l)
{
    char with[32], without[32];

    if (list->as_json) {
        fprintf(list->out,
                "%s\n    {\"advisor\": \"%s\", \"place\": \"0x%" PRIx64 "\", \"verdict\": \"%s\", "
                "\"withheld\": %" PRIu64 ", \"with_ns\": %" PRIu64 ", \"without_ns\": %" PRIu64 "}",
                list->n ? "," : "", l->what, l->shape, verdict_name(l->value[0]), l->count,
                l->value[1], l->value[2]);
        return;
    }
    um_summary_ns(l->value[1], with);
    um_summary_ns(l->value[2], without);
    fprintf(list->out, "  %-12s at %016" PRIx64 "  %s: a round takes %s, without %s\n", l->what,
            l->shape, verdict_name(l->value[0]), with, without);
}

static void list_fact(const listing_t *list, const um_ev_learned_t *l)
{
    if (!list->as_json) {
        fprintf(list->out, "  %-12s %s, %" PRIu64 " times%s\n", l->who, l->what, l->count,
                l->age ? ", told by earlier runs" : "");
        return;
    }
    fprintf(list->out,
            "%s\n    {\"who\": \"%s\", \"what\": \"%s\", \"kernel\": ", list->n ? "," : "", l->who,
            l->what);
    string(list->out, l->kernel);
    fprintf(list->out,
            ", \"role\": \"0x%" PRIx64 "\", \"count\": %" PRIu64 ", \"age\": %" PRIu32 "}", l->role,
            l->count, l->age);
}

static void list_one(void *ctx, const um_event_t *event)
{
    listing_t *list = ctx;

    if ((strcmp(event->u.learned.who, "guard") == 0) != list->verdicts)
        return;
    if (list->verdicts)
        list_verdict(list, &event->u.learned);
    else
        list_fact(list, &event->u.learned);
    list->n++;
}

static void list_learned(FILE *out, const um_outcome_t *outcome, bool as_json, bool verdicts)
{
    listing_t list = {.out = out, .as_json = as_json, .verdicts = verdicts};

    if (outcome->hinter)
        um_hinter_learned(outcome->hinter, list_one, &list);
}

/* ---- both forms ---- */

static void write_json(FILE *out, const um_outcome_t *outcome, const um_account_t *account,
                       size_t n)
{
    fputs("{\n  \"schema\": \"umrt-run\",\n  \"schema_version\": 1,\n", out);
    member(out, "umrt", UM_VERSION);
    fprintf(out, "  \"pid\": %ld,\n", (long)getpid());
    member(out, "mode", outcome->mode);
    member(out, "reason", outcome->reason);
    member(out, "summary", outcome->summary);
    fprintf(out,
            "  \"launches\": {\"seen\": %" PRIu64 ", \"managed\": %" PRIu64 ", \"hinted\": %" PRIu64
            "},\n",
            outcome->stats.launches, outcome->stats.launches_managed,
            outcome->hints.hinted_launches);
    json_hints(out, &outcome->stats);
    fprintf(out, "  \"processes_on_gpu\": %" PRIu32 ",\n", outcome->hints.gate.processes);
    json_advisors(out, account, n);
    json_guard(out, &outcome->hints.guard);
    fputs("  \"verdicts\": [", out);
    list_learned(out, outcome, true, true);
    fputs("\n  ],\n  \"profile\": ", out);
    if (outcome->profile)
        string(out, outcome->profile);
    else
        fputs("null", out);
    fprintf(out, ",\n  \"told\": %" PRIu64 ",\n  \"learned\": [", outcome->told);
    list_learned(out, outcome, true, false);
    fputs("\n  ]\n}\n", out);
}

static void write_text(FILE *out, const um_outcome_t *outcome, const um_account_t *account,
                       size_t n)
{
    char size[32], time[32];

    fprintf(out, "umrt run: %s\n", outcome->summary);
    fprintf(out, "\nadvisors\n");
    for (size_t i = 0; i < n; i++, account++) {
        um_summary_bytes(account->applied_bytes, size);
        um_summary_ns(account->driver_ns, time);
        fprintf(out,
                "  %-12s proposed %" PRIu64 " times; pieces: %" PRIu64 " admitted, %" PRIu64
                " applied (%s, %s in the driver), %" PRIu64 " failed, %" PRIu64 " cancelled\n",
                account->who, account->proposals, account->admitted, account->applied, size, time,
                account->failed, account->cancelled);
    }
    fprintf(out,
            "\nheld against rounds without: %" PRIu64 " places and advisors, %" PRIu64
            " won, %" PRIu64 " given up, %" PRIu64 " rounds withheld\n",
            outcome->hints.guard.groups, outcome->hints.guard.won, outcome->hints.guard.lost,
            outcome->hints.guard.withheld);
    list_learned(out, outcome, false, true);
    if (outcome->profile)
        fprintf(out, "\nprofile %s: %" PRIu64 " facts of earlier runs\n", outcome->profile,
                outcome->told);
    fprintf(out, "\nlearned\n");
    list_learned(out, outcome, false, false);
}

/* A new file: none that is there is overwritten. */
static um_status_t create(const char *pattern, char *path, size_t bytes, FILE **out)
{
    char host[256] = "";
    um_recorder_names_t names = {.pid = (long)getpid(), .rank = um_recorder_rank(), .host = host};
    um_status_t status;
    int fd = -1;

    gethostname(host, sizeof(host) - 1);
    for (unsigned i = 0; i < MAX_NAMES && fd < 0; i++) {
        if ((status = um_recorder_name(pattern, &names, i, path, bytes)) != UM_OK)
            return status;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
        if (fd < 0 && errno != EEXIST)
            return UM_ERR_IO;
    }
    if (fd < 0)
        return UM_ERR_IO;
    *out = fdopen(fd, "w");
    if (*out)
        return UM_OK;
    close(fd);
    return UM_ERR_NO_MEMORY;
}

um_status_t um_outcome_write(const um_outcome_t *outcome, const char *pattern)
{
    um_account_t account[MAX_ACCOUNTS];
    size_t n = outcome->hinter ? um_hinter_accounts(outcome->hinter, account, MAX_ACCOUNTS) : 0;
    size_t length = strlen(pattern);
    char path[PATH_MAX];
    FILE *out;
    bool failed;
    um_status_t status = create(pattern, path, sizeof(path), &out);

    if (status != UM_OK)
        return status;
    if (length >= 5 && strcmp(pattern + length - 5, ".json") == 0)
        write_json(out, outcome, account, n);
    else
        write_text(out, outcome, account, n);
    failed = ferror(out);
    return fclose(out) != 0 || failed ? UM_ERR_IO : UM_OK;
}
