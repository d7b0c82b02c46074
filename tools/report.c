/* umrt report: traces in, what a developer should know out. */
#include "predicting.h"
#include "um_tools.h"

#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/csv.h"
#include "report/findings/limits.h"
#include "report/html.h"
#include "report/patch.h"
#include "report/perfetto.h"
#include "report/report.h"
#include "report/sarif.h"
#include "report/target.h"
#include "trace/import.h"

#define WIDTH_ELSEWHERE 100 /* into a file or a pipe: the same everywhere */
#define PAGE_TOP        1000
#define WHAT_IF_SECONDS 10

static const char help[] =
    "usage: umrt report [OPTIONS] FILE...\n"
    "Says what managed memory cost a program, where, and what to do about it.\n"
    "FILE is a trace of 'umrt record', or anything that 'umrt import' reads. Several files (the "
    "ranks\n"
    "of one run) make one report.\n\n"
    "  -j, --json         JSON instead of text (umrt.report/1)\n"
    "      --sarif        findings as a SARIF 2.1.0 log, for editors and code review\n"
    "      --perfetto     the trace for ui.perfetto.dev: kernels, faults, moves, regions and hints "
    "as tracks\n"
    "      --csv TABLE    um_sum, um_total_sum or um_cpu_page_faults_sum, as nsys stats prints it\n"
    "      --patch        the findings' changes as a unified diff of the source, for 'patch -p0', "
    "where\n"
    "                     they are certain; what is not is said, and why\n"
    "      --source-root DIR  where the source is (default: the current folder)\n"
    "  -o, --output FILE  into FILE, unless that is something else (default: standard output)\n"
    "      --html PAGE    all of it as a page, too: one file that needs nothing else, with map and "
    "time\n"
    "                     line to look into (without --top at most 1000 findings and rows a "
    "table)\n"
    "      --what-if S    the page's replay may take S seconds, 0 to 3600 (default 10); with 0 "
    "nothing is\n"
    "                     replayed, the findings' advice neither\n"
    "  -n, --top N        at most N findings and rows a table (default 20)\n"
    "  -w, --width N      columns of text, 60 to 400 (default: the terminal's, else 100)\n"
    "      --cuda VERSION  write code for that CUDA, such as 12.4 (default: the program's,\n"
    "                     where the trace, or the CUDA runtime in the program's file, tells)\n"
    "      --limit NAME=VALUE  a threshold of findings (umrt explain --limits); may be repeated\n"
    "      --color WHEN   always, never or auto (default: auto, on a terminal)\n"
    "      --debug-dir DIRS  where debug information apart from files is (default: "
    "/usr/lib/debug)\n"
    "      --ascii        no block characters in the map (default: as the locale of a terminal "
    "says)\n"
    "      --utf8         block characters in the map\n"
    "  -h, --help         this text\n\n"
    "Exit status: 0 reported, 1 could not be written, 2 wrong usage, a file that cannot be read as "
    "a\n"
    "trace (no report), or a damaged one (what is whole is reported, with a note); 3 of --patch: "
    "no "
    "change\n"
    "was certain enough to be written.\n";

/* What the report can be; the first is the default. */
static const struct um_kind {
    const char *start, *what; /* of a file of it; NULL: any */
    um_report_format_t format;
} text = {"umrt report", "a report", UM_REPORT_TEXT},
  json = {"{\n  \"schema\": \"umrt.report/", "a report in JSON", UM_REPORT_JSON},
  sarif = {UM_SARIF_START, "a SARIF log", UM_REPORT_SARIF},
  perfetto = {UM_PERFETTO_START, "a trace for Perfetto", UM_REPORT_TEXT},
  diff = {UM_PATCH_START, "a patch", UM_REPORT_TEXT};

typedef struct um_request {
    const struct um_kind *kind;
    const char *csv;    /* a table of it instead */
    const char *output; /* NULL = stdout */
    const char *root;   /* of the source, NULL = here */
    bool top_given;
    int kinds_given;         /* different ones */
    const char *of_findings; /* an option that is about them alone; NULL = none given */
    const char *html;        /* a page beside it; NULL = none */
    uint32_t what_if;        /* seconds */
    um_limits_t limits;
    um_report_options_t options;
} um_request_t;

static um_status_t to_report(void *ctx, const um_event_t *event)
{
    return um_report_event(ctx, event);
}

static um_status_t begin_report(void *ctx, const char *path)
{
    return um_report_begin(ctx, path, NULL, 0);
}

static um_status_t to_perfetto(void *ctx, const um_event_t *event)
{
    return um_perfetto_event(ctx, event);
}

static um_status_t begin_perfetto(void *ctx, const char *path)
{
    return um_perfetto_begin(ctx, path);
}

static um_status_t to_csv(void *ctx, const um_event_t *event)
{
    return um_csv_event(ctx, event);
}

static um_status_t begin_csv(void *ctx, const char *path)
{
    (void)path;
    um_csv_begin(ctx);
    return UM_OK;
}

/* Reads all files; UM_EXIT_OK and *damaged, or the status to leave with, the line having been said. */
static int read_files(char **paths, int n, um_status_t (*begin)(void *ctx, const char *path),
                      um_events_fn fn, void *ctx, bool *damaged)
{
    char error[1024], damage[1024];

    for (int i = 0; i < n; i++) {
        um_status_t status = begin(ctx, paths[i]);

        *error = '\0';
        if (!status)
            status = um_events_read(paths[i], fn, ctx, damage, error, sizeof(error));
        if (status == UM_ERR_IO && !*error) /* of the output, which is said where it ends */
            return UM_EXIT_FAILED;
        if (status) {
            um_say("%s%s%s", *error ? error : paths[i], *error ? "" : ": ",
                   *error ? "" : um_status_string(status));
            return status == UM_ERR_NO_MEMORY ? UM_EXIT_FAILED : UM_EXIT_USAGE;
        }
        if (!*damage)
            continue;
        /* All whole blocks have been delivered: report them, and say so. */
        um_say("%s", damage);
        *damaged = true;
        if (begin == begin_report && um_report_note(ctx, damage))
            return UM_EXIT_FAILED;
    }
    return UM_EXIT_OK;
}

/* The status after a write; stdout's failure is said by um_say_end. */
static int written(const um_request_t *request, um_status_t status, bool damaged)
{
    if (status && (status != UM_ERR_IO || request->output))
        um_say("report: %s%s%s", request->output ? request->output : "",
               request->output ? ": " : "", um_status_string(status));
    return status ? UM_EXIT_FAILED : damaged ? UM_EXIT_USAGE : UM_EXIT_OK;
}

/* A damaged trace's report is whole as a file. */
static int finish(um_output_t *output, int exit_status, bool damaged)
{
    int closed = um_output_close(output, damaged ? UM_EXIT_OK : exit_status);

    return closed == UM_EXIT_OK ? exit_status : closed;
}

static uint32_t terminal_width(void)
{
    struct winsize size;

    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        return size.ws_col < 60 ? 60 : size.ws_col > 400 ? 400 : size.ws_col;
    return WIDTH_ELSEWHERE;
}

static bool terminal_utf8(void)
{
    bool utf8;

    if (!isatty(STDOUT_FILENO) || !setlocale(LC_CTYPE, ""))
        return false;
    utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    setlocale(LC_CTYPE, "C");
    return utf8;
}

static bool parse_color(const char *when, bool *out)
{
    if (!strcmp(when, "always"))
        *out = true;
    else if (!strcmp(when, "never"))
        *out = false;
    else if (!strcmp(when, "auto"))
        *out = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    else
        return false;
    return true;
}

static int write_page(um_report_t *report, const um_request_t *request,
                      const um_report_options_t *as, um_what_if_t *what_if)
{
    um_report_options_t options = *as;
    char *replay = um_what_if_end(what_if);
    um_output_t output;
    int exit_status = um_output_open(&output, request->html, "<!DOCTYPE html>", "a page");

    if (exit_status == UM_EXIT_OK) {
        um_status_t status;

        options.top = request->top_given ? options.top : PAGE_TOP;
        status = um_html_report(report, &options, replay, output.file);
        if (status)
            um_say("%s: %s", request->html, um_status_string(status));
        exit_status = um_output_close(&output, status ? UM_EXIT_FAILED : UM_EXIT_OK);
    }
    free(replay);
    return exit_status;
}

static void say_refused(void *ctx, const char *line)
{
    (void)ctx;
    um_say("report: %s", line);
}

/* Into the output, once the report is read. */
static int write_patch(um_report_t *report, const um_request_t *request,
                       const um_report_options_t *options, bool damaged)
{
    um_patch_t patch = {.root = request->root, .refused = say_refused};
    um_output_t output = {.file = NULL};
    char *text = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    um_status_t status =
        memory ? um_report_patch(report, options, &patch, memory) : UM_ERR_NO_MEMORY;
    int exit_status;

    if (memory && fclose(memory) && !status)
        status = UM_ERR_NO_MEMORY;
    exit_status = written(request, status, damaged);
    /* A file that is there is not replaced by nothing. */
    if (!status && !patch.n_written && patch.n_refused) {
        free(text);
        return UM_EXIT_REFUSED;
    }
    if (!status && !patch.n_written)
        um_say("report: no finding that is worth it asks for a change");
    if (!status && patch.n_written) {
        int opened = um_output_open(&output, request->output, diff.start, diff.what);

        if (opened != UM_EXIT_OK) {
            free(text);
            return opened;
        }
        status = fwrite(text, 1, bytes, output.file) == bytes ? UM_OK : UM_ERR_IO;
        exit_status = finish(&output, written(request, status, damaged), damaged && !status);
    }
    free(text);
    return exit_status;
}

static int write_report(char **paths, int n, const um_request_t *request)
{
    um_report_t *report = NULL;
    um_what_if_t what_if = {0};
    um_predicting_t *predicting = NULL;
    um_report_options_t options = request->options;
    um_output_t output;
    bool damaged = false;
    um_status_t status = um_report_new(&report);
    int exit_status;

    if (status)
        return written(request, status, false);
    if (request->html)
        um_what_if_start(paths, n, request->what_if, &what_if);
    exit_status = read_files(paths, n, begin_report, to_report, report, &damaged);
    if (exit_status == UM_EXIT_OK && request->what_if) {
        predicting = um_predicting_new(paths, n);
        options.predict = predicting ? um_predicting_findings : NULL;
        options.predict_ctx = predicting;
    }
    if (exit_status == UM_EXIT_OK && request->kind == &diff) {
        exit_status = write_patch(report, request, &options, damaged);
        goto out;
    }
    if (exit_status == UM_EXIT_OK && request->html)
        exit_status = write_page(report, request, &options, &what_if);
    else
        um_what_if_drop(&what_if);
    if (exit_status == UM_EXIT_OK)
        exit_status =
            um_output_open(&output, request->output, request->kind->start, request->kind->what);
    if (exit_status == UM_EXIT_OK) {
        status = um_report_write(report, &options, output.file);
        exit_status = finish(&output, written(request, status, damaged), damaged && !status);
    }
out:
    um_report_free(report);
    um_predicting_free(predicting);
    return exit_status;
}

static int write_csv(char **paths, int n, const um_request_t *request)
{
    um_csv_t *csv = NULL;
    um_output_t output;
    bool damaged = false;
    um_status_t status = um_csv_new(request->csv, &csv);
    int exit_status;

    if (status == UM_ERR_NOT_FOUND)
        return um_say_usage("report", "there is no table '%s'; there are %s, %s and %s",
                            request->csv, um_csv_name(0), um_csv_name(1), um_csv_name(2));
    if (status)
        return written(request, status, false);
    exit_status = read_files(paths, n, begin_csv, to_csv, csv, &damaged);
    if (exit_status == UM_EXIT_OK)
        exit_status = um_output_open(&output, request->output, um_csv_head(csv), "such a table");
    if (exit_status == UM_EXIT_OK) {
        status =
            um_csv_write(csv, request->top_given ? request->options.top : UINT64_MAX, output.file);
        exit_status = finish(&output, written(request, status, damaged), damaged && !status);
    }
    um_csv_free(csv);
    return exit_status;
}

/* Written while it is read, so what can be refused is refused before. */
static int write_perfetto(char **paths, int n, const um_request_t *request)
{
    um_perfetto_t *to = NULL;
    um_output_t output;
    char error[1024];
    bool damaged = false;
    um_status_t status = UM_OK;
    int exit_status;

    for (int i = 0; i < n; i++) {
        um_import_kind_t kind;

        if (um_input_check_trace(paths[i], error, sizeof(error)) ||
            um_import_recognise(paths[i], &kind, error, sizeof(error))) {
            um_say("%s", error);
            return UM_EXIT_USAGE;
        }
    }
    exit_status = um_output_open(&output, request->output, perfetto.start, perfetto.what);
    if (exit_status != UM_EXIT_OK)
        return exit_status;
    status = um_perfetto_new(output.file, &to);
    exit_status = status ? written(request, status, false)
                         : read_files(paths, n, begin_perfetto, to_perfetto, to, &damaged);
    if (to)
        status = um_perfetto_close(to);
    if (exit_status == UM_EXIT_OK || status == UM_ERR_IO)
        exit_status = written(request, status, damaged);
    return finish(&output, exit_status, damaged && !status && exit_status == UM_EXIT_USAGE);
}

/* The kind of result that was asked for; the same once more is one. */
static void take_kind(um_request_t *request, const struct um_kind *kind)
{
    request->kinds_given += request->kind != kind;
    request->kind = kind;
}

/* What would be ignored is refused. */
static int check_together(const um_request_t *request)
{
    bool events = request->csv || request->kind == &perfetto; /* not findings */

    if (request->kinds_given + (request->csv != NULL) > 1)
        return um_say_usage("report", "one of --json, --sarif, --perfetto, --csv and --patch");
    if (request->html && (events || request->kind == &diff))
        return um_say_usage("report", "--html makes no page of --csv, --perfetto or --patch");
    if (request->root && request->kind != &diff)
        return um_say_usage("report", "--source-root goes with --patch");
    if (events && request->of_findings)
        return um_say_usage("report",
                            "%s is about findings, which --csv and --perfetto have none of",
                            request->of_findings);
    if (request->kind == &perfetto && request->top_given)
        return um_say_usage("report", "--top does not go with --perfetto, which has every event");
    return UM_EXIT_OK;
}

int um_cmd_report(int argc, char **argv)
{
    enum {
        OPT_COLOR = 256,
        OPT_ASCII,
        OPT_UTF8,
        OPT_SARIF,
        OPT_CSV,
        OPT_DEBUG_DIR,
        OPT_HTML,
        OPT_WHAT_IF,
        OPT_PERFETTO,
        OPT_LIMIT,
        OPT_CUDA,
        OPT_PATCH,
        OPT_ROOT
    };
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"top", required_argument, NULL, 'n'},
        {"width", required_argument, NULL, 'w'},
        {"color", required_argument, NULL, OPT_COLOR},
        {"ascii", no_argument, NULL, OPT_ASCII},
        {"utf8", no_argument, NULL, OPT_UTF8},
        {"sarif", no_argument, NULL, OPT_SARIF},
        {"csv", required_argument, NULL, OPT_CSV},
        {"perfetto", no_argument, NULL, OPT_PERFETTO},
        {"output", required_argument, NULL, 'o'},
        {"debug-dir", required_argument, NULL, OPT_DEBUG_DIR},
        {"html", required_argument, NULL, OPT_HTML},
        {"what-if", required_argument, NULL, OPT_WHAT_IF},
        {"limit", required_argument, NULL, OPT_LIMIT},
        {"cuda", required_argument, NULL, OPT_CUDA},
        {"patch", no_argument, NULL, OPT_PATCH},
        {"source-root", required_argument, NULL, OPT_ROOT},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    um_request_t request = {.kind = &text, .options.top = 20, .what_if = WHAT_IF_SECONDS};
    um_report_options_t *report = &request.options;
    um_target_t target;
    um_status_t status;
    int c;

    request.limits = um_limits_default;
    report->limits = &request.limits;
    report->width = terminal_width();
    report->utf8 = terminal_utf8();
    parse_color("auto", &report->color);
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":jn:o:w:h", options, NULL)) != -1) {
        switch (c) {
        case 'j':
            take_kind(&request, &json);
            break;
        case 'n':
            if (!um_number_32(optarg, 1, 1000000, &report->top))
                return um_say_usage("report", "--top takes 1 to 1000000, not '%s'", optarg);
            request.top_given = true;
            break;
        case 'o':
            request.output = optarg;
            break;
        case OPT_SARIF:
            take_kind(&request, &sarif);
            break;
        case OPT_PERFETTO:
            take_kind(&request, &perfetto);
            break;
        case OPT_CSV:
            request.csv = optarg;
            break;
        case OPT_HTML:
            request.html = optarg;
            break;
        case OPT_WHAT_IF:
            request.of_findings = "--what-if";
            if (!um_number_32(optarg, 0, 3600, &request.what_if))
                return um_say_usage("report", "--what-if takes 0 to 3600 seconds, not '%s'",
                                    optarg);
            break;
        case 'w':
            if (!um_number_32(optarg, 60, 400, &report->width))
                return um_say_usage("report", "--width takes 60 to 400, not '%s'", optarg);
            break;
        case OPT_COLOR:
            if (!parse_color(optarg, &report->color))
                return um_say_usage("report", "--color takes always, never or auto, not '%s'",
                                    optarg);
            break;
        case OPT_LIMIT:
            request.of_findings = "--limit";
            status = um_limits_set(&request.limits, optarg);
            if (status)
                return um_say_usage(
                    "report",
                    status == UM_ERR_NOT_FOUND
                        ? "--limit: there is no threshold '%s'; 'umrt explain --limits' lists them"
                        : "--limit takes NAME=VALUE with a number that it may be, not '%s'",
                    optarg);
            break;
        case OPT_PATCH:
            take_kind(&request, &diff);
            break;
        case OPT_ROOT:
            request.root = optarg;
            break;
        case OPT_CUDA:
            if (!um_target_parse(optarg, &target))
                return um_say_usage("report", "--cuda takes a version from 11.8 on, not '%s'",
                                    optarg);
            report->cuda = optarg;
            request.of_findings = "--cuda";
            break;
        case OPT_DEBUG_DIR:
            report->debug_dirs = optarg;
            request.of_findings = "--debug-dir";
            break;
        case OPT_ASCII:
            report->utf8 = false;
            break;
        case OPT_UTF8:
            report->utf8 = true;
            break;
        case 'h':
            fputs(help, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("report", options, c, argv);
        }
    }
    if (optind == argc)
        return um_say_usage("report", "no file given");
    if (check_together(&request) != UM_EXIT_OK)
        return UM_EXIT_USAGE;
    if (request.html && !um_output_check_as(request.html, "<!DOCTYPE html>", "a page"))
        return UM_EXIT_USAGE;
    report->format = request.kind->format;
    if (request.output) { /* as in a pipe */
        report->color = false;
        report->utf8 = false;
    }
    return request.csv                 ? write_csv(argv + optind, argc - optind, &request)
           : request.kind == &perfetto ? write_perfetto(argv + optind, argc - optind, &request)
                                       : write_report(argv + optind, argc - optind, &request);
}
