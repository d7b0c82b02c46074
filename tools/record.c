/* umrt record: a trace of what a program does with its memory, and whether all of it was seen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"
#include "options.h"
#include "pattern.h"
#include "totals.h"
#include "um_tools.h"

static const char usage[] =
    "usage: umrt record [OPTIONS] [--] PROGRAM [ARGUMENT...]\n"
    "Runs PROGRAM, unchanged, and writes a trace of its memory's faults and migrations.\n"
    "Its output and exit status are its own; what was recorded is said on stderr at the end.\n"
    "Every process of it that uses CUDA writes a file of its own.\n"
    "\n"
    "  -o, --output=FILE  trace file; %p is the process id, %r the rank, %h the host, %% a "
    "percent\n"
    "                     sign. A further process with the same name gets FILE.PID.umt.\n"
    "                     Default: $UMRT_OUT, else umrt-%p.umt\n"
    "  -d, --deep         before each launch push its managed memory to the host, so that all that "
    "it\n"
    "                     touches faults and is seen, for umrt replay; many times slower\n"
    "  -q, --quiet        no line of umrt's\n"
    "  -h, --help         this text\n";

#define MOST_TO_READ                                                                               \
    (UINT64_C(256) << 20) /* a larger trace is not read again just for the totals */
#define REGIONS_TOLD 4
#define FILES_TOLD   8

typedef struct um_record {
    um_launch_t launch;
    const char *output;
    bool deep;
    char pattern[2 * PATH_MAX]; /* absolute: the program may change its directory */
} um_record_t;

/* ---- before ------------------------------------------------------------------------------------ */

static const char *default_output(void)
{
    const char *out = getenv("UMRT_OUT");

    if (out != NULL && out[0] != '\0')
        return out;
    for (const um_option_t *o = um_option_table; o->name != NULL; o++)
        if (strcmp(o->name, "out") == 0)
            return o->fallback;
    return "umrt-%p.umt";
}

static int prepare_output(um_record_t *record)
{
    const char *output = record->output != NULL ? record->output : default_output();

    return um_pattern_for_output("record", "output", output, NULL, "a trace", record->pattern,
                                 sizeof record->pattern);
}

/* ---- after ------------------------------------------------------------------------------------- */

/* A file below the current directory is named as the user would type it. */
static const char *short_name(const char *path)
{
    char here[PATH_MAX];
    size_t n;

    if (getcwd(here, sizeof here) == NULL)
        return path;
    n = strlen(here);
    if (strncmp(path, here, n) == 0 && path[n] == '/')
        return path + n + 1;
    return path;
}

/* "1,024.0 MiB to the GPU (exactly its size)" */
static int moved_text(char *out, size_t bytes, uint64_t moved, uint64_t size, const char *where)
{
    char text[UM_SAY_BYTES];

    if (size == 0)
        return snprintf(out, bytes, "%s %s", um_say_bytes(text, moved), where);
    if (moved == size)
        return snprintf(out, bytes, "%s %s (exactly its size)", um_say_bytes(text, moved), where);
    return snprintf(out, bytes, "%s %s (%.2f times its size)", um_say_bytes(text, moved), where,
                    (double)moved / (double)size);
}

static void moved_line(char *out, size_t bytes, const um_moved_t *moved, uint64_t size)
{
    size_t used = (size_t)moved_text(out, bytes, moved->to_gpu_bytes, size, "to the GPU");

    used += (size_t)snprintf(out + used, bytes - used, ", ");
    used += (size_t)moved_text(out + used, bytes - used, moved->to_host_bytes, size, "back");
    if (moved->between_gpus_bytes != 0) {
        used += (size_t)snprintf(out + used, bytes - used, ", ");
        moved_text(out + used, bytes - used, moved->between_gpus_bytes, size, "between GPUs");
    }
}

static void tell_regions(const um_totals_t *totals)
{
    size_t top[REGIONS_TOLD], n = um_totals_top(totals, REGIONS_TOLD, top);

    for (size_t i = 0; i < n; i++) {
        const um_total_region_t *r = &totals->regions[top[i]];
        char size[UM_SAY_BYTES], line[512];

        moved_line(line, sizeof line, &r->moved, r->region.bytes);
        um_say("  region %u%s%s, %s: %s", r->region.id, r->label != NULL ? " " : "",
               r->label != NULL ? r->label : "", um_say_bytes(size, r->region.bytes), line);
    }
}

/* A runtime that gave up may have named a file all the same. */
static bool has_trace(const um_process_t *p)
{
    return p->trace_path[0] != '\0' && (p->reason[0] == '\0' || access(p->trace_path, F_OK) == 0);
}

/* The line about one trace. false when there is none to go on with. */
static bool tell_trace(const um_process_t *p, bool regions)
{
    const char *name = short_name(p->trace_path);
    char error[PATH_MAX + 256], line[512], count[UM_SAY_BYTES], lost[UM_SAY_BYTES];
    um_trace_info_t info = {0};
    um_totals_t totals = {0};
    struct stat st;
    um_status_t status;

    if (stat(p->trace_path, &st) != 0) {
        um_say("%s: %s", name, strerror(errno));
        return false;
    }
    if (st.st_size > (off_t)MOST_TO_READ) {
        um_say("%s: %s; count it with 'umrt info %s'", name,
               um_say_bytes(line, (uint64_t)st.st_size), name);
        return true;
    }
    status = um_totals_read(p->trace_path, &totals, &info, error, sizeof error);
    if (totals.n_regions == 0)
        snprintf(line, sizeof line, "no managed memory");
    else
        moved_line(line, sizeof line, &totals.moved, 0);
    if (info.version != 0)
        um_say("%s: %s events, %s lost%s; %s%s", name, um_say_count(count, totals.events),
               um_say_count(lost, totals.lost),
               totals.lost_uncounted ? ", more may be missing" : "", line,
               info.finished ? "" : "; not closed (killed, or left by _exit)");
    if (status != UM_OK && (status != UM_ERR_TRUNCATED || info.version == 0))
        um_say("%s", error);
    if (p->reason[0] != '\0')
        um_say("%s: %s", name, p->reason);
    if (regions)
        tell_regions(&totals);
    um_totals_free(&totals);
    return info.version != 0;
}

/* What to type next, quoted for a shell where a name needs it. */
static void tell_next(const um_launch_t *launch, const bool *there, bool deep)
{
    char line[4096];
    size_t used = 0, told = 0;

    for (size_t i = 0; i < launch->n_processes && used < sizeof line; i++) {
        const char *name = short_name(launch->processes[i].trace_path);
        bool plain = name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_./,:@%+=-")] == '\0' &&
                     name[0] != '-';

        if (!there[i])
            continue;
        if (told++ == FILES_TOLD) {
            snprintf(line + used, sizeof line - used, " ...");
            break;
        }
        used += (size_t)snprintf(line + used, sizeof line - used, plain ? " %s" : " '%s'", name);
    }
    if (told > 0)
        um_say("next: umrt %s%s", deep ? "replay" : "report", line);
}

static void tell(const um_launch_t *launch, bool deep)
{
    bool *there = calloc(launch->n_processes + 1, sizeof *there);

    if (there == NULL)
        return;
    if (launch->n_processes == 0)
        um_say("no CUDA calls seen, so there is no trace");
    for (size_t i = 0; i < launch->n_processes; i++) {
        const um_process_t *p = &launch->processes[i];

        const char *reason = p->reason[0] != '\0' ? p->reason : "no reason given";

        if (has_trace(p))
            there[i] = tell_trace(p, launch->n_processes == 1);
        else if (launch->n_processes == 1)
            um_say("not recorded: %s", reason);
        else
            um_say("process %d was not recorded: %s", (int)p->pid, reason);
    }
    tell_next(launch, there, deep);
    free(there);
}

/* ---- the command ------------------------------------------------------------------------------- */

static int take(void *ctx, int val, const char *value)
{
    um_record_t *record = ctx;

    if (val == 'q')
        record->launch.quiet = true;
    else if (val == 'd')
        record->deep = setenv("UMRT_DEEP", "1", 1) == 0;
    else
        record->output = value;
    return UM_EXIT_OK;
}

int um_cmd_record(int argc, char **argv)
{
    static const struct option own[] = {
        {"output", required_argument, NULL, 'o'},
        {"deep", no_argument, NULL, 'd'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static const char *const own_settings[] = {"mode",   "out",   "deep", "profile",
                                               "report", "trace", NULL};
    static um_record_t record;
    um_flags_t flags = {"record", usage, "o:dq", own, own_settings, take, &record};
    int first, status = um_flags_parse(&flags, argc, argv, &first);

    if (first == 0)
        return status;
    status = prepare_output(&record);
    if (status != UM_EXIT_OK)
        return status;
    um_launch_inject(&record.launch, "record");
    if (record.launch.injected)
        setenv("UMRT_OUT", record.pattern, 1);
    status = um_launch_program(&record.launch, argv + first);
    if (record.launch.started && record.launch.injected && !record.launch.quiet)
        tell(&record.launch, record.deep);
    um_launch_free(&record.launch);
    return status;
}
