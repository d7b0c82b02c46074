#include "live.h"

#include <time.h>
#include <unistd.h>

um_live_t um_live;

uint64_t um_live_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool um_live_join(pthread_t thread, const _Atomic bool *done, uint64_t until_ns)
{
    while (!*done && um_live_now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return *done && pthread_join(thread, NULL) == 0;
}

uint32_t um_live_tid(void)
{
    static _Thread_local uint32_t tid;

    if (tid == 0)
        tid = (uint32_t)gettid();
    return tid;
}

um_event_t um_live_event(um_event_type_t type)
{
    return (um_event_t){.time_ns = um_live_now_ns(), .type = type, .tid = um_live_tid()};
}

void um_live_post(const um_event_t *event, bool wake)
{
    um_bus_post(um_live.runtime->bus, event, wake);
}

/* Contexts in which this thread has launched since it last waited; by number, modulo 64. */
static _Thread_local uint64_t um_behind;

static uint64_t um_behind_bit(uint32_t context)
{
    return UINT64_C(1) << context % 64;
}

void um_live_launched(uint32_t context)
{
    um_behind |= um_behind_bit(context);
}

void um_live_waited(uint32_t context)
{
    um_behind &= ~um_behind_bit(context);
}

bool um_live_is_behind(uint32_t context)
{
    return um_behind & um_behind_bit(context);
}

void um_live_catch_up(uint32_t context)
{
    if (!um_live_is_behind(context))
        return;
    um_live_waited(context);
    um_runtime_catch_up(um_live.runtime, context);
}

bool um_live_managed(void)
{
    return um_regions_count(um_live.runtime->regions, UM_FAMILY_MANAGED) != 0;
}

/* CUPTI numbers contexts from 1; device + 1 by number, 0 = not known. A process with more contexts
 * than this asks the driver every time. */
#define UM_CONTEXTS 256
static _Atomic int32_t um_context_device[UM_CONTEXTS];

void um_live_context_is_on(uint32_t context, int32_t device)
{
    if (context && context < UM_CONTEXTS)
        um_context_device[context] = device + 1;
}

int32_t um_live_device(uint32_t context)
{
    CUdevice device = 0;

    if (context < UM_CONTEXTS && um_context_device[context] > 0)
        return um_context_device[context] - 1;
    if (!um_live.cuda->ctx_device)
        return UM_DEVICE_NONE;
    um_cuda_own = true;
    CUresult result = um_live.cuda->ctx_device(&device);
    um_cuda_own = false;
    if (result != CUDA_SUCCESS)
        return UM_DEVICE_NONE;
    um_live_context_is_on(context, device);
    return device;
}
