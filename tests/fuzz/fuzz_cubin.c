/* um_cubin_layouts on any bytes. */
#include "core/kernels.h"

#include <string.h>

static void touch(void *ctx, const char *name, const um_param_t *params, uint32_t n)
{
    volatile size_t *sum = ctx;

    *sum += strlen(name);
    for (uint32_t i = 0; i < n; i++)
        *sum += params[i].offset_bytes + params[i].size_bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t sum = 0;

    um_cubin_layouts(data, bytes, touch, &sum);
    return 0;
}
