/*
 * hooks.h - what the two software libraries know of each other: CUPTI finds sg_driver in libcuda and
 * attaches a client to it.
 */
#ifndef SOFTGPU_HOOKS_H
#define SOFTGPU_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>
#include <cupti.h>

/* What the GPU and its kernel driver did: a unified-memory record in the widest layout, or a kernel. */
typedef struct sg_record {
    uint32_t kind; /* CUpti_ActivityUnifiedMemoryCounterKind; 0 = a kernel */
    uint32_t src, dst, flags;
    uint64_t value, start, end, address, processors;
    uint32_t device, context, stream, correlation;
    uint32_t grid[3], block[3], shared_bytes;
    const char *name; /* lives as long as the process */
} sg_record_t;

/* One call as callbacks see it. */
typedef struct sg_told {
    uint32_t id; /* CUpti_driver_api_trace_cbid */
    bool exit;
    const char *name, *symbol;
    const void *params;
    CUresult *result;
    CUcontext context;
    uint32_t context_id, correlation;
    uint64_t *data;
} sg_told_t;

typedef struct sg_client {
    bool (*wants)(uint32_t id);
    void (*call)(const sg_told_t *told);
    void (*context)(CUcontext context, bool created);
    void (*module)(CUcontext context, uint32_t id, const char *image, size_t bytes, bool loaded);
    void (*record)(const sg_record_t *record); /* any thread, no lock of its own held for long */
    void (*managed)(void);                     /* managed memory was allocated */
} sg_client_t;

typedef struct sg_driver {
    void (*attach)(const sg_client_t *client);
    int (*version)(void); /* 118, 121, ... 132 */
    bool (*exists)(const char *symbol);
    /* Runs the rules for one call of CUPTI's: sleeps, hangs, or gives the error to return, 0 = none. */
    int (*rule)(const char *symbol, const void *caller);
    const char *(*setting)(const char *name, const char *otherwise); /* $SOFTGPU_<name> */
    uint32_t (*context_id)(CUcontext context);                       /* 0: not a context */
    uint32_t (*stream_id)(CUcontext context, CUstream stream);
    int (*context_device)(CUcontext context);
    bool (*has_context)(void);
    uint64_t (*now_ns)(void);
} sg_driver_t;

#endif
