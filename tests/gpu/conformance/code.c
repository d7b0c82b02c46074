/*
 * code.c - symbols, modules, launches.
 */
#include "conformance.h"

#if CUDA_VERSION >= 13000
#include <dlfcn.h>

static void run_symbols(void)
{
    static const struct {
        const char *name;
        int version;
        uint64_t flags;
    } table[] = {
        {"cuMemAlloc", 2000, 0},
        {"cuMemAlloc", 13000, 0},
        {"cuMemAlloc_v2", 13000, 0},
        {"cuMemPrefetchAsync", 7000, 0},
        {"cuMemPrefetchAsync", 12000, 0},
        {"cuMemPrefetchAsync", 12020, 0},
        {"cuMemPrefetchAsync", 13000, 0},
        {"cuMemPrefetchAsync_v2", 12020, 0},
        {"cuMemAdvise", 12000, 0},
        {"cuMemAdvise", 13000, 0},
        {"cuMemPrefetchBatchAsync", 12080, 0},
        {"cuMemPrefetchBatchAsync", 13000, 0},
        {"cuFuncGetParamInfo", 12030, 0},
        {"cuFuncGetParamInfo", 12040, 0},
        {"cuCtxCreate", 11040, 0},
        {"cuCtxCreate", 13000, 0},
        {"cuStreamGetCaptureInfo", 11030, 0},
        {"cuGetProcAddress", 11030, 0},
        {"cuGetProcAddress", 12000, 0},
        {"cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM},
        {"cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM},
        {"cuLaunchKernel_ptsz", 13000, 0},
        {"cuMemAllocManaged", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM},
        {"cuMemAlloc", 99000, 0},
        {"cuMemAlloc", 0, 0},
        {"cuMemAlloc", -1, 0},
        {"cuNoSuchCall", 13000, 0},
        {"", 13000, 0},
    };
    static const char *const exported[] = {"cuMemPrefetchAsync",
                                           "cuMemPrefetchAsync_v2",
                                           "cuMemPrefetchAsync_v2_ptsz",
                                           "cuMemPrefetchAsync_v3",
                                           "cuMemAdvise",
                                           "cuMemAdvise_v2",
                                           "cuMemAdvise_v3",
                                           "cuMemPrefetchBatchAsync",
                                           "cuMemDiscardBatchAsync",
                                           "cuLaunchKernel_ptsz",
                                           "cuLaunchKernelEx",
                                           "cuFuncGetParamInfo",
                                           "cuKernelGetParamInfo",
                                           "cuCtxCreate_v4",
                                           "cuGetProcAddress",
                                           "cuGetProcAddress_v2",
                                           "cuStreamGetCaptureInfo_v2",
                                           "cuMemGetAddressRange",
                                           "cuMemGetAddressRange_v2",
                                           "cuDevicePrimaryCtxReset",
                                           "cuMemcpyBatchAsync_v2",
                                           "cuDevicePrimaryCtxReset_v2"};
    char what[96];
    void *fn = NULL, *other = NULL;
    CUdriverProcAddressQueryResult status;

    MUST(cuInit(0));
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        fn = (void *)1;
        status = (CUdriverProcAddressQueryResult)77;
        CUresult result =
            cuGetProcAddress(table[i].name, &fn, table[i].version, table[i].flags, &status);
        snprintf(what, sizeof(what), "\"%s\" of %d, flags %d", table[i].name, table[i].version,
                 (int)table[i].flags);
        say(what, "%d, status %d, %s", (int)result, (int)status,
            !fn               ? "none"
            : fn == (void *)1 ? "untouched"
                              : "some");
    }
    PROBE("name NULL", cuGetProcAddress(NULL, &fn, 13000, 0, &status));
    PROBE("to NULL", cuGetProcAddress("cuInit", NULL, 13000, 0, &status));
    PROBE("status to NULL", cuGetProcAddress("cuInit", &fn, 13000, 0, NULL));
    PROBE("flags 1 and 2", cuGetProcAddress("cuInit", &fn, 13000, 3, &status));
    PROBE("flags 64", cuGetProcAddress("cuInit", &fn, 13000, 64, &status));
    cuGetProcAddress("cuMemPrefetchAsync", &fn, 12020, 0, NULL);
    cuGetProcAddress("cuMemPrefetchAsync", &other, 13000, 0, NULL);
    say("prefetch of 12.2 is that of 13.0", "%d", fn == other);
    cuGetProcAddress("cuMemPrefetchAsync", &fn, 12000, 0, NULL);
    say("prefetch of 12.0 is that of 13.0", "%d", fn == other);
    say("prefetch of 13.0 is the exported _v2", "%d",
        other == dlsym(RTLD_DEFAULT, "cuMemPrefetchAsync_v2"));
    cuGetProcAddress("cuLaunchKernel", &fn, 13000, 0, NULL);
    cuGetProcAddress("cuLaunchKernel", &other, 13000, 2, NULL);
    say("a per-thread call is another one", "%d", fn != other);
    for (size_t i = 0; i < sizeof(exported) / sizeof(*exported); i++) {
        snprintf(what, sizeof(what), "%s is exported", exported[i]);
        say(what, "%d", dlsym(RTLD_DEFAULT, exported[i]) != NULL);
    }
}

/* ---- modules, launches ---------------------------------------------------------------------------------- */

static void run_modules(void)
{
    const char *text = kernels_text(), *name = NULL;
    CUmodule module = NULL, other;
    CUfunction f = NULL;
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUdeviceptr p;
    size_t bytes, offset;
    int value = 0;

    begin();
    PROBE("cuModuleLoadData of words", cuModuleLoadData(&other, "these are words"));
    PROBE("cuModuleLoadData of nothing", cuModuleLoadData(&other, ""));
    PROBE("cuModuleLoad of no file", cuModuleLoad(&other, "/nonexistent/kernels.ptx"));
    PROBE("cuModuleLoadData", cuModuleLoadData(&module, text));
    PROBE("cuModuleGetFunction", cuModuleGetFunction(&f, module, AXPY));
    PROBE("cuModuleGetFunction, no such", cuModuleGetFunction(&f, module, "nothing"));
    PROBE("cuModuleGetFunction, no name", cuModuleGetFunction(&f, module, ""));
    PROBE("cuModuleGetFunction of module NULL", cuModuleGetFunction(&f, NULL, AXPY));
    PROBE("cuModuleGetGlobal, no such", cuModuleGetGlobal(&p, &bytes, module, "nothing"));
    MUST(cuModuleGetFunction(&f, module, AXPY));
    for (int i = 0; i < 5; i++) {
        char what[64];
        offset = bytes = 99;
        CUresult result = cuFuncGetParamInfo(f, (size_t)i, &offset, &bytes);
        snprintf(what, sizeof(what), "cuFuncGetParamInfo of %d", i);
        say(what, "%d, offset %zu, bytes %zu", (int)result, offset, bytes);
    }
    PROBE("cuFuncGetName", cuFuncGetName(&name, f));
    say("the name", "%s", name);
    PROBE("cuFuncGetAttribute",
          cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    say("threads a block", "%d", value);
    PROBE("cuFuncGetAttribute, no such", cuFuncGetAttribute(&value, (CUfunction_attribute)77, f));
    PROBE("cuFuncGetAttribute of NULL",
          cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, NULL));
    PROBE("cuFuncGetParamInfo of NULL", cuFuncGetParamInfo(NULL, 0, &offset, &bytes));
    PROBE("cuModuleUnload", cuModuleUnload(module));
    PROBE("cuModuleUnload of NULL", cuModuleUnload(NULL));
    PROBE("cuLibraryLoadData of words",
          cuLibraryLoadData(&library, "these are words", NULL, NULL, 0, NULL, NULL, 0));
    PROBE("cuLibraryLoadData", cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    PROBE("cuLibraryGetKernel, no such", cuLibraryGetKernel(&kernel, library, "nothing"));
    PROBE("cuLibraryGetKernel", cuLibraryGetKernel(&kernel, library, ADD_ONE));
    PROBE("cuLibraryGetManaged, no such", cuLibraryGetManaged(&p, &bytes, library, "nothing"));
    PROBE("cuKernelGetParamInfo", cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
    PROBE("cuKernelGetParamInfo past the last", cuKernelGetParamInfo(kernel, 2, &offset, &bytes));
    PROBE("cuFuncGetParamInfo of a kernel",
          cuFuncGetParamInfo((CUfunction)kernel, 1, &offset, &bytes));
    PROBE("cuKernelGetFunction", cuKernelGetFunction(&f, kernel));
    say("a function is not its kernel", "%d", (void *)f != (void *)kernel);
    PROBE("cuLibraryGetModule", cuLibraryGetModule(&module, library));
    MUST(cuMemAlloc(&p, MIB));
    PROBE("launch of a kernel", add_one((CUfunction)kernel, p, 1, NULL));
    MUST(cuCtxSynchronize());
    PROBE("cuLibraryUnload", cuLibraryUnload(library));
}

static void run_launches(void)
{
    CUdeviceptr p;
    uint64_t n = 1024;
    struct {
        CUdeviceptr p;
        uint64_t n, spare[8];
    } block;
    size_t bytes = 16, short_bytes = 8;
    void *params[] = {&p, &n};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    void *short_extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE,
                           &short_bytes, CU_LAUNCH_PARAM_END};
    CUlaunchConfig config = {1, 1, 1, 256, 1, 1, 0, NULL, NULL, 0};
    float seen = 0;

    begin();
    CUfunction f = function(ADD_ONE);
    MUST(cuMemAlloc(&p, MIB));
    MUST(cuMemsetD8(p, 0, MIB));
    memset(&block, 0, sizeof(block));
    block.p = p;
    block.n = n;
    PROBE("plain", cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    PROBE("with extra", cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
    PROBE("with extra too short",
          cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, NULL, short_extra));
    PROBE("with both", cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, params, extra));
    PROBE("extended", cuLaunchKernelEx(&config, f, params, NULL));
    PROBE("cooperative", cuLaunchCooperativeKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, params));
    PROBE("cooperative, too many blocks",
          cuLaunchCooperativeKernel(f, 1 << 20, 1, 1, 256, 1, 1, 0, NULL, params));
    PROBE("grid 0", cuLaunchKernel(f, 0, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    PROBE("grid too high", cuLaunchKernel(f, 1, 70000, 1, 256, 1, 1, 0, NULL, params, NULL));
    PROBE("block 0", cuLaunchKernel(f, 1, 1, 1, 256, 0, 1, 0, NULL, params, NULL));
    PROBE("block of 2048", cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL));
    PROBE("block too deep", cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL));
    PROBE("1 MiB shared", cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, MIB, NULL, params, NULL));
    PROBE("function NULL", cuLaunchKernel(NULL, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    PROBE("host function NULL", cuLaunchHostFunc(NULL, NULL, NULL));
    PROBE("all that in the end", cuCtxSynchronize());
    MUST(cuMemcpyDtoH(&seen, p, sizeof(seen)));
    say("kernels that ran", "%.0f", (double)seen);
    n = 1;
    p += (size_t)1 << 44;
    PROBE("of an address that is no memory",
          cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    PROBE("the context then", cuCtxSynchronize());
    PROBE("cuMemAlloc then", cuMemAlloc(&p, MIB));
    PROBE("cuStreamQuery then", cuStreamQuery(NULL));
    PROBE("cuCtxSynchronize then", cuCtxSynchronize());
}

const section_t um_probes_code[] = {
    {"symbols", run_symbols},
    {"modules", run_modules},
    {"launches", run_launches},
    {NULL, NULL},
};
#endif
