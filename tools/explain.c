/* umrt explain: what a kind of finding is, why it costs, how to mend it, and when not to. */
#include "um_tools.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/emitter.h"
#include "report/findings/explain.h"
#include "report/findings/finding.h"

static const char help[] =
    "usage: umrt explain [KIND]...\n"
    "What a finding of 'umrt report' is, why it costs, how to mend it, and when not to. Without a "
    "KIND:\n"
    "all of them, a line each.\n\n"
    "  -l, --limits    the thresholds that kinds go by, as 'umrt report --limit NAME=VALUE' takes "
    "them\n"
    "  -w, --width N   columns of text, 60 to 400 (default 100)\n"
    "  -h, --help      this text\n";

static const char *kind_name(const void *ctx, size_t i)
{
    (void)ctx;
    return um_finding_table[i].name;
}

static void print_limit(const um_limit_t *limit)
{
    printf("  %-30s %12" PRIu64 "  %s\n", limit->name, limit->fallback, limit->doc);
}

static int explain(const char *name, um_emitter_t *e)
{
    const um_explanation_t *page = um_explain(name);
    const char *nearest;
    size_t n = strlen(name);

    if (!page) {
        nearest = um_nearest(name, kind_name, NULL);
        if (nearest)
            return um_say_usage("explain", "there is no finding '%s'; did you mean '%s'?", name,
                                nearest);
        return um_say_usage("explain", "there is no finding '%s'; 'umrt explain' lists them", name);
    }
    for (const um_finding_kind_t *kind = um_finding_table; kind->name; kind++) {
        if (!strcmp(kind->name, name))
            um_emitter_line(e, "%s: %s\n", kind->name, kind->title);
    }
    um_emitter_wrap(e, "what", page->what);
    um_emitter_wrap(e, "why", page->why);
    um_emitter_wrap(e, "do", page->fix);
    um_emitter_wrap(e, "unless", page->unless);
    for (const um_limit_t *limit = um_limit_table; limit->name; limit++) {
        char text[200];

        if (strncmp(limit->name, name, n) != 0 || limit->name[n] != '.')
            continue;
        snprintf(text, sizeof text, "%s=%" PRIu64 ": %s", limit->name, limit->fallback, limit->doc);
        um_emitter_wrap(e, "limit", text);
    }
    um_emitter_line(e, "%s", "");
    return UM_EXIT_OK;
}

int um_cmd_explain(int argc, char **argv)
{
    static const struct option options[] = {
        {"limits", no_argument, NULL, 'l'},
        {"width", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    um_report_options_t text = {.format = UM_REPORT_TEXT, .top = 1000, .width = 100};
    int exit_status = UM_EXIT_OK;
    bool limits = false;
    um_emitter_t *e;
    int c;

    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":lw:h", options, NULL)) != -1) {
        switch (c) {
        case 'l':
            limits = true;
            break;
        case 'w':
            if (!um_number_32(optarg, 60, 400, &text.width))
                return um_say_usage("explain", "--width takes 60 to 400, not '%s'", optarg);
            break;
        case 'h':
            fputs(help, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("explain", options, c, argv);
        }
    }
    if (limits && optind < argc)
        return um_say_usage("explain", "--limits goes with no kind of finding");
    if (limits) {
        for (const um_limit_t *limit = um_limit_table; limit->name; limit++)
            print_limit(limit);
        return UM_EXIT_OK;
    }
    if (optind == argc) {
        for (const um_finding_kind_t *kind = um_finding_table; kind->name; kind++)
            printf("  %-20s %s\n", kind->name, kind->title);
        return UM_EXIT_OK;
    }
    if (um_emitter_open(&text, stdout, &e))
        return UM_EXIT_FAILED;
    for (int i = optind; i < argc && exit_status == UM_EXIT_OK; i++)
        exit_status = explain(argv[i], e);
    return um_emitter_close(e) && exit_status == UM_EXIT_OK ? UM_EXIT_FAILED : exit_status;
}
