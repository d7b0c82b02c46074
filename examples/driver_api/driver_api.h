/*
 * driver_api.h - what the driver-API examples share: checked calls, one context, the kernels.
 *
 * They need no toolkit at run time: KERNELS names the module (kernels.ptx, default beside the program).
 * Built with -DWITH_UMRT the program calls um_runtime_init(NULL) first: the one-line use.
 */
#ifndef DRIVER_API_H
#define DRIVER_API_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#ifdef WITH_UMRT
#include <um_runtime.h>
#endif

/* How a failed call ends the program; one whose other threads are in the driver then has its own. */
#ifndef CHECK_ENDS
#define CHECK_ENDS() exit(1)
#endif

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        const char *name_ = "?";                                                                   \
        if (result_ != CUDA_SUCCESS) {                                                             \
            cuGetErrorName(result_, &name_);                                                       \
            printf("%s: %s (%d)\n", #call, name_, (int)result_);                                   \
            CHECK_ENDS();                                                                          \
        }                                                                                          \
    } while (0)

static inline char *read_kernels(const char *program)
{
    const char *given = getenv("KERNELS");
    char path[4096];
    const char *slash = strrchr(program, '/');

    if (given)
        snprintf(path, sizeof(path), "%s", given);
    else
        snprintf(path, sizeof(path), "%.*skernels.ptx", slash ? (int)(slash + 1 - program) : 0,
                 program);
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0) {
        printf("%s: cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

static inline CUmodule start(const char *program, int ordinal)
{
    char *text = read_kernels(program);
    CUdevice device;
    CUcontext context;
    CUmodule module;

#ifdef WITH_UMRT
    um_runtime_init(NULL);
#endif
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, ordinal));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, text));
    free(text);
    return module;
}

static inline void launch(CUfunction f, CUstream stream, void **params)
{
    CHECK(cuLaunchKernel(f, 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
}

/* All of it to the GPU, or to the CPU; in one call: what a large one costs is in ../example.h. */
static inline void prefetch(CUdeviceptr addr, size_t bytes, bool to_host)
{
#if CUDA_VERSION >= 13000
    CUmemLocation where = {.type =
                               to_host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE};

    CHECK(cuMemPrefetchAsync(addr, bytes, where, 0, NULL));
#else
    CHECK(cuMemPrefetchAsync(addr, bytes, to_host ? CU_DEVICE_CPU : 0, NULL));
#endif
}

/* Managed memory as the CPU sees it. */
static inline float *floats(CUdeviceptr addr)
{
    return (float *)(uintptr_t)addr;
}

#endif
