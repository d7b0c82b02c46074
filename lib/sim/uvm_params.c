/* nvidia-uvm's module parameters: defaults and ranges in one table. */
#include <stddef.h>
#include <string.h>

#include "sim/uvm.h"

#define PARAM(field, fallback, least, most)                                                        \
    {                                                                                              \
#field, offsetof(um_uvm_params_t, field), sizeof(((um_uvm_params_t *)0)->field), fallback, \
            least, most                                                                            \
    }

const um_uvm_param_t um_uvm_param_table[] = {
    PARAM(uvm_perf_prefetch_enable, 1, 0, 1),
    PARAM(uvm_perf_prefetch_threshold, 51, 1, 100),
    PARAM(uvm_perf_prefetch_min_faults, 1, 1, 20),
    PARAM(uvm_perf_fault_batch_count, 256, 1, 65536),
    PARAM(uvm_perf_thrashing_enable, 1, 0, 1),
    PARAM(uvm_perf_thrashing_threshold, 3, 1, UINT8_MAX - 1),
    PARAM(uvm_perf_thrashing_pin_threshold, 10, 1, UINT8_MAX),
    PARAM(uvm_perf_thrashing_lapse_usec, 500, 1, 1000000000),
    PARAM(uvm_perf_thrashing_nap, 1, 0, 1000000),
    PARAM(uvm_perf_thrashing_epoch, 2000, 1, 1000000000),
    PARAM(uvm_perf_thrashing_pin, 300, 0, 1000000000),
    PARAM(uvm_perf_thrashing_max_resets, 4, 0, UINT8_MAX),
    {0},
};

uint64_t um_uvm_param(const um_uvm_params_t *params, const um_uvm_param_t *param)
{
    const char *field = (const char *)params + param->offset;

    return param->bytes == sizeof(uint64_t) ? *(const uint64_t *)field : *(const uint32_t *)field;
}

um_status_t um_uvm_param_set(um_uvm_params_t *params, const um_uvm_param_t *param, uint64_t value)
{
    char *field = (char *)params + param->offset;

    if (value < param->min || value > param->max)
        return UM_ERR_INVALID;
    if (param->bytes == sizeof(uint64_t))
        *(uint64_t *)field = value;
    else
        *(uint32_t *)field = (uint32_t)value;
    return UM_OK;
}

const um_uvm_param_t *um_uvm_param_find(const char *name)
{
    for (const um_uvm_param_t *param = um_uvm_param_table; param->name; param++) {
        if (!strcmp(param->name, name))
            return param;
    }
    return NULL;
}

void um_uvm_params_default(um_uvm_params_t *out)
{
    memset(out, 0, sizeof(*out));
    for (const um_uvm_param_t *param = um_uvm_param_table; param->name; param++)
        um_uvm_param_set(out, param, param->fallback);
}

bool um_uvm_params_fit(const um_uvm_params_t *params)
{
    for (const um_uvm_param_t *param = um_uvm_param_table; param->name; param++) {
        uint64_t value = um_uvm_param(params, param);

        if (value < param->min || value > param->max)
            return false;
    }
    return true;
}
