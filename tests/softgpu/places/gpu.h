/* What the programs of places.sh need of the driver, without its headers. */
#ifndef GPU_H
#define GPU_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAllocManaged(unsigned long long *out, size_t bytes, unsigned flags);
int cuMemAlloc_v2(unsigned long long *out, size_t bytes);
int cuMemPrefetchAsync(unsigned long long addr, size_t bytes, int device, void *stream);
int cuMemAdvise(unsigned long long addr, size_t bytes, int advice, int device);
int cuModuleLoadData(void **out, const void *image);
int cuModuleGetFunction(void **out, void *module, const char *name);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);
int cuCtxSynchronize(void);
#ifdef __cplusplus
}
#endif

static inline int gpu_start(void)
{
    void *context;

    return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
}

#endif
