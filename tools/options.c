#include "options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "um_advisor.h"
#include "um_tools.h"

#define FIRST_SETTING 256 /* vals of getopt_long: settings come after every letter */
#define MOST_SETTINGS 128

/* ---- the settings ------------------------------------------------------------------------------ */

static void bytes_text(uint64_t bytes, char *buffer, size_t size)
{
    static const char *const unit[] = {"", "K", "M", "G"};
    size_t u = 0;

    for (; u < 3 && bytes != 0 && bytes % 1024 == 0; u++)
        bytes /= 1024;
    snprintf(buffer, size, "%" PRIu64 "%s", bytes, unit[u]);
}

static void range_text(uint64_t min, uint64_t max, bool is_bytes, char *buffer, size_t size)
{
    char low[32], high[32];

    if (is_bytes) {
        bytes_text(min, low, sizeof low);
        bytes_text(max, high, sizeof high);
    } else {
        snprintf(low, sizeof low, "%" PRIu64, min);
        snprintf(high, sizeof high, "%" PRIu64, max);
    }
    if (max == UINT64_MAX)
        snprintf(buffer, size, "%s or more", low);
    else
        snprintf(buffer, size, "%s to %s", low, high);
}

static bool option_valid(const um_setting_t *setting, const char *value)
{
    um_settings_t scratch = {0};
    um_status_t status = um_settings_set(&scratch, setting->name, value, "command line");

    um_settings_free(&scratch);
    return status == UM_OK;
}

static um_setting_t from_option(const um_option_t *option)
{
    static const char *const range[] = {
        [UM_OPTION_BOOL] = "on or off",
        [UM_OPTION_STRING] = "text",
        [UM_OPTION_BUDGET] = "auto, all, bytes (k, M, G) or 1% to 100%",
        [UM_OPTION_MODE] = "off, observe, record, hint or trial",
    };
    um_setting_t s = {.doc = option->doc, .valid = option_valid};

    s.is_bytes = option->type == UM_OPTION_BYTES;
    snprintf(s.name, sizeof s.name, "%s", option->name);
    snprintf(s.fallback, sizeof s.fallback, "%s", option->fallback);
    if (s.is_bytes || option->type == UM_OPTION_UINT)
        range_text(option->min, option->max, s.is_bytes, s.range, sizeof s.range);
    else
        snprintf(s.range, sizeof s.range, "%s", range[option->type]);
    um_option_variable(s.name, s.variable, sizeof s.variable);
    return s;
}

static bool advisor_valid(const um_setting_t *setting, const char *value)
{
    uint64_t number;

    return um_parse_bytes(value, &number) && number >= setting->min && number <= setting->max;
}

static um_setting_t from_advisor(const um_advisor_ops_t *advisor, const um_advisor_option_t *option)
{
    um_setting_t s = {.doc = option->doc,
                      .valid = advisor_valid,
                      .is_bytes = true,
                      .min = option->min,
                      .max = option->max};

    snprintf(s.name, sizeof s.name, "%s-%s", advisor->name, option->name);
    for (char *c = s.name; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    bytes_text(option->fallback, s.fallback, sizeof s.fallback);
    range_text(s.min, s.max, true, s.range, sizeof s.range);
    um_option_variable(s.name, s.variable, sizeof s.variable);
    return s;
}

const um_setting_t *um_setting_table(size_t *n)
{
    static um_setting_t table[MOST_SETTINGS];
    static size_t count;

    *n = count;
    if (count > 0)
        return table;
    for (const um_option_t *o = um_option_table; count < MOST_SETTINGS && o->name != NULL; o++)
        table[count++] = from_option(o);
    for (const um_advisor_ops_t *const *a = um_advisor_table; *a != NULL; a++)
        for (const um_advisor_option_t *o = (*a)->options; o != NULL && o->name != NULL; o++)
            if (count < MOST_SETTINGS)
                table[count++] = from_advisor(*a, o);
    *n = count;
    return table;
}

void um_setting_text(const um_setting_t *setting, const char *value, char *buffer, size_t size)
{
    uint64_t bytes;

    if (setting->is_bytes && um_parse_bytes(value, &bytes))
        bytes_text(bytes, buffer, size);
    else
        snprintf(buffer, size, "%s", value);
}

/* ---- as flags ---------------------------------------------------------------------------------- */

static bool listed(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static void help(const um_flags_t *flags)
{
    size_t n;
    const um_setting_t *table = um_setting_table(&n);

    fputs(flags->usage, stdout);
    puts("\nsettings (each also as an environment variable, --piece-bytes as UMRT_PIECE_BYTES):");
    for (const um_setting_t *s = table; s < table + n; s++)
        if (!listed(s->name, flags->own_settings))
            printf("  --%s=VALUE\n      %s (%s; default %s)\n", s->name, s->doc, s->range,
                   s->fallback[0] != '\0' ? s->fallback : "\"\"");
}

/* Own flags first, then the settings. */
static struct option *long_flags(const um_flags_t *flags)
{
    size_t n_settings, n = 0;
    const um_setting_t *table = um_setting_table(&n_settings);
    struct option *list;

    while (flags->own[n].name != NULL)
        n++;
    list = calloc(n + n_settings + 1, sizeof *list);
    if (list == NULL)
        return NULL;
    memcpy(list, flags->own, n * sizeof *list);
    for (size_t i = 0; i < n_settings; i++)
        if (!listed(table[i].name, flags->own_settings))
            list[n++] =
                (struct option){table[i].name, required_argument, NULL, FIRST_SETTING + (int)i};
    return list;
}

static const char *advisor_name(const void *ctx, size_t i)
{
    (void)ctx;
    return um_advisor_table[i] != NULL ? um_advisor_table[i]->name : NULL;
}

/* The library would only warn of a name that nobody has, and the program run without hints. */
static int check_advisors(const char *command, const char *list)
{
    char word[64];

    for (list += strspn(list, ", "); *list != '\0'; list += strspn(list, ", ")) {
        size_t length = strcspn(list, ", "), i = 0;
        const char *name, *nearest;

        snprintf(word, sizeof word, "%.*s", (int)length, list);
        while ((name = advisor_name(NULL, i)) != NULL && strcmp(name, word) != 0)
            i++;
        if (name == NULL && strcmp(word, "all") != 0) {
            nearest = um_nearest(word, advisor_name, NULL);
            return nearest == NULL
                       ? um_say_usage(command, "there is no advisor '%s'", word)
                       : um_say_usage(command, "there is no advisor '%s', did you mean '%s'?", word,
                                      nearest);
        }
        list += length;
    }
    return UM_EXIT_OK;
}

static int take_setting(const um_flags_t *flags, size_t i, const char *value)
{
    size_t n;
    const um_setting_t *setting = um_setting_table(&n) + i;

    if (!setting->valid(setting, value))
        return um_say_usage(flags->command, "--%s: '%s' is not %s", setting->name, value,
                            setting->range);
    if (strcmp(setting->name, "advisors") == 0 &&
        check_advisors(flags->command, value) != UM_EXIT_OK)
        return UM_EXIT_USAGE;
    setenv(setting->variable, value, 1);
    return UM_EXIT_OK;
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
            status = um_say_bad_option(flags->command, list, val, argv);
        else if (val >= FIRST_SETTING)
            status = take_setting(flags, (size_t)(val - FIRST_SETTING), optarg);
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
