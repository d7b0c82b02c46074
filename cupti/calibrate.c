/* Small programs carried out and timed on a GPU. One thread. */
#include "sim/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"

#define MIB                       ((uint64_t)1 << 20)
#define REPETITIONS               5   /* after one that warms up */
#define CALLS                     200 /* in a row, of what is timed by the call */
#define TRANSFER_MOST             (64 * MIB)
#define MANAGED_LIMIT             (2048 * MIB)
#define ADVICE_READ_MOSTLY        1 /* CU_MEM_ADVISE_SET_... */
#define ADVICE_PREFERRED_LOCATION 3
#define ADVICE_ACCESSED_BY        5

/* a[i] for i < n, front to back, one float a thread. "m" reads, "w" writes, both update. */
#define KERNEL_PTX(name, body)                                                                     \
    ".visible .entry " name "(.param .u64 a, .param .u64 n, .param .u64 never)\n"                  \
    "{\n"                                                                                          \
    " .reg .pred %p<2>; .reg .b32 %r<3>; .reg .f32 %f<2>; .reg .b64 %d<5>;\n"                      \
    " ld.param.u64 %d0, [a]; ld.param.u64 %d1, [n]; ld.param.u64 %d4, [never];\n"                  \
    " mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"                         \
    " mul.wide.u32 %d2, %r0, %r1; cvt.u64.u32 %d3, %r2; add.u64 %d2, %d2, %d3;\n"                  \
    " setp.ge.u64 %p0, %d2, %d1; @%p0 ret;\n"                                                      \
    " shl.b64 %d2, %d2, 2; add.u64 %d0, %d0, %d2;\n" body " ret;\n"                                \
    "}\n"

/* A read that nothing depends on would be dropped: it decides about a store that never happens. */
static const char ptx[] = ".version 6.3\n.target sm_70\n.address_size 64\n" KERNEL_PTX(
    "update", " ld.global.f32 %f0, [%d0]; add.f32 %f0, %f0, 0f3F800000;"
              " st.global.f32 [%d0], %f0;\n")
    KERNEL_PTX("read", " ld.global.f32 %f0, [%d0]; setp.eq.f32 %p1, %f0, 0fC640E400;"
                       " @%p1 st.global.f32 [%d4], %f0;\n")
        KERNEL_PTX("write", " cvt.rn.f32.u64 %f0, %d2; st.global.f32 [%d0], %f0;\n");

static const char *const ptx_names[] = {
    [UM_JOB_UPDATE] = "update", [UM_JOB_READ] = "read", [UM_JOB_WRITE] = "write"};
#define KERNELS (sizeof ptx_names / sizeof ptx_names[0])

typedef struct calibrate {
    const um_cuda_t *cuda;
    int32_t device;
    CUdevice handle;
    CUcontext context;
    CUstream stream;
    CUevent from, to;
    CUmodule module;
    CUfunction kernel[KERNELS];
    CUdeviceptr scratch, never; /* device memory: two times TRANSFER_MOST */
    void *pinned, *pageable;
    uint64_t addr[UM_JOB_REGIONS_MAX]; /* of the program being carried out, 0 = none */
    uint64_t managed;
    char name[64], why[160];
} calibrate_t;

static volatile uint64_t host_sum;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static um_status_t check(calibrate_t *c, CUresult result, const char *call)
{
    const char *name = NULL;

    if (result == CUDA_SUCCESS)
        return UM_OK;
    if (!c->cuda->error_name || c->cuda->error_name(result, &name) != CUDA_SUCCESS)
        name = NULL;
    snprintf(c->why, sizeof c->why, "%s: %s", call, name ? name : "unknown error");
    return UM_ERR_UNSUPPORTED;
}

#define CALL(c, member, ...)                                                                       \
    do {                                                                                           \
        um_status_t call_status =                                                                  \
            check((c),                                                                             \
                  (c)->cuda->member ? (c)->cuda->member(__VA_ARGS__) : CUDA_ERROR_NOT_SUPPORTED,   \
                  #member);                                                                        \
        if (call_status != UM_OK)                                                                  \
            return call_status;                                                                    \
    } while (0)
#define TRY(call)                                                                                  \
    do {                                                                                           \
        um_status_t try_status = (call);                                                           \
        if (try_status != UM_OK)                                                                   \
            return try_status;                                                                     \
    } while (0)

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static uint64_t median(uint64_t *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

/* ---- jobs ---- */

static void host_access(const um_job_t *job, char *start)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < job->bytes; i += job->step) {
        if (job->what == UM_JOB_HOST_WRITE)
            *(volatile uint64_t *)(start + i) = i;
        else
            sum += *(volatile uint64_t *)(start + i);
    }
    host_sum += sum;
}

static um_status_t launch(calibrate_t *c, const um_job_t *job, uint64_t addr)
{
    uint64_t n = job->bytes / 4, never = c->never;
    void *params[] = {&addr, &n, &never};
    unsigned grid = (unsigned)(n / 256 ? n / 256 : 1);

    if (job->what >= KERNELS)
        return check(c, CUDA_ERROR_NOT_FOUND, "kernel");
    CALL(c, launch, c->kernel[job->what], grid, 1, 1, 256, 1, 1, 0, c->stream, params, NULL);
    return UM_OK;
}

static um_status_t advise(calibrate_t *c, const um_job_t *job, uint64_t addr)
{
    static const int advices[] = {[UM_JOB_READ_MOSTLY] = ADVICE_READ_MOSTLY,
                                  [UM_JOB_PREFERRED_LOCATION] = ADVICE_PREFERRED_LOCATION,
                                  [UM_JOB_ACCESSED_BY] = ADVICE_ACCESSED_BY};
    CUmem_advise advice = (CUmem_advise)advices[job->what];

    if (c->cuda->mem_advise_v2) {
        um_location_t where = {UM_LOCATION_DEVICE, c->device};
        if (job->device == UM_DEVICE_HOST)
            where = (um_location_t){UM_LOCATION_HOST, 0};
        CALL(c, mem_advise_v2, addr, job->bytes, advice, where);
        return UM_OK;
    }
    CALL(c, mem_advise, addr, job->bytes, advice,
         job->device == UM_DEVICE_HOST ? CU_DEVICE_CPU : c->handle);
    return UM_OK;
}

static um_status_t prefetch(calibrate_t *c, uint64_t addr, uint64_t bytes, uint64_t step,
                            int32_t device)
{
    for (uint64_t at = 0; at < bytes; at += step)
        TRY(check(c,
                  um_cuda_prefetch(addr + at, bytes - at < step ? bytes - at : step,
                                   device == UM_DEVICE_HOST ? UM_DEVICE_HOST : c->device,
                                   c->stream),
                  "cuMemPrefetchAsync"));
    return UM_OK;
}

static um_status_t carry_out(calibrate_t *c, const um_job_list_t *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const um_job_t *job = &list->jobs[i];
        uint64_t addr = c->addr[job->region] + job->at;
        switch ((um_job_kind_t)job->kind) {
        case UM_JOB_HOST:
            host_access(job, (char *)(uintptr_t)addr);
            break;
        case UM_JOB_KERNEL:
            TRY(launch(c, job, addr));
            break;
        case UM_JOB_PREFETCH:
            TRY(prefetch(c, addr, job->bytes, job->step, job->device));
            break;
        case UM_JOB_ADVISE:
            TRY(advise(c, job, addr));
            break;
        case UM_JOB_SYNC:
            CALL(c, stream_sync, c->stream);
            break;
        }
    }
    return UM_OK;
}

/* ---- a program ---- */

static um_status_t give_back(calibrate_t *c, const um_job_program_t *program)
{
    um_status_t status = UM_OK;

    for (uint32_t i = 0; i < program->n_regions; i++) {
        if (!c->addr[i])
            continue;
        if (status == UM_OK)
            status = check(c, c->cuda->mem_free(c->addr[i]), "cuMemFree");
        c->managed -= program->region_bytes[i];
        c->addr[i] = 0;
    }
    return status;
}

static um_status_t take(calibrate_t *c, const um_job_program_t *program)
{
    size_t free_bytes, total_bytes;

    for (uint32_t i = 0; i < program->n_regions; i++) {
        CUdeviceptr addr;
        CALL(c, mem_info, &free_bytes, &total_bytes);
        if (c->managed + program->region_bytes[i] > MANAGED_LIMIT ||
            program->region_bytes[i] > free_bytes / 4)
            return check(c, CUDA_ERROR_OUT_OF_MEMORY, "managed memory");
        CALL(c, mem_alloc_managed, &addr, program->region_bytes[i], CU_MEM_ATTACH_GLOBAL);
        c->addr[i] = addr;
        c->managed += program->region_bytes[i];
    }
    return UM_OK;
}

static um_status_t repetition(calibrate_t *c, const um_job_program_t *program, uint64_t *out_ns)
{
    um_status_t status = take(c, program), freed;
    uint64_t start = 0;

    if (status == UM_OK)
        status = carry_out(c, &program->setup);
    if (status == UM_OK)
        status = check(c, c->cuda->stream_sync(c->stream), "cuStreamSynchronize");
    start = now_ns();
    if (status == UM_OK)
        status = carry_out(c, &program->body);
    if (status == UM_OK)
        status = check(c, c->cuda->stream_sync(c->stream), "cuStreamSynchronize");
    *out_ns = now_ns() - start;
    freed = give_back(c, program);
    return status == UM_OK ? freed : status;
}

static um_status_t own_time(calibrate_t *c, um_job_t *job)
{
    uint64_t addr = c->addr[job->region] + job->at, ns[REPETITIONS], start;

    TRY(prefetch(c, addr, job->bytes, 32 * MIB, job->kind == UM_JOB_HOST ? UM_DEVICE_HOST : 0));
    CALL(c, stream_sync, c->stream);
    for (int i = -1; i < REPETITIONS; i++) {
        float took_ms = 0;
        start = now_ns();
        if (job->kind == UM_JOB_HOST) {
            host_access(job, (char *)(uintptr_t)addr);
        } else {
            TRY(launch(c, job, addr)); /* keeps the GPU busy while the next calls are made */
            CALL(c, event_record, c->from, c->stream);
            TRY(launch(c, job, addr));
            CALL(c, event_record, c->to, c->stream);
            CALL(c, event_sync, c->to);
            CALL(c, event_elapsed, &took_ms, c->from, c->to);
        }
        if (i >= 0)
            ns[i] = job->kind == UM_JOB_HOST ? now_ns() - start : (uint64_t)(took_ms * 1e6f);
    }
    job->ns = median(ns, REPETITIONS);
    return UM_OK;
}

static um_status_t measure(void *ctx, um_job_program_t *program, uint64_t *out_ns)
{
    calibrate_t *c = ctx;
    uint64_t ns[REPETITIONS];
    um_status_t status = take(c, program), freed;

    for (size_t i = 0; status == UM_OK && i < program->body.n; i++) {
        um_job_t *job = &program->body.jobs[i];
        if (job->kind == UM_JOB_HOST || job->kind == UM_JOB_KERNEL)
            status = own_time(c, job);
    }
    freed = give_back(c, program);
    status = status == UM_OK ? freed : status;
    for (int i = -1; status == UM_OK && i < REPETITIONS; i++)
        status = repetition(c, program, &ns[i < 0 ? 0 : i]);
    if (status == UM_OK)
        *out_ns = median(ns, REPETITIONS);
    return status;
}

/* ---- calls and transfers ---- */

static um_status_t one_call(calibrate_t *c, um_calibrate_call_t call, uint64_t *ns)
{
    um_job_t nothing = {.kind = UM_JOB_KERNEL, .what = UM_JOB_WRITE};
    CUdeviceptr addr;
    uint64_t start;

    if (call == UM_CALIBRATE_ALLOC || call == UM_CALIBRATE_FREE) {
        start = now_ns();
        CALL(c, mem_alloc_managed, &addr, 2 * MIB, CU_MEM_ATTACH_GLOBAL);
        *ns = now_ns() - start;
        start = now_ns();
        CALL(c, mem_free, addr);
        if (call == UM_CALIBRATE_FREE)
            *ns = now_ns() - start;
        return UM_OK;
    }
    start = now_ns();
    if (call != UM_CALIBRATE_SYNC)
        TRY(launch(c, &nothing, c->scratch));
    if (call != UM_CALIBRATE_LAUNCH)
        CALL(c, stream_sync, c->stream);
    *ns = now_ns() - start;
    return UM_OK;
}

static um_status_t time_call(void *ctx, um_calibrate_call_t call, uint64_t *out_ns)
{
    calibrate_t *c = ctx;
    uint64_t ns[CALLS];

    for (int i = 0; i < CALLS; i++)
        TRY(one_call(c, call, &ns[i]));
    CALL(c, stream_sync, c->stream);
    *out_ns = median(ns, CALLS);
    return UM_OK;
}

static um_status_t one_transfer(calibrate_t *c, um_calibrate_transfer_t transfer, uint64_t bytes)
{
    switch (transfer) {
    case UM_CALIBRATE_TO_DEVICE:
        CALL(c, copy_to_device, c->scratch, c->pinned, bytes, c->stream);
        break;
    case UM_CALIBRATE_TO_HOST:
        CALL(c, copy_to_host, c->pinned, c->scratch, bytes, c->stream);
        break;
    case UM_CALIBRATE_PAGEABLE:
        CALL(c, copy_to_device, c->scratch, c->pageable, bytes, c->stream);
        break;
    default:
        CALL(c, copy_inside, c->scratch, c->scratch + TRANSFER_MOST, bytes, c->stream);
        break;
    }
    return UM_OK;
}

/* As many in a row as make 64 MiB, at most 256: what each adds, not how long the first takes. */
static um_status_t time_transfer(void *ctx, um_calibrate_transfer_t transfer, uint64_t bytes,
                                 uint64_t *out_ns)
{
    calibrate_t *c = ctx;
    uint64_t n = TRANSFER_MOST / bytes < 256 ? TRANSFER_MOST / bytes : 256, ns[REPETITIONS], start;

    if (bytes == 0 || n == 0)
        return check(c, CUDA_ERROR_INVALID_VALUE, "transfer");
    for (int i = -1; i < REPETITIONS; i++) {
        start = now_ns();
        for (uint64_t k = 0; k < n; k++)
            TRY(one_transfer(c, transfer, bytes));
        CALL(c, stream_sync, c->stream);
        ns[i < 0 ? 0 : i] = (now_ns() - start) / n;
    }
    *out_ns = median(ns, REPETITIONS);
    return UM_OK;
}

/* ---- opening ---- */

static um_status_t prepare(calibrate_t *c)
{
    CALL(c, stream_create, &c->stream, CU_STREAM_NON_BLOCKING);
    CALL(c, event_create, &c->from, CU_EVENT_DEFAULT);
    CALL(c, event_create, &c->to, CU_EVENT_DEFAULT);
    CALL(c, module_load, &c->module, ptx);
    for (size_t i = 0; i < KERNELS; i++)
        CALL(c, module_function, &c->kernel[i], c->module, ptx_names[i]);
    CALL(c, mem_alloc, &c->scratch, 2 * TRANSFER_MOST);
    CALL(c, mem_alloc, &c->never, 4);
    CALL(c, host_alloc, &c->pinned, TRANSFER_MOST, 0);
    memset(c->pinned, 1, TRANSFER_MOST);
    c->pageable = calloc(1, TRANSFER_MOST);
    if (!c->pageable)
        return UM_ERR_NO_MEMORY;
    memset(c->pageable, 1, TRANSFER_MOST);
    return UM_OK;
}

static um_status_t enter(calibrate_t *c, size_t *free_bytes, size_t *total_bytes)
{
    CALL(c, primary_retain, &c->context, c->handle);
    CALL(c, ctx_push, c->context);
    CALL(c, mem_info, free_bytes, total_bytes);
    return UM_OK;
}

static um_status_t refuse(um_calibrate_gpu_t *gpu, char *error, size_t error_bytes,
                          um_status_t status, const char *reason)
{
    snprintf(error, error_bytes, "%s", reason);
    um_calibrate_close(gpu);
    return status;
}

um_status_t um_calibrate_open(int32_t device, um_calibrate_gpu_t *out, char *error,
                              size_t error_bytes)
{
    calibrate_t *c = calloc(1, sizeof *c);
    size_t free_bytes = 0, total_bytes = 0;
    int n = 0, value = 0;

    *out = (um_calibrate_gpu_t){.ctx = c,
                                .measure = measure,
                                .call = time_call,
                                .transfer = time_transfer};
    if (!c)
        return refuse(out, error, error_bytes, UM_ERR_NO_MEMORY,
                      um_status_string(UM_ERR_NO_MEMORY));
    um_cuda_own = true; /* until closed: a library of ours in this process need not look */
    c->cuda = um_cuda();
    c->device = device;
    if (!c->cuda->library)
        return refuse(out, error, error_bytes, UM_ERR_UNSUPPORTED, um_cuda_reason());
    if (c->cuda->init(0) != CUDA_SUCCESS || c->cuda->device_count(&n) != CUDA_SUCCESS || n == 0)
        return refuse(out, error, error_bytes, UM_ERR_UNSUPPORTED, "there is no GPU here");
    if (device < 0 || device >= n || c->cuda->device_get(&c->handle, device) != CUDA_SUCCESS) {
        snprintf(c->why, sizeof c->why, "there is no GPU %d, only 0 to %d", device, n - 1);
        return refuse(out, error, error_bytes, UM_ERR_INVALID, c->why);
    }
    if (c->cuda->device_attribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                                  c->handle) != CUDA_SUCCESS ||
        !value)
        return refuse(out, error, error_bytes, UM_ERR_UNSUPPORTED,
                      "concurrentManagedAccess is 0 (WSL, vGPU, Jetson or a GPU before Pascal): "
                      "pages do not move by faults there");
    if (c->cuda->device_attribute(&value,
                                  CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
                                  c->handle) == CUDA_SUCCESS)
        out->coherent = value != 0;
    if (c->cuda->device_name)
        c->cuda->device_name(c->name, sizeof c->name - 1, c->handle);
    if (enter(c, &free_bytes, &total_bytes) != UM_OK)
        return refuse(out, error, error_bytes, UM_ERR_UNSUPPORTED, c->why);
    if (free_bytes < MANAGED_LIMIT) {
        snprintf(c->why, sizeof c->why, "GPU %d has %zu MiB free, calibration needs 2,048", device,
                 free_bytes >> 20);
        return refuse(out, error, error_bytes, UM_ERR_UNSUPPORTED, c->why);
    }
    if (prepare(c) != UM_OK)
        return refuse(out, error, error_bytes, UM_ERR_UNSUPPORTED, c->why);
    out->name = c->name;
    out->memory_bytes = total_bytes;
    return UM_OK;
}

void um_calibrate_close(um_calibrate_gpu_t *gpu)
{
    calibrate_t *c = gpu->ctx;

    if (c && c->context) {
        const um_cuda_t *cuda = c->cuda;
        if (c->scratch)
            cuda->mem_free(c->scratch);
        if (c->never)
            cuda->mem_free(c->never);
        if (c->pinned)
            cuda->host_free(c->pinned);
        if (c->module)
            cuda->module_unload(c->module);
        if (c->from)
            cuda->event_destroy(c->from);
        if (c->to)
            cuda->event_destroy(c->to);
        if (c->stream)
            cuda->stream_destroy(c->stream);
        cuda->ctx_pop(&c->context);
        cuda->primary_release(c->handle);
    }
    if (c)
        free(c->pageable);
    free(c);
    gpu->ctx = NULL;
    um_cuda_own = false;
}

const char *um_calibrate_why(const um_calibrate_gpu_t *gpu)
{
    const calibrate_t *c = gpu->ctx;

    return c ? c->why : "";
}
