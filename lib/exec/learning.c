#include "learning.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/recorder.h"
#include "model/profile.h"

#define MAX_GPUS  32
#define MAX_SINKS 4

/* One that nobody waits for any more is taken back, or its answer left for the next to throw away. */
typedef enum request { NONE = 0, ASKED, COLLECTING, DONE } request_t;

struct um_learning {
    char path[PATH_MAX];
    uint64_t began_ns;     /* since 1970 */
    um_profile_t *base;    /* what the run began with, or has saved since */
    pthread_mutex_t saves; /* one save at a time; base after the start */

    /* bus thread */
    um_event_t *gpu[MAX_GPUS];      /* DEVICE, by ordinal */
    _Atomic(const um_event_t *) on; /* the GPU that the run began on */
    um_sink_t to[MAX_SINKS];
    unsigned n_to;
    _Atomic uint64_t told;
    bool tried; /* telling */

    /* a request to the bus thread: `hinter` is its from ASKED on, `ours` is the asker's once DONE */
    const um_hinter_t *hinter;
    um_profile_t *ours;
    _Atomic uint32_t request; /* request_t */
};

static uint64_t since_1970_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- life ---- */

static um_status_t name_file(um_learning_t *learning, const char *pattern)
{
    char host[256] = "";
    um_recorder_names_t names = {.pid = (long)getpid(), .rank = um_recorder_rank(), .host = host};
    um_status_t status;

    gethostname(host, sizeof(host) - 1);
    status = um_recorder_name(pattern, &names, 0, learning->path, sizeof(learning->path));
    if (status != UM_OK)
        um_log(UM_LOG_WARN, "profile '%.200s': %s", pattern, um_status_string(status));
    return status == UM_OK ? UM_OK : UM_ERR_INVALID;
}

/* One that is not there, or is damaged, is made anew at the end. */
static um_status_t read_file(um_learning_t *learning)
{
    char error[PATH_MAX + 256];
    um_status_t status = um_profile_load(learning->path, &learning->base, error, sizeof(error));

    if (status == UM_OK)
        return UM_OK;
    if (status != UM_ERR_IO || errno != ENOENT)
        um_log(UM_LOG_WARN, "the profile is not used: %s", error);
    if (status == UM_ERR_FORMAT || status == UM_ERR_VERSION)
        return UM_ERR_INVALID;
    return um_profile_new(&learning->base);
}

um_status_t um_learning_open(const char *pattern, um_learning_t **out)
{
    um_learning_t *learning = calloc(1, sizeof(*learning));
    um_status_t status = UM_ERR_NO_MEMORY;

    if (!learning)
        return UM_ERR_NO_MEMORY;
    pthread_mutex_init(&learning->saves, NULL);
    learning->began_ns = since_1970_ns();
    if ((status = name_file(learning, pattern)) == UM_OK &&
        (status = read_file(learning)) == UM_OK) {
        *out = learning;
        return UM_OK;
    }
    um_learning_free(learning);
    return status;
}

void um_learning_free(um_learning_t *learning)
{
    if (!learning)
        return;
    for (unsigned i = 0; i < MAX_GPUS; i++)
        free(learning->gpu[i]);
    um_profile_free(learning->base);
    pthread_mutex_destroy(&learning->saves);
    free(learning);
}

const char *um_learning_path(const um_learning_t *learning)
{
    return learning->path;
}

uint64_t um_learning_told(const um_learning_t *learning)
{
    return atomic_load(&learning->told);
}

/* ---- in ---- */

static void remember_gpu(um_learning_t *learning, const um_event_t *event)
{
    int32_t n = event->u.device.device;
    size_t bytes = um_event_pack(event, NULL, 0);

    if (n < 0 || n >= MAX_GPUS || learning->gpu[n] || !(learning->gpu[n] = malloc(bytes)))
        return;
    um_event_pack(event, learning->gpu[n], bytes);
}

static void tell_one(void *ctx, const um_event_t *event)
{
    um_learning_t *learning = ctx;

    for (unsigned i = 0; i < learning->n_to; i++)
        learning->to[i].event(learning->to[i].ctx, event);
    atomic_fetch_add_explicit(&learning->told, 1, memory_order_relaxed);
}

/* Something is about to run on `device`, or on whichever it is. */
static void begin_on(um_learning_t *learning, int32_t device, uint64_t now_ns)
{
    const um_event_t *gpu = NULL;

    if (learning->tried)
        return;
    if (device >= 0 && device < MAX_GPUS)
        gpu = learning->gpu[device];
    for (unsigned i = 0; i < MAX_GPUS && !gpu; i++)
        gpu = learning->gpu[i];
    if (!gpu)
        return; /* nobody knows yet what there is */
    learning->tried = true;
    atomic_store(&learning->on, gpu);
    um_profile_tell(learning->base, &gpu->u.device, now_ns, tell_one, learning);
}

static void on_event(void *ctx, const um_event_t *event)
{
    um_learning_t *learning = ctx;

    switch (event->type) {
    case UM_EV_DEVICE:
        remember_gpu(learning, event);
        break;
    case UM_EV_CONTEXT:
        if (event->u.context.change == UM_CONTEXT_CREATED)
            begin_on(learning, event->u.context.device, event->time_ns);
        break;
    case UM_EV_REGION_ALLOC:
        if (event->u.region_alloc.family == UM_FAMILY_MANAGED)
            begin_on(learning, event->u.region_alloc.device, event->time_ns);
        break;
    case UM_EV_LAUNCH:
        begin_on(learning, event->u.launch.device, event->time_ns);
        break;
    default:
        break;
    }
}

void um_learning_tells(um_learning_t *learning, const um_sink_t *to)
{
    if (learning->n_to < MAX_SINKS)
        learning->to[learning->n_to++] = *to;
}

/* ---- out ---- */

typedef struct gather {
    um_profile_t *profile;
    uint32_t gpu;
    bool fresh; /* something held in this run */
} gather_t;

static void gather_one(void *ctx, const um_event_t *event)
{
    gather_t *gather = ctx;

    if (event->type != UM_EV_LEARNED)
        return;
    gather->fresh |= event->u.learned.age == 0;
    um_profile_put(gather->profile, gather->gpu, &event->u.learned);
}

/* NULL when nothing was learned, or there is no memory. */
static um_profile_t *collect(const um_learning_t *learning, const um_hinter_t *hinter)
{
    const um_event_t *on = atomic_load(&learning->on);
    gather_t gather = {0};

    if (um_profile_new(&gather.profile) != UM_OK)
        return NULL;
    gather.gpu = on ? um_profile_gpu(gather.profile, &on->u.device) : UM_PROFILE_NO_GPU;
    um_hinter_learned(hinter, gather_one, &gather);
    if (gather.fresh)
        return gather.profile;
    um_profile_free(gather.profile);
    return NULL;
}

static void on_idle(void *ctx)
{
    um_learning_t *learning = ctx;

    uint32_t asked = ASKED;

    if (!atomic_compare_exchange_strong(&learning->request, &asked, COLLECTING))
        return;
    learning->ours = collect(learning, learning->hinter);
    atomic_store(&learning->request, DONE);
}

um_sink_t um_learning_sink(um_learning_t *learning)
{
    return (um_sink_t){.ctx = learning, .event = on_event, .idle = on_idle};
}

static um_status_t ask_bus_thread(um_learning_t *learning, const um_hinter_t *hinter, um_bus_t *bus,
                                  um_profile_t **out)
{
    uint32_t request = atomic_load(&learning->request);
    bool all;

    if (request == DONE)
        um_profile_free(learning->ours); /* an answer that came too late */
    if (request == NONE || request == DONE) {
        learning->hinter = hinter;
        learning->ours = NULL;
        atomic_store(&learning->request, ASKED);
    }
    all = um_bus_sync_for(bus, UM_LEARNING_WAIT_MS);
    request = ASKED;
    if (atomic_compare_exchange_strong(&learning->request, &request, NONE))
        return all ? UM_OK : UM_ERR_BUSY; /* OK: it does not run */
    if (request != DONE)
        return UM_ERR_BUSY;
    atomic_store(&learning->request, NONE);
    *out = learning->ours;
    return UM_OK;
}

/* What has been saved must not be added again by the next save. */
static void take_as_base(void *ctx, const um_ev_device_t *gpu, const um_ev_learned_t *learned)
{
    um_profile_t *base = ctx;

    um_profile_put(base, gpu ? um_profile_gpu(base, gpu) : UM_PROFILE_NO_GPU, learned);
}

um_status_t um_learning_save(um_learning_t *learning, const um_hinter_t *hinter, um_bus_t *bus)
{
    const um_event_t *on = atomic_load(&learning->on);
    um_profile_run_t run = {.base = learning->base,
                            .gpu = on ? &on->u.device : NULL,
                            .began_ns = learning->began_ns,
                            .now_ns = since_1970_ns()};
    um_status_t status = UM_OK;
    um_profile_t *ours = NULL;
    char error[PATH_MAX + 256];

    pthread_mutex_lock(&learning->saves);
    if (!bus)
        ours = collect(learning, hinter);
    else if ((status = ask_bus_thread(learning, hinter, bus, &ours)) != UM_OK)
        um_log(UM_LOG_WARN, "the profile is not saved: umrt's own thread is held up in the driver");
    run.ours = ours;
    if (ours) {
        status = um_profile_save(learning->path, &run, error, sizeof(error));
        if (status == UM_OK)
            um_profile_each(ours, take_as_base, learning->base);
        else
            um_log(UM_LOG_WARN, "the profile is not saved: %s", error);
    }
    um_profile_free(ours);
    pthread_mutex_unlock(&learning->saves);
    return status;
}
