/*
 * preload.c - the kernels of a library are loaded together, before the first of them runs.
 *
 * The driver loads a kernel at its first launch (CUDA_MODULE_LOADING=LAZY, the default since 12.2), and
 * cudart loads the library itself only then. A kernel that is loaded while another one runs holds up every
 * prefetch behind it until that one ends: on an H200 256 MiB that a kernel fills for the first time took
 * 20-29 ms with a second, new kernel launched behind it, and 2.0 ms with that kernel loaded before.
 * Nothing can be done once the first one runs, so it is done at the end of the call that loads the
 * library, on the program's thread; a kernel takes some 0.1 ms that it would have taken at its launch.
 * That thread may be capturing a stream, or another one: the capture must not mind. And a kernel may be
 * running that waits for that very thread, while loading may wait for the kernel: so it is left alone while
 * a launch is outstanding, as far as waits for the whole context tell. Launches are counted for all contexts
 * together: a wait for another one says nothing.
 */
#include "live.h"

#include <stdatomic.h>

#define UM_PRELOAD_NS 5000000u /* no more after so long */

/* The launches that there were when a wait for a whole context began that has ended, and which context: one
 * word, as waits end on any thread. */
static _Atomic uint64_t um_waited_for;
static _Thread_local uint64_t um_at_entry;

static uint64_t um_launches_until_now(uint32_t context)
{
    return atomic_load_explicit(&um_live.runtime->launches, memory_order_relaxed) << 16 |
           (context & 0xffff);
}

void um_preload_waits(uint32_t context, bool exit)
{
    if (exit)
        atomic_store_explicit(&um_waited_for, um_at_entry, memory_order_relaxed);
    else
        um_at_entry = um_launches_until_now(context);
}

static bool um_is_outstanding(uint32_t context)
{
    uint64_t now = um_launches_until_now(context);

    return now >> 16 && now != atomic_load_explicit(&um_waited_for, memory_order_relaxed);
}

/* Where nothing is prefetched nothing is held up. */
static bool um_is_hinted(uint32_t context)
{
    int32_t device = um_live_device(context);

    return device >= 0 && device < 64 && (um_live.hintable >> device & 1);
}

static void um_preload(void *library, unsigned most)
{
    const um_cuda_t *cuda = um_live.cuda;
    void *kernel[UM_PRELOAD_MAX];
    uint64_t start = um_live_now_ns();
    unsigned n = 0, done = 0;

    if (cuda->library_kernel_count(&n, library) != CUDA_SUCCESS || n > most ||
        cuda->library_kernels(kernel, n, library) != CUDA_SUCCESS)
        return;
    for (CUfunction function; done < n && um_live_now_ns() - start < UM_PRELOAD_NS; done++)
        if (cuda->kernel_function(&function, kernel[done]) == CUDA_SUCCESS)
            cuda->func_load(function);
    um_log(UM_LOG_DEBUG, "%u of %u kernels of a library loaded in %.3f ms", done, n,
           (double)(um_live_now_ns() - start) * 1e-6);
}

void um_on_library(const CUpti_CallbackData *info, const um_call_t *call)
{
    const um_cuda_t *cuda = um_live.cuda;
    void *const *library = (void *const *)(uintptr_t)um_word(info, call->word[0]);
    const um_settings_t *settings = &um_live.runtime->settings;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    if (um_entering(info) || um_result(info) != CUDA_SUCCESS || !library || !info->context ||
        settings->mode < UM_MODE_HINT || !settings->preload_kernels || !um_live_managed() ||
        um_is_outstanding(info->contextUid) || !um_is_hinted(info->contextUid) ||
        !cuda->library_kernel_count || !cuda->library_kernels || !cuda->kernel_function ||
        !cuda->func_load || !cuda->capture_mode)
        return;
    um_cuda_own = true;
    if (cuda->capture_mode(&mode) == CUDA_SUCCESS) {
        um_preload(*library, (unsigned)settings->preload_kernels);
        cuda->capture_mode(&mode); /* back to what it was */
    }
    um_cuda_own = false;
}
