/* A build without CUDA's headers calibrates nothing. */
#include "calibrate.h"

#include <stdio.h>

um_status_t um_calibrate_open(int32_t device, um_calibrate_gpu_t *out, char *error,
                              size_t error_bytes)
{
    (void)device;
    *out = (um_calibrate_gpu_t){0};
    snprintf(error, error_bytes, "this umrt was built without CUDA's headers: offline tools only");
    return UM_ERR_UNSUPPORTED;
}

void um_calibrate_close(um_calibrate_gpu_t *gpu)
{
    (void)gpu;
}

const char *um_calibrate_why(const um_calibrate_gpu_t *gpu)
{
    (void)gpu;
    return "";
}
