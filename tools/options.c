#include "options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "um_tools.h"

#define FIRST_SETTING 256 /* vals of getopt_long: settings come after every letter */

static void bytes_text(uint64_t bytes, char *buffer, size_t size)
{
    static const char *const unit[] = {"", "K", "M", "G"};
    size_t u = 0;

    for (; u < 3 && bytes != 0 && bytes % 1024 == 0; u++)
        bytes /= 1024;
    snprintf(buffer, size, "%" PRIu64 "%s", bytes, unit[u]);
}

void um_option_range(const um_option_t *option, char *buffer, size_t bytes)
{
    char low[32], high[32];

    switch (option->type) {
    case UM_OPTION_BOOL:
        snprintf(buffer, bytes, "on or off");
        return;
    case UM_OPTION_UINT:
        snprintf(buffer, bytes, "%" PRIu64 " to %" PRIu64, option->min, option->max);
        return;
    case UM_OPTION_BYTES:
        bytes_text(option->min, low, sizeof low);
        bytes_text(option->max, high, sizeof high);
        snprintf(buffer, bytes, "%s to %s", low, high);
        return;
    case UM_OPTION_MODE:
        snprintf(buffer, bytes, "off, observe, record or hint");
        return;
    case UM_OPTION_STRING:
        snprintf(buffer, bytes, "text");
        return;
    }
    buffer[0] = '\0';
}

void um_option_value(const um_option_t *option, const char *value, char *buffer, size_t size)
{
    uint64_t bytes;

    if (option->type == UM_OPTION_BYTES && um_parse_bytes(value, &bytes))
        bytes_text(bytes, buffer, size);
    else
        snprintf(buffer, size, "%s", value);
}

static bool listed(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static void help(const um_flags_t *flags)
{
    fputs(flags->usage, stdout);
    puts("\nsettings (each also as an environment variable, --piece-bytes as UMRT_PIECE_BYTES):");
    for (const um_option_t *o = um_option_table; o->name != NULL; o++) {
        char range[64];

        if (listed(o->name, flags->own_settings))
            continue;
        um_option_range(o, range, sizeof range);
        printf("  --%s=VALUE\n      %s (%s; default %s)\n", o->name, o->doc, range,
               o->fallback != NULL && o->fallback[0] != '\0' ? o->fallback : "none");
    }
}

/* Own flags first, then the settings. */
static struct option *long_flags(const um_flags_t *flags)
{
    size_t n = 0;
    struct option *list;

    for (const struct option *own = flags->own; own->name != NULL; own++)
        n++;
    for (const um_option_t *o = um_option_table; o->name != NULL; o++)
        n++;
    list = calloc(n + 1, sizeof *list);
    if (list == NULL)
        return NULL;
    n = 0;
    for (const struct option *own = flags->own; own->name != NULL; own++)
        list[n++] = *own;
    for (const um_option_t *o = um_option_table; o->name != NULL; o++)
        if (!listed(o->name, flags->own_settings))
            list[n++] = (struct option){o->name, required_argument, NULL,
                                        FIRST_SETTING + (int)(o - um_option_table)};
    return list;
}

static int take_setting(const um_flags_t *flags, const um_option_t *option, const char *value)
{
    um_settings_t scratch = {0};
    um_status_t status = um_settings_set(&scratch, option->name, value, "command line");
    char variable[128], range[64];

    um_settings_free(&scratch);
    if (status != UM_OK) {
        um_option_range(option, range, sizeof range);
        return um_say_usage(flags->command, "--%s: '%s' is not %s", option->name, value, range);
    }
    um_option_variable(option->name, variable, sizeof variable);
    setenv(variable, value, 1);
    return UM_EXIT_OK;
}

static const char *flag_name(const void *ctx, size_t i)
{
    return ((const struct option *)ctx)[i].name;
}

static int bad_flag(const um_flags_t *flags, const struct option *list, int result, char **argv)
{
    const char *word = argv[optind - 1], *nearest = NULL;
    char name[64];

    if (result == '?' && strncmp(word, "--", 2) == 0) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
        nearest = um_nearest(name, flag_name, list);
    }
    if (nearest != NULL)
        return um_say_usage(flags->command, "unknown option --%s, did you mean --%s?", name,
                            nearest);
    return um_say_bad_option(flags->command, result, argv);
}

int um_flags_parse(const um_flags_t *flags, int argc, char **argv, int *first)
{
    struct option *list = long_flags(flags);
    char letters[32];
    int val, status = UM_EXIT_OK;

    *first = 0;
    if (list == NULL) {
        um_say("out of memory");
        return UM_EXIT_FAILED;
    }
    snprintf(letters, sizeof letters, "+:h%s", flags->letters); /* + stops at the program */
    opterr = 0;
    while (status == UM_EXIT_OK && (val = getopt_long(argc, argv, letters, list, NULL)) != -1) {
        if (val == 'h') {
            help(flags);
            goto out;
        }
        if (val == '?' || val == ':')
            status = bad_flag(flags, list, val, argv);
        else if (val >= FIRST_SETTING)
            status = take_setting(flags, &um_option_table[val - FIRST_SETTING], optarg);
        else
            status = flags->take(flags->ctx, val, optarg);
    }
    if (status == UM_EXIT_OK && optind >= argc)
        status = um_say_usage(flags->command, "no program given");
    else if (status == UM_EXIT_OK)
        *first = optind;
out:
    free(list);
    return status;
}
