/* The command line of `umrt replay`: lists of policies, machines, capacities and streams. */
#include "replay.h"

#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/config.h"
#include "um_tools.h"

#define WIDTH_ELSEWHERE 140 /* into a file or a pipe: the same everywhere */
#define PERCENT_MAX     1000
#define LIST_MAX        64

static const char help[] =
    "usage: umrt replay [OPTIONS] FILE...\n"
    "Says what each policy would do for the programs of these traces, here or on another GPU.\n"
    "Each policy is simulated with each machine, each memory size and each number of streams.\n\n"
    "  -p, --policy LIST    policies, 'all', or the default: none, driver, app where the program\n"
    "                       gives hints of its own, run, umrt, oracle. none and driver always\n"
    "                       are there. Advisors together: run+lookahead; with '+again' told\n"
    "                       what they have learned in a run before\n"
    "  -m, --machine LIST   machine descriptions, by name or file (default: the trace's own GPU,\n"
    "                       else h200-pcie5)\n"
    "  -g, --gpu-mem LIST   memory of each GPU: 16G, or 50% of the most that the program has\n"
    "                       managed at once, or 'machine' (default)\n"
    "  -s, --streams LIST   at most so many streams of a GPU side by side; 0 = as recorded\n"
    "                       (default). More than were recorded there cannot be: nothing says\n"
    "                       which launches do not depend on each other\n"
    "  -u, --uvm LIST       parameters of the driver's module, NAME=VALUE, such as\n"
    "                       uvm_perf_prefetch_threshold=1 (default: as recorded)\n"
    "  -j, --json           JSON instead of text (umrt.replay/1)\n"
    "      --html FILE      the tables as a page, too\n"
    "      --open           no model: the hints that each advisor would have given for the events\n"
    "                       as they were recorded\n"
    "      --backtest       no FILE, or one of measured runs: predicted against measured\n"
    "  -J, --jobs N         threads (default: one a core); the output does not depend on it\n"
    "  -n, --top N          with --open: at most N hints of each list (default 20)\n"
    "  -w, --width N        columns of text, 60 to 400 (default: the terminal's, else 140)\n"
    "  -h, --help           this text\n\n"
    "Policies:\n";

static const char help_end[] = "\nExit status: 0 replayed, 1 could not be written, or the "
                               "back-test missed what is demanded of\n"
                               "it, 2 wrong usage, a file that cannot be replayed, or a damaged "
                               "one (what is whole is used).\n";

static int wrong(const um_replay_args_t *args, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int wrong(const um_replay_args_t *args, const char *format, ...)
{
    char line[1024];
    va_list list;

    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    return args->silent ? UM_EXIT_USAGE : um_say_usage("replay", "%s", line);
}

static int no_memory(void)
{
    um_say("replay: out of memory");
    return UM_EXIT_FAILED;
}

/* ---- lists -------------------------------------------------------------------------------------- */

/* Takes one element; UM_EXIT_OK or the status to leave with. */
typedef int (*um_take_fn)(um_replay_args_t *args, const char *element);

static int each(um_replay_args_t *args, const char *option, const char *list, um_take_fn take)
{
    char *copy = strdup(list), *rest = copy, *element;
    int status = copy ? UM_EXIT_OK : no_memory();

    while (status == UM_EXIT_OK && (element = strsep(&rest, ","))) {
        if (!*element)
            status = wrong(args, "%s: an empty element in '%s'", option, list);
        else
            status = take(args, element);
    }
    free(copy);
    return status;
}

/* Room for one more element of `size` bytes; NULL with a line said. */
static void *grow(um_replay_args_t *args, const char *option, void **list, size_t n, size_t size,
                  int *status)
{
    void *grown;

    if (n == LIST_MAX) {
        *status = wrong(args, "%s: more than %d elements", option, LIST_MAX);
        return NULL;
    }
    grown = realloc(*list, (n + 1) * size);
    if (!grown) {
        *status = no_memory();
        return NULL;
    }
    *list = grown;
    *status = UM_EXIT_OK;
    return (char *)grown + n * size;
}

static const char *policy_name(const void *ctx, size_t i)
{
    (void)ctx;
    return um_policies[i].name;
}

static int add_policy(um_replay_args_t *args, const um_policy_t *policy)
{
    const um_policy_t **place;
    int status;

    for (size_t i = 0; i < args->n_policies; i++) {
        if (args->policies[i] == policy)
            return UM_EXIT_OK;
    }
    place =
        grow(args, "--policy", (void **)&args->policies, args->n_policies, sizeof(*place), &status);
    if (place) {
        *place = policy;
        args->n_policies++;
    }
    return status;
}

/* Several together: NULL and UM_EXIT_OK = there are no such advisors. */
static const um_policy_t *join_policies(um_replay_args_t *args, const char *name, int *status)
{
    um_policy_t *policy, **place;

    for (size_t i = 0; i < args->n_joined; i++)
        if (!strcmp(args->joined[i]->name, name))
            return args->joined[i];
    *status = UM_EXIT_OK;
    if (!(policy = um_policy_join(name)))
        return NULL;
    place = grow(args, "--policy", (void **)&args->joined, args->n_joined, sizeof(*place), status);
    if (!place) {
        free(policy);
        return NULL;
    }
    *place = policy;
    args->n_joined++;
    return policy;
}

static int take_policy(um_replay_args_t *args, const char *name)
{
    const um_policy_t *policy = um_policy_find(name);
    const char *nearest;
    char known[512] = "";
    int status = UM_EXIT_OK;

    if (!policy && strchr(name, '+'))
        policy = join_policies(args, name, &status);
    if (policy || status != UM_EXIT_OK)
        return policy ? add_policy(args, policy) : status;
    if (!strcmp(name, "all")) {
        for (policy = um_policies; policy->name && status == UM_EXIT_OK; policy++)
            status = add_policy(args, policy);
        return status;
    }
    for (policy = um_policies; policy->name; policy++) {
        size_t used = strlen(known);

        snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", policy->name);
    }
    nearest = um_nearest(name, policy_name, NULL);
    if (nearest)
        return wrong(args, "there is no policy '%s'; did you mean '%s'? there are %s", name,
                     nearest, known);
    return wrong(args, "there is no policy '%s'; there are %s", name, known);
}

static int take_machine(um_replay_args_t *args, const char *name)
{
    um_machine_t machine, *place;
    char error[1024] = "";
    um_status_t status = um_machine_load(name, &machine, error, sizeof(error));
    int exit_status;

    if (status)
        return wrong(args, "--machine: %s", *error ? error : um_status_string(status));
    for (size_t i = 0; i < args->n_machines; i++) {
        if (!strcmp(args->machines[i].path, machine.path))
            return UM_EXIT_OK;
    }
    place = grow(args, "--machine", (void **)&args->machines, args->n_machines, sizeof(*place),
                 &exit_status);
    if (place) {
        *place = machine;
        args->n_machines++;
    }
    return exit_status;
}

static int take_capacity(um_replay_args_t *args, const char *text)
{
    um_capacity_t capacity = {0}, *place;
    size_t length = strlen(text);
    char digits[32];
    int status;

    if (length >= sizeof(capacity.text))
        return wrong(args,
                     "--gpu-mem: '%s' is neither a size, such as 16G, nor a share, such as 50%%",
                     text);
    strcpy(capacity.text, text);
    if (!strcmp(text, "machine")) {
        capacity.kind = UM_CAPACITY_MACHINE;
    } else if (text[length - 1] == '%') {
        memcpy(digits, text, length - 1);
        digits[length - 1] = '\0';
        capacity.kind = UM_CAPACITY_PERCENT;
        if (!um_number(digits, 0, UINT64_MAX, &capacity.value))
            return wrong(args, "--gpu-mem: '%s' is not a whole number of per cent", text);
        if (capacity.value == 0 || capacity.value > PERCENT_MAX)
            return wrong(args, "--gpu-mem: %s is not within 1%% and %d%%", text, PERCENT_MAX);
    } else {
        capacity.kind = UM_CAPACITY_BYTES;
        if (!um_parse_bytes(text, &capacity.value))
            return wrong(
                args, "--gpu-mem: '%s' is neither a size, such as 16G, nor a share, such as 50%%",
                text);
        if (capacity.value < UM_BLOCK_BYTES)
            return wrong(args, "--gpu-mem: %s is less than one block of 2 MiB", text);
    }
    place = grow(args, "--gpu-mem", (void **)&args->capacities, args->n_capacities, sizeof(*place),
                 &status);
    if (place) {
        *place = capacity;
        args->n_capacities++;
    }
    return status;
}

static int take_streams(um_replay_args_t *args, const char *text)
{
    uint32_t n, *place;
    int status;

    if (!um_number_32(text, 0, 1000000, &n))
        return wrong(args, "--streams takes 0 to 1000000, not '%s'", text);
    place =
        grow(args, "--streams", (void **)&args->streams, args->n_streams, sizeof(*place), &status);
    if (place) {
        *place = n;
        args->n_streams++;
    }
    return status;
}

static const char *param_name(const void *ctx, size_t i)
{
    (void)ctx;
    return um_uvm_param_table[i].name;
}

static int take_param(um_replay_args_t *args, const char *text)
{
    char name[64];
    const char *equals = strchr(text, '='), *nearest;
    const um_uvm_param_t *param;
    uint64_t value;

    if (!equals || (size_t)(equals - text) >= sizeof(name))
        return wrong(args, "--uvm takes NAME=VALUE, not '%s'", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    param = um_uvm_param_find(name);
    if (!param) {
        nearest = um_nearest(name, param_name, NULL);
        return wrong(args, "--uvm: the model has no parameter '%s'%s%s%s", name,
                     nearest ? "; did you mean '" : "", nearest ? nearest : "",
                     nearest ? "'?" : "");
    }
    if (!um_number(equals + 1, 0, UINT64_MAX, &value) ||
        um_uvm_param_set(&args->params, param, value))
        return wrong(args, "--uvm: %s takes %llu to %llu, not '%s'", name,
                     (unsigned long long)param->min, (unsigned long long)param->max, equals + 1);
    args->params_set |= 1u << (param - um_uvm_param_table);
    return UM_EXIT_OK;
}

/* ---- the rest ----------------------------------------------------------------------------------- */

static uint32_t cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    return n > 0 ? (uint32_t)n : 1;
}

static uint32_t terminal_width(void)
{
    struct winsize size;

    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        return size.ws_col < 60 ? 60 : size.ws_col > 400 ? 400 : size.ws_col;
    return WIDTH_ELSEWHERE;
}

static void print_help(void)
{
    fputs(help, stdout);
    for (const um_policy_t *p = um_policies; p->name; p++)
        printf("  %-11s  %s\n", p->name, p->doc);
    fputs(help_end, stdout);
}

/* What stands for a list that was not given. */
static int defaults(um_replay_args_t *args)
{
    int status = UM_EXIT_OK;

    if (!args->n_capacities)
        status = take_capacity(args, "machine");
    if (status == UM_EXIT_OK && !args->n_streams)
        status = take_streams(args, "0");
    return status;
}

static int check(const um_replay_args_t *args)
{
    if (args->backtest && (args->open || args->html))
        return wrong(args, "--backtest goes with neither --open nor --html");
    if (args->params_set && (args->backtest || args->open))
        return wrong(args, "--uvm goes with neither --backtest nor --open");
    if (args->open && (args->n_machines || args->n_capacities || args->n_streams))
        return wrong(
            args, "--open has no model: it goes with neither --machine, --gpu-mem nor --streams");
    if (args->backtest && (args->n_policies || args->n_capacities || args->n_streams))
        return wrong(args, "--backtest runs what was measured: it goes with neither --policy, "
                           "--gpu-mem nor --streams");
    if (args->top_given && !args->open)
        return wrong(args, "--top goes with --open");
    if (args->open && args->html)
        return wrong(args, "--open makes no page");
    if (args->backtest && args->n_paths > 1)
        return wrong(args, "--backtest takes one file");
    if (args->backtest && args->n_machines > 1)
        return wrong(args, "--backtest takes one machine");
    if (!args->backtest && !args->n_paths)
        return wrong(args, "no file given");
    if (args->html && !args->silent && !um_output_check_as(args->html, "<!DOCTYPE html>", "a page"))
        return UM_EXIT_USAGE;
    return UM_EXIT_OK;
}

int um_replay_args_parse(int argc, char **argv, um_replay_args_t *args, bool *done)
{
    enum { OPT_HTML = 256, OPT_OPEN, OPT_BACKTEST };
    static const struct option options[] = {
        {"policy", required_argument, NULL, 'p'},
        {"machine", required_argument, NULL, 'm'},
        {"gpu-mem", required_argument, NULL, 'g'},
        {"streams", required_argument, NULL, 's'},
        {"uvm", required_argument, NULL, 'u'},
        {"json", no_argument, NULL, 'j'},
        {"html", required_argument, NULL, OPT_HTML},
        {"open", no_argument, NULL, OPT_OPEN},
        {"backtest", no_argument, NULL, OPT_BACKTEST},
        {"jobs", required_argument, NULL, 'J'},
        {"width", required_argument, NULL, 'w'},
        {"top", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c, status = UM_EXIT_OK;

    *done = false;
    um_uvm_params_default(&args->params);
    args->threads = cores();
    args->report = (um_report_options_t){.top = 20, .width = WIDTH_ELSEWHERE};
    if (isatty(STDOUT_FILENO) && !args->no_terminal) {
        args->report.width = terminal_width();
        args->report.color = !getenv("NO_COLOR");
    }
    opterr = 0;
    optind = 1;
    while (status == UM_EXIT_OK &&
           (c = getopt_long(argc, argv, ":p:m:g:s:u:jJ:n:w:h", options, NULL)) != -1) {
        switch (c) {
        case 'p':
            status = each(args, "--policy", optarg, take_policy);
            break;
        case 'm':
            status = each(args, "--machine", optarg, take_machine);
            break;
        case 'g':
            status = each(args, "--gpu-mem", optarg, take_capacity);
            break;
        case 's':
            status = each(args, "--streams", optarg, take_streams);
            break;
        case 'u':
            status = each(args, "--uvm", optarg, take_param);
            break;
        case 'j':
            args->report.format = UM_REPORT_JSON;
            break;
        case OPT_HTML:
            args->html = optarg;
            break;
        case OPT_OPEN:
            args->open = true;
            break;
        case OPT_BACKTEST:
            args->backtest = true;
            break;
        case 'J':
            if (!um_number_32(optarg, 1, 1024, &args->threads))
                return wrong(args, "--jobs takes 1 to 1024, not '%s'", optarg);
            break;
        case 'n':
            if (!um_number_32(optarg, 1, 1000000, &args->report.top))
                return wrong(args, "--top takes 1 to 1000000, not '%s'", optarg);
            args->top_given = true;
            break;
        case 'w':
            if (!um_number_32(optarg, 60, 400, &args->report.width))
                return wrong(args, "--width takes 60 to 400, not '%s'", optarg);
            break;
        case 'h':
            if (!args->silent)
                print_help();
            *done = true;
            return UM_EXIT_OK;
        default:
            return args->silent ? UM_EXIT_USAGE : um_say_bad_option("replay", options, c, argv);
        }
    }
    args->paths = argv + optind;
    args->n_paths = (size_t)(argc - optind);
    if (status == UM_EXIT_OK)
        status = check(args);
    return status == UM_EXIT_OK ? defaults(args) : status;
}

void um_replay_args_free(um_replay_args_t *args)
{
    free(args->policies);
    for (size_t i = 0; i < args->n_joined; i++)
        free(args->joined[i]);
    free(args->joined);
    free(args->machines);
    free(args->capacities);
    free(args->streams);
}
