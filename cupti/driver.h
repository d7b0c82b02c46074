/*
 * driver.h - the CUDA driver and CUPTI, opened at run time through exact versioned symbols.
 *
 * One build serves CUDA 11.8 to 13.x: nothing of CUDA is linked, a symbol that this driver does not
 * have is NULL in the table, and only the few marked required decide whether we can work at all.
 * Member names say what a call does; the symbol beside it is the exact one that is looked up, so
 * that the headers' renaming (#define cuMemFree cuMemFree_v2) cannot change what is called.
 *
 * Types that old headers lack (CUkernel, CUlibrary, ...) are void * here; their values are pointers.
 */
#ifndef UM_DRIVER_H
#define UM_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cupti.h>

#include "um_event.h"

/* CUmemLocation by value, whatever the headers call its members. */
typedef struct um_location {
    int32_t type; /* 1 device, 2 host */
    int32_t id;
} um_location_t;
#define UM_LOCATION_DEVICE 1
#define UM_LOCATION_HOST   2

/* X(required, member, "symbol", (parameters)) - every function returns CUresult. */
#define UM_CUDA_SYMBOLS(X)                                                                         \
    X(1, init, "cuInit", (unsigned flags))                                                         \
    X(1, driver_version, "cuDriverGetVersion", (int *version))                                     \
    X(0, error_name, "cuGetErrorName", (CUresult error, const char **name))                        \
    X(1, device_count, "cuDeviceGetCount", (int *count))                                           \
    X(1, device_get, "cuDeviceGet", (CUdevice * device, int ordinal))                              \
    X(1, device_attribute, "cuDeviceGetAttribute",                                                 \
      (int *value, CUdevice_attribute attribute, CUdevice device))                                 \
    X(0, device_name, "cuDeviceGetName", (char *name, int bytes, CUdevice device))                 \
    X(0, device_total_bytes, "cuDeviceTotalMem_v2", (size_t * bytes, CUdevice device))             \
    X(0, device_uuid, "cuDeviceGetUuid", (CUuuid * uuid, CUdevice device))                         \
    X(0, device_uuid_v2, "cuDeviceGetUuid_v2", (CUuuid * uuid, CUdevice device))                   \
    X(0, device_pci, "cuDeviceGetPCIBusId", (char *text, int bytes, CUdevice device))              \
    X(0, primary_state, "cuDevicePrimaryCtxGetState",                                              \
      (CUdevice device, unsigned *flags, int *active))                                             \
    X(0, primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))       \
    X(0, primary_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                       \
    X(1, ctx_push, "cuCtxPushCurrent_v2", (CUcontext context))                                     \
    X(1, ctx_pop, "cuCtxPopCurrent_v2", (CUcontext * context))                                     \
    X(1, ctx_get, "cuCtxGetCurrent", (CUcontext * context))                                        \
    X(0, ctx_device, "cuCtxGetDevice", (CUdevice * device))                                        \
    X(0, mem_info, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * total_bytes))                 \
    X(0, mem_alloc_managed, "cuMemAllocManaged",                                                   \
      (CUdeviceptr * addr, size_t bytes, unsigned flags))                                          \
    X(0, mem_free, "cuMemFree_v2", (CUdeviceptr addr))                                             \
    X(0, mem_alloc, "cuMemAlloc_v2", (CUdeviceptr * addr, size_t bytes))                           \
    X(0, host_alloc, "cuMemHostAlloc", (void **addr, size_t bytes, unsigned flags))                \
    X(0, host_free, "cuMemFreeHost", (void *addr))                                                 \
    X(0, copy_to_device, "cuMemcpyHtoDAsync_v2",                                                   \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                           \
    X(0, copy_to_host, "cuMemcpyDtoHAsync_v2",                                                     \
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                                 \
    X(0, copy_inside, "cuMemcpyDtoDAsync_v2",                                                      \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                           \
    X(0, module_load, "cuModuleLoadData", (CUmodule * module, const void *image))                  \
    X(0, module_unload, "cuModuleUnload", (CUmodule module))                                       \
    X(0, module_function, "cuModuleGetFunction",                                                   \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(0, launch, "cuLaunchKernel",                                                                 \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,  \
       void **extra))                                                                              \
    X(0, event_elapsed, "cuEventElapsedTime", (float *ms, CUevent from, CUevent to))               \
    /* to 12.1 with an int device (-1 the host); still there in every later driver */              \
    X(0, mem_prefetch, "cuMemPrefetchAsync",                                                       \
      (CUdeviceptr addr, size_t bytes, CUdevice device, CUstream stream))                          \
    X(0, mem_prefetch_v2, "cuMemPrefetchAsync_v2", /* 12.2+ */                                     \
      (CUdeviceptr addr, size_t bytes, um_location_t where, unsigned flags, CUstream stream))      \
    X(0, mem_advise, "cuMemAdvise",                                                                \
      (CUdeviceptr addr, size_t bytes, CUmem_advise advice, CUdevice device))                      \
    X(0, mem_advise_v2, "cuMemAdvise_v2",                                                          \
      (CUdeviceptr addr, size_t bytes, CUmem_advise advice, um_location_t where))                  \
    X(0, pointer_attribute, "cuPointerGetAttribute",                                               \
      (void *data, CUpointer_attribute attribute, CUdeviceptr addr))                               \
    X(0, pointer_attributes, "cuPointerGetAttributes",                                             \
      (unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr addr))            \
    X(1, stream_create, "cuStreamCreate", (CUstream * stream, unsigned flags))                     \
    X(1, stream_destroy, "cuStreamDestroy_v2", (CUstream stream))                                  \
    X(0, stream_query, "cuStreamQuery", (CUstream stream))                                         \
    X(0, stream_sync, "cuStreamSynchronize", (CUstream stream))                                    \
    X(0, stream_wait_event, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags)) \
    X(0, capture_mode, "cuThreadExchangeStreamCaptureMode", (CUstreamCaptureMode * mode))          \
    X(0, stream_is_capturing, "cuStreamIsCapturing",                                               \
      (CUstream stream, CUstreamCaptureStatus * status))                                           \
    X(0, stream_is_capturing_ptsz, "cuStreamIsCapturing_ptsz",                                     \
      (CUstream stream, CUstreamCaptureStatus * status))                                           \
    X(0, event_create, "cuEventCreate", (CUevent * event, unsigned flags))                         \
    X(0, event_destroy, "cuEventDestroy_v2", (CUevent event))                                      \
    X(0, event_record, "cuEventRecord", (CUevent event, CUstream stream))                          \
    X(0, event_query, "cuEventQuery", (CUevent event))                                             \
    X(0, event_sync, "cuEventSynchronize", (CUevent event))                                        \
    X(0, func_param, "cuFuncGetParamInfo", /* 12.4+ */                                             \
      (CUfunction function, size_t index, size_t * offset, size_t * bytes))                        \
    X(0, kernel_param, "cuKernelGetParamInfo", /* 12.4+ */                                         \
      (void *kernel, size_t index, size_t *offset, size_t *bytes))                                 \
    X(0, func_name, "cuFuncGetName", (const char **name, CUfunction function)) /* 12.3+ */         \
    X(0, kernel_name, "cuKernelGetName", (const char **name, void *kernel))    /* 12.3+ */         \
    X(0, library_kernel_count, "cuLibraryGetKernelCount",                      /* 12.4+ */         \
      (unsigned *count, void *library))                                                            \
    X(0, library_kernels, "cuLibraryEnumerateKernels", /* 12.4+ */                                 \
      (void **kernels, unsigned count, void *library))                                             \
    X(0, kernel_function, "cuKernelGetFunction", /* 12.0+ */                                       \
      (CUfunction * function, void *kernel))                                                       \
    X(0, func_load, "cuFuncLoad", (CUfunction function)) /* 12.4+ */                               \
    X(0, graph_nodes, "cuGraphGetNodes", (CUgraph graph, CUgraphNode * nodes, size_t * count))     \
    X(0, graph_node_type, "cuGraphNodeGetType", (CUgraphNode node, CUgraphNodeType * type))        \
    X(0, graph_kernel_params, "cuGraphKernelNodeGetParams", (CUgraphNode node, void *params))      \
    X(0, graph_kernel_params_v2, "cuGraphKernelNodeGetParams_v2",                                  \
      (CUgraphNode node, void *params)) /* 12.0+ */                                                \
    X(0, graph_memcpy_params, "cuGraphMemcpyNodeGetParams",                                        \
      (CUgraphNode node, CUDA_MEMCPY3D * params))                                                  \
    X(0, graph_memset_params, "cuGraphMemsetNodeGetParams",                                        \
      (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS * params))                                        \
    X(0, graph_child, "cuGraphChildGraphNodeGetGraph", (CUgraphNode node, CUgraph * graph))

/* CUpti_SubscriberParams of 13.0, for headers that lack it. */
typedef struct um_subscriber_params {
    size_t struct_size;
    const char *name;
    char *old_name; /* at least 64 bytes */
    size_t old_name_bytes;
} um_subscriber_params_t;

/* Every function returns CUptiResult. */
#define UM_CUPTI_SYMBOLS(X)                                                                        \
    X(1, version, "cuptiGetVersion", (uint32_t * version))                                         \
    X(0, result_string, "cuptiGetResultString", (CUptiResult result, const char **text))           \
    X(1, timestamp, "cuptiGetTimestamp", (uint64_t * ns))                                          \
    X(1, subscribe, "cuptiSubscribe",                                                              \
      (CUpti_SubscriberHandle * subscriber, CUpti_CallbackFunc callback, void *userdata))          \
    X(0, subscribe_v2, "cuptiSubscribe_v2", /* 13.0+ */                                            \
      (CUpti_SubscriberHandle * subscriber, CUpti_CallbackFunc callback, void *userdata,           \
       um_subscriber_params_t *params))                                                            \
    X(0, unsubscribe, "cuptiUnsubscribe", (CUpti_SubscriberHandle subscriber))                     \
    X(1, enable_callback, "cuptiEnableCallback",                                                   \
      (uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,            \
       CUpti_CallbackId id))                                                                       \
    X(0, enable_domain, "cuptiEnableDomain",                                                       \
      (uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain))           \
    X(0, context_id, "cuptiGetContextId", (CUcontext context, uint32_t * id))                      \
    X(0, activity_enable, "cuptiActivityEnable", (CUpti_ActivityKind kind))                        \
    X(0, activity_register, "cuptiActivityRegisterCallbacks",                                      \
      (CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed))   \
    X(0, activity_next, "cuptiActivityGetNextRecord",                                              \
      (uint8_t * buffer, size_t valid_bytes, CUpti_Activity * *record))                            \
    X(0, activity_dropped, "cuptiActivityGetNumDroppedRecords",                                    \
      (CUcontext context, uint32_t stream, size_t * count))                                        \
    X(0, activity_flush, "cuptiActivityFlushAll", (uint32_t flag))                                 \
    X(0, activity_um_config, "cuptiActivityConfigureUnifiedMemoryCounter",                         \
      (CUpti_ActivityUnifiedMemoryCounterConfig * config, uint32_t count))                         \
    X(0, activity_clock, "cuptiActivityRegisterTimestampCallback", /* 11.6+ */                     \
      (uint64_t(*clock)(void)))

typedef struct um_cuda {
    void *library; /* dlopen handle, NULL when there is no driver */
    int version;   /* cuDriverGetVersion, 13000 = 13.0 */
#define UM_MEMBER(required, member, symbol, parameters) CUresult(*member) parameters;
    UM_CUDA_SYMBOLS(UM_MEMBER)
#undef UM_MEMBER
} um_cuda_t;

typedef struct um_cupti {
    void *library;
    uint32_t api; /* cuptiGetVersion: 18 = 11.8 and 12.0, 26 = 12.8, 130000 = 13.0 */
    char path[512];
#define UM_MEMBER(required, member, symbol, parameters) CUptiResult(*member) parameters;
    UM_CUPTI_SYMBOLS(UM_MEMBER)
#undef UM_MEMBER
} um_cupti_t;

/* Set while umrt itself calls CUDA on this thread: our callbacks then return at once. */
extern _Thread_local bool um_cuda_own;

/* The driver, opened at the first call; never NULL. library is NULL (and all members) when there is
 * none or a required symbol is missing: um_cuda_reason says why. Any thread. Makes no CUDA call but
 * cuDriverGetVersion. */
const um_cuda_t *um_cuda(void);
const char *um_cuda_reason(void); /* "" when it is there; static */

/* CUPTI, likewise. Looked for among the loaded libraries, beside the program's libcudart, under
 * $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, then on the loader's path; the driver's own major
 * version first. */
const um_cupti_t *um_cupti(void);
const char *um_cupti_reason(void);

/* Fills a table from one library file; what the two functions above and the tests are made of.
 * UM_ERR_NOT_FOUND: no such file; UM_ERR_UNSUPPORTED: a required symbol is missing. reason gets one
 * lower-case phrase. On failure *out is all zero. */
um_status_t um_cuda_open(const char *path, um_cuda_t *out, char *reason, size_t reason_bytes);
um_status_t um_cupti_open(const char *path, um_cupti_t *out, char *reason, size_t reason_bytes);

/* Asks for a prefetch in whichever form this driver has; device UM_DEVICE_HOST = the CPU.
 * CUDA_ERROR_NOT_SUPPORTED when it has neither. */
CUresult um_cuda_prefetch(uint64_t addr, uint64_t bytes, int32_t device, CUstream stream);

/* Gives advice likewise; kind: a um_hint_kind_t but PREFETCH and DISCARD. */
CUresult um_cuda_advise(uint64_t addr, uint64_t bytes, um_hint_kind_t kind, int32_t device);

/* What a CUPTI refusal means to the user: one lower-case sentence for each code that matters, CUPTI's
 * own text for the others. Static string. */
const char *um_cupti_sentence(CUptiResult result);

#endif
