/* umrt diff: what got better and what got worse between two sides of traces or reports. */
#include "predicting.h"
#include "um_tools.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff.h"

static const char help[] =
    "usage: umrt diff [OPTIONS] A B\n"
    "       umrt diff [OPTIONS] A... -- B...\n"
    "Says what got better and what got worse from A (old) to B (new): totals, findings, regions "
    "and\n"
    "kernels, by faults, bytes and time. A and B are traces, anything that 'umrt import' reads, "
    "or\n"
    "reports of 'umrt report --json'. With several a side, runs of the same program, it says "
    "which\n"
    "changes are not chance (Mann-Whitney U, two-sided, p <= 0.05; four a side can show it).\n\n"
    "  -f, --fail-on LIST   exit with 1 when one of these holds, separated by commas:\n"
    "                         TOTAL>N%           B's median is over N % above A's, and not by "
    "chance\n"
    "                         new-finding        most of B have one that most of A have not\n"
    "                         new-finding=KIND   one of that kind\n"
    "                       TOTAL is faults, gpu-faults, cpu-faults, bytes, bytes-to-gpu, "
    "bytes-to-cpu,\n"
    "                       time (waiting for faults), gpu-stall, cpu-wait or span\n"
    "      --estimate       replay nothing: times to win are then the findings' own estimates\n"
    "  -j, --json           JSON instead of text (umrt.diff/1)\n"
    "  -o, --output FILE    into FILE, unless that is something else (default: standard output)\n"
    "  -n, --top N          at most N rows a table (default 20)\n"
    "  -w, --width N        columns of text, 60 to 400 (default 100)\n"
    "  -h, --help           this text\n\n"
    "Exit status: 0 compared and nothing of --fail-on holds, 1 something does (or the result could "
    "not\n"
    "be written), 2 wrong usage, or a file that cannot be read, is damaged, or lacks what is asked "
    "for.\n";

typedef struct um_diffing {
    const char *fail_on, *output;
    bool estimate; /* nothing is replayed */
    um_report_options_t options;
    char **paths[2];
    int n[2];
} um_diffing_t;

/* ---- reading ---------------------------------------------------------------------------------- */

static um_status_t to_report(void *ctx, const um_event_t *event)
{
    return um_report_event(ctx, event);
}

/* Everything that a trace's report has, as one JSON value. */
static um_status_t report_of(char *path, bool replay, json_t **out, char *error, size_t bytes)
{
    um_report_options_t all = {.format = UM_REPORT_JSON, .top = 1000000, .width = 100};
    um_predicting_t *predicting = NULL;
    um_report_t *report = NULL;
    char damage[1024], *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    um_status_t status = memory ? um_report_new(&report) : UM_ERR_NO_MEMORY;

    if (!status)
        status = um_report_begin(report, path, NULL, 0);
    if (!status)
        status = um_events_read(path, to_report, report, damage, error, bytes);
    if (!status && *damage)
        status = um_report_note(report, damage);
    if (!status && replay) {
        predicting = um_predicting_new(&path, 1);
        all.predict = predicting ? um_predicting_findings : NULL;
        all.predict_ctx = predicting;
    }
    if (!status)
        status = um_report_write(report, &all, memory);
    if (memory)
        fclose(memory);
    *out = status ? NULL : json_loadb(text, size, 0, NULL);
    if (!status && !*out)
        status = UM_ERR_NO_MEMORY;
    if (status && !*error)
        snprintf(error, bytes, "%s: %s", path, um_status_string(status));
    um_report_free(report);
    um_predicting_free(predicting);
    free(text);
    return status;
}

static bool is_json(const char *path)
{
    FILE *file = fopen(path, "re");
    char start[2] = "";
    bool json = file && fscanf(file, " %1[{]", start) == 1;

    if (file)
        fclose(file);
    return json;
}

static um_status_t load(char *path, bool replay, json_t **out, char *error, size_t bytes)
{
    json_error_t where;

    if (!is_json(path))
        return report_of(path, replay, out, error, bytes);
    *out = json_load_file(path, 0, &where);
    if (*out)
        return UM_OK;
    snprintf(error, bytes, "%s: line %d: %s", path, where.line, where.text);
    return UM_ERR_FORMAT;
}

static um_status_t add(um_diff_t *diff, int side, char *path, bool replay, char *error,
                       size_t bytes)
{
    json_t *report = NULL;
    um_status_t status;

    *error = '\0';
    status = um_input_check(path, error, bytes);
    if (!status)
        status = load(path, replay, &report, error, bytes);
    if (!status)
        status = um_diff_add(diff, side, path, report, error, bytes);
    json_decref(report);
    return status;
}

/* ---- the command ------------------------------------------------------------------------------ */

static int write_diff(const um_diff_t *diff, const um_diffing_t *args)
{
    bool json = args->options.format == UM_REPORT_JSON;
    um_output_t output;
    um_status_t status;
    int result =
        um_output_open(&output, args->output, json ? "{\n  \"schema\": \"umrt.diff/" : "umrt diff",
                       "such a comparison");

    if (result != UM_EXIT_OK)
        return result;
    status = um_diff_write(diff, &args->options, output.file);
    if (status && (status != UM_ERR_IO || args->output))
        um_say("diff: %s", um_status_string(status));
    return um_output_close(&output, status ? UM_EXIT_FAILED : UM_EXIT_OK);
}

static int run(const um_diffing_t *args)
{
    char error[2048] = "";
    um_diff_t *diff = NULL;
    bool fired = false;
    um_status_t status = um_diff_new(&diff);
    int result;

    for (int side = 0; side < 2; side++) {
        for (int i = 0; !status && i < args->n[side]; i++)
            status = add(diff, side, args->paths[side][i], !args->estimate, error, sizeof(error));
    }
    if (!status)
        status = um_diff_compare(diff);
    if (!status && args->fail_on)
        status = um_diff_fail_on(diff, args->fail_on, &fired, error, sizeof(error));
    if (status) {
        um_say("diff: %s", *error ? error : um_status_string(status));
        result = status == UM_ERR_NO_MEMORY ? UM_EXIT_FAILED : UM_EXIT_USAGE;
    } else {
        result = write_diff(diff, args);
        if (result == UM_EXIT_OK && fired)
            result = UM_EXIT_FAILED;
    }
    um_diff_free(diff);
    return result;
}

/* Options and files of argv[1..], as far as a "--"; files are moved to the front of argv. Sets *files to
 * how many there are, *next to the index of what is behind the "--" (argc without one). Returns
 * UM_EXIT_OK, or the status to leave with; *files is -1 when the help has been printed. */
static int parse(int argc, char **argv, um_diffing_t *args, int *files, int *next)
{
    static const struct option options[] = {
        {"estimate", no_argument, NULL, 'e'},  {"fail-on", required_argument, NULL, 'f'},
        {"json", no_argument, NULL, 'j'},      {"output", required_argument, NULL, 'o'},
        {"top", required_argument, NULL, 'n'}, {"width", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},      {NULL, 0, NULL, 0},
    };
    int c;

    *files = 0;
    *next = argc;
    opterr = 0;
    optind = 0;
    while ((c = getopt_long(argc, argv, "-:f:jo:n:w:h", options, NULL)) != -1) {
        switch (c) {
        case 1: /* a file */
            argv[++*files] = optarg;
            break;
        case 'e':
            args->estimate = true;
            break;
        case 'f':
            args->fail_on = optarg;
            break;
        case 'j':
            args->options.format = UM_REPORT_JSON;
            break;
        case 'o':
            args->output = optarg;
            break;
        case 'n':
            if (!um_number_32(optarg, 1, 1000000, &args->options.top))
                return um_say_usage("diff", "--top takes 1 to 1000000, not '%s'", optarg);
            break;
        case 'w':
            if (!um_number_32(optarg, 60, 400, &args->options.width))
                return um_say_usage("diff", "--width takes 60 to 400, not '%s'", optarg);
            break;
        case 'h':
            fputs(help, stdout);
            *files = -1;
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("diff", options, c, argv);
        }
    }
    *next = optind;
    return UM_EXIT_OK;
}

int um_cmd_diff(int argc, char **argv)
{
    um_diffing_t args = {.options = {.top = 20, .width = 100}};
    int next, rest, behind = 0, result = parse(argc, argv, &args, &args.n[0], &next);

    if (result != UM_EXIT_OK || args.n[0] < 0)
        return result;
    args.paths[0] = argv + 1;
    if (next < argc || (next == argc && !strcmp(argv[argc - 1], "--"))) {
        /* The "--" stands where a command's name does. */
        result = parse(argc - next + 1, argv + next - 1, &args, &args.n[1], &rest);
        if (result != UM_EXIT_OK || args.n[1] < 0)
            return result;
        args.paths[1] = argv + next;
        behind = argc - next + 1 - rest;
    } else if (args.n[0] == 2) {
        args.n[0] = args.n[1] = 1;
        args.paths[1] = argv + 2;
    }
    if (behind)
        return um_say_usage("diff", "more than one '--'");
    if (!args.n[0] || !args.n[1])
        return um_say_usage("diff", "two files, or files on both sides of a '--', are compared");
    return run(&args);
}
