/* The jobs of a measured program, step by step as a workload. */
#include "jobs.h"

#include <stdio.h>
#include <string.h>

#define MAIN_TID   1u            /* racers follow */
#define STREAM     UINT64_C(16)  /* handle of stream 0; below are CUDA's special values */
#define RACER      UINT64_C(256) /* handle of the first racer's stream */
#define FIRST_ADDR UINT64_C(0x700000000000)
#define GAP_BYTES  ((uint64_t)UM_BLOCK_BYTES) /* between regions */

const char *const um_job_kind_names[] = {"host", "kernel", "prefetch", "advise", "sync", NULL};
const char *const um_job_host_names[] = {"read", "write", NULL};
const char *const um_job_kernel_names[] = {"update", "read", "write", "copy", "gather", NULL};
const char *const um_job_advice_names[] = {"read_mostly", "preferred_location", "accessed_by",
                                           NULL};

static const uint32_t advice_kinds[] = {UM_HINT_READ_MOSTLY, UM_HINT_PREFERRED_LOCATION,
                                        UM_HINT_ACCESSED_BY};

#define POINTER(at)                                                                                \
    {                                                                                              \
        (at), 8, UM_PARAM_POINTER                                                                  \
    }
#define CONST_POINTER(at)                                                                          \
    {                                                                                              \
        (at), 8, UM_PARAM_POINTER | UM_PARAM_CONST_POINTER                                         \
    }
#define VALUE(at, size)                                                                            \
    {                                                                                              \
        (at), (size), 0                                                                            \
    }

/* As bench/backtest_ops.h declares them. */
static const struct {
    const char *mangled;
    bool reads, writes, writes_other; /* through the first pointer; through the second */
    uint32_t n_params;
    um_param_t params[4];
} kernels[UM_JOB_KERNELS] = {
    [UM_JOB_UPDATE] =
        {"_Z8k_updatePfmi", true, true, false, 3, {POINTER(0), VALUE(8, 8), VALUE(16, 4)}},
    [UM_JOB_READ] = {"_Z6k_readPKfmiPf",
                     true,
                     false,
                     false,
                     4,
                     {CONST_POINTER(0), VALUE(8, 8), VALUE(16, 4), POINTER(24)}},
    [UM_JOB_WRITE] =
        {"_Z7k_writePfmi", false, true, false, 3, {POINTER(0), VALUE(8, 8), VALUE(16, 4)}},
    [UM_JOB_COPY] = {"_Z6k_copyPKfPfmi",
                     true,
                     false,
                     true,
                     4,
                     {CONST_POINTER(0), POINTER(8), VALUE(16, 8), VALUE(24, 4)}},
    [UM_JOB_GATHER] =
        {"_Z8k_gatherPKfmPf", true, false, false, 3, {CONST_POINTER(0), VALUE(8, 8), POINTER(16)}},
};

typedef struct maker {
    const um_job_program_t *program;
    um_workload_builder_t *builder;
    uint64_t addr[UM_JOB_REGIONS_MAX];
    uint64_t time_ns; /* only counts: the order is what matters */
    uint32_t sync, correlation;
} maker_t;

static um_status_t put(maker_t *maker, um_event_t event, uint64_t cpu_ns, uint64_t compute_ns)
{
    event.time_ns = ++maker->time_ns;
    if (!event.tid)
        event.tid = MAIN_TID;
    return um_workload_builder_step(maker->builder, &event, cpu_ns, compute_ns);
}

static um_status_t touch(maker_t *maker, uint32_t region, uint64_t at, uint64_t bytes,
                         um_access_kind_t kind, bool beside)
{
    um_touch_t t = {.addr = maker->addr[region] + at, .bytes = bytes, .region = region + 1};

    t.kind = (uint8_t)kind;
    t.beside = beside;
    return um_workload_builder_touch(maker->builder, &t);
}

static um_status_t begin(maker_t *maker)
{
    const um_job_program_t *program = maker->program;
    um_event_t device = {.type = UM_EV_DEVICE};
    um_event_t nothing = {.type = UM_EV_LAUNCH};
    uint64_t addr = FIRST_ADDR;
    um_status_t status;

    nothing.u.launch = (um_ev_launch_t){.correlation = ++maker->correlation,
                                        .kernel = UM_JOB_READ + 1,
                                        .stream = STREAM,
                                        .grid = {1, 1, 1},
                                        .block = {1, 1, 1}};
    device.u.device =
        (um_ev_device_t){.attributes = UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED,
                         .name = program->gpu,
                         .uuid = "",
                         .pci = ""};
    status = put(maker, device, 0, 0);
    for (uint32_t i = 0; status == UM_OK && i < UM_JOB_KERNELS; i++) {
        um_event_t kernel = {.type = UM_EV_KERNEL};
        kernel.u.kernel = (um_ev_kernel_t){.kernel = i + 1,
                                           .name = kernels[i].mangled,
                                           .n_params = kernels[i].n_params,
                                           .layout_known = 1,
                                           .params = kernels[i].params};
        status = put(maker, kernel, 0, 0);
    }
    for (uint32_t i = 0; status == UM_OK && i < program->n_regions; i++) {
        um_event_t alloc = {.type = UM_EV_REGION_ALLOC};
        alloc.u.region_alloc = (um_ev_region_alloc_t){.region = i + 1,
                                                      .family = UM_FAMILY_MANAGED,
                                                      .addr = addr,
                                                      .bytes = program->region_bytes[i],
                                                      .device = UM_DEVICE_NONE,
                                                      .flags = UM_REGION_ATTACH_GLOBAL};
        maker->addr[i] = addr;
        addr += (program->region_bytes[i] + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES +
                GAP_BYTES;
        status = put(maker, alloc, 0, 0);
    }
    /* A workload has a launch, a set-up need not: one that touches nothing, in both alike. */
    if (status == UM_OK)
        status = put(maker, nothing, 0, 0);
    return status;
}

static um_status_t hint(maker_t *maker, const um_job_t *job, um_hint_kind_t kind, int32_t device,
                        uint64_t at, uint64_t bytes, uint32_t tid, uint64_t stream)
{
    um_event_t event = {.type = UM_EV_HINT, .tid = tid};

    event.u.hint = (um_ev_hint_t){.kind = kind,
                                  .result = UM_HINT_APPLIED,
                                  .addr = maker->addr[job->region] + at,
                                  .bytes = bytes,
                                  .device = device,
                                  .region = job->region + 1,
                                  .stream = stream,
                                  .who = "app",
                                  .why = ""};
    return put(maker, event, 0, 0);
}

static um_status_t prefetch(maker_t *maker, const um_job_t *job, uint64_t step, int32_t device)
{
    const um_job_program_t *program = maker->program;
    um_status_t status = UM_OK;

    for (uint64_t i = 0, at = 0; status == UM_OK && at < job->bytes; i++, at += step) {
        uint32_t racer = job->race ? (uint32_t)(i % program->racers) : 0;
        uint64_t bytes = job->bytes - at < step ? job->bytes - at : step;
        status = hint(maker, job, UM_HINT_PREFETCH, device, job->at + at, bytes,
                      job->race ? MAIN_TID + 1 + racer : MAIN_TID,
                      job->race ? RACER + racer : STREAM + job->stream);
    }
    return status;
}

/* bench/backtest_ops.h has the same function. */
static uint64_t gather_page(uint64_t i, uint64_t pages)
{
    uint64_t h = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);

    h = (h ^ h >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return (h ^ h >> 32) % pages;
}

static um_status_t launch(maker_t *maker, const um_job_t *job)
{
    um_event_t event = {.type = UM_EV_LAUNCH};
    um_arg_t args[2] = {{.region = job->region + 1, .region_offset_bytes = job->at},
                        {.slot = 1, .region = job->other + 1, .region_offset_bytes = job->at}};
    uint64_t pages = job->bytes / UM_PAGE_BYTES;
    bool gather = job->what == UM_JOB_GATHER;
    um_status_t status;

    event.u.launch = (um_ev_launch_t){.correlation = ++maker->correlation,
                                      .kernel = job->what + 1,
                                      .stream = STREAM + job->stream,
                                      .grid = {gather ? (uint32_t)(pages / 100)
                                                      : (uint32_t)((job->bytes / 4 + 255) / 256),
                                               1, 1},
                                      .block = {gather ? 32 : 256, 1, 1},
                                      .n_args = kernels[job->what].writes_other ? 2 : 1,
                                      .args = args};
    status = put(maker, event, 0, job->ns);
    for (uint64_t i = 0; gather && status == UM_OK && i < pages / 100; i++)
        status = touch(maker, job->region, job->at + gather_page(i, pages) * UM_PAGE_BYTES,
                       UM_PAGE_BYTES, UM_ACCESS_READ, false);
    if (gather || status != UM_OK)
        return status;
    if (kernels[job->what].reads)
        status = touch(maker, job->region, job->at, job->bytes, UM_ACCESS_READ, false);
    if (status == UM_OK && kernels[job->what].writes)
        status = touch(maker, job->region, job->at, job->bytes, UM_ACCESS_WRITE,
                       kernels[job->what].reads);
    if (status == UM_OK && kernels[job->what].writes_other)
        status = touch(maker, job->other, job->at, job->bytes, UM_ACCESS_WRITE, true);
    return status;
}

static um_status_t host(maker_t *maker, const um_job_t *job)
{
    um_access_kind_t kind = job->what ? UM_ACCESS_WRITE : UM_ACCESS_READ;
    um_status_t status = um_workload_builder_step(maker->builder, NULL, job->ns, 0);

    if (job->step <= UM_PAGE_BYTES)
        return status == UM_OK ? touch(maker, job->region, job->at, job->bytes, kind, false)
                               : status;
    for (uint64_t at = 0; status == UM_OK && at < job->bytes; at += job->step)
        status = touch(maker, job->region, (job->at + at) & ~(uint64_t)(UM_PAGE_BYTES - 1),
                       UM_PAGE_BYTES, kind, false);
    return status;
}

static um_status_t wait(maker_t *maker)
{
    um_event_t event = {.type = UM_EV_SYNC};

    event.u.sync = (um_ev_sync_t){.sync = ++maker->sync, .kind = UM_SYNC_DEVICE};
    return put(maker, event, 0, 0);
}

static um_status_t carry_out(maker_t *maker, const um_job_list_t *list)
{
    um_status_t status = UM_OK;

    for (size_t i = 0; status == UM_OK && i < list->n; i++) {
        const um_job_t *job = &list->jobs[i];
        switch ((um_job_kind_t)job->kind) {
        case UM_JOB_HOST:
            status = host(maker, job);
            break;
        case UM_JOB_KERNEL:
            status = launch(maker, job);
            break;
        case UM_JOB_PREFETCH:
            status = prefetch(maker, job, job->step, job->device);
            break;
        case UM_JOB_ADVISE:
            status = hint(maker, job, advice_kinds[job->what], job->device, job->at, job->bytes,
                          MAIN_TID, 0);
            break;
        case UM_JOB_SYNC:
            status = wait(maker);
            break;
        }
        /* after the step that it races with: steps start in the order of the list */
        if (status == UM_OK && job->race)
            status = prefetch(maker, job, maker->program->piece_bytes,
                              job->kind == UM_JOB_HOST ? UM_DEVICE_HOST : 0);
    }
    return status;
}

um_status_t um_job_workload(const um_job_program_t *program, uint32_t warm, uint32_t rounds,
                            um_workload_t **out, char *error, size_t error_bytes)
{
    maker_t maker = {.program = program};
    um_workload_t *workload;
    um_status_t status;

    status = um_workload_builder_new(UM_WORKLOAD_GENERATED, program->name, &maker.builder);
    if (status != UM_OK) {
        snprintf(error, error_bytes, "%s: %s", program->name, um_status_string(status));
        return status;
    }
    status = begin(&maker);
    if (status == UM_OK)
        status = carry_out(&maker, &program->setup);
    if (status == UM_OK)
        status = wait(&maker);
    for (uint32_t i = 0; status == UM_OK && i < rounds; i++) {
        status = carry_out(&maker, &program->body);
        if (status == UM_OK && (i + 1 == warm || i + 1 == rounds))
            status = wait(&maker);
    }
    if (status != UM_OK)
        snprintf(error, error_bytes, "%s: %s", program->name, um_status_string(status));
    um_status_t finished =
        um_workload_builder_finish(maker.builder, &workload, status == UM_OK ? error : NULL,
                                   status == UM_OK ? error_bytes : 0);
    if (status == UM_OK && finished == UM_OK)
        *out = workload;
    else if (finished == UM_OK)
        um_workload_free(workload);
    return status == UM_OK ? finished : status;
}
