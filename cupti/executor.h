/*
 * executor.h - hints carried out through the CUDA driver.
 *
 * Each worker has a non-blocking stream of its own in each context that it prefetches in; advice needs
 * none. The program's streams, events, current contexts and error state are never touched.
 */
#ifndef UM_CUDA_EXECUTOR_H
#define UM_CUDA_EXECUTOR_H

#include "core/runtime.h"
#include "driver.h"

/* um_backend_t.executor. Makes no CUDA call. */
um_status_t um_cuda_executor_new(um_runtime_t *runtime, um_executor_t **out);

/* The context behind CUPTI's id, told by whoever sees one: at its creation, at its end (NULL), and at
 * launches, for those that were there before us. Any thread, a load and a compare when nothing is new;
 * contexts from UM_CONTEXTS_MAX on get no hints. */
#define UM_CONTEXTS_MAX 1024u
void um_cuda_context_is(uint32_t context, CUcontext handle);
CUcontext um_cuda_context(uint32_t context); /* NULL when it is not known or gone */

#endif
