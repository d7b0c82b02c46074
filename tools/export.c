/* umrt export: a trace as an SQLite database. */
#include "um_tools.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/export.h"

static const char help[] =
    "usage: umrt export --sqlite OUT FILE\n"
    "Writes all events of a trace into an SQLite database, for queries, and for scripts that read\n"
    "exports of Nsight Systems: where that has a table for it, table and columns have its names. "
    "FILE\n"
    "is a trace of 'umrt record', or anything that 'umrt import' reads. 'umrt import OUT' gives "
    "the\n"
    "trace back.\n\n"
    "  -s, --sqlite OUT   the database to write; one that umrt has exported is replaced, nothing "
    "else\n"
    "  -h, --help         this text\n\n"
    "Exit status: 0 exported, 1 could not be written, 2 wrong usage, a file that cannot be read as "
    "a\n"
    "trace (no database), or a damaged one (what is whole is exported, and a LOSS event says "
    "so).\n";

typedef struct um_exporting {
    um_export_t *to;
    uint64_t last_ns;
} um_exporting_t;

static um_status_t to_export(void *ctx, const um_event_t *event)
{
    um_exporting_t *exporting = ctx;

    exporting->last_ns = event->time_ns;
    return um_export_event(exporting->to, event);
}

/* Whether `out` may be replaced. */
static bool replaceable(const char *out)
{
    char error[1024];
    struct stat st;

    if (stat(out, &st) != 0 ||
        (um_input_check(out, error, sizeof(error)) == UM_OK && (!st.st_size || um_export_is(out))))
        return true;
    um_say("%s is not a database that umrt has exported; it is not overwritten", out);
    return false;
}

static int export(const char *in, const char *out, const char *temporary)
{
    char error[1024] = "", damage[1024] = "", wrong[1024] = "";
    um_exporting_t exporting = {0};
    um_status_t status = um_export_open(temporary, &exporting.to, wrong, sizeof(wrong)), closed;

    if (status) {
        um_say("export: %s: %s", out, wrong);
        return UM_EXIT_FAILED;
    }
    status = um_events_read(in, to_export, &exporting, damage, error, sizeof(error));
    if (!status && *damage) /* nothing may be concluded from what is not there */
        status = um_export_event(exporting.to, &(um_event_t){.type = UM_EV_LOSS,
                                                             .time_ns = exporting.last_ns,
                                                             .u.loss.reason = damage});
    closed = um_export_close(exporting.to, wrong, sizeof(wrong));
    if (closed) {
        um_say("export: %s: %s", out, wrong);
        return UM_EXIT_FAILED;
    }
    if (status) {
        um_say("export: %s", *error ? error : um_status_string(status));
        return status == UM_ERR_NO_MEMORY ? UM_EXIT_FAILED : UM_EXIT_USAGE;
    }
    if (rename(temporary, out) != 0) {
        um_say("export: %s: %s", out, strerror(errno));
        return UM_EXIT_FAILED;
    }
    if (*damage)
        um_say("%s", damage);
    return *damage ? UM_EXIT_USAGE : UM_EXIT_OK;
}

int um_cmd_export(int argc, char **argv)
{
    static const struct option options[] = {{"sqlite", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *out = NULL;
    char *temporary;
    int option, result;

    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":s:h", options, NULL)) != -1) {
        switch (option) {
        case 's':
            out = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("export", options, option, argv);
        }
    }
    if (!out)
        return um_say_usage("export", "no --sqlite OUT given");
    if (optind + 1 != argc)
        return um_say_usage("export", optind == argc ? "no file given" : "one file at a time");
    if (!replaceable(out))
        return UM_EXIT_USAGE;
    temporary = um_output_temporary(out);
    if (!temporary) {
        um_say("export: out of memory");
        return UM_EXIT_FAILED;
    }
    result = export(argv[optind], out, temporary);
    unlink(temporary); /* where it has not been put in place */
    free(temporary);
    return result;
}
