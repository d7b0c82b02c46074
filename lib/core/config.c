#include "config.h"

#include "exec/share.h"
#include "exec/view.h"
#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define UM_CONFIG_FILE_MAX (1u << 20) /* a longer file is not a configuration */
#define UM_GIB             (UINT64_C(1) << 30)

#define UM_AT(field) offsetof(um_settings_t, field)
/* clang-format off */
const um_option_t um_option_table[] = {
    {"mode", "hint", "off, observe, record, hint, or trial: hint, but for every other round",
     UM_OPTION_MODE, 0, 0, UM_AT(mode)},
    {"out", "umrt-%p.umt", "trace file; %p process id, %r rank, %h host name",
     UM_OPTION_STRING, 0, 0, UM_AT(out)},
    {"log-level", "1", "0 errors, 1 warnings, 2 information, 3 debugging",
     UM_OPTION_UINT, 0, 3, UM_AT(log_level)},
    {"summary", "on", "one line about the run at its end",
     UM_OPTION_BOOL, 0, 1, UM_AT(summary)},
    {"queue-bytes", "1M", "event queue of one thread",
     UM_OPTION_BYTES, 64 << 10, UM_GIB, UM_AT(queue_bytes)},
    {"headroom-bytes", "512M", "device memory that hints never use",
     UM_OPTION_BYTES, 0, 1024 * UM_GIB, UM_AT(headroom_bytes)},
    {"host-headroom-bytes", "512M", "memory of the machine, and of its control group, that hints never use",
     UM_OPTION_BYTES, 0, 1024 * UM_GIB, UM_AT(host_headroom_bytes)},
    {"budget", "auto", "of each GPU's memory for this process: auto (an even part where others work), all, 20G, 25%",
     UM_OPTION_BUDGET, 0, 0, UM_AT(budget)},
    {"share-dir", "", "folder where processes that share a GPU see each other; \"\" = /dev/shm/umrt-UID",
     UM_OPTION_STRING, 0, 0, UM_AT(share_dir)},
    {"piece-bytes", "32M", "size of one prefetch call",
     UM_OPTION_BYTES, 64 << 10, UM_GIB, UM_AT(piece_bytes)},
    {"workers", "2", "prefetch threads",
     UM_OPTION_UINT, 1, 16, UM_AT(workers)},
    {"flush-us", "1000", "period of draining CUPTI, microseconds; records are lost above 1000",
     UM_OPTION_UINT, 100, 1000000, UM_AT(flush_us)},
    {"guard-per-mille", "10", "share of the run's time that withheld baselines may cost, 0 = none",
     UM_OPTION_UINT, 0, 1000, UM_AT(guard_per_mille)},
    {"page-tables", "on", "read from the page tables what the CPU has",
     UM_OPTION_BOOL, 0, 1, UM_AT(page_tables)},
    {"preload-kernels", "64", "hint: of a library with no more kernels, load them all before the first runs",
     UM_OPTION_UINT, 0, 256, UM_AT(preload_kernels)},
    {"call-sites", "on", "capture the stack at allocations and hints of the program",
     UM_OPTION_BOOL, 0, 1, UM_AT(call_sites)},
    {"launch-sites", "off", "capture the stack at launches too, some microseconds each",
     UM_OPTION_BOOL, 0, 1, UM_AT(launch_sites)},
    {"kernel-times", "on", "record when kernels run, once there is managed memory",
     UM_OPTION_BOOL, 0, 1, UM_AT(kernel_times)},
    {"unified-memory", "on", "record faults and migrations",
     UM_OPTION_BOOL, 0, 1, UM_AT(unified_memory)},
    {"deep", "off", "record: see all that launches touch, by pushing it to the host before; slow",
     UM_OPTION_BOOL, 0, 1, UM_AT(deep)},
    {"advisors", UM_ADVISORS_DEFAULT, "comma list of the advisors to ask, 'all' for every one",
     UM_OPTION_STRING, 0, 0, UM_AT(advisors)},
    {"profile", "", "hint: file that keeps from run to run what was learned; %p, %r, %h as in 'out'",
     UM_OPTION_STRING, 0, 0, UM_AT(profile)},
    {"report", "", "hint: file that says at the end what was done and why; JSON if it ends in .json",
     UM_OPTION_STRING, 0, 0, UM_AT(report)},
    {"trace", "", "hint: trace file of the run, without faults and migrations; as 'out'",
     UM_OPTION_STRING, 0, 0, UM_AT(trace)},
    {"top", "on", "umrt top may look at this process while it runs",
     UM_OPTION_BOOL, 0, 1, UM_AT(top)},
    {NULL, NULL, NULL, UM_OPTION_BOOL, 0, 0, 0},
};
/* clang-format on */
#undef UM_AT

#define UM_OPTION_COUNT (sizeof um_option_table / sizeof *um_option_table - 1)
_Static_assert(UM_OPTION_COUNT <= UM_OPTION_MAX, "um_settings_t.source is too short");

/* ---- values ---- */

/* A word for a number, compared without case. */
typedef struct um_word {
    const char *text;
    uint64_t value;
} um_word_t;

static bool um_parse_word(const um_word_t *words, const char *text, uint64_t *out)
{
    for (; words->text != NULL; words++)
        if (strcasecmp(text, words->text) == 0) {
            *out = words->value;
            return true;
        }
    return false;
}

bool um_parse_mode(const char *text, um_mode_t *out)
{
    static const um_word_t words[] = {
        {"off", UM_MODE_OFF},       {"0", UM_MODE_OFF},
        {"no", UM_MODE_OFF},        {"false", UM_MODE_OFF},
        {"none", UM_MODE_OFF},      {"observe", UM_MODE_OBSERVE},
        {"record", UM_MODE_RECORD}, {"hint", UM_MODE_HINT},
        {"on", UM_MODE_HINT},       {"1", UM_MODE_HINT},
        {"yes", UM_MODE_HINT},      {"true", UM_MODE_HINT},
        {"trial", UM_MODE_TRIAL},   {NULL, 0},
    };
    uint64_t value;

    if (!um_parse_word(words, text, &value))
        return false;
    *out = (um_mode_t)value;
    return true;
}

bool um_parse_bool(const char *text, bool *out)
{
    static const um_word_t words[] = {
        {"1", 1},       {"on", 1},      {"yes", 1},      {"true", 1}, {"enable", 1},
        {"enabled", 1}, {"0", 0},       {"off", 0},      {"no", 0},   {"false", 0},
        {"none", 0},    {"disable", 0}, {"disabled", 0}, {NULL, 0},
    };
    uint64_t value;

    if (!um_parse_word(words, text, &value))
        return false;
    *out = value != 0;
    return true;
}

/* Decimal digits; *end is what follows them. */
static bool um_parse_digits(const char *text, uint64_t *out, const char **end)
{
    char *stop;

    if (!isdigit((unsigned char)*text)) /* strtoull would take a sign and blanks */
        return false;
    errno = 0;
    *out = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0;
}

bool um_parse_bytes(const char *text, uint64_t *out)
{
    static const um_word_t units[] = {
        {"", 0},     {"b", 0},   {"k", 10},   {"kb", 10},  {"kib", 10},
        {"m", 20},   {"mb", 20}, {"mib", 20}, {"g", 30},   {"gb", 30},
        {"gib", 30}, {"t", 40},  {"tb", 40},  {"tib", 40}, {NULL, 0},
    };
    const char *unit;
    uint64_t n, shift;

    if (!um_parse_digits(text, &n, &unit) || !um_parse_word(units, unit, &shift) ||
        n > UINT64_MAX >> shift)
        return false;
    *out = n << shift;
    return true;
}

static bool um_parse_number(const um_option_t *option, const char *text, uint64_t *out)
{
    const char *end;
    um_mode_t mode;
    bool on;

    switch (option->type) {
    case UM_OPTION_MODE:
        if (!um_parse_mode(text, &mode))
            return false;
        *out = mode;
        return true;
    case UM_OPTION_BOOL:
        if (!um_parse_bool(text, &on))
            return false;
        *out = on;
        return true;
    case UM_OPTION_BYTES:
        return um_parse_bytes(text, out) && *out >= option->min && *out <= option->max;
    case UM_OPTION_UINT:
        return um_parse_digits(text, out, &end) && *end == '\0' && *out >= option->min &&
               *out <= option->max;
    case UM_OPTION_STRING:
    case UM_OPTION_BUDGET:
        break;
    }
    return false;
}

/* What a value of this option looks like, for the warning. */
static const char *um_option_expects(const um_option_t *option, char *out, size_t bytes)
{
    switch (option->type) {
    case UM_OPTION_BOOL:
        return "on or off";
    case UM_OPTION_MODE:
        return "off, observe, record, hint or trial";
    case UM_OPTION_STRING:
        return "text";
    case UM_OPTION_BUDGET:
        return "auto, all, bytes (k, M, G) or 1% to 100%";
    case UM_OPTION_UINT:
    case UM_OPTION_BYTES:
        break;
    }
    snprintf(out, bytes, "%" PRIu64 " to %" PRIu64 "%s", option->min, option->max,
             option->type == UM_OPTION_BYTES ? " bytes (k, M, G)" : "");
    return out;
}

/* ---- names ---- */

static char um_name_fold(char c)
{
    return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

static bool um_name_equal(const char *a, const char *b)
{
    while (*a != '\0' && um_name_fold(*a) == um_name_fold(*b))
        a++, b++;
    return *a == '\0' && *b == '\0';
}

static const um_option_t *um_option_find(const char *name)
{
    for (const um_option_t *o = um_option_table; o->name != NULL; o++)
        if (um_name_equal(o->name, name))
            return o;
    return NULL;
}

/* Levenshtein distance, names cut at 63 bytes. */
static size_t um_name_distance(const char *a, const char *b)
{
    size_t row[64];
    size_t na = strnlen(a, 63), nb = strnlen(b, 63);

    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t corner = row[0];

        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t change = corner + (um_name_fold(a[i - 1]) != um_name_fold(b[j - 1]));
            size_t shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

            corner = row[j];
            row[j] = change < shift ? change : shift;
        }
    }
    return row[nb];
}

const char *um_option_nearest(const char *name)
{
    const char *nearest = NULL;
    size_t best = strlen(name) / 3 + 1;

    for (const um_option_t *o = um_option_table; o->name != NULL; o++) {
        size_t distance = um_name_distance(name, o->name);

        if (distance < best) {
            best = distance;
            nearest = o->name;
        }
    }
    return nearest;
}

void um_option_variable(const char *name, char *out, size_t bytes)
{
    snprintf(out, bytes, "UMRT_%s", name);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

/* ---- settings ---- */

static bool um_option_is_text(const um_option_t *option)
{
    return option->type == UM_OPTION_STRING || option->type == UM_OPTION_BUDGET;
}

static uint64_t *um_number_at(um_settings_t *settings, const um_option_t *option)
{
    return (uint64_t *)(void *)((char *)settings + option->offset);
}

static char **um_string_at(um_settings_t *settings, const um_option_t *option)
{
    return (char **)(void *)((char *)settings + option->offset);
}

um_status_t um_settings_set(um_settings_t *settings, const char *name, const char *value,
                            const char *source)
{
    const um_option_t *option = um_option_find(name);

    if (option == NULL)
        return UM_ERR_NOT_FOUND;
    if (um_option_is_text(option)) {
        um_budget_t budget;
        char *copy;

        if (option->type == UM_OPTION_BUDGET && !um_budget_parse(value, &budget))
            return UM_ERR_INVALID;
        copy = strdup(value);
        if (copy == NULL)
            return UM_ERR_NO_MEMORY;
        free(*um_string_at(settings, option));
        *um_string_at(settings, option) = copy;
    } else {
        uint64_t number;

        if (!um_parse_number(option, value, &number))
            return UM_ERR_INVALID;
        *um_number_at(settings, option) = number;
    }
    settings->source[option - um_option_table] = source;
    return UM_OK;
}

/* One name and value from a file or the environment. `where` names it in the warning. */
static um_status_t um_settings_take(um_settings_t *settings, const char *where, const char *name,
                                    const char *value, const char *source)
{
    um_status_t status = um_settings_set(settings, name, value, source);
    char expects[96];

    if (status == UM_ERR_NO_MEMORY || settings->log_level < UM_LOG_WARN)
        return status == UM_ERR_NO_MEMORY ? status : UM_OK;
    if (status == UM_ERR_INVALID) {
        const um_option_t *option = um_option_find(name);

        um_log(UM_LOG_WARN, "%s: '%s' is not a value of %s: %s expected", where, value,
               option->name, um_option_expects(option, expects, sizeof expects));
    } else if (status == UM_ERR_NOT_FOUND) {
        const char *nearest = um_option_nearest(name);

        um_log(UM_LOG_WARN, "%s: no such option%s%s%s", where, nearest ? "; nearest is '" : "",
               nearest ? nearest : "", nearest ? "'" : "");
    }
    return UM_OK;
}

/* Blanks off both ends, in place. */
static char *um_trim(char *text)
{
    size_t n;

    while (isspace((unsigned char)*text))
        text++;
    n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        text[--n] = '\0';
    return text;
}

static um_status_t um_settings_line(um_settings_t *settings, const char *path, unsigned number,
                                    char *line)
{
    char *name = um_trim(line);
    char *equals = strchr(name, '=');
    char where[512];

    if (*name == '\0' || *name == '#')
        return UM_OK;
    if (equals == NULL) {
        um_log(UM_LOG_WARN, "%s:%u: no '=' in '%s'", path, number, name);
        return UM_OK;
    }
    *equals = '\0';
    name = um_trim(name);
    snprintf(where, sizeof where, "%s:%u: %s", path, number, name);
    return um_settings_take(settings, where, name, um_trim(equals + 1), "file");
}

/* The whole file as text; NULL and errno. Never waits, whatever the path names. */
static char *um_read_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *text = NULL;
    size_t used = 0;
    struct stat st;
    ssize_t n;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) != 0)
        goto out;
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t)UM_CONFIG_FILE_MAX) {
        errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
        goto out;
    }
    text = malloc((size_t)st.st_size + 1);
    if (text == NULL)
        goto out;
    while (used < (size_t)st.st_size) {
        n = read(fd, text + used, (size_t)st.st_size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    text[used] = '\0';
out:
    close(fd);
    return text;
}

static um_status_t um_settings_file(um_settings_t *settings, const char *path)
{
    char *text = um_read_file(path);
    um_status_t status = UM_OK;
    unsigned number = 0;
    char *next = text;
    char *line;

    if (text == NULL) {
        um_log(UM_LOG_WARN, "UMRT_CONFIG: %s: %s", path, strerror(errno));
        return UM_OK;
    }
    while (status == UM_OK && (line = strsep(&next, "\n")) != NULL)
        status = um_settings_line(settings, path, ++number, line);
    free(text);
    return status;
}

/* Variables of ours that are no options of the runtime: the command's, and the advisors' own. */
static bool um_variable_known(const char *name)
{
    static const char *const known[] = {"CONFIG", "LIBRARY", "SUMMARY_TO"};
    char variable[96];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    for (const um_advisor_ops_t *const *a = um_advisor_table; *a != NULL; a++)
        for (const um_advisor_option_t *o = (*a)->options; o != NULL && o->name != NULL; o++) {
            um_advisor_variable(*a, o, variable, sizeof variable);
            if (strcmp(name, variable + strlen("UMRT_")) == 0)
                return true;
        }
    return false;
}

static um_status_t um_settings_environment(um_settings_t *settings)
{
    static const char prefix[] = "UMRT_";
    const size_t skip = sizeof prefix - 1;
    um_status_t status = UM_OK;

    for (char **e = environ; e != NULL && *e != NULL && status == UM_OK; e++) {
        const char *equals = strchr(*e, '=');
        char where[64];

        if (strncmp(*e, prefix, skip) != 0 || equals == NULL || equals[1] == '\0')
            continue;
        snprintf(where, sizeof where, "%.*s", (int)(equals - *e), *e);
        if (!um_variable_known(where + skip))
            status = um_settings_take(settings, where, where + skip, equals + 1, "environment");
    }
    return status;
}

um_status_t um_settings_load(um_settings_t *out)
{
    const char *path = secure_getenv("UMRT_CONFIG");
    const char *level = getenv("UMRT_LOG_LEVEL");
    um_status_t status = UM_OK;

    memset(out, 0, sizeof *out);
    for (const um_option_t *o = um_option_table; o->name != NULL && status == UM_OK; o++)
        status = um_settings_set(out, o->name, o->fallback, "default");
    if (status == UM_OK && level != NULL) /* before the others: it silences their warnings */
        um_settings_set(out, "log-level", level, "environment");
    if (status == UM_OK && path != NULL && *path != '\0')
        status = um_settings_file(out, path);
    if (status == UM_OK)
        status = um_settings_environment(out);
    if (status != UM_OK)
        um_settings_free(out);
    return status;
}

static const char *um_mode_text(uint64_t mode)
{
    static const char *const text[] = {"default", "off", "observe", "record", "hint", "trial"};

    return mode < sizeof text / sizeof *text ? text[mode] : "unknown";
}

void um_settings_each(const um_settings_t *settings, um_event_fn fn, void *ctx)
{
    for (const um_option_t *o = um_option_table; o->name != NULL; o++) {
        const char *at = (const char *)settings + o->offset;
        um_event_t event = {.type = UM_EV_OPTION};
        const char *source = settings->source[o - um_option_table];
        char number[24];
        uint64_t value = 0;

        if (um_option_is_text(o)) {
            const char *const *text = (const char *const *)(const void *)at;

            event.u.option.value = *text != NULL ? *text : "";
        } else {
            memcpy(&value, at, sizeof value);
            snprintf(number, sizeof number, "%" PRIu64, value);
            event.u.option.value = o->type == UM_OPTION_MODE   ? um_mode_text(value)
                                   : o->type != UM_OPTION_BOOL ? number
                                   : value != 0                ? "on"
                                                               : "off";
        }
        event.u.option.name = o->name;
        event.u.option.source = source != NULL ? source : "default";
        fn(ctx, &event);
    }
}

void um_settings_free(um_settings_t *settings)
{
    if (settings == NULL)
        return;
    for (const um_option_t *o = um_option_table; o->name != NULL; o++)
        if (um_option_is_text(o)) {
            free(*um_string_at(settings, o));
            *um_string_at(settings, o) = NULL;
        }
}
