/*
 * conformance.h - what the parts of the conformance program share: how a line is printed, how a probe that kills
 * its process is survived, set-up, the cap on managed memory.
 *
 * A line is "SECTION: WHAT = VALUE". SECTION and WHAT name it and never change; VALUE is the same in every
 * run on one driver: no times, no addresses, no counts that vary.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#define MIB           ((size_t)1 << 20)
#define MANAGED_LIMIT (256 * MIB) /* live at any time: a real GPU is shared */

typedef struct section {
    const char *name;
    void (*run)(void);
} section_t;

/* Each ends with a NULL name. */
extern const section_t um_probes_contexts[], um_probes_memory[], um_probes_hints[],
    um_probes_code[], um_probes_streams[], um_probes_graphs[], um_probes_callbacks[],
    um_probes_domains[], um_probes_records[];

/* ---- what a section has come to ----------------------------------------------------------------------- */

/*
 * A section that dies in a probe is run again in a new process: there the probe is not made and has the
 * signal for an answer, and lines already printed are not printed again. Shared by these processes.
 */
#define MOST_PROBES 256
#define TWICE       1000
typedef struct progress {
    const char *section;
    unsigned probes, lines; /* of this process so far */
    unsigned said;          /* lines printed */
    bool inside;            /* a probe */
    int killed
        [MOST_PROBES]; /* the signal that probe n ended with, TWICE more when it did so twice */
} progress_t;
extern progress_t *um_progress;

static inline void say(const char *what, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void say(const char *what, const char *format, ...)
{
    va_list arguments;

    if (um_progress->lines++ < um_progress->said)
        return;
    printf("%s: %s = ", um_progress->section, what);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
    um_progress->said = um_progress->lines;
}

/* Goes on to the next probe: 0, or what it ended with before. */
static inline int next_probe(void)
{
    um_progress->inside = true;
    return um_progress->killed[um_progress->probes++ % MOST_PROBES];
}

/* The number of the error that a call gives. */
#define PROBE(what, call)                                                                          \
    do {                                                                                           \
        int killed_ = next_probe();                                                                \
        int result_ = killed_ ? 0 : (int)(call);                                                   \
        if (killed_)                                                                               \
            say(what, "signal %d", killed_);                                                       \
        else                                                                                       \
            say(what, "%d", result_);                                                              \
        um_progress->inside = false;                                                               \
    } while (0)

/* What must work for the probes to mean anything. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        int must_ = (int)(call);                                                                   \
        if (must_ != 0) {                                                                          \
            say(#call, "%d, which ends the section", must_);                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const CUmemLocation on_gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                           on_host = {.type = CU_MEM_LOCATION_TYPE_HOST};

static inline void *pointer(CUdeviceptr addr)
{
    return (void *)(uintptr_t)addr;
}

static inline CUdeviceptr address(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

static inline CUcontext begin(void)
{
    CUcontext context;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    return context;
}

static inline size_t *managed_bytes(void)
{
    static size_t live;
    return &live;
}

static inline CUdeviceptr managed(size_t bytes)
{
    CUdeviceptr p = 0;

    if (*managed_bytes() + bytes > MANAGED_LIMIT) {
        say("managed memory", "over the limit");
        exit(2);
    }
    MUST(cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
    *managed_bytes() += bytes;
    return p;
}

static inline void managed_free(CUdeviceptr p, size_t bytes)
{
    MUST(cuMemFree(p));
    *managed_bytes() -= bytes;
}

/* The text of $KERNELS: PTX for a real GPU, and what a software one needs. */
static inline const char *kernels_text(void)
{
    static char text[1 << 16];
    const char *path = getenv("KERNELS");
    FILE *file = fopen(path ? path : "kernels.ptx", "r");

    if (!file || fread(text, 1, sizeof(text) - 1, file) == 0) {
        say("kernels", "cannot be read");
        exit(2);
    }
    fclose(file);
    return text;
}

#define ADD_ONE "_Z7add_onePfm"
#define AXPY    "_Z4axpyPfPKfmf"

static inline CUfunction function(const char *name)
{
    static CUmodule module;
    CUfunction f;

    if (!module)
        MUST(cuModuleLoadData(&module, kernels_text()));
    MUST(cuModuleGetFunction(&f, module, name));
    return f;
}

/* n floats at p each become one more. */
static inline CUresult add_one(CUfunction f, CUdeviceptr p, uint64_t n, CUstream stream)
{
    void *params[] = {&p, &n};

    return cuLaunchKernel(f, 256, 1, 1, 256, 1, 1, 0, stream, params, NULL);
}

#endif
