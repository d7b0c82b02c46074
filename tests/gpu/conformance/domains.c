/*
 * domains.c - the callback domains that are not the driver's, and records on a clock of the client's.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include "cupti_calls.h"

static struct {
    unsigned runtime, driver;
    char nvtx[512];
} heard;

static void CUPTIAPI on_callback(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data)
{
    const CUpti_NvtxData *nvtx = data;
    size_t used = strlen(heard.nvtx);

    (void)ctx;
    heard.runtime += domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    heard.driver += domain == CUPTI_CB_DOMAIN_DRIVER_API;
    if (domain != CUPTI_CB_DOMAIN_NVTX)
        return;
    const char *const *message = nvtx->functionParams;
    bool named = id == CUPTI_CBID_NVTX_nvtxMarkA || id == CUPTI_CBID_NVTX_nvtxRangePushA;
    snprintf(heard.nvtx + used, sizeof(heard.nvtx) - used, " %s(%s)",
             nvtx->functionName ? nvtx->functionName : "?", named && message ? *message : "");
    used = strlen(heard.nvtx);
    if (nvtx->functionReturnValue && id != CUPTI_CBID_NVTX_nvtxMarkA)
        snprintf(heard.nvtx + used, sizeof(heard.nvtx) - used, "=%d",
                 *(const int *)nvtx->functionReturnValue);
}

/* NVTX as CUPTI sees it: slots for core functions, which it fills in. */
typedef void (*nvtx_fn)(void);
static nvtx_fn mark, push, pop;

static int core_functions(int module, nvtx_fn ***table, unsigned *count)
{
    static nvtx_fn unused, *slots[16];

    if (module != 1)
        return 0;
    for (int i = 0; i < 16; i++)
        slots[i] = &unused;
    slots[2] = &mark;
    slots[9] = &push;
    slots[11] = &pop;
    *table = slots;
    *count = 16;
    return 1;
}

static const void *export_table(uint32_t id)
{
    static const struct {
        size_t bytes;
        int (*functions)(int module, nvtx_fn ***table, unsigned *count);
    } callbacks = {sizeof(callbacks), core_functions};

    return id == 1 ? &callbacks : NULL;
}

static void run_domains(void)
{
    CUpti_SubscriberHandle s = NULL;
    CUpti_CallbackDomain runtime = CUPTI_CB_DOMAIN_RUNTIME_API, nvtx = CUPTI_CB_DOMAIN_NVTX;
    CUdeviceptr p;

    open_cupti();
    MUST(cupti.subscribe(&s, on_callback, NULL));
    PROBE("enable the runtime's", cupti.enable_domain(1, s, runtime));
    PROBE("enable a runtime callback", cupti.enable_callback(1, s, runtime, 31));
    PROBE("enable runtime callback 5000", cupti.enable_callback(1, s, runtime, 5000));
    PROBE("enable NVTX's", cupti.enable_domain(1, s, nvtx));
    PROBE("enable an NVTX callback", cupti.enable_callback(1, s, nvtx, 8));
    PROBE("enable NVTX callback 0", cupti.enable_callback(1, s, nvtx, 0));
    PROBE("enable NVTX callback 5000", cupti.enable_callback(1, s, nvtx, 5000));
    PROBE("enable synchronization's", cupti.enable_domain(1, s, CUPTI_CB_DOMAIN_SYNCHRONIZE));
    PROBE("disable synchronization's", cupti.enable_domain(0, s, CUPTI_CB_DOMAIN_SYNCHRONIZE));
    PROBE("enable state's", cupti.enable_domain(1, s, CUPTI_CB_DOMAIN_STATE));
    PROBE("enable domain 7", cupti.enable_domain(1, s, (CUpti_CallbackDomain)7));
    PROBE("enable domain 0", cupti.enable_domain(1, s, (CUpti_CallbackDomain)0));
    MUST(cupti.enable_callback(1, s, CUPTI_CB_DOMAIN_DRIVER_API,
                               CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2));
    begin();
    MUST(cuMemAlloc(&p, MIB));
    say("driver callbacks of one allocation", "%u", heard.driver);
    say("runtime callbacks without a runtime", "%u", heard.runtime);
    PROBE("begin NVTX", cupti.begin_nvtx(export_table));
    say("functions taken", "%s%s%s", mark ? " mark" : "", push ? " push" : "", pop ? " pop" : "");
    if (mark)
        ((void (*)(const char *))mark)("here");
    if (push)
        say("a push gives", "%d", ((int (*)(const char *))push)("outer"));
    if (pop)
        say("a pop gives", "%d", ((int (*)(void))pop)());
    say("NVTX callbacks", "%s", heard.nvtx);
}

/* ---- whose clock ------------------------------------------------------------------------------------- */

static _Atomic uint64_t ticks = 1000000000;
static uint64_t first_start, last_end;
static unsigned kernels;

static uint64_t CUPTIAPI own_clock(void)
{
    return ++ticks;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *bytes = MIB;
    *buffer = aligned_alloc(8, *bytes);
    *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid)
{
    CUpti_Activity *record = NULL;

    (void)context;
    (void)stream;
    (void)bytes;
    while (cupti.next(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;
            first_start = kernels++ ? first_start : k->start;
            last_end = k->end;
        }
    free(buffer);
}

static void run_own_clock(void)
{
    CUdeviceptr p;
    uint64_t now = 0;

    open_cupti();
    PROBE("no function", cupti.own_clock(NULL));
    PROBE("a function", cupti.own_clock(own_clock));
    MUST(cupti.buffers(give_buffer, take_buffer));
    begin();
    CUfunction f = function(ADD_ONE);
    MUST(cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuMemAlloc(&p, MIB));
    for (int i = 0; i < 2; i++) {
        MUST(add_one(f, p, 1, NULL));
        MUST(cuCtxSynchronize());
    }
    MUST(cupti.flush(1));
    MUST(cupti.timestamp(&now));
    say("it was asked", "%d", ticks > 1000000000);
    say("records", "%u", kernels);
    /* The real time is 10^18 and more; a kernel is no longer than a second. */
    say("they are on that clock", "%d",
        first_start && first_start <= last_end && last_end < 3000000000);
    say("cuptiGetTimestamp too", "%d", now < 3000000000);
}

const section_t um_probes_domains[] = {
    {"domains", run_domains},
    {"own clock", run_own_clock},
    {NULL, NULL},
};
#endif
