/*
 * client.h - what the two halves of the software CUPTI share.
 *
 * An exported function is a symbol that is missing where version or rules say so, obeys the rules, and keeps the
 * thread's last error.
 */
#ifndef SOFTGPU_CLIENT_H
#define SOFTGPU_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "hooks.h"

extern const sg_driver_t sg_driver; /* libcuda's */
extern _Thread_local CUptiResult sg_last_error;

#define SG_CUPTI(name, since, parameters, arguments)                                               \
    static CUptiResult do_##name parameters;                                                       \
    static CUptiResult call_##name parameters                                                      \
    {                                                                                              \
        CUptiResult result_ = (CUptiResult)sg_driver.rule(#name, __builtin_return_address(0));     \
        if (result_ == CUPTI_SUCCESS)                                                              \
            result_ = do_##name arguments;                                                         \
        if (result_ != CUPTI_SUCCESS)                                                              \
            sg_last_error = result_;                                                               \
        return result_;                                                                            \
    }                                                                                              \
    __attribute__((used)) static __typeof__(&call_##name) resolve_##name(void)                     \
    {                                                                                              \
        return sg_driver.version() >= (since) && sg_driver.exists(#name) ? call_##name : NULL;     \
    }                                                                                              \
    __attribute__((ifunc("resolve_" #name), visibility("default")))                                \
    CUptiResult export_##name parameters __asm__(#name);                                           \
    static CUptiResult do_##name parameters

void sg_cupti_attach(void); /* libcuda tells us from now on */
void sg_activity_record(const sg_record_t *record);
void sg_activity_managed(void);
void sg_call_back(CUpti_CallbackDomain domain, uint32_t id, const void *data);

#endif
