/*
 * cupti_callbacks.c - the callback half of the software CUPTI: who subscribes, what is enabled, calling back.
 */
#include "client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DOMAINS     8
#define IDS         1024
#define SUBSCRIBERS 4

_Thread_local CUptiResult sg_last_error;

typedef struct CUpti_Subscriber_st {
    CUpti_CallbackFunc fn;
    void *ctx;
    char name[64];
    uint8_t enabled[DOMAINS][IDS];
} subscriber_t;

static subscriber_t *subscribers[SUBSCRIBERS]; /* published whole; those that left are not freed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* CUpti_SubscriberParams of 13.0, for headers that lack it. */
typedef struct params {
    size_t bytes;
    const char *name;
    char *old_name;
    size_t old_name_bytes;
} params_t;

static const struct {
    int version; /* of CUDA: this and later ones */
    uint32_t api;
    uint32_t
        ids[DOMAINS]; /* of each domain, as its headers count them; 0: there is no such domain */
} versions[] = {
    {132, 130200, {0, 820, 540, 24, 3, 50, 4}}, {130, 130000, {0, 807, 523, 24, 3, 50, 4}},
    {128, 26, {0, 782, 487, 22, 3, 50, 4}},     {124, 22, {0, 754, 468, 22, 3, 50, 4}},
    {121, 19, {0, 710, 445, 21, 3, 50}},        {120, 18, {0, 701, 445, 21, 3, 50}},
    {118, 18, {0, 677, 434, 21, 3, 50}},
};

static size_t version(void)
{
    size_t i = 0;

    while (versions[i].version > sg_driver.version() &&
           i + 1 < sizeof(versions) / sizeof(*versions))
        i++;
    return i;
}

/* ---- libcuda tells -------------------------------------------------------------------------------- */

void sg_call_back(CUpti_CallbackDomain domain, uint32_t id, const void *data)
{
    for (int i = 0; i < SUBSCRIBERS; i++) {
        subscriber_t *s = __atomic_load_n(&subscribers[i], __ATOMIC_ACQUIRE);
        if (s && __atomic_load_n(&s->enabled[domain][id], __ATOMIC_RELAXED))
            s->fn(s->ctx, domain, id, data);
    }
}

static bool wants(uint32_t id)
{
    for (int i = 0; i < SUBSCRIBERS; i++) {
        subscriber_t *s = __atomic_load_n(&subscribers[i], __ATOMIC_ACQUIRE);
        if (s && id < IDS &&
            __atomic_load_n(&s->enabled[CUPTI_CB_DOMAIN_DRIVER_API][id], __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static void told_call(const sg_told_t *told)
{
    CUpti_CallbackData data = {
        .callbackSite = told->exit ? CUPTI_API_EXIT : CUPTI_API_ENTER,
        .functionName = told->name,
        .functionParams = told->params,
        .functionReturnValue = told->exit ? told->result : NULL,
        .symbolName = told->symbol,
        .context = told->context,
        .contextUid = told->context_id,
        .correlationData = told->data,
        .correlationId = told->correlation,
    };

    sg_call_back(CUPTI_CB_DOMAIN_DRIVER_API, told->id, &data);
}

static void told_context(CUcontext context, bool created)
{
    CUpti_ResourceData data = {.context = context};

    sg_call_back(CUPTI_CB_DOMAIN_RESOURCE,
                 created ? CUPTI_CBID_RESOURCE_CONTEXT_CREATED
                         : CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
                 &data);
}

static void told_module(CUcontext context, uint32_t id, const char *image, size_t bytes,
                        bool loaded)
{
    CUpti_ModuleResourceData module = {.moduleId = id, .cubinSize = bytes, .pCubin = image};
    CUpti_ResourceData data = {.context = context, .resourceDescriptor = &module};

    sg_call_back(CUPTI_CB_DOMAIN_RESOURCE,
                 loaded ? CUPTI_CBID_RESOURCE_MODULE_LOADED
                        : CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
                 &data);
}

void sg_cupti_attach(void)
{
    static const sg_client_t client = {wants,       told_call,          told_context,
                                       told_module, sg_activity_record, sg_activity_managed};

    sg_driver.attach(&client);
}

/* ---- subscribing ------------------------------------------------------------------------------------- */

static CUptiResult subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc fn, void *ctx,
                             const params_t *params)
{
    const char *other = sg_driver.setting("OTHER_TOOL", NULL); /* it was here before anybody */
    int most = sg_driver.version() >= 132 ? SUBSCRIBERS : 1, n = 0;

    if (!out || !fn || (params && params->bytes == 0))
        return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    while (n < most && subscribers[n])
        n++;
    if (n < most && !other) {
        subscriber_t *s = calloc(1, sizeof(*s));
        s->fn = fn;
        s->ctx = ctx;
        snprintf(s->name, sizeof(s->name), "CUPTI for %.50s",
                 params && params->name ? params->name : "");
        __atomic_store_n(&subscribers[n], s, __ATOMIC_RELEASE);
        *out = s;
    }
    pthread_mutex_unlock(&lock);
    if (n < most && !other) {
        sg_cupti_attach();
        return CUPTI_SUCCESS;
    }
    if (params && params->old_name && params->old_name_bytes)
        snprintf(params->old_name, params->old_name_bytes, "%s",
                 other ? other : subscribers[0]->name);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

SG_CUPTI(cuptiSubscribe, 0, (CUpti_SubscriberHandle * out, CUpti_CallbackFunc fn, void *ctx),
         (out, fn, ctx))
{
    return subscribe(out, fn, ctx, NULL);
}

SG_CUPTI(cuptiSubscribe_v2, 130,
         (CUpti_SubscriberHandle * out, CUpti_CallbackFunc fn, void *ctx, void *params),
         (out, fn, ctx, params))
{
    return subscribe(out, fn, ctx, params);
}

SG_CUPTI(cuptiUnsubscribe, 0, (CUpti_SubscriberHandle subscriber), (subscriber))
{
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < SUBSCRIBERS; i++)
        if (subscriber && subscribers[i] == subscriber) {
            __atomic_store_n(&subscribers[i], NULL, __ATOMIC_RELEASE);
            result = CUPTI_SUCCESS;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

SG_CUPTI(cuptiEnableCallback, 0,
         (uint32_t enable, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain,
          CUpti_CallbackId id),
         (enable, s, domain, id))
{
    if (!s || domain >= DOMAINS || id >= versions[version()].ids[domain])
        return CUPTI_ERROR_INVALID_PARAMETER;
    __atomic_store_n(&s->enabled[domain][id], enable != 0, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiEnableDomain, 0,
         (uint32_t enable, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain),
         (enable, s, domain))
{
    if (!s || domain >= DOMAINS || !versions[version()].ids[domain])
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (unsigned id = 1; id < IDS; id++)
        __atomic_store_n(&s->enabled[domain][id], enable != 0, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiEnableAllDomains, 0, (uint32_t enable, CUpti_SubscriberHandle s), (enable, s))
{
    for (unsigned domain = 1; domain < DOMAINS; domain++)
        do_cuptiEnableDomain(enable, s, (CUpti_CallbackDomain)domain);
    return s ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SG_CUPTI(cuptiGetCallbackState, 0,
         (uint32_t * enabled, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain,
          CUpti_CallbackId id),
         (enabled, s, domain, id))
{
    if (!s || domain >= DOMAINS || id >= IDS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *enabled = s->enabled[domain][id];
    return CUPTI_SUCCESS;
}

/* ---- small questions ------------------------------------------------------------------------------------ */

SG_CUPTI(cuptiGetVersion, 0, (uint32_t * out), (out))
{
    *out = versions[version()].api;
    return CUPTI_SUCCESS;
}

SG_CUPTI(cuptiGetContextId, 0, (CUcontext context, uint32_t *id), (context, id))
{
    *id = sg_driver.context_id(context);
    return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

SG_CUPTI(cuptiGetDeviceId, 0, (CUcontext context, uint32_t *id), (context, id))
{
    int device = sg_driver.context_device(context);

    *id = (uint32_t)device;
    return device >= 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

SG_CUPTI(cuptiGetStreamId, 0, (CUcontext context, CUstream stream, uint32_t *id),
         (context, stream, id))
{
    *id = sg_driver.stream_id(context, stream);
    return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

SG_CUPTI(cuptiGetResultString, 0, (CUptiResult result, const char **text), (result, text))
{
    static const char *const names[] = {
        [0] = "CUPTI_SUCCESS",
        [1] = "CUPTI_ERROR_INVALID_PARAMETER",
        [7] = "CUPTI_ERROR_INVALID_OPERATION",
        [13] = "CUPTI_ERROR_NOT_READY",
        [28] = "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED",
        [39] = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    };
    const char *name = (unsigned)result < sizeof(names) / sizeof(*names) ? names[result] : NULL;

    *text = name ? name : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

/* Not through the table: it must not set what it asks about. */
__attribute__((visibility("default"))) CUptiResult cuptiGetLastError(void)
{
    CUptiResult last = sg_last_error;

    sg_last_error = CUPTI_SUCCESS;
    return last;
}
