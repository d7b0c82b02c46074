/* The CUDA executor against a driver table made for the test: whose context, which stream, which
 * errors, and that the program's side is left as it was. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>

#include "cupti/executor.h"
#include "exec/executor.h"

#define MIB   ((uint64_t)1 << 20)
#define CTX_A ((CUcontext)0xa)
#define CTX_B ((CUcontext)0xb)

/* ---- the driver; in place of cupti/driver.c ---- */

_Thread_local bool um_cuda_own;

typedef struct call {
    CUcontext context;
    CUstream stream;
    uint64_t addr, bytes;
    int32_t device;
    uint32_t kind;
    bool own, relaxed;
} call_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static call_t call[256];
static unsigned n_calls, n_streams, n_destroyed, depth_left;
static CUresult answer;
static _Atomic CUresult query_answer;
static unsigned queries;
static _Thread_local CUcontext stack[8];
static _Thread_local unsigned depth;
static _Thread_local bool relaxed;

static CUresult push(CUcontext context)
{
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *context)
{
    *context = stack[--depth];
    depth_left = depth;
    return CUDA_SUCCESS;
}

static CUresult create(CUstream *stream, unsigned flags)
{
    cr_assert_eq(flags, CU_STREAM_NON_BLOCKING);
    pthread_mutex_lock(&lock);
    *stream = (CUstream)(uintptr_t)(0x100 + ++n_streams);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult destroy(CUstream stream)
{
    (void)stream;
    n_destroyed++;
    return CUDA_SUCCESS;
}

static CUresult info(size_t *free_bytes, size_t *total_bytes)
{
    cr_assert(um_cuda_own);
    cr_assert(relaxed, "a capture elsewhere must not mind");
    cr_assert_eq(stack[depth - 1], CTX_A);
    *free_bytes = 5 * MIB;
    *total_bytes = 6 * MIB;
    return CUDA_SUCCESS;
}

static CUresult capture(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before =
        relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL;

    relaxed = *mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    *mode = before;
    return CUDA_SUCCESS;
}

static CUresult query(CUstream stream)
{
    cr_assert_not_null(stream);
    cr_assert_eq(stack[depth - 1], CTX_A);
    queries++;
    return query_answer;
}

const um_cuda_t *um_cuda(void)
{
    static const um_cuda_t table = {.ctx_push = push,
                                    .ctx_pop = pop,
                                    .stream_create = create,
                                    .stream_destroy = destroy,
                                    .stream_query = query,
                                    .mem_info = info,
                                    .capture_mode = capture};

    return &table;
}

static CUresult note(uint32_t kind, uint64_t addr, uint64_t bytes, int32_t device, CUstream stream)
{
    pthread_mutex_lock(&lock);
    call[n_calls++ % 256] = (call_t){.context = depth ? stack[depth - 1] : NULL,
                                     .stream = stream,
                                     .addr = addr,
                                     .bytes = bytes,
                                     .device = device,
                                     .kind = kind,
                                     .own = um_cuda_own,
                                     .relaxed = relaxed};
    pthread_mutex_unlock(&lock);
    return answer;
}

CUresult um_cuda_prefetch(uint64_t addr, uint64_t bytes, int32_t device, CUstream stream)
{
    return note(UM_HINT_PREFETCH, addr, bytes, device, stream);
}

CUresult um_cuda_advise(uint64_t addr, uint64_t bytes, um_hint_kind_t kind, int32_t device)
{
    return note(kind, addr, bytes, device, NULL);
}

/* ---- the executor ---- */

static um_executor_t *executor;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned told, by[UM_HINT_RESULT_COUNT];
static int32_t last_error;

static void done(void *ctx, const um_hint_t *hint, um_hint_result_t result, int32_t error,
                 uint64_t duration_ns)
{
    (void)ctx;
    (void)hint;
    (void)duration_ns;
    pthread_mutex_lock(&lock);
    told++;
    by[result]++;
    last_error = error;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void start(unsigned workers)
{
    static um_runtime_t runtime;

    runtime.settings.workers = workers;
    cr_assert_eq(um_cuda_executor_new(&runtime, &executor), UM_OK);
    executor->done = done;
    um_cuda_context_is(1, CTX_A);
    um_cuda_context_is(2, CTX_B);
}

static void stop(void)
{
    executor->ops->stop(executor);
    executor->ops->free(executor);
}

static void apply(uint32_t kind, uint64_t addr, uint32_t context)
{
    um_hint_t hint = {.kind = kind, .addr = addr, .bytes = MIB, .device = 3, .who = "test"};
    unsigned before = told;

    cr_assert(executor->ops->submit(executor, &hint, context));
    pthread_mutex_lock(&lock);
    while (told == before)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

Test(cuda_executor, prefetches_in_the_launchs_context_on_a_stream_of_its_own)
{
    start(1);
    apply(UM_HINT_PREFETCH, 7 * MIB, 1);
    apply(UM_HINT_PREFETCH, 8 * MIB, 2);
    apply(UM_HINT_PREFETCH, 9 * MIB, 1);
    cr_assert_eq(n_calls, 3);
    cr_assert_eq(call[0].context, CTX_A);
    cr_assert_eq(call[0].addr, 7 * MIB);
    cr_assert_eq(call[0].bytes, MIB);
    cr_assert_eq(call[0].device, 3);
    cr_assert_eq(call[1].context, CTX_B);
    cr_assert_neq(call[1].stream, call[0].stream);
    cr_assert_eq(call[2].stream, call[0].stream);
    cr_assert_eq(n_streams, 2);
    cr_assert_eq(by[UM_HINT_APPLIED], 3);
    stop();
}

Test(cuda_executor, marks_its_calls_and_minds_no_capture_elsewhere)
{
    start(1);
    apply(UM_HINT_PREFETCH, MIB, 1);
    cr_assert(call[0].own);
    cr_assert(call[0].relaxed);
    cr_assert_eq(depth_left, 0); /* no context stays current */
    cr_assert_not(um_cuda_own);  /* on the program's thread */
    stop();
}

Test(cuda_executor, a_refusal_is_told_with_its_code)
{
    start(1);
    answer = CUDA_ERROR_INVALID_VALUE;
    apply(UM_HINT_PREFETCH, MIB, 1);
    cr_assert_eq(by[UM_HINT_FAILED], 1);
    cr_assert_eq(last_error, CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(n_calls, 1);
    cr_assert(executor->lacks_kinds & 1u << UM_HINT_DISCARD, "that is never given to it");
    stop();
}

Test(cuda_executor, advice_of_every_kind_is_given_in_the_context_without_a_stream)
{
    start(1);
    for (uint32_t kind = UM_HINT_READ_MOSTLY; kind <= UM_HINT_UNSET_ACCESSED_BY; kind++) {
        apply(kind, kind * MIB, 1);
        cr_assert_eq(call[n_calls - 1].kind, kind);
        cr_assert_eq(call[n_calls - 1].addr, kind * MIB);
        cr_assert_eq(call[n_calls - 1].device, 3);
        cr_assert_eq(call[n_calls - 1].context, CTX_A);
        cr_assert(call[n_calls - 1].own);
    }
    cr_assert_eq(n_streams, 0);
    cr_assert_eq(executor->lacks_kinds, 1u << UM_HINT_DISCARD);
    cr_assert_eq(executor->lacks_orders, 1u << UM_ORDER_BEFORE);
    stop();
}

Test(cuda_executor, idle_times_begin_when_what_it_asked_for_has_arrived)
{
    um_hint_t idle = {.kind = UM_HINT_PREFETCH,
                      .order = UM_ORDER_IDLE,
                      .bytes = MIB,
                      .who = "test"};

    start(1);
    apply(UM_HINT_PREFETCH, 7 * MIB, 1);
    query_answer = CUDA_ERROR_NOT_READY;
    cr_assert(executor->ops->submit(executor, &idle, 1));
    apply(UM_HINT_PREFETCH, 8 * MIB, 1); /* overtakes it */
    cr_assert_eq(call[1].addr, 8 * MIB);
    query_answer = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    while (told < 3)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    cr_assert_eq(n_calls, 3);
    cr_assert_gt(queries, 0);
    stop();
}

Test(cuda_executor, what_is_torn_down_is_nobodys_failure)
{
    static const CUresult gone[] = {CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_INVALID_CONTEXT,
                                    CUDA_ERROR_CONTEXT_IS_DESTROYED};

    start(1);
    for (size_t i = 0; i < 3; i++) {
        answer = gone[i];
        apply(UM_HINT_PREFETCH, MIB, 1);
    }
    apply(UM_HINT_PREFETCH, MIB, 99);                  /* a context nobody told of */
    apply(UM_HINT_PREFETCH, MIB, UM_CONTEXTS_MAX + 5); /* nor can be */
    cr_assert_eq(by[UM_HINT_CANCELLED], 5);
    cr_assert_eq(last_error, 0);
    cr_assert_eq(n_calls, 3);
    stop();
}

Test(cuda_executor, a_context_without_a_number_gets_nothing)
{
    start(1);
    um_cuda_context_is(0, CTX_A);
    apply(UM_HINT_PREFETCH, MIB, 0);
    cr_assert_eq(by[UM_HINT_CANCELLED], 1);
    cr_assert_eq(n_calls, 0);
    stop();
}

Test(cuda_executor, streams_go_with_their_context)
{
    start(1);
    apply(UM_HINT_PREFETCH, MIB, 1);
    apply(UM_HINT_PREFETCH, MIB, 2);
    executor->ops->cancel_context(executor, 1);
    cr_assert_null(um_cuda_context(1));
    cr_assert_eq(um_cuda_context(2), CTX_B);
    apply(UM_HINT_PREFETCH, MIB, 2);
    cr_assert_eq(n_streams, 2);
    executor->ops->cancel_context(executor, 0); /* all: a primary context was reset */
    apply(UM_HINT_PREFETCH, MIB, 2);
    cr_assert_eq(n_streams, 3);
    cr_assert_eq(n_destroyed, 0); /* the driver has destroyed them with the context */
    stop();
}

Test(cuda_executor, more_contexts_than_streams_are_kept_for)
{
    start(1);
    for (uint32_t context = 1; context <= 20; context++) {
        um_cuda_context_is(context, CTX_A);
        apply(UM_HINT_PREFETCH, MIB, context);
    }
    cr_assert_eq(by[UM_HINT_APPLIED], 16);
    cr_assert_eq(by[UM_HINT_CANCELLED], 4);
    cr_assert_eq(n_destroyed, 4);
    stop();
}

Test(cuda_executor, tells_free_memory_of_the_context)
{
    uint64_t free = 0, total = 0;

    start(2);
    cr_assert(executor->ops->free_bytes(executor, 1, &free, &total));
    cr_assert_eq(free, 5 * MIB);
    cr_assert_eq(total, 6 * MIB);
    cr_assert_eq(depth_left, 0);
    cr_assert_not(um_cuda_own);
    cr_assert_not(relaxed, "the thread's mode is as it was");
    cr_assert_not(executor->ops->free_bytes(executor, 99, &free, &total));
    stop();
}
