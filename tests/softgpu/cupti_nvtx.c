/*
 * cupti_nvtx.c - the NVTX domain: NVTX loads CUPTI where NVTX_INJECTION64_PATH names it, and what is marked is called
 * back. There are marks and pushed ranges of plain strings; the rest of NVTX goes by unseen.
 */
#include "client.h"

typedef void (*nvtx_fn)(void);
typedef struct params { /* nvtxMarkA_params, nvtxRangePushA_params */
    const char *message;
} params_t;
typedef struct callbacks { /* NVTX's export table 1 */
    size_t bytes;
    int (*functions)(int module, nvtx_fn ***table, unsigned *count);
} callbacks_t;

static _Thread_local int depth;

static void tell(uint32_t id, const char *name, const void *params, const void *result)
{
    CUpti_NvtxData data = {name, params, result};

    sg_call_back(CUPTI_CB_DOMAIN_NVTX, id, &data);
}

static void mark(const char *message)
{
    params_t params = {message};

    tell(CUPTI_CBID_NVTX_nvtxMarkA, "nvtxMarkA", &params, NULL);
}

static int push(const char *message)
{
    params_t params = {message};
    int level = depth++;

    tell(CUPTI_CBID_NVTX_nvtxRangePushA, "nvtxRangePushA", &params, &level);
    return level;
}

static int pop(void)
{
    int level = depth ? --depth : -1;

    tell(CUPTI_CBID_NVTX_nvtxRangePop, "nvtxRangePop", NULL, &level);
    return level;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
    static const struct {
        unsigned at; /* NVTX's number of a core function */
        nvtx_fn fn;
    } ours[] = {{2, (nvtx_fn)mark}, {9, (nvtx_fn)push}, {11, (nvtx_fn)pop}};
    const callbacks_t *callbacks = export_table ? export_table(1) : NULL;
    nvtx_fn **table = NULL;
    unsigned count = 0;

    if (!callbacks || !callbacks->functions(1, &table, &count))
        return 0;
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (ours[i].at < count && table[ours[i].at])
            *table[ours[i].at] = ours[i].fn;
    return 1;
}
