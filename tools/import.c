/* umrt import: a foreign trace becomes a .umt; says what was in it, what was not and why. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progress.h"
#include "trace/import.h"
#include "um_tools.h"
#include "um_trace.h"

static const char usage[] =
    "usage: umrt import [-o OUT.umt] [-p PID] FILE\n"
    "Turns a trace of another profiler into a umrt trace. FILE is told by its content: what\n"
    "nvprof --print-gpu-trace prints (also with --csv), what nvprof -o writes, or an export of\n"
    "Nsight Systems (nsys export --type sqlite REPORT.nsys-rep), or of umrt (umrt export).\n"
    "\n"
    "  -o, --output=OUT.umt   where to write (default: FILE with the extension .umt)\n"
    "  -p, --process=PID      the process to read, where the file has several (default: the one "
    "with\n"
    "                         most unified-memory records)\n"
    "  -h, --help             this text\n";

typedef struct um_writing {
    const char *path; /* the temporary name */
    um_ev_fact_t *facts;
    size_t n_facts;
    um_trace_writer_t *writer;
    um_status_t status;
    int error; /* errno of it */
    uint64_t events, count[UM_EV_TYPE_COUNT];
    char notes[2048]; /* what was absent or lost, and why */
} um_writing_t;

/* ---- writing ----------------------------------------------------------------------------------- */

static void fail(um_writing_t *w, um_status_t status)
{
    if (w->status == UM_OK && status != UM_OK) {
        w->status = status;
        w->error = errno;
    }
}

static void note(um_writing_t *w, const char *what, const char *value, const char *why)
{
    size_t n = strlen(w->notes);

    snprintf(w->notes + n, sizeof w->notes - n, "; %s: %s%s%s%s", what, value,
             why[0] != '\0' ? " (" : "", why, why[0] != '\0' ? ")" : "");
}

static const char *fact_value(const um_writing_t *w, const char *key)
{
    for (size_t i = 0; i < w->n_facts; i++)
        if (strcmp(w->facts[i].key, key) == 0)
            return w->facts[i].value;
    return "";
}

static void add_fact(um_writing_t *w, const um_ev_fact_t *fact)
{
    um_ev_fact_t *grown = realloc(w->facts, (w->n_facts + 1) * sizeof *grown);

    if (grown == NULL) {
        fail(w, UM_ERR_NO_MEMORY);
        return;
    }
    w->facts = grown;
    grown += w->n_facts;
    grown->key = strdup(fact->key);
    grown->value = strdup(fact->value);
    if (grown->key != NULL && grown->value != NULL) {
        w->n_facts++;
        return;
    }
    free((char *)grown->key);
    free((char *)grown->value);
    fail(w, UM_ERR_NO_MEMORY);
}

/* The leading facts are the file's header; the file begins with the first other event. */
static void start(um_writing_t *w)
{
    if (w->writer == NULL && w->status == UM_OK)
        fail(w, um_trace_writer_open(w->path, w->facts, w->n_facts, NULL, &w->writer));
}

static void put(void *ctx, const um_event_t *event)
{
    um_writing_t *w = ctx;
    char count[UM_SAY_BYTES];

    um_progress_step(++w->events);
    if (w->status != UM_OK)
        return;
    if (event->type == UM_EV_FACT && w->writer == NULL) {
        add_fact(w, &event->u.fact);
        return;
    }
    if (event->type == UM_EV_OPTION && strcmp(event->u.option.value, "on") != 0 &&
        strncmp(event->u.option.name, "nvprof.", 7) != 0) /* nvprof's one is um.tracing */
        note(w, event->u.option.name, event->u.option.value, "");
    if (event->type == UM_EV_LOSS)
        note(w, "lost",
             event->u.loss.count > 0 ? um_say_count(count, event->u.loss.count) : "some records",
             event->u.loss.reason);
    if (event->type < UM_EV_TYPE_COUNT)
        w->count[event->type]++;
    start(w);
    if (w->status == UM_OK)
        fail(w, um_trace_writer_put(w->writer, event));
}

static void finish(um_writing_t *w)
{
    if (w->writer != NULL)
        fail(w, um_trace_writer_close(w->writer));
    w->writer = NULL;
}

static void release(um_writing_t *w)
{
    for (size_t i = 0; i < w->n_facts; i++) {
        free((char *)w->facts[i].key);
        free((char *)w->facts[i].value);
    }
    free(w->facts);
}

/* ---- saying ------------------------------------------------------------------------------------ */

static void say_read(const um_writing_t *w, const char *in)
{
    static const struct {
        um_event_type_t type;
        const char *one, *many;
    } kinds[] = {
        {UM_EV_MIGRATE, "migration", "migrations"},
        {UM_EV_GPU_FAULT, "GPU fault record", "GPU fault records"},
        {UM_EV_CPU_FAULT, "CPU fault", "CPU faults"},
        {UM_EV_THRASH, "thrashing record", "thrashing records"},
        {UM_EV_THROTTLE, "throttle", "throttles"},
        {UM_EV_REMOTE_MAP, "remote map", "remote maps"},
        {UM_EV_KERNEL_EXEC, "kernel run", "kernel runs"},
        {UM_EV_COPY, "copy", "copies"},
        {UM_EV_SET, "memset", "memsets"},
        {UM_EV_REGION_ALLOC, "region", "regions"},
        {UM_EV_SYNC, "wait edge", "wait edges"},
        {UM_EV_MARK, "mark", "marks"},
    };
    const char *tracing = fact_value(w, "um.tracing"), *between = ": ";
    const char *kind = fact_value(w, "import.kind"); /* an export has its trace's facts */
    char count[UM_SAY_BYTES];

    um_print("%s (%s)", in, *kind != '\0' ? kind : um_import_kind_name(UM_IMPORT_EXPORT));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint64_t n = w->count[kinds[i].type];

        if (n == 0)
            continue;
        printf("%s%s %s", between, um_say_count(count, n), n == 1 ? kinds[i].one : kinds[i].many);
        between = ", ";
    }
    if (between[0] == ':')
        printf(": no records");
    if (*tracing != '\0' && strcmp(tracing, "on") != 0)
        um_print("; unified-memory tracing: %s (%s)", tracing,
                 fact_value(w, "um.tracing.evidence"));
    if (fact_value(w, "import.other-processes")[0] != '\0')
        um_print("; left out: %s", fact_value(w, "import.other-processes"));
    um_print("%s", w->notes);
    putchar('\n');
}

/* FILE with its extension, if it has one, replaced by .umt. */
static char *default_output(const char *in)
{
    const char *slash = strrchr(in, '/'), *name = slash != NULL ? slash + 1 : in;
    const char *dot = strrchr(name, '.');
    size_t stem = dot != NULL && dot > name ? (size_t)(dot - in) : strlen(in);
    size_t n = stem + sizeof ".umt";
    char *out = malloc(n);

    if (out != NULL)
        snprintf(out, n, "%.*s.umt", (int)stem, in);
    return out;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A device or a pipe would be replaced by the rename, a directory not at all. */
static bool can_replace(const char *out)
{
    struct stat st;

    return stat(out, &st) != 0 || S_ISREG(st.st_mode);
}

/* Writes beside `out` and renames: what was there stays until the import has succeeded. */
static int import(const char *in, const char *out, uint32_t process)
{
    char error[4096] = "";
    size_t n = strlen(out) + 32;
    char *temporary = malloc(n);
    um_writing_t w = {.path = temporary};
    um_status_t status;
    int result = UM_EXIT_FAILED;
    bool keep;

    if (!same_file(in, out) &&
        !um_output_check_trace(out)) { /* the same file has a line of its own */
        free(temporary);
        return UM_EXIT_USAGE;
    }
    if (temporary == NULL) {
        um_say("import: out of memory");
        return UM_EXIT_FAILED;
    }
    if (um_input_check_trace(in, error, sizeof error) != UM_OK) {
        um_say("import: %s", error);
        free(temporary);
        return UM_EXIT_USAGE;
    }
    snprintf(temporary, n, "%s.%ld.part", out, (long)getpid());
    um_progress_begin(in, 0);
    status = um_import_process(in, process, put, &w, error, sizeof error);
    um_progress_end();
    /* A log that is cut off still holds what it holds. */
    keep = status == UM_OK || (status == UM_ERR_TRUNCATED && w.writer != NULL);
    if (keep)
        start(&w);
    finish(&w);
    if (keep && same_file(in, out)) { /* FILE itself may be named .umt */
        unlink(temporary);
        free(temporary);
        release(&w);
        return um_say_usage("import", "%s would overwrite what it reads; -o names another", out);
    }
    if (keep && w.status == UM_OK && rename(temporary, out) != 0)
        fail(&w, UM_ERR_IO);
    if (!keep || w.status != UM_OK)
        unlink(temporary);

    if (keep && w.status == UM_OK) {
        say_read(&w, in);
        um_print("next: umrt report %s", out);
        putchar('\n');
        result = UM_EXIT_OK;
    } else if (w.status != UM_OK && (status == UM_OK || status == UM_ERR_TRUNCATED)) {
        um_say("import: %s: %s", out,
               w.status == UM_ERR_IO ? strerror(w.error) : um_status_string(w.status));
    }
    if (status != UM_OK) {
        um_say("import: %s", error);
        result = UM_EXIT_USAGE;
    }
    release(&w);
    free(temporary);
    return result;
}

int um_cmd_import(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"process", required_argument, NULL, 'p'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *out = NULL;
    char *made = NULL;
    uint32_t process = 0;
    int option, result;

    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:p:h", options, NULL)) != -1) {
        switch (option) {
        case 'o':
            out = optarg;
            break;
        case 'p':
            if (!um_number_32(optarg, 0, UINT32_MAX, &process))
                return um_say_usage("import", "%s is no process id", optarg);
            break;
        case 'h':
            fputs(usage, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("import", options, option, argv);
        }
    }
    if (optind == argc)
        return um_say_usage("import", "no file given");
    if (optind + 1 < argc)
        return um_say_usage("import", "one file at a time");
    if (out == NULL)
        out = made = default_output(argv[optind]);
    if (out == NULL) {
        um_say("import: out of memory");
        result = UM_EXIT_FAILED;
    } else if (!can_replace(out)) {
        um_say("import: %s: is no regular file", out);
        result = UM_EXIT_FAILED;
    } else {
        result = import(argv[optind], out, process);
    }
    free(made);
    return result;
}
