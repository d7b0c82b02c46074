/*
 * streams.c - streams, events, copies.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include <time.h>

static void wait_for_flag(void *flag)
{
    while (!__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void run_streams(void)
{
    CUstream blocking = NULL, other = NULL, priority = NULL;
    CUevent event, later, untimed;
    CUcontext context = NULL, own = begin();
    unsigned flags = 99;
    int least = 0, greatest = 0, got = 99, go = 0;
    float ms;
    CUdeviceptr p;

    PROBE("cuStreamCreate with flags 2", cuStreamCreate(&other, 2));
    PROBE("cuStreamCreate to NULL", cuStreamCreate(NULL, 0));
    PROBE("cuStreamCreate, blocking", cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    PROBE("cuStreamCreate, not blocking", cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    PROBE("cuStreamGetFlags", cuStreamGetFlags(other, &flags));
    say("the flags", "%u", flags);
    PROBE("cuStreamGetCtx", cuStreamGetCtx(other, &context));
    say("it is ours", "%d", context == own);
    PROBE("cuStreamGetCtx of 0", cuStreamGetCtx(NULL, &context));
    PROBE("cuCtxGetStreamPriorityRange", cuCtxGetStreamPriorityRange(&least, &greatest));
    say("the range", "%d to %d", least, greatest);
    PROBE("cuStreamCreateWithPriority", cuStreamCreateWithPriority(&priority, 0, -1000));
    MUST(cuStreamGetPriority(priority, &got));
    say("out of range it is", "%s", got == greatest ? "the greatest" : "another");
    PROBE("cuStreamDestroy of one with priority", cuStreamDestroy(priority));
    PROBE("cuStreamDestroy of 0", cuStreamDestroy(NULL));
    PROBE("cuStreamDestroy of the legacy one", cuStreamDestroy(CU_STREAM_LEGACY));
    PROBE("cuStreamSynchronize of the legacy one", cuStreamSynchronize(CU_STREAM_LEGACY));
    PROBE("cuStreamSynchronize of the thread's", cuStreamSynchronize(CU_STREAM_PER_THREAD));
    PROBE("cuStreamQuery when idle", cuStreamQuery(other));

    PROBE("cuEventCreate, no such flags", cuEventCreate(&event, 0x80));
    PROBE("cuEventCreate to NULL", cuEventCreate(NULL, 0));
    MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&later, CU_EVENT_BLOCKING_SYNC));
    MUST(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    PROBE("cuEventQuery, never recorded", cuEventQuery(event));
    PROBE("cuEventSynchronize, never recorded", cuEventSynchronize(event));
    PROBE("cuStreamWaitEvent, never recorded", cuStreamWaitEvent(other, event, 0));
    PROBE("cuEventElapsedTime, never recorded", cuEventElapsedTime(&ms, event, later));
    PROBE("cuEventRecord of NULL", cuEventRecord(NULL, other));
    PROBE("cuEventQuery of NULL", cuEventQuery(NULL));
    PROBE("cuEventSynchronize of NULL", cuEventSynchronize(NULL));
    PROBE("cuStreamWaitEvent of NULL", cuStreamWaitEvent(other, NULL, 0));
    PROBE("cuStreamWaitEvent, no such flags", cuStreamWaitEvent(other, event, 0x80));
    PROBE("cuEventDestroy of NULL", cuEventDestroy(NULL));

    CUfunction f = function(ADD_ONE);
    MUST(cuMemAlloc(&p, MIB));
    MUST(add_one(f, p, 1, other)); /* loaded from here on */
    MUST(cuCtxSynchronize());
    MUST(cuEventRecord(event, blocking));
    MUST(cuLaunchHostFunc(blocking, wait_for_flag, &go));
    PROBE("cuEventRecord", cuEventRecord(later, blocking));
    PROBE("cuStreamQuery when busy", cuStreamQuery(blocking));
    PROBE("cuStreamQuery of another", cuStreamQuery(other));
    PROBE("cuEventQuery when pending", cuEventQuery(later));
    PROBE("cuEventElapsedTime when pending", cuEventElapsedTime(&ms, event, later));
    MUST(add_one(f, p, 1, NULL));
    PROBE("cuStreamQuery of 0 behind a blocking one", cuStreamQuery(NULL));
    MUST(add_one(f, p, 1, other));
    PROBE("cuStreamSynchronize of one not blocking", cuStreamSynchronize(other));
    PROBE("cuStreamWaitEvent when pending", cuStreamWaitEvent(other, later, 0));
    PROBE("cuStreamQuery of one that waits", cuStreamQuery(other));
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    PROBE("cuEventSynchronize", cuEventSynchronize(later));
    PROBE("cuEventElapsedTime", cuEventElapsedTime(&ms, event, later));
    PROBE("cuStreamSynchronize", cuStreamSynchronize(blocking));
    MUST(cuEventRecord(untimed, blocking));
    MUST(cuEventSynchronize(untimed));
    PROBE("cuEventElapsedTime, one without timing", cuEventElapsedTime(&ms, event, untimed));
    PROBE("cuEventDestroy", cuEventDestroy(event));
    PROBE("cuStreamDestroy", cuStreamDestroy(other));
    PROBE("cuCtxSynchronize", cuCtxSynchronize());
}

static void run_copies(void)
{
    CUdeviceptr p, q;
    CUdeviceptr to[1], from[1];
    size_t n = 4 * MIB, bytes[1] = {1}, first[1] = {0};
    char *host = calloc(1, n + MIB), *second = calloc(1, n);
    CUcontext context = begin();
    CUstream stream;
    CUmemcpyAttributes attribute = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUDA_MEMCPY2D two = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = host,
                         .srcPitch = 64,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstPitch = 64,
                         .WidthInBytes = 100,
                         .Height = 2};

    MUST(cuMemAlloc(&p, n));
    q = managed(n);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    to[0] = q;
    from[0] = p;
    two.dstDevice = p;
    PROBE("cuMemcpyHtoD", cuMemcpyHtoD(p, host, n));
    PROBE("cuMemcpyHtoD of 0 bytes", cuMemcpyHtoD(p, host, 0));
    PROBE("cuMemcpyHtoD to 0", cuMemcpyHtoD(0, host, 1));
    PROBE("cuMemcpyHtoD to malloc", cuMemcpyHtoD(address(second), host, 1));
    PROBE("cuMemcpyDtoH from managed", cuMemcpyDtoH(host, q, n));
    PROBE("cuMemcpyDtoH from malloc", cuMemcpyDtoH(host, address(second), 1));
    PROBE("cuMemcpyDtoD", cuMemcpyDtoD(q, p, n));
    PROBE("cuMemcpyDtoD from malloc", cuMemcpyDtoD(q, address(second), 1));
    PROBE("cuMemcpy", cuMemcpy(q, p, n));
    PROBE("cuMemcpy of malloc to malloc", cuMemcpy(address(second), address(host), 1));
    PROBE("cuMemcpyAsync", cuMemcpyAsync(q, p, n, stream));
    PROBE("cuMemcpyPeer of itself", cuMemcpyPeer(q, context, p, context, n));
    PROBE("cuMemcpy2D wider than its pitch", cuMemcpy2D(&two));
    two.WidthInBytes = 64;
    PROBE("cuMemcpy2D", cuMemcpy2D(&two));
    PROBE("cuMemcpyBatchAsync",
          cuMemcpyBatchAsync(to, from, bytes, 1, &attribute, first, 1, stream));
    PROBE("cuMemcpyBatchAsync on stream 0",
          cuMemcpyBatchAsync(to, from, bytes, 1, &attribute, first, 1, NULL));
    PROBE("cuMemcpyBatchAsync of none",
          cuMemcpyBatchAsync(to, from, bytes, 0, &attribute, first, 1, stream));
    PROBE("cuMemsetD8", cuMemsetD8(p, 1, n));
    PROBE("cuMemsetD8 of none", cuMemsetD8(p, 1, 0));
    PROBE("cuMemsetD8 of 0", cuMemsetD8(0, 1, 1));
    PROBE("cuMemsetD8 of malloc", cuMemsetD8(address(second), 1, 1));
    PROBE("cuMemsetD32 not aligned", cuMemsetD32(p + 2, 1, 1));
    PROBE("cuMemsetD2D8 wider than its pitch", cuMemsetD2D8(p, 64, 1, 100, 2));
    PROBE("cuMemsetD8 of managed", cuMemsetD8Async(q, 1, n, stream));
    MUST(cuCtxSynchronize());
    PROBE("cuMemcpyHtoD past the end", cuMemcpyHtoD(p, host, n + 1));
    PROBE("cuMemsetD8 past the end", cuMemsetD8(p, 1, n + 1));
    PROBE("all that in the end", cuCtxSynchronize());
}

const section_t um_probes_streams[] = {
    {"streams", run_streams},
    {"copies", run_copies},
    {NULL, NULL},
};
#endif
