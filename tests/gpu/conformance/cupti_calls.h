/*
 * cupti_calls.h - CUPTI's functions, found at run time so that the program also runs where there is none.
 */
#ifndef CUPTI_CALLS_H
#define CUPTI_CALLS_H

#include "conformance.h"

#include <cupti.h>
#include <dlfcn.h>

static struct {
    __typeof__(&cuptiSubscribe) subscribe;
    __typeof__(&cuptiUnsubscribe) unsubscribe;
    __typeof__(&cuptiEnableCallback) enable_callback;
    __typeof__(&cuptiEnableDomain) enable_domain;
    __typeof__(&cuptiGetCallbackState) callback_state;
    __typeof__(&cuptiActivityRegisterCallbacks) buffers;
    __typeof__(&cuptiActivityConfigureUnifiedMemoryCounter) configure;
    __typeof__(&cuptiActivityEnable) enable;
    __typeof__(&cuptiActivityDisable) disable;
    __typeof__(&cuptiActivityFlushAll) flush;
    __typeof__(&cuptiActivityGetNextRecord) next;
    __typeof__(&cuptiGetVersion) version;
    __typeof__(&cuptiGetResultString) string;
    __typeof__(&cuptiGetLastError) last_error;
    __typeof__(&cuptiActivityRegisterTimestampCallback) own_clock;
    __typeof__(&cuptiGetTimestamp) timestamp;
    int (*begin_nvtx)(const void *(*export_table)(uint32_t id));
} cupti;

static inline void open_cupti(void)
{
    static const struct {
        const char *name;
        void *at;
    } table[] = {
        {"cuptiSubscribe", &cupti.subscribe},
        {"cuptiUnsubscribe", &cupti.unsubscribe},
        {"cuptiEnableCallback", &cupti.enable_callback},
        {"cuptiEnableDomain", &cupti.enable_domain},
        {"cuptiGetCallbackState", &cupti.callback_state},
        {"cuptiActivityRegisterCallbacks", &cupti.buffers},
        {"cuptiActivityConfigureUnifiedMemoryCounter", &cupti.configure},
        {"cuptiActivityEnable", &cupti.enable},
        {"cuptiActivityDisable", &cupti.disable},
        {"cuptiActivityFlushAll", &cupti.flush},
        {"cuptiActivityGetNextRecord", &cupti.next},
        {"cuptiGetVersion", &cupti.version},
        {"cuptiGetResultString", &cupti.string},
        {"cuptiGetLastError", &cupti.last_error},
        {"cuptiActivityRegisterTimestampCallback", &cupti.own_clock},
        {"cuptiGetTimestamp", &cupti.timestamp},
        {"InitializeInjectionNvtx2", &cupti.begin_nvtx},
    };
    const char *home = getenv("CUDA_HOME");
    char path[4096];
    void *library = dlopen("libcupti.so.13", RTLD_NOW);

    snprintf(path, sizeof(path), "%s/extras/CUPTI/lib64/libcupti.so.13",
             home ? home : "/usr/local/cuda");
    if (!library)
        library = dlopen(path, RTLD_NOW);
    if (!library) {
        say("libcupti.so.13", "not found");
        exit(2);
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!(*(void **)table[i].at = dlsym(library, table[i].name))) {
            say(table[i].name, "missing");
            exit(2);
        }
}

#endif
