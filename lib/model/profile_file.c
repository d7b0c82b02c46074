/* profile_file.c - profiles on disk: reading, replacing, and what becomes of two that save at once. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profile_set.h"
#include "um_trace.h"

#define LOCK_PATIENCE 1000 /* times LOCK_NAP_NS */
#define LOCK_NAP_NS   2000000

/* ---- reading ---- */

static uint64_t number_of(const um_trace_reader_t *reader, const char *key)
{
    const char *text = um_trace_reader_fact(reader, key);

    return text ? strtoull(text, NULL, 10) : 0;
}

/* What is no profile is left alone, also by save. */
static um_status_t check_header(const um_trace_reader_t *reader, const char *path, char *error,
                                size_t error_bytes)
{
    if (!um_trace_reader_fact(reader, "profile.version")) {
        snprintf(error, error_bytes, "%s: a trace, not a profile", path);
        return UM_ERR_FORMAT;
    }
    if (number_of(reader, "profile.version") > UM_PROFILE_VERSION) {
        snprintf(error, error_bytes, "%s: a profile of a newer umrt (version %" PRIu64 ")", path,
                 number_of(reader, "profile.version"));
        return UM_ERR_VERSION;
    }
    return UM_OK;
}

static um_status_t take_events(um_profile_t *profile, um_trace_reader_t *reader)
{
    uint32_t gpu = UM_PROFILE_NO_GPU;
    const um_event_t *event;
    um_status_t status;

    while ((status = um_trace_reader_next(reader, &event)) == UM_OK) {
        if (event->type == UM_EV_DEVICE)
            gpu = um_profile_gpu(profile, &event->u.device);
        else if (event->type == UM_EV_LEARNED &&
                 um_profile_add(profile, gpu, &event->u.learned) == UM_ERR_NO_MEMORY)
            return UM_ERR_NO_MEMORY;
    }
    return status == UM_ERR_NOT_FOUND ? UM_OK : status;
}

um_status_t um_profile_load(const char *path, um_profile_t **out, char *error, size_t error_bytes)
{
    um_trace_reader_t *reader = NULL;
    um_profile_t *profile = NULL;
    um_status_t status;
    struct stat st;

    if (stat(path, &st) != 0) {
        snprintf(error, error_bytes, "%s: %s", path, strerror(errno));
        return UM_ERR_IO;
    }
    if (!S_ISREG(st.st_mode)) { /* a FIFO would wait for ever */
        snprintf(error, error_bytes, "%s: not a file", path);
        return UM_ERR_FORMAT;
    }
    if ((status = um_profile_new(&profile)) != UM_OK)
        goto no_memory;
    if (st.st_size == 0) {
        *out = profile;
        return UM_OK;
    }
    status = um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, error, error_bytes);
    if (status == UM_ERR_TRUNCATED)
        status = UM_ERR_FORMAT; /* without its header nobody knows whose it was */
    if (status == UM_OK)
        status = check_header(reader, path, error, error_bytes);
    if (status != UM_OK)
        goto fail;
    profile->runs = number_of(reader, "profile.runs");
    profile->aged_ns = number_of(reader, "profile.aged_ns");
    if ((status = take_events(profile, reader)) == UM_OK) {
        um_trace_reader_close(reader);
        *out = profile;
        return UM_OK;
    }
    if (status == UM_ERR_NO_MEMORY)
        goto no_memory;
    snprintf(error, error_bytes, "%s", um_trace_reader_error(reader));
    if (status == UM_ERR_FORMAT)
        status = UM_ERR_TRUNCATED;
    goto fail;
no_memory:
    snprintf(error, error_bytes, "%s: %s", path, um_status_string(UM_ERR_NO_MEMORY));
fail:
    um_trace_reader_close(reader);
    um_profile_free(profile);
    return status;
}

/* ---- writing ---- */

static int by_worth(const void *a, const void *b)
{
    const um_profile_entry_t *x = a, *y = b;
    const um_ev_learned_t *l = &x->event->u.learned, *m = &y->event->u.learned;

    if (l->age != m->age)
        return l->age < m->age ? -1 : 1;
    return l->count != m->count ? (l->count > m->count ? -1 : 1) : 0;
}

static um_status_t put_events(const um_profile_t *profile, um_trace_writer_t *writer)
{
    const um_profile_entry_t **list = um_profile_sorted(profile);
    uint32_t gpu = UM_PROFILE_NO_GPU;
    um_status_t status = UM_OK;

    if (!list)
        return UM_ERR_NO_MEMORY;
    /* Those of no known GPU come before the first DEVICE. */
    for (uint32_t i = 0; i < profile->n && status == UM_OK; i++)
        if (list[i]->gpu == UM_PROFILE_NO_GPU)
            status = um_trace_writer_put(writer, list[i]->event);
    for (uint32_t i = 0; i < profile->n && status == UM_OK; i++) {
        if (list[i]->gpu == UM_PROFILE_NO_GPU)
            continue;
        if (list[i]->gpu != gpu) {
            gpu = list[i]->gpu;
            status = um_trace_writer_put(writer, profile->gpu[gpu]);
        }
        if (status == UM_OK)
            status = um_trace_writer_put(writer, list[i]->event);
    }
    free(list);
    return status;
}

static um_status_t write_new(const um_profile_t *profile, const char *path)
{
    char version[24], runs[24], aged[24];
    const um_ev_fact_t facts[] = {{"profile.version", version},
                                  {"profile.runs", runs},
                                  {"profile.aged_ns", aged},
                                  {"umrt.version", UM_VERSION}};
    um_trace_writer_t *writer;
    um_status_t status, closed;

    snprintf(version, sizeof(version), "%u", UM_PROFILE_VERSION);
    snprintf(runs, sizeof(runs), "%" PRIu64, profile->runs);
    snprintf(aged, sizeof(aged), "%" PRIu64, profile->aged_ns);
    status = um_trace_writer_open(path, facts, sizeof(facts) / sizeof(facts[0]), NULL, &writer);
    if (status != UM_OK)
        return status;
    status = put_events(profile, writer);
    closed = um_trace_writer_close(writer);
    return status == UM_OK ? closed : status;
}

um_status_t um_profile_write(const um_profile_t *profile, const char *path)
{
    char target[PATH_MAX], fresh[PATH_MAX + 32];
    um_status_t status;
    int error;

    /* What a link points to is replaced, not the link. */
    if (!realpath(path, target) && snprintf(target, sizeof(target), "%s", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return UM_ERR_IO;
    }
    snprintf(fresh, sizeof(fresh), "%s.new.%ld", target, (long)getpid());
    status = write_new(profile, fresh);
    if (status == UM_OK && rename(fresh, target) != 0)
        status = UM_ERR_IO;
    if (status != UM_OK) {
        error = errno;
        unlink(fresh);
        errno = error;
    }
    return status;
}

/* ---- saving ---- */

/* Beside the file, since the file itself is replaced. Left there: taking it away would let two in. */
static int take_lock(const char *path, bool *busy)
{
    const struct timespec nap = {.tv_nsec = LOCK_NAP_NS};
    char name[PATH_MAX + 8];
    int fd;

    *busy = false;
    snprintf(name, sizeof(name), "%s.lock", path);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    for (int i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || i == LOCK_PATIENCE) {
            int error = errno;

            *busy = errno == EWOULDBLOCK;
            close(fd);
            errno = error;
            return -1;
        }
        nanosleep(&nap, NULL);
    }
    return fd;
}

/* What the run knows against what the file has, given what the run began with (NULL = not that). */
static um_ev_learned_t settle(const um_ev_learned_t *base, const um_ev_learned_t *ours,
                              const um_ev_learned_t *theirs)
{
    um_ev_learned_t result = *ours, own = *ours, other = *theirs;

    if (base && theirs->count == base->count &&
        memcmp(theirs->value, base->value, sizeof(base->value)) == 0)
        return result; /* nobody else has been there */
    if (base && own.count > base->count)
        own.count -= base->count;
    if (base && other.count > base->count)
        other.count -= base->count;
    if (um_profile_wins(&other, &own))
        memcpy(result.value, other.value, sizeof(result.value));
    result.count = um_profile_sum(theirs->count, own.count);
    return result;
}

/* The run's facts of one identity; NULL where it has none that held. */
static const um_ev_learned_t *seen(const um_profile_t *ours, uint32_t gpu,
                                   const um_ev_learned_t *like)
{
    const um_ev_learned_t *found = um_profile_find(ours, gpu, like);

    return found && found->age == 0 ? found : NULL;
}

static um_status_t bring_together(const um_profile_run_t *run, const um_profile_t *theirs,
                                  um_profile_t *result)
{
    uint32_t here = um_profile_gpu_number(theirs, run->gpu);
    uint32_t ours = um_profile_gpu_number(run->ours, run->gpu);
    uint32_t base = run->base ? um_profile_gpu_number(run->base, run->gpu) : UM_PROFILE_NO_GPU;
    bool ages = run->began_ns > theirs->aged_ns;
    um_status_t status = UM_OK;

    for (uint32_t i = 0; i < theirs->n && status == UM_OK; i++) {
        const um_profile_entry_t *entry = &theirs->entry[i];
        const um_ev_device_t *model = um_profile_gpu_at(theirs, entry->gpu);
        um_ev_learned_t fact = entry->event->u.learned;
        const um_ev_learned_t *own = entry->gpu == here ? seen(run->ours, ours, &fact) : NULL;

        if (own)
            fact = settle(run->base ? um_profile_find(run->base, base, &fact) : NULL, own, &fact);
        else if (ages && entry->gpu == here && ++fact.age > UM_PROFILE_MAX_AGE)
            continue;
        status = um_profile_add(result, model ? um_profile_gpu(result, model) : UM_PROFILE_NO_GPU,
                                &fact);
    }
    for (uint32_t i = 0; i < run->ours->n && status == UM_OK; i++) {
        const um_ev_learned_t *fact = &run->ours->entry[i].event->u.learned;

        if (fact->age == 0 && !um_profile_find(theirs, here, fact))
            status = um_profile_add(result,
                                    run->gpu ? um_profile_gpu(result, run->gpu) : UM_PROFILE_NO_GPU,
                                    fact);
    }
    result->runs = theirs->runs + ages;
    result->aged_ns = ages ? run->now_ns : theirs->aged_ns;
    return status == UM_ERR_FULL ? UM_OK : status;
}

/* Forgets the least worth of what is too much. The table of places no longer holds after it. */
static void cut(um_profile_t *profile)
{
    if (profile->n <= UM_PROFILE_MAX_FACTS)
        return;
    qsort(profile->entry, profile->n, sizeof(profile->entry[0]), by_worth);
    while (profile->n > UM_PROFILE_MAX_FACTS)
        free(profile->entry[--profile->n].event);
}

static um_status_t update(const char *path, const um_profile_run_t *run, char *error,
                          size_t error_bytes)
{
    um_profile_t *theirs = NULL, *result = NULL;
    um_status_t status = um_profile_load(path, &theirs, error, error_bytes);

    if ((status == UM_ERR_IO && errno == ENOENT) || status == UM_ERR_TRUNCATED)
        status = um_profile_new(&theirs);
    if (status != UM_OK)
        return status;
    if ((status = um_profile_new(&result)) == UM_OK &&
        (status = bring_together(run, theirs, result)) == UM_OK) {
        cut(result);
        status = um_profile_write(result, path);
    }
    if (status != UM_OK)
        snprintf(error, error_bytes, "%s: %s", path,
                 status == UM_ERR_IO ? strerror(errno) : um_status_string(status));
    um_profile_free(result);
    um_profile_free(theirs);
    return status;
}

um_status_t um_profile_save(const char *path, const um_profile_run_t *run, char *error,
                            size_t error_bytes)
{
    um_status_t status;
    bool busy;
    int lock;

    lock = take_lock(path, &busy);
    if (lock < 0) {
        snprintf(error, error_bytes, "%s.lock: %s", path,
                 busy ? "held by another process" : strerror(errno));
        return busy ? UM_ERR_BUSY : UM_ERR_IO;
    }
    status = update(path, run, error, error_bytes);
    close(lock);
    return status;
}
