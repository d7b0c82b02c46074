/* The backend of a build without CUDA: traces can be read, nothing can be watched. */
#include <stdio.h>

#include "runtime.h"

#ifndef UM_HAVE_BACKEND

static um_status_t attach(um_runtime_t *runtime, char *reason, size_t reason_bytes)
{
    (void)runtime;
    snprintf(reason, reason_bytes, "umrt was built without cuda");
    return UM_ERR_UNSUPPORTED;
}

static um_status_t probe(um_event_fn fn, void *ctx)
{
    static const char *const key[] = {"can.record", "can.hint"};

    for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++) {
        um_event_t event = {.type = UM_EV_FACT};

        event.u.fact.key = key[i];
        event.u.fact.value = "no: umrt was built without cuda";
        fn(ctx, &event);
    }
    return UM_OK;
}

const um_backend_t *um_backend(void)
{
    static const um_backend_t none = {.name = "none", .attach = attach, .probe = probe};

    return &none;
}

#endif
