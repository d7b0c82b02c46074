/* umrt report: traces in, what a developer should know out. */
#include "um_tools.h"

#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"
#include "trace/import.h"
#include "um_trace.h"

#define WIDTH_ELSEWHERE 100 /* into a file or a pipe: the same everywhere */

static const char help[] =
    "usage: umrt report [OPTIONS] FILE...\n"
    "Says what managed memory cost a program, where, and what to do about it.\n"
    "FILE is a trace of 'umrt record', or anything that 'umrt import' reads. Several files (the "
    "ranks\n"
    "of one run) make one report.\n\n"
    "  -j, --json         JSON instead of text (umrt.report/1)\n"
    "  -n, --top N        at most N findings and rows a table (default 20)\n"
    "  -w, --width N      columns of text, 60 to 400 (default: the terminal's, else 100)\n"
    "      --color WHEN   always, never or auto (default: auto, on a terminal)\n"
    "      --ascii        no block characters in the map (default: as the locale of a terminal "
    "says)\n"
    "      --utf8         block characters in the map\n"
    "  -h, --help         this text\n\n"
    "Exit status: 0 reported, 1 could not be written, 2 wrong usage, a file that cannot be read as "
    "a\n"
    "trace (no report), or a damaged one (what is whole is reported, with a note).\n";

typedef struct um_source {
    um_report_t *report;
    um_status_t status;
    bool damaged; /* one of the files; the line about it has been said */
} um_source_t;

static void on_event(void *ctx, const um_event_t *event)
{
    um_source_t *source = ctx;

    if (!source->status)
        source->status = um_report_event(source->report, event);
}

static um_status_t read_umt(um_source_t *source, const char *path, char *error, size_t error_bytes)
{
    um_trace_reader_t *reader;
    const um_trace_info_t *info;
    const um_event_t *event;
    um_status_t status =
        um_trace_reader_open(path, UM_TRACE_TIME_ORDER, &reader, error, error_bytes);

    if (status)
        return status;
    info = um_trace_reader_info(reader);
    status = um_report_begin(source->report, path, info->facts, info->n_facts);
    while (!status && !source->status && !(status = um_trace_reader_next(reader, &event)))
        on_event(source, event);
    if (status == UM_ERR_NOT_FOUND) {
        status = UM_OK;
    } else if (status == UM_ERR_TRUNCATED || status == UM_ERR_FORMAT) {
        /* All whole blocks have been delivered: report them, and say so. */
        um_say("%s", um_trace_reader_error(reader));
        source->damaged = true;
        status = um_report_note(source->report, um_trace_reader_error(reader));
    } else if (status) {
        snprintf(error, error_bytes, "%s: %s", path, um_status_string(status));
    }
    um_trace_reader_close(reader);
    return status;
}

static um_status_t read_file(um_source_t *source, const char *path, char *error, size_t error_bytes)
{
    um_import_kind_t kind;
    um_status_t status = um_input_check(path, error, error_bytes);

    if (!status)
        status = um_import_recognise(path, &kind, error, error_bytes);
    if (status)
        return status;
    if (kind == UM_IMPORT_UMT) {
        status = read_umt(source, path, error, error_bytes);
    } else {
        status = um_report_begin(source->report, path, NULL, 0);
        if (!status)
            status = um_import_file(path, on_event, source, error, error_bytes);
    }
    if (!status && source->status) {
        status = source->status;
        snprintf(error, error_bytes, "%s: %s", path, um_status_string(status));
    }
    return status;
}

static bool parse_number(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || value < least || value > most)
        return false;
    *out = (uint32_t)value;
    return true;
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

static int write_report(char **paths, int n, const um_report_options_t *options)
{
    um_source_t source = {0};
    um_status_t status = um_report_new(&source.report);
    int exit_status = UM_EXIT_OK;
    char error[1024] = "";

    if (status) {
        um_say("report: %s", um_status_string(status));
        return UM_EXIT_FAILED;
    }
    for (int i = 0; i < n && exit_status == UM_EXIT_OK; i++) {
        status = read_file(&source, paths[i], error, sizeof(error));
        if (status) {
            um_say("%s", *error ? error : um_status_string(status));
            exit_status = status == UM_ERR_NO_MEMORY ? UM_EXIT_FAILED : UM_EXIT_USAGE;
        }
    }
    if (exit_status == UM_EXIT_OK) {
        status = um_report_write(source.report, options, stdout);
        if (status) {
            if (status != UM_ERR_IO) /* said by um_say_end */
                um_say("report: %s", um_status_string(status));
            exit_status = UM_EXIT_FAILED;
        } else if (source.damaged) {
            exit_status = UM_EXIT_USAGE;
        }
    }
    um_report_free(source.report);
    return exit_status;
}

int um_cmd_report(int argc, char **argv)
{
    enum { OPT_COLOR = 256, OPT_ASCII, OPT_UTF8 };
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},        {"top", required_argument, NULL, 'n'},
        {"width", required_argument, NULL, 'w'}, {"color", required_argument, NULL, OPT_COLOR},
        {"ascii", no_argument, NULL, OPT_ASCII}, {"utf8", no_argument, NULL, OPT_UTF8},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
    };
    um_report_options_t report = {.top = 20};
    int c;

    report.width = terminal_width();
    report.utf8 = terminal_utf8();
    parse_color("auto", &report.color);
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":jn:w:h", options, NULL)) != -1) {
        switch (c) {
        case 'j':
            report.format = UM_REPORT_JSON;
            break;
        case 'n':
            if (!parse_number(optarg, 1, 1000000, &report.top))
                return um_say_usage("report", "--top takes 1 to 1000000, not '%s'", optarg);
            break;
        case 'w':
            if (!parse_number(optarg, 60, 400, &report.width))
                return um_say_usage("report", "--width takes 60 to 400, not '%s'", optarg);
            break;
        case OPT_COLOR:
            if (!parse_color(optarg, &report.color))
                return um_say_usage("report", "--color takes always, never or auto, not '%s'",
                                    optarg);
            break;
        case OPT_ASCII:
            report.utf8 = false;
            break;
        case OPT_UTF8:
            report.utf8 = true;
            break;
        case 'h':
            fputs(help, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("report", c, argv);
        }
    }
    if (optind == argc)
        return um_say_usage("report", "no file given");
    return write_report(argv + optind, argc - optind, &report);
}
