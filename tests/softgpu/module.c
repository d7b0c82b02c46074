/*
 * module.c - modules are text: lines that begin with "//softgpu" say what a kernel does (README.md). All
 * other lines are left alone, so that one file can also be PTX for a real GPU.
 */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct global {
    struct global *next;
    char name[128];
    uint64_t bytes;
    bool managed;
    CUdeviceptr addr;
} global_t;

typedef struct CUmod_st {
    uint32_t magic, id;
    sg_context_t *context;
    sg_function_t *functions;
    global_t *globals;
    char *image, *cubin;
    size_t cubin_bytes;
    bool
        library; /* a CUlibrary: functions are CUkernels, loaded into a context when first needed */
    struct CUmod_st *loaded, *next;
} module_t;

static module_t *modules; /* under sg_lock */
static uint32_t n_modules;

/* ---- text ------------------------------------------------------------------------------------------- */

static char type_named(const char *name)
{
    return strcmp(name, "f32") == 0   ? 'f'
           : strcmp(name, "f64") == 0 ? 'd'
           : strcmp(name, "u64") == 0 ? 'l'
           : strcmp(name, "u8") == 0  ? 'b'
                                      : 'i';
}

static bool add_param(sg_function_t *function, char *text)
{
    char *name = strchr(text, ':');
    sg_param_t *p = &function->params[function->n_params];
    size_t align;

    if (!name || function->n_params == SG_PARAMS)
        return false;
    *name++ = '\0';
    snprintf(p->name, sizeof(p->name), "%s", name);
    if (strcmp(text, "ptr") == 0) {
        p->type = 'p';
        p->bytes = align = 8;
    } else if (strncmp(text, "bytes", 5) == 0) {
        p->type = 's';
        p->bytes = strtoul(text + 5, NULL, 10);
        align = 8;
    } else {
        p->type = type_named(text);
        p->bytes = align = type_bytes(p->type);
    }
    p->offset = (function->params_bytes + align - 1) / align * align;
    function->params_bytes = p->offset + p->bytes;
    function->n_params++;
    return p->bytes != 0;
}

static bool add_operand(const sg_function_t *function, step_t *step, const char *text)
{
    operand_t *o = &step->on[step->n];
    size_t length = strcspn(text, "+");

    if (step->n == 4)
        return false;
    *o = (operand_t){.param = -1};
    for (unsigned i = 0; i < function->n_params; i++)
        if (strncmp(function->params[i].name, text, length) == 0 &&
            !function->params[i].name[length]) {
            o->param = (int)i;
            o->offset = text[length] ? strtoul(text + length + 1, NULL, 0) : 0;
        }
    if (o->param < 0) {
        char *end;
        o->number = strtod(text, &end);
        if (*end)
            return false;
    }
    step->n++;
    return true;
}

static const struct {
    const char *name;
    unsigned operands;
    bool typed;
} operations[] = {
    {"fill", 3, true},  {"add", 3, true},   {"copy", 3, true},   {"sum", 3, true},
    {"axpy", 4, true},  {"read", 2, false}, {"write", 2, false}, {"stride", 3, false},
    {"wait", 1, false}, {"trap", 0, false},
};

static bool parse_line(module_t *module, char *line)
{
    char *word[40] = {NULL}, *save = NULL;
    int n = 0;

    for (char *w = strtok_r(line, " \t\r", &save); w && *w != '#' && n < 40;
         w = strtok_r(NULL, " \t\r", &save))
        word[n++] = w;
    if (n == 0)
        return true;
    if (n == 3 && (strcmp(word[0], "managed") == 0 || strcmp(word[0], "global") == 0)) {
        global_t *g = calloc(1, sizeof(*g));
        snprintf(g->name, sizeof(g->name), "%s", word[1]);
        g->bytes = strtoull(word[2], NULL, 0);
        g->managed = *word[0] == 'm';
        g->next = module->globals;
        module->globals = g;
        return g->bytes != 0;
    }
    if (n >= 2 && strcmp(word[0], "kernel") == 0) {
        sg_function_t *f = calloc(1, sizeof(*f));
        f->magic = module->library ? SG_KERNEL : SG_FUNCTION;
        f->name = strdup(word[1]);
        f->module = module;
        f->next = module->functions;
        module->functions = f;
        for (int i = 2; i < n; i++)
            if (!add_param(f, word[i]))
                return false;
        return true;
    }
    sg_function_t *f = module->functions;
    for (size_t k = 0; f && k < sizeof(operations) / sizeof(*operations); k++) {
        if (strcmp(operations[k].name, word[0]) != 0)
            continue;
        step_t *step = calloc(1, sizeof(*step)), **last = &f->steps;
        int i = 1;
        snprintf(step->what, sizeof(step->what), "%s", word[0]);
        if (operations[k].typed && n > 1)
            step->type = type_named(word[i++]);
        while (*last)
            last = &(*last)->next;
        *last = step;
        for (; i < n; i++)
            if (!add_operand(f, step, word[i]))
                return false;
        return step->n == operations[k].operands;
    }
    return false;
}

static CUresult parse(module_t *module, const char *image)
{
    char *text = strdup(image), *line = text;
    bool any = false, good = true;

    while (line && *line && good) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        if (strncmp(line, "//softgpu ", 10) == 0) {
            any = true;
            good = parse_line(module, line + 10);
            if (!good)
                fprintf(stderr, "softgpu: not a line that a module may have: %s\n", line);
        }
        line = end ? end + 1 : NULL;
    }
    free(text);
    return any && good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* ---- modules -------------------------------------------------------------------------------------------- */

static CUresult module_new(const char *image, bool library, module_t **out)
{
    module_t *module = calloc(1, sizeof(*module));
    CUresult result = CUDA_SUCCESS;

    if (!image || strncmp(image, "\177ELF", 4) == 0)
        return CUDA_ERROR_INVALID_IMAGE;
    module->magic = SG_MODULE;
    module->library = library;
    module->context = sg_context();
    if ((result = parse(module, image)) != CUDA_SUCCESS)
        return result;
    module->image = strdup(image);
    module->cubin = sg_cubin(module->functions, &module->cubin_bytes);
    for (global_t *g = module->globals; g && !library && result == CUDA_SUCCESS; g = g->next)
        result = sg_memory_new(g->managed ? SG_MANAGED : SG_DEVICE, g->bytes, CU_MEM_ATTACH_GLOBAL,
                               &g->addr);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&sg_lock);
    module->id = ++n_modules;
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&sg_lock);
    if (sg_client && !library)
        sg_client->module(module->context, module->id, module->cubin, module->cubin_bytes, true);
    *out = module;
    return CUDA_SUCCESS;
}

static void module_end(module_t *module, bool memory)
{
    if (sg_client && !module->library)
        sg_client->module(module->context, module->id, module->cubin, module->cubin_bytes, false);
    module->magic = SG_GONE;
    for (global_t *g = module->globals; g && memory; g = g->next)
        if (g->addr)
            sg_memory_free(g->addr, 1u << SG_MANAGED | 1u << SG_DEVICE);
    for (sg_function_t *f = module->functions; f; f = f->next)
        f->magic = SG_GONE;
}

void sg_modules_of_context_free(sg_context_t *context)
{
    for (module_t *m = modules; m; m = m->next)
        if (m->magic == SG_MODULE && m->context == context && !m->library)
            module_end(m, false);
}

CUresult sg_module_load(CUmodule *out, const void *image)
{
    return out ? module_new(image, false, out) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_module_load_ex(CUmodule *out, const void *image, unsigned n, CUjit_option *options,
                           void **values)
{
    (void)n;
    (void)options;
    (void)values;
    return sg_module_load(out, image);
}

CUresult sg_module_load_file(CUmodule *out, const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 20);

    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0) {
        free(text);
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    fclose(file);
    CUresult result = sg_module_load(out, text);
    free(text);
    return result;
}

CUresult sg_module_unload(CUmodule module)
{
    if (!sg_is(module, SG_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    sg_context_wait(sg_context());
    module_end(module, true);
    return CUDA_SUCCESS;
}

static sg_function_t *function_named(const module_t *module, const char *name)
{
    sg_function_t *f = module->functions;

    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    return f;
}

CUresult sg_module_function(CUfunction *out, CUmodule module, const char *name)
{
    if (!sg_is(module, SG_MODULE) || module->library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    *out = function_named(module, name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult sg_module_global(CUdeviceptr *addr, size_t *bytes, CUmodule module, const char *name)
{
    if (!sg_is(module, SG_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (const global_t *g = module->globals; g; g = g->next)
        if (strcmp(g->name, name) == 0) {
            if (addr)
                *addr = g->addr;
            if (bytes)
                *bytes = g->bytes;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- libraries ------------------------------------------------------------------------------------------- */

static CUresult library_loaded(module_t *library, module_t **out)
{
    CUresult result = CUDA_SUCCESS;

    if (!sg_is(library, SG_MODULE) || !library->library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!library->loaded || library->loaded->magic != SG_MODULE)
        result = module_new(library->image, false, &library->loaded);
    *out = library->loaded;
    return result;
}

CUresult sg_library_load(CUlibrary *out, const void *code, CUjit_option *options, void **values,
                         unsigned n, void *library_options, void **library_values,
                         unsigned n_library)
{
    module_t *module = NULL;
    CUresult result = module_new(code, true, &module);

    (void)options;
    (void)values;
    (void)n;
    (void)library_options;
    (void)library_values;
    (void)n_library;
    *out = (CUlibrary)module;
    return result;
}

CUresult sg_library_unload(CUlibrary library)
{
    module_t *module = (module_t *)library;

    if (!sg_is(module, SG_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (module->loaded && module->loaded->magic == SG_MODULE)
        module_end(module->loaded, true);
    module_end(module, false);
    return CUDA_SUCCESS;
}

CUresult sg_library_kernel(CUkernel *out, CUlibrary library, const char *name)
{
    module_t *module = (module_t *)library;

    if (!sg_is(module, SG_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUkernel)function_named(module, name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult sg_library_count(unsigned *count, CUlibrary library)
{
    const module_t *module = (module_t *)library;

    if (!sg_is(module, SG_MODULE) || !module->library)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = 0;
    for (const sg_function_t *f = module->functions; f; f = f->next)
        ++*count;
    return CUDA_SUCCESS;
}

CUresult sg_library_kernels(CUkernel *kernels, unsigned most, CUlibrary library)
{
    const module_t *module = (module_t *)library;
    sg_function_t *f = module->functions;

    if (!sg_is(module, SG_MODULE) || !module->library)
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; f && i < most; f = f->next)
        kernels[i++] = (CUkernel)f;
    return CUDA_SUCCESS;
}

CUresult sg_func_load(CUfunction f)
{
    if (!sg_is(f, SG_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    f->loaded = true;
    return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12040
CUresult sg_func_is_loaded(CUfunctionLoadingState *state, CUfunction f)
{
    if (!sg_is(f, SG_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *state = f->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}
#endif

CUresult sg_library_module(CUmodule *out, CUlibrary library)
{
    return library_loaded((module_t *)library, out);
}

CUresult sg_library_global(CUdeviceptr *addr, size_t *bytes, CUlibrary library, const char *name)
{
    module_t *module = NULL;
    CUresult result = library_loaded((module_t *)library, &module);

    return result ? result : sg_module_global(addr, bytes, module, name);
}

CUresult sg_kernel_function(CUfunction *out, CUkernel kernel)
{
    sg_function_t *function = NULL;
    CUresult result = sg_is(kernel, SG_KERNEL) ? sg_function_of((CUfunction)kernel, &function)
                                               : CUDA_ERROR_INVALID_HANDLE;

    *out = function;
    return result;
}

/* A CUkernel goes for the function of its library in the current context. */
CUresult sg_function_of(CUfunction handle, sg_function_t **out)
{
    module_t *module = NULL;

    if (sg_is(handle, SG_FUNCTION)) {
        *out = handle;
        return CUDA_SUCCESS;
    }
    if (!sg_is(handle, SG_KERNEL) || !sg_context())
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = library_loaded(handle->module, &module);
    if (result == CUDA_SUCCESS)
        *out = function_named(module, handle->name);
    return result;
}

/* ---- what functions tell of themselves --------------------------------------------------------------------- */

static CUresult param_info(const sg_function_t *f, size_t index, size_t *offset, size_t *bytes)
{
    if (index >= f->n_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = f->params[index].offset;
    if (bytes)
        *bytes = f->params[index].bytes;
    return CUDA_SUCCESS;
}

CUresult sg_func_param(CUfunction f, size_t index, size_t *offset, size_t *bytes)
{
    if (!f)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_is(f, SG_FUNCTION) ? param_info(f, index, offset, bytes) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_kernel_param(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    return sg_is(kernel, SG_KERNEL) ? param_info((sg_function_t *)kernel, index, offset, bytes)
                                    : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_func_name(const char **name, CUfunction f)
{
    if (!sg_is(f, SG_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = f->name;
    return CUDA_SUCCESS;
}

CUresult sg_kernel_name(const char **name, CUkernel kernel)
{
    if (!sg_is(kernel, SG_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = ((sg_function_t *)kernel)->name;
    return CUDA_SUCCESS;
}

CUresult sg_func_attribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
    if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return sg_is(f, SG_FUNCTION) || sg_is(f, SG_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_func_set_attribute(CUfunction f, CUfunction_attribute attribute, int value)
{
    (void)attribute;
    (void)value;
    return sg_is(f, SG_FUNCTION) || sg_is(f, SG_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_occupancy(int *blocks, CUfunction f, int size, size_t shared)
{
    (void)f;
    (void)size;
    (void)shared;
    *blocks = 2;
    return CUDA_SUCCESS;
}
