/*
 * rules.c - what a test sets: the version, properties, and how calls go wrong. README.md lists all.
 *
 * It may be asked by the loader, before libc has the environment; hence the reading of /proc, static
 * buffers, and nothing that allocates up to sg_rule_missing.
 */
#include "softgpu.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_RULES 128

typedef struct rule {
    char pattern[64], by[64];
    char action; /* f fail, h hang, s slow, m missing, c crash */
    long value;  /* error code, nanoseconds */
    unsigned long from, times;
    _Atomic unsigned long seen;
} rule_t;

static rule_t rules[MAX_RULES];
static int n_rules;
static char sets[64][2][64]; /* `set NAME VALUE` lines */
static int n_sets;
static _Atomic int loaded;
static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t sg_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t); /* on purpose not the clock that programs use */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t slurp(const char *path, char *buffer, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n;

    while (fd >= 0 && used < bytes - 1 && (n = read(fd, buffer + used, bytes - 1 - used)) > 0)
        used += (size_t)n;
    if (fd >= 0)
        close(fd);
    buffer[used] = '\0';
    return used;
}

static const char *environment(const char *name)
{
    static char early[65536];
    static size_t bytes;
    size_t length = strlen(name);

    if (environ)
        return getenv(name);
    if (!bytes)
        bytes = slurp("/proc/self/environ", early, sizeof(early));
    for (size_t at = 0; at < bytes; at += strlen(early + at) + 1)
        if (strncmp(early + at, name, length) == 0 && early[at + length] == '=')
            return early + at + length + 1;
    return NULL;
}

static long duration_ns(const char *text)
{
    char *unit;
    double value = strtod(text, &unit);

    return (long)(value * (strcmp(unit, "s") == 0    ? 1e9
                           : strcmp(unit, "ms") == 0 ? 1e6
                           : strcmp(unit, "us") == 0 ? 1e3
                                                     : 1));
}

static void parse_line(char *line)
{
    char *word[12] = {NULL}, *save = NULL;
    int n = 0;
    rule_t *r = &rules[n_rules];

    for (char *w = strtok_r(line, " \t", &save); w && *w != '#' && n < 12;
         w = strtok_r(NULL, " \t", &save))
        word[n++] = w;
    if (n < 2)
        return;
    if (strcmp(word[0], "set") == 0 && n == 3 && n_sets < 64) {
        strncpy(sets[n_sets][0], word[1], 63);
        strncpy(sets[n_sets++][1], word[2], 63);
        return;
    }
    if (n_rules == MAX_RULES)
        return;
    strncpy(r->pattern, word[0], sizeof(r->pattern) - 1);
    r->action = word[1][0];
    r->from = 1;
    int i = 2;
    if (r->action == 'f')
        r->value = i < n ? atol(word[i++]) : 999;
    else if (r->action == 's')
        r->value = i < n ? duration_ns(word[i++]) : 0;
    for (; i + 1 < n; i += 2) {
        if (strcmp(word[i], "from") == 0)
            r->from = strtoul(word[i + 1], NULL, 10);
        else if (strcmp(word[i], "times") == 0)
            r->times = strtoul(word[i + 1], NULL, 10);
        else if (strcmp(word[i], "by") == 0)
            strncpy(r->by, word[i + 1], sizeof(r->by) - 1);
    }
    n_rules++;
}

static void load(void)
{
    static char text[65536];
    char *save = NULL;

    if (loaded)
        return;
    const char *path = environment("SOFTGPU_RULES");
    if (path && *path) {
        slurp(path, text, sizeof(text));
        for (char *line = text; line && *line;) {
            char *end = strchr(line, '\n');
            if (end)
                *end = '\0';
            parse_line(line);
            line = end ? end + 1 : NULL;
        }
    }
    (void)save;
    loaded = 1;
}

const char *sg_setting(const char *name, const char *otherwise)
{
    char full[80] = "SOFTGPU_";

    load();
    for (int i = 0; i < n_sets; i++)
        if (strcmp(sets[i][0], name) == 0)
            return sets[i][1];
    strncat(full, name, 60);
    const char *value = environment(full);
    return value && *value ? value : otherwise;
}

uint64_t sg_setting_number(const char *name, uint64_t otherwise)
{
    const char *text = sg_setting(name, NULL);
    char *unit;

    if (!text)
        return otherwise;
    uint64_t value = strtoull(text, &unit, 0);
    return value << (*unit == 'G' ? 30 : *unit == 'M' ? 20 : *unit == 'K' ? 10 : 0);
}

int sg_version(void)
{
    static int version;

    if (!version) {
        const char *text = sg_setting("CUDA", "13.0");
        char *end;
        int major = (int)strtol(text, &end, 10);
        version = major * 10 + (*end == '.' ? atoi(end + 1) : 0);
    }
    return version;
}

bool sg_rule_missing(const char *symbol)
{
    load();
    for (int i = 0; i < n_rules; i++)
        if (rules[i].action == 'm' && fnmatch(rules[i].pattern, symbol, 0) == 0)
            return true;
    return false;
}

/* ---- who called what, for tests that let every call fail in turn ---------------------------------- */

typedef struct count {
    char by[64];
    const char *symbol;
    unsigned long n;
} count_t;
static count_t counts[1024];
static int n_counts;

static void caller_name(const void *caller, char *name, size_t bytes)
{
    Dl_info info;
    const char *path = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "?";
    const char *slash = strrchr(path, '/');

    snprintf(name, bytes, "%s", slash ? slash + 1 : path);
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = sg_setting("CALLS", NULL);
    FILE *file = path ? fopen(path, "ae") : NULL;

    for (int i = 0; file && i < n_counts; i++)
        fprintf(file, "%s %s %lu\n", counts[i].by, counts[i].symbol, counts[i].n);
    if (file)
        fclose(file);
}

static void count_call(const char *symbol, const char *by)
{
    int i = 0;

    pthread_mutex_lock(&counts_lock);
    while (i < n_counts && (strcmp(counts[i].symbol, symbol) != 0 || strcmp(counts[i].by, by) != 0))
        i++;
    if (i == n_counts && n_counts < 1024) {
        snprintf(counts[i].by, sizeof(counts[i].by), "%s", by);
        counts[n_counts++].symbol = symbol;
    }
    if (i < n_counts)
        counts[i].n++;
    pthread_mutex_unlock(&counts_lock);
}

int sg_rule(const char *symbol, const void *caller)
{
    static _Atomic int counting = -1;
    char by[64] = "";

    load();
    if (counting < 0)
        counting = sg_setting("CALLS", NULL) != NULL;
    if (counting || n_rules)
        caller_name(caller, by, sizeof(by));
    if (counting)
        count_call(symbol, by);
    for (int i = 0; i < n_rules; i++) {
        rule_t *r = &rules[i];
        if (fnmatch(r->pattern, symbol, 0) != 0 || (*r->by && fnmatch(r->by, by, 0) != 0))
            continue;
        unsigned long nth = ++r->seen;
        if (nth < r->from || (r->times && nth >= r->from + r->times))
            continue;
        while (r->action == 'h')
            pause();
        if (r->action == 's')
            nanosleep(&(struct timespec){r->value / 1000000000, r->value % 1000000000}, NULL);
        if (r->action == 'c')
            raise(SIGSEGV);
        if (r->action == 'f')
            return (int)r->value;
    }
    return 0;
}

/* ---- the ground truth ------------------------------------------------------------------------------ */

static struct {
    char key[48];
    uint64_t value;
} truths[64];

void sg_log(const char *key, uint64_t add)
{
    int i = 0;

    pthread_mutex_lock(&counts_lock);
    while (i < 63 && truths[i].key[0] && strcmp(truths[i].key, key) != 0)
        i++;
    snprintf(truths[i].key, sizeof(truths[i].key), "%s", key);
    truths[i].value += add;
    pthread_mutex_unlock(&counts_lock);
}

__attribute__((destructor)) static void write_truth(void)
{
    const char *path = sg_setting("TRUTH", NULL);
    FILE *file = path && truths[0].key[0] ? fopen(path, "we") : NULL;

    for (int i = 0; file && i < 64 && truths[i].key[0]; i++)
        fprintf(file, "%s %llu\n", truths[i].key, (unsigned long long)truths[i].value);
    if (file)
        fclose(file);
}
