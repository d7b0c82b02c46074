#include "driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local bool um_cuda_own;

typedef struct um_symbol {
    const char *name;
    size_t offset; /* of the function pointer in the table */
    bool required;
} um_symbol_t;

#define UM_ROW(required, member, symbol, parameters)                                               \
    {symbol, offsetof(um_cuda_t, member), required},
static const um_symbol_t um_cuda_symbol_table[] = {UM_CUDA_SYMBOLS(UM_ROW){NULL, 0, false}};
#undef UM_ROW
#define UM_ROW(required, member, symbol, parameters)                                               \
    {symbol, offsetof(um_cupti_t, member), required},
static const um_symbol_t um_cupti_symbol_table[] = {UM_CUPTI_SYMBOLS(UM_ROW){NULL, 0, false}};
#undef UM_ROW

static um_cuda_t um_the_cuda;
static um_cupti_t um_the_cupti;
static char um_the_cuda_reason[256], um_the_cupti_reason[256];
static pthread_once_t um_cuda_once = PTHREAD_ONCE_INIT, um_cupti_once = PTHREAD_ONCE_INIT;

static um_status_t um_fill(void *library, const um_symbol_t *symbols, void *table, char *reason,
                           size_t reason_bytes)
{
    for (const um_symbol_t *s = symbols; s->name; s++) {
        void *address = dlsym(library, s->name);
        if (!address && s->required) {
            snprintf(reason, reason_bytes, "the library lacks %s", s->name);
            return UM_ERR_UNSUPPORTED;
        }
        memcpy((char *)table + s->offset, &address, sizeof(address));
    }
    return UM_OK;
}

/* Never closed once it worked: CUPTI crashes programs that unload it (FIELD). */
static um_status_t um_open(const char *path, const um_symbol_t *symbols, void *table,
                           void **library, char *reason, size_t reason_bytes)
{
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) {
        const char *error = dlerror();
        snprintf(reason, reason_bytes, "%s", error ? error : "cannot be opened");
        return UM_ERR_NOT_FOUND;
    }
    um_status_t status = um_fill(*library, symbols, table, reason, reason_bytes);
    if (status != UM_OK)
        dlclose(*library);
    return status;
}

um_status_t um_cuda_open(const char *path, um_cuda_t *out, char *reason, size_t reason_bytes)
{
    um_cuda_t table = {0};
    um_status_t status =
        um_open(path, um_cuda_symbol_table, &table, &table.library, reason, reason_bytes);

    memset(out, 0, sizeof(*out));
    if (status != UM_OK)
        return status;
    um_cuda_own = true;
    if (table.driver_version(&table.version) != CUDA_SUCCESS)
        table.version = 0;
    um_cuda_own = false;
    *out = table;
    return UM_OK;
}

um_status_t um_cupti_open(const char *path, um_cupti_t *out, char *reason, size_t reason_bytes)
{
    um_cupti_t table = {0};
    um_status_t status =
        um_open(path, um_cupti_symbol_table, &table, &table.library, reason, reason_bytes);

    memset(out, 0, sizeof(*out));
    if (status != UM_OK)
        return status;
    if (!table.version || table.version(&table.api) != CUPTI_SUCCESS)
        table.api = 0;
    struct link_map *map = NULL;
    if (dlinfo(table.library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
        snprintf(table.path, sizeof(table.path), "%s", map->l_name);
    else
        snprintf(table.path, sizeof(table.path), "%s", path);
    *out = table;
    return UM_OK;
}

/* The driver is only ever libcuda.so.1: a copy that the program loaded is found by that name. */
static void um_cuda_find(void)
{
    um_status_t status =
        um_cuda_open("libcuda.so.1", &um_the_cuda, um_the_cuda_reason, sizeof(um_the_cuda_reason));
    if (status == UM_ERR_NOT_FOUND)
        snprintf(um_the_cuda_reason, sizeof(um_the_cuda_reason),
                 "no CUDA driver here (libcuda.so.1 cannot be loaded)");
}

const um_cuda_t *um_cuda(void)
{
    pthread_once(&um_cuda_once, um_cuda_find);
    return &um_the_cuda;
}

const char *um_cuda_reason(void)
{
    um_cuda();
    return um_the_cuda_reason;
}

/* ---- where CUPTI may be -------------------------------------------------------------------- */

static const char *const um_cupti_names[] = {"libcupti.so.13", "libcupti.so.12",
                                             "libcupti.so.11.8"};
static const int um_cupti_majors[] = {13, 12, 11};
#define UM_CUPTI_NAMES (sizeof(um_cupti_names) / sizeof(*um_cupti_names))

typedef struct um_found {
    char cupti[512];   /* path of a libcupti that is already loaded */
    char runtime[512]; /* directory of the program's libcudart */
} um_found_t;

static int um_look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
    um_found_t *found = ctx;
    const char *path = info->dlpi_name;
    const char *slash = path ? strrchr(path, '/') : NULL;

    (void)size;
    if (!slash)
        return 0;
    if (!*found->cupti && strncmp(slash + 1, "libcupti.so", 11) == 0)
        snprintf(found->cupti, sizeof(found->cupti), "%s", path);
    if (!*found->runtime && strncmp(slash + 1, "libcudart.so", 12) == 0)
        snprintf(found->runtime, sizeof(found->runtime), "%.*s", (int)(slash - path), path);
    return 0;
}

/* An older CUPTI works under a newer driver, hardly ever the other way round: the driver's own major
 * version first, then downwards, then what is left. */
static size_t um_cupti_order(size_t *order)
{
    int major = um_cuda()->version / 1000;
    size_t n = 0;

    for (size_t i = 0; i < UM_CUPTI_NAMES; i++)
        if (major == 0 || um_cupti_majors[i] <= major)
            order[n++] = i;
    for (size_t i = UM_CUPTI_NAMES; i-- > 0;)
        if (major != 0 && um_cupti_majors[i] > major)
            order[n++] = i;
    return n;
}

/* Of a CUPTI that is there and of no use it is said why. */
static char um_cupti_unfit[200];

static bool um_cupti_try(const char *path)
{
    um_status_t status =
        um_cupti_open(path, &um_the_cupti, um_the_cupti_reason, sizeof(um_the_cupti_reason));

    if (status == UM_ERR_UNSUPPORTED && !*um_cupti_unfit)
        snprintf(um_cupti_unfit, sizeof(um_cupti_unfit), "%.199s", um_the_cupti_reason);
    return status == UM_OK;
}

/* Tries every name in one directory, the whole order over the directories outside: a toolkit that
 * the program uses is preferred to a newer one that it does not. */
static bool um_cupti_try_in(const char *root, const char *sub)
{
    size_t order[UM_CUPTI_NAMES];
    size_t n = um_cupti_order(order);
    char path[1024];

    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s%s%s", root, sub, *sub ? "/" : "",
                 um_cupti_names[order[i]]);
        FILE *file =
            fopen(path, "re"); /* dlopen of what is not there is slow and noisy in ldd tools */
        if (!file)
            continue;
        fclose(file);
        if (um_cupti_try(path))
            return true;
    }
    return false;
}

static void um_cupti_find(void)
{
    static const char *const below_runtime[] = {"", "../extras/CUPTI/lib64",
                                                "../../cuda_cupti/lib"};
    static const char *const below_root[] = {"lib64", "extras/CUPTI/lib64", "lib"};
    const char *roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    um_found_t found = {{0}, {0}};
    size_t order[UM_CUPTI_NAMES];

    dl_iterate_phdr(um_look_at, &found);
    if (*found.cupti && um_cupti_try(found.cupti))
        return;
    for (size_t i = 0; *found.runtime && i < sizeof(below_runtime) / sizeof(*below_runtime); i++)
        if (um_cupti_try_in(found.runtime, below_runtime[i]))
            return;
    for (size_t r = 0; r < sizeof(roots) / sizeof(*roots); r++)
        for (size_t i = 0; roots[r] && i < sizeof(below_root) / sizeof(*below_root); i++)
            if (um_cupti_try_in(roots[r], below_root[i]))
                return;
    size_t n = um_cupti_order(order);
    for (size_t i = 0; i < n; i++)
        if (um_cupti_try(um_cupti_names[order[i]]))
            return;
    snprintf(um_the_cupti_reason, sizeof(um_the_cupti_reason), "%s%s",
             *um_cupti_unfit ? "CUPTI is of no use here: " : "CUPTI not found",
             *um_cupti_unfit ? um_cupti_unfit
                             : " (libcupti.so.13, .12 or .11.8: set CUDA_HOME or LD_LIBRARY_PATH)");
}

const um_cupti_t *um_cupti(void)
{
    pthread_once(&um_cupti_once, um_cupti_find);
    return &um_the_cupti;
}

const char *um_cupti_reason(void)
{
    return um_cupti()->library ? "" : um_the_cupti_reason;
}

/* ---- calls that have more than one form ---------------------------------------------------- */

static um_location_t um_cuda_location(int32_t device)
{
    return device == UM_DEVICE_HOST ? (um_location_t){UM_LOCATION_HOST, 0}
                                    : (um_location_t){UM_LOCATION_DEVICE, device};
}

CUresult um_cuda_prefetch(uint64_t addr, uint64_t bytes, int32_t device, CUstream stream)
{
    const um_cuda_t *cuda = um_cuda();

    if (cuda->mem_prefetch_v2)
        return cuda->mem_prefetch_v2(addr, bytes, um_cuda_location(device), 0, stream);
    if (cuda->mem_prefetch)
        return cuda->mem_prefetch(addr, bytes, device == UM_DEVICE_HOST ? CU_DEVICE_CPU : device,
                                  stream);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult um_cuda_advise(uint64_t addr, uint64_t bytes, um_hint_kind_t kind, int32_t device)
{
    static const CUmem_advise advice[UM_HINT_KIND_COUNT] = {
        [UM_HINT_READ_MOSTLY] = CU_MEM_ADVISE_SET_READ_MOSTLY,
        [UM_HINT_UNSET_READ_MOSTLY] = CU_MEM_ADVISE_UNSET_READ_MOSTLY,
        [UM_HINT_PREFERRED_LOCATION] = CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
        [UM_HINT_UNSET_PREFERRED_LOCATION] = CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION,
        [UM_HINT_ACCESSED_BY] = CU_MEM_ADVISE_SET_ACCESSED_BY,
        [UM_HINT_UNSET_ACCESSED_BY] = CU_MEM_ADVISE_UNSET_ACCESSED_BY,
    };
    const um_cuda_t *cuda = um_cuda();

    if ((unsigned)kind >= UM_HINT_KIND_COUNT || !advice[kind])
        return CUDA_ERROR_NOT_SUPPORTED;
    if (cuda->mem_advise_v2)
        return cuda->mem_advise_v2(addr, bytes, advice[kind], um_cuda_location(device));
    if (cuda->mem_advise)
        return cuda->mem_advise(addr, bytes, advice[kind],
                                device == UM_DEVICE_HOST ? CU_DEVICE_CPU : device);
    return CUDA_ERROR_NOT_SUPPORTED;
}

const char *um_cupti_sentence(CUptiResult result)
{
    /* By number: 40 and up are not in the headers of CUDA 11.8. */
    static const struct {
        int code;
        const char *text;
    } table[] = {
        {13, "CUPTI is not ready yet (no context exists)"},
        {14, "this CUPTI does not fit the installed driver"},
        {15, "CUPTI cannot be initialised in this process"},
        {28, "unified-memory profiling is not supported on this operating system or architecture"},
        {29, "unified-memory profiling is not supported by a GPU of this process"},
        {30, "unified-memory profiling is not possible with several GPUs of which a pair has no "
             "peer access (CUDA_VISIBLE_DEVICES can leave one out)"},
        {31, "unified-memory profiling is not supported under the Multi-Process Service (MPS)"},
        {33, "profiling is not supported on this virtual GPU"},
        {35, "the administrator has restricted profiling (NVreg_RestrictProfilingToAdminUsers)"},
        {39, "another profiler or CUPTI client is already in this process"},
        {40, "profiling is not permitted on this virtual GPU"},
        {41, "profiling is not possible in confidential-computing mode"},
        {42, "profiling is not supported on this mining GPU"},
        {43, "profiling is not supported on this MIG device"},
        {44, "profiling is not supported with SLI"},
        {45, "profiling is not supported under WSL on this device"},
    };
    const char *text = NULL;

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].code == (int)result)
            return table[i].text;
    if (um_the_cupti.result_string && um_the_cupti.result_string(result, &text) == CUPTI_SUCCESS &&
        text)
        return text;
    return "CUPTI refused for a reason it does not name";
}
