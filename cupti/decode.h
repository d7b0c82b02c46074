/*
 * decode.h - CUPTI activity records become events. Pure: bytes in, an event out; no clock, no CUPTI
 * call, nothing shared. Layouts are our own and are checked against the headers that this is built
 * with; which of them a library delivers is decided by its version at run time, because CUPTI does
 * not fill deprecated structs.
 */
#ifndef UM_DECODE_H
#define UM_DECODE_H

#include "um_event.h"

typedef enum um_counter_layout {
    UM_COUNTER_1 = 1, /* before CUDA 7.0: totals without addresses */
    UM_COUNTER_2 = 2, /* to 12.7 */
    UM_COUNTER_3 = 3  /* 12.8 and later: adds the bit mask of processors */
} um_counter_layout_t;

/* The layout that a CUPTI of this API version (cuptiGetVersion) delivers. */
um_counter_layout_t um_counter_layout(uint32_t cupti_api);
size_t um_counter_bytes(um_counter_layout_t layout); /* of one record, 0 for no such layout */

typedef enum um_decode_result {
    UM_DECODE_EVENT = 0,    /* *out is set (but for tid and region: 0) */
    UM_DECODE_IGNORED = 1,  /* another kind of record, or one that says nothing */
    UM_DECODE_BAD_TIME = 2, /* zero, or an end before its start */
    UM_DECODE_SHORT = 3     /* fewer bytes than the record has */
} um_decode_result_t;

/* A CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER record: GPU_FAULT, CPU_FAULT, MIGRATE, THRASH, THROTTLE
 * or REMOTE_MAP. */
um_decode_result_t um_decode_counter(um_counter_layout_t layout, const void *record, size_t bytes,
                                     um_event_t *out);

/* A CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL record (CUpti_ActivityKernel4 and all later ones begin
 * alike): KERNEL_EXEC with kernel = 0; *name is the mangled name, in CUPTI's memory, or NULL. */
um_decode_result_t um_decode_kernel(const void *record, size_t bytes, um_event_t *out,
                                    const char **name);

#endif
