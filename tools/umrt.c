/* umrt: the command. Each subcommand is one line of the table below and one file of this folder. */
#include "um_tools.h"

#include <signal.h>
#include <string.h>

typedef struct um_cmd {
    const char *name;
    const char *doc; /* one line for `umrt help` */
    int (*run)(int argc, char **argv);
} um_cmd_t;

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const um_cmd_t commands[] = {
    {"run", "run a program with its managed memory moved ahead of use", um_cmd_run},
    {"record", "run a program and write a trace of its memory's faults and migrations",
     um_cmd_record},
    {"top", "show what umrt sees and does in a program, while it runs", um_cmd_top},
    {"report", "say what managed memory cost a program, and what to do about it", um_cmd_report},
    {"explain", "say what a finding of the report is, why it costs and how to mend it",
     um_cmd_explain},
    {"diff", "say what got better and what got worse between two traces, or sides of several",
     um_cmd_diff},
    {"replay", "say what each policy would do for the program of a trace, here or on another GPU",
     um_cmd_replay},
    {"import", "turn a trace of nvprof or Nsight Systems into one of umrt", um_cmd_import},
    {"export", "write the events of a trace into an SQLite database", um_cmd_export},
    {"gen", "write a trace of a made-up program whose every access is known", um_cmd_gen},
    {"profile", "what runs have learned of a program: show, merge, diff", um_cmd_profile},
    {"info", "what this machine can do, what the settings are, what a trace holds", um_cmd_info},
    {"dump", "the events of a trace as text, for scripts", um_cmd_dump},
    {"calibrate", "measure what managed memory costs on a GPU of this machine", um_cmd_calibrate},
    {"help", "say what a subcommand does: umrt help SUBCOMMAND", cmd_help},
    {"version", "print the version", cmd_version},
    {NULL, NULL, NULL},
};

static const char *command_name(const void *ctx, size_t i)
{
    (void)ctx;
    return commands[i].name;
}

static const um_cmd_t *find(const char *name)
{
    for (const um_cmd_t *c = commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int unknown(const char *name)
{
    const char *nearest = um_nearest(name, command_name, NULL);

    if (nearest != NULL)
        um_say("there is no subcommand '%s'; did you mean '%s'?", name, nearest);
    else
        um_say("there is no subcommand '%s'; see 'umrt help'", name);
    return UM_EXIT_USAGE;
}

static void overview(FILE *to)
{
    fputs("usage: umrt SUBCOMMAND [OPTIONS] ...\n"
          "Makes CUDA managed memory as fast as memory moved by hand, and says why it is slow.\n\n",
          to);
    for (const um_cmd_t *c = commands; c->name != NULL; c++)
        fprintf(to, "  %-9s  %s\n", c->name, c->doc);
    fputs("\n'umrt SUBCOMMAND --help' says more.\n", to);
}

static int cmd_help(int argc, char **argv)
{
    char help[] = "--help";
    const um_cmd_t *c;

    if (argc < 2 || argv[1][0] == '-') {
        overview(stdout);
        return UM_EXIT_OK;
    }
    if ((c = find(argv[1])) == NULL)
        return unknown(argv[1]);
    return c->run(2, (char *[]){argv[1], help, NULL});
}

static int cmd_version(int argc, char **argv)
{
    (void)argv;
    puts(argc > 1 ? "usage: umrt version" : "umrt " UM_VERSION);
    return UM_EXIT_OK;
}

int main(int argc, char **argv)
{
    /* As options of umrt itself, and as everybody types them. */
    static const struct {
        const char *option, *command;
    } aliases[] = {{"--version", "version"}, {"-V", "version"}, {"--help", "help"}, {"-h", "help"}};
    const um_cmd_t *c;
    const char *name;

    if (argc < 2) {
        overview(stderr);
        return UM_EXIT_USAGE;
    }
    name = argv[1];
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(name, aliases[i].option) == 0)
            name = aliases[i].command;
    if ((c = find(name)) == NULL)
        return unknown(name);
    return um_say_end(c->run(argc - 1, argv + 1));
}
