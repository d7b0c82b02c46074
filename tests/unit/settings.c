#include "core/config.h"

#include "core/log.h"
#include "um_advisor.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char said[4096]; /* warnings, a line each */

static void remember(void *ctx, int level, const char *line)
{
    (void)ctx;
    (void)level;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
}

static um_settings_t settings;

static void make(void)
{
    um_log_set(UM_LOG_WARN, remember, NULL);
}

static void drop(void)
{
    um_settings_free(&settings);
}

TestSuite(settings, .init = make, .fini = drop);

static void load(void)
{
    cr_assert_eq(um_settings_load(&settings), UM_OK);
}

/* The source that the OPTION event of an option names. */
typedef struct lookup {
    const char *name;
    char value[256], source[64];
} lookup_t;

static void look(void *ctx, const um_event_t *event)
{
    lookup_t *lookup = ctx;

    cr_assert_eq(event->type, UM_EV_OPTION);
    if (strcmp(event->u.option.name, lookup->name) != 0)
        return;
    snprintf(lookup->value, sizeof lookup->value, "%s", event->u.option.value);
    snprintf(lookup->source, sizeof lookup->source, "%s", event->u.option.source);
}

static const char *source_of(const char *name)
{
    static lookup_t lookup;

    lookup.name = name;
    um_settings_each(&settings, look, &lookup);
    return lookup.source;
}

static const char *value_of(const char *name)
{
    static lookup_t lookup;

    lookup.name = name;
    um_settings_each(&settings, look, &lookup);
    return lookup.value;
}

Test(settings, every_default_is_a_value_of_its_option)
{
    load();
    cr_assert_str_eq(said, "");
    for (const um_option_t *o = um_option_table; o->name != NULL; o++) {
        cr_assert_eq(um_settings_set(&settings, o->name, o->fallback, "default"), UM_OK, "%s",
                     o->name);
        cr_assert_gt(strlen(o->doc), 0);
    }
    cr_assert_eq(settings.mode, UM_MODE_HINT);
    cr_assert_eq(settings.piece_bytes, 32 << 20);
    cr_assert_str_eq(source_of("mode"), "default");
    cr_assert_str_eq(value_of("mode"), "hint");
    cr_assert_str_eq(value_of("piece-bytes"), "33554432");
    cr_assert_str_eq(value_of("summary"), "on");
}

Test(settings, takes_the_environment_over_the_file_over_the_default)
{
    char path[] = "/tmp/umrt-settings-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    fputs("# ours\n\n  workers = 4 \r\npiece_bytes=16M\nlog-level=0\n", file);
    fclose(file);
    setenv("UMRT_CONFIG", path, 1);
    setenv("UMRT_PIECE_BYTES", "8MiB", 1);
    setenv("UMRT_LOG_LEVEL", "3", 1);
    load();
    unlink(path);
    cr_assert_str_eq(said, "");
    cr_assert_eq(settings.workers, 4);
    cr_assert_eq(settings.piece_bytes, 8 << 20);
    cr_assert_eq(settings.log_level, 3);
    cr_assert_str_eq(source_of("workers"), "file");
    cr_assert_str_eq(source_of("piece-bytes"), "environment");
    cr_assert_str_eq(source_of("flush-us"), "default");
}

Test(settings, names_the_nearest_option_for_an_unknown_variable)
{
    setenv("UMRT_WORKER", "4", 1);
    setenv("UMRT_SOMETHING_ELSE_ALTOGETHER", "4", 1);
    setenv("UMRT_LIBRARY", "/x", 1); /* for the command, not for us */
    load();
    cr_assert_not_null(strstr(said, "UMRT_WORKER: no such option; nearest is 'workers'"), "%s",
                       said);
    cr_assert_not_null(strstr(said, "UMRT_SOMETHING_ELSE_ALTOGETHER: no such option\n"), "%s",
                       said);
    cr_assert_null(strstr(said, "UMRT_LIBRARY"), "%s", said);
    cr_assert_eq(settings.workers, 2);
}

Test(settings, keeps_the_earlier_value_where_a_new_one_is_bad)
{
    setenv("UMRT_WORKERS", "17", 1);
    setenv("UMRT_PIECE_BYTES", "1.5M", 1);
    setenv("UMRT_SUMMARY", "maybe", 1);
    setenv("UMRT_MODE", "fast", 1);
    setenv("UMRT_FLUSH_US", "-1", 1);
    load();
    cr_assert_eq(settings.workers, 2);
    cr_assert_eq(settings.piece_bytes, 32 << 20);
    cr_assert_eq(settings.summary, 1);
    cr_assert_eq(settings.mode, UM_MODE_HINT);
    cr_assert_eq(settings.flush_us, 1000);
    cr_assert_not_null(strstr(said, "'17' is not a value of workers: 1 to 16 expected"), "%s",
                       said);
    cr_assert_not_null(strstr(said, "'maybe' is not a value of summary: on or off expected"));
}

Test(settings, an_empty_variable_is_an_unset_one)
{
    setenv("UMRT_WORKERS", "", 1);
    setenv("UMRT_MODE", "", 1);
    load();
    cr_assert_str_eq(said, "");
    cr_assert_eq(settings.workers, 2);
}

Test(settings, are_silent_at_log_level_0)
{
    setenv("UMRT_LOG_LEVEL", "0", 1);
    setenv("UMRT_AAA", "1", 1);
    load();
    cr_assert_str_eq(said, "");
}

Test(settings, tell_a_bad_file_in_one_line_and_go_on)
{
    static const char *const path[] = {"/nowhere/umrt.conf", "/tmp", "/dev/zero"};

    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        said[0] = '\0';
        setenv("UMRT_CONFIG", path[i], 1);
        load();
        cr_assert_not_null(strstr(said, path[i]), "%s", said);
        cr_assert_eq(strchr(said, '\n') - said, (long)strlen(said) - 1, "%s", said);
        cr_assert_eq(settings.workers, 2);
        um_settings_free(&settings);
    }
}

Test(settings, name_file_and_line_of_a_bad_entry)
{
    char path[] = "/tmp/umrt-settings-XXXXXX", want[128];
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    fputs("workers = 3\nnonsense\nworkrs = 5\n", file);
    fclose(file);
    setenv("UMRT_CONFIG", path, 1);
    load();
    unlink(path);
    snprintf(want, sizeof want, "%s:2: no '=' in 'nonsense'", path);
    cr_assert_not_null(strstr(said, want), "%s", said);
    snprintf(want, sizeof want, "%s:3: workrs: no such option; nearest is 'workers'", path);
    cr_assert_not_null(strstr(said, want), "%s", said);
    cr_assert_eq(settings.workers, 3);
}

Test(settings, set_says_why_it_does_not)
{
    load();
    cr_assert_eq(um_settings_set(&settings, "no-such", "1", "command line"), UM_ERR_NOT_FOUND);
    cr_assert_eq(um_settings_set(&settings, "workers", "many", "command line"), UM_ERR_INVALID);
    cr_assert_eq(um_settings_set(&settings, "OUT", "a b.umt", "command line"), UM_OK);
    cr_assert_str_eq(settings.out, "a b.umt");
    cr_assert_str_eq(source_of("out"), "command line");
    cr_assert_str_eq(value_of("out"), "a b.umt");
}

Test(settings, read_modes_as_people_write_them)
{
    static const char *const off[] = {"0", "off", "OFF", "false", "no", "None"};
    static const char *const on[] = {"1", "on", "yes", "True", "hint"};
    um_mode_t mode;

    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        cr_assert(um_parse_mode(off[i], &mode) && mode == UM_MODE_OFF, "%s", off[i]);
    for (size_t i = 0; i < sizeof on / sizeof *on; i++)
        cr_assert(um_parse_mode(on[i], &mode) && mode == UM_MODE_HINT, "%s", on[i]);
    cr_assert(um_parse_mode("Observe", &mode) && mode == UM_MODE_OBSERVE);
    cr_assert(um_parse_mode("record", &mode) && mode == UM_MODE_RECORD);
    cr_assert_not(um_parse_mode("", &mode));
    cr_assert_not(um_parse_mode("2", &mode));
    cr_assert_not(um_parse_mode("offf", &mode));
}

Test(settings, read_sizes_with_units_and_no_overflow)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"64k", 65536},
                {"32M", 32 << 20},
                {"2GiB", 2ull << 30},
                {"1tb", 1ull << 40},
                {"12B", 12},
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"",     "k",   "-1",           "1.5M",
                                      "1x",   " 1",  "1 M",          "+1",
                                      "0x10", "1MM", "17179869184G", "18446744073709551616"};
    uint64_t bytes;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert(um_parse_bytes(good[i].text, &bytes) && bytes == good[i].bytes, "%s",
                  good[i].text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(um_parse_bytes(bad[i], &bytes), "%s", bad[i]);
}

Test(settings, variables_are_upper_case_with_underscores)
{
    char name[64], cut[8];

    um_option_variable("piece-bytes", name, sizeof name);
    cr_assert_str_eq(name, "UMRT_PIECE_BYTES");
    um_option_variable("piece-bytes", cut, sizeof cut);
    cr_assert_str_eq(cut, "UMRT_PI");
}

Test(settings, know_the_advisors_variables)
{
    const um_advisor_option_t *option = NULL;
    char name[128], variable[128];

    for (const um_advisor_ops_t *const *ops = um_advisor_table; *ops != NULL; ops++) {
        option = (*ops)->options;
        if (option == NULL || option->name == NULL)
            continue;
        snprintf(name, sizeof name, "%s-%s", (*ops)->name, option->name);
        um_option_variable(name, variable, sizeof variable);
        for (char *c = variable; *c != '\0'; c++)
            *c = *c == '-' ? '_' : *c;
        setenv(variable, "1", 1);
    }
    load();
    cr_assert_str_eq(said, "");
}
