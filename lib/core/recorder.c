#include "recorder.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define FLUSH_NS  100000000u /* a kill -9 loses at most this much */
#define MAX_NAMES 1000u      /* names to try before giving up on a pattern */

struct um_recorder {
    pthread_mutex_t lock;        /* writer as seen by stats and close; last */
    um_trace_writer_t *writer;   /* put and flush: bus thread only; NULL once closed */
    um_trace_write_stats_t last; /* what close left */
    uint64_t flushed_ns;         /* bus thread */
    bool dirty;                  /* bus thread */
    bool told;                   /* bus thread, then close: the write error was said */
    char path[PATH_MAX];
};

/* ---- the name ---- */

const char *um_recorder_rank(void)
{
    static const char *const variable[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                           "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(variable) / sizeof(variable[0]); i++) {
        const char *value = getenv(variable[i]);

        if (value && *value && strspn(value, "0123456789") == strlen(value))
            return value;
    }
    return "0";
}

static size_t append(char *out, size_t bytes, size_t used, const char *text, size_t length)
{
    if (used + length < bytes)
        memcpy(out + used, text, length);
    return used + length;
}

/* Where ".<pid>" goes: before the last dot of the last path component, else at the end. */
static const char *extension(const char *pattern)
{
    const char *base = strrchr(pattern, '/');
    const char *dot;

    base = base ? base + 1 : pattern;
    dot = strrchr(base, '.');
    return dot && dot > base ? dot : pattern + strlen(pattern);
}

um_status_t um_recorder_name(const char *pattern, const um_recorder_names_t *names, unsigned n,
                             char *out, size_t bytes)
{
    const char *dot = extension(pattern);
    char pid[24], unique[48] = "";
    size_t used = 0;

    if (!*pattern)
        return UM_ERR_INVALID;
    snprintf(pid, sizeof(pid), "%ld", names->pid);
    if (n == 1)
        snprintf(unique, sizeof(unique), ".%s", pid);
    else if (n > 1)
        snprintf(unique, sizeof(unique), ".%s.%u", pid, n);

    for (const char *p = pattern;; p++) {
        const char *text = p;
        size_t length = 1;

        if (p == dot)
            used = append(out, bytes, used, unique, strlen(unique));
        if (!*p)
            break;
        if (*p == '%' && p[1] && strchr("prh%", p[1])) {
            p++;
            text = *p == 'p' ? pid : *p == 'r' ? names->rank : *p == 'h' ? names->host : "%";
            length = strlen(text);
        }
        used = append(out, bytes, used, text, length);
    }
    if (used >= bytes)
        return UM_ERR_FULL;
    out[used] = '\0';
    return UM_OK;
}

/* ---- the header ---- */

typedef struct facts {
    um_ev_fact_t *fact; /* strings owned */
    size_t n;
    bool failed;
} facts_t;

static void facts_add(void *ctx, const um_event_t *event)
{
    facts_t *facts = ctx;
    um_ev_fact_t *grown, copy;

    if (event->type != UM_EV_FACT || facts->failed)
        return;
    copy.key = strdup(event->u.fact.key);
    copy.value = strdup(event->u.fact.value);
    grown = realloc(facts->fact, (facts->n + 1) * sizeof(*grown));
    if (grown)
        facts->fact = grown;
    if (!grown || !copy.key || !copy.value) {
        free((char *)copy.key);
        free((char *)copy.value);
        facts->failed = true;
        return;
    }
    facts->fact[facts->n++] = copy;
}

static void facts_free(facts_t *facts)
{
    for (size_t i = 0; i < facts->n; i++) {
        free((char *)facts->fact[i].key);
        free((char *)facts->fact[i].value);
    }
    free(facts->fact);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the sink ---- */

um_status_t um_recorder_open(const char *pattern, um_recorder_t **out)
{
    um_trace_write_options_t options = {.exclusive = true};
    um_recorder_names_t names = {.pid = (long)getpid(), .rank = um_recorder_rank()};
    um_recorder_t *recorder = calloc(1, sizeof(*recorder));
    facts_t facts = {0};
    char host[256] = "";
    um_status_t status = UM_ERR_NO_MEMORY;
    int error = 0;

    if (!recorder)
        return UM_ERR_NO_MEMORY;
    pthread_mutex_init(&recorder->lock, NULL);
    gethostname(host, sizeof(host) - 1);
    names.host = host;
    um_trace_host_facts(now_ns(), facts_add, &facts);
    if (facts.failed)
        goto fail;
    for (unsigned n = 0; n < MAX_NAMES; n++) {
        status = um_recorder_name(pattern, &names, n, recorder->path, sizeof(recorder->path));
        if (status != UM_OK)
            goto fail;
        status =
            um_trace_writer_open(recorder->path, facts.fact, facts.n, &options, &recorder->writer);
        error = errno;
        if (status != UM_ERR_IO || error != EEXIST)
            break;
    }
    if (status != UM_OK)
        goto fail;
    facts_free(&facts);
    *out = recorder;
    return UM_OK;
fail:
    facts_free(&facts);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
    errno = error;
    return status;
}

/* What ended the trace, once. */
static void tell(um_recorder_t *recorder, um_status_t status)
{
    if (status == UM_OK || status == UM_ERR_INVALID || recorder->told)
        return;
    recorder->told = true;
    um_log(UM_LOG_ERROR, "the trace %s ends early: %s; the program goes on", recorder->path,
           status == UM_ERR_IO ? strerror(errno) : um_status_string(status));
}

static void on_event(void *ctx, const um_event_t *event)
{
    um_recorder_t *recorder = ctx;

    tell(recorder, um_trace_writer_put(recorder->writer, event));
    recorder->dirty = true;
}

static void on_idle(void *ctx)
{
    um_recorder_t *recorder = ctx;
    uint64_t now;

    if (!recorder->dirty)
        return;
    now = now_ns();
    if (now - recorder->flushed_ns < FLUSH_NS)
        return;
    recorder->flushed_ns = now;
    recorder->dirty = false;
    tell(recorder, um_trace_writer_flush(recorder->writer));
}

um_sink_t um_recorder_sink(um_recorder_t *recorder)
{
    return (um_sink_t){.ctx = recorder, .event = on_event, .idle = on_idle};
}

const char *um_recorder_path(const um_recorder_t *recorder)
{
    return recorder->path;
}

void um_recorder_stats(const um_recorder_t *recorder, um_trace_write_stats_t *out)
{
    um_recorder_t *self = (um_recorder_t *)recorder; /* the lock is not part of what is promised */

    pthread_mutex_lock(&self->lock);
    if (self->writer)
        um_trace_writer_stats(self->writer, out);
    else
        *out = self->last;
    pthread_mutex_unlock(&self->lock);
}

um_status_t um_recorder_close(um_recorder_t *recorder)
{
    um_status_t status = UM_OK;
    struct stat file;

    pthread_mutex_lock(&recorder->lock);
    if (recorder->writer) {
        um_trace_writer_flush(recorder->writer);
        um_trace_writer_stats(recorder->writer, &recorder->last);
        status = um_trace_writer_close(recorder->writer);
        tell(recorder, status);
        recorder->writer = NULL;
        recorder->last.status = status;
        if (stat(recorder->path, &file) == 0)
            recorder->last.bytes = (uint64_t)file.st_size;
    }
    pthread_mutex_unlock(&recorder->lock);
    return status;
}

void um_recorder_discard(um_recorder_t *recorder)
{
    um_recorder_close(recorder);
    unlink(recorder->path);
}

void um_recorder_abandon(um_recorder_t *recorder)
{
    um_trace_writer_abandon(recorder->writer);
}

void um_recorder_free(um_recorder_t *recorder)
{
    if (!recorder)
        return;
    um_recorder_close(recorder);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}
