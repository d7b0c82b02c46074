/*
 * module.c - modules are text: lines that begin with "//softgpu" say what a kernel does (README.md). All
 * other lines are left alone, so that one file can also be PTX for a real GPU.
 */
#include "softgpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct global {
    struct global *next;
    char name[128];
    uint64_t bytes;
    bool managed;
    CUdeviceptr addr;
} global_t;

/* One step of a kernel: an operation with up to four operands, each a parameter (plus an offset, for what lies
 * inside a struct) or a number. */
typedef struct operand {
    int param; /* -1: a number */
    size_t offset;
    double number;
} operand_t;

typedef struct sg_step {
    struct sg_step *next;
    char what[16];
    char type; /* f f32, d f64, i u32, l u64, b byte */
    operand_t on[4];
    unsigned n;
} step_t;

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

static size_t type_bytes(char type)
{
    return type == 'd' || type == 'l' ? 8 : type == 'b' ? 1 : 4;
}

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

/* ---- launches ---------------------------------------------------------------------------------------------- */

CUresult sg_kernel_pack(sg_function_t *f, void **params, void **extra, sg_kernel_args_t *out)
{
    const char *buffer = NULL;
    size_t bytes = 0;

    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    for (void **e = extra; e && e[0]; e += 2) {
        if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = e[1];
        else if (e[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(size_t *)e[1];
    }
    if (f->n_params && !params && (!buffer || bytes < f->params_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    out->function = f;
    out->block_of_params = calloc(1, f->params_bytes + 8);
    out->params = calloc(f->n_params + 1, sizeof(void *)); /* NOLINT: an array of pointers */
    for (unsigned i = 0; i < f->n_params; i++) {
        const sg_param_t *p = &f->params[i];
        out->params[i] = out->block_of_params + p->offset;
        memcpy(out->params[i], params ? params[i] : buffer + p->offset, p->bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction handle, const unsigned dims[7], CUstream stream_handle,
                       void **params, void **extra)
{
    sg_function_t *function;
    sg_stream_t *stream;
    CUresult result = sg_function_of(handle, &function);
    sg_op_t op = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (result == CUDA_SUCCESS)
        result = sg_stream_of(stream_handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    static const unsigned most[] = {INT32_MAX, 65535, 65535, 1024, 1024, 64, 232448};
    for (int i = 0; i < 7; i++)
        if ((i < 6 && dims[i] == 0) || dims[i] > most[i])
            return CUDA_ERROR_INVALID_VALUE;
    if ((uint64_t)dims[3] * dims[4] * dims[5] > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = sg_kernel_pack(function, params, extra, &op.u.kernel)) != CUDA_SUCCESS)
        return result;
    memcpy(op.u.kernel.grid, dims, sizeof(op.u.kernel.grid));
    memcpy(op.u.kernel.block, dims + 3, sizeof(op.u.kernel.block));
    op.u.kernel.shared_bytes = dims[6];
    return sg_enqueue(stream, &op);
}

CUresult sg_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
    return launch(f, (unsigned[]){gx, gy, gz, bx, by, bz, shared}, stream, params, extra);
}

CUresult sg_launch_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                               void **params)
{
    if ((uint64_t)gx * gy * gz > 4ull * 2) /* multiprocessors, and what fits on each */
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return launch(f, (unsigned[]){gx, gy, gz, bx, by, bz, shared}, stream, params, NULL);
}

CUresult sg_launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(f,
                  (unsigned[]){c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                               c->blockDimZ, c->sharedMemBytes},
                  c->hStream, params, extra);
}

/* ---- running ------------------------------------------------------------------------------------------------- */

static double number(const sg_kernel_args_t *k, const operand_t *o)
{
    if (o->param < 0)
        return o->number;
    const char *at = (char *)k->params[o->param] + o->offset;
    switch (k->function->params[o->param].type) {
    case 'f':
        return (double)*(const float *)at;
    case 'd':
        return *(const double *)at;
    case 'i':
        return *(const uint32_t *)at;
    default:
        return (double)*(const uint64_t *)at;
    }
}

static uint64_t pointer(const sg_kernel_args_t *k, const operand_t *o)
{
    uint64_t addr = 0;

    if (o->param >= 0)
        memcpy(&addr, (char *)k->params[o->param] + o->offset, sizeof(addr));
    return addr;
}

static double load(char type, const char *at)
{
    return type == 'f'   ? (double)*(const float *)at
           : type == 'd' ? *(const double *)at
           : type == 'l' ? (double)*(const uint64_t *)at
           : type == 'b' ? (double)*(const uint8_t *)at
                         : (double)*(const uint32_t *)at;
}

static void store(char type, char *at, double value)
{
    if (type == 'f')
        *(float *)at = (float)value;
    else if (type == 'd')
        *(double *)at = value;
    else if (type == 'l')
        *(uint64_t *)at = (uint64_t)value;
    else if (type == 'b')
        *(uint8_t *)at = (uint8_t)value;
    else
        *(uint32_t *)at = (uint32_t)value;
}

/* Front to back in pieces of a driver's block, all operands side by side: their faults alternate as those of a
 * sweep do. False: an address that is no memory. */
#define PIECE (2u << 20)
static bool step_run(const sg_kernel_args_t *k, const step_t *s, int device)
{
    size_t size = s->type ? type_bytes(s->type) : 1;
    bool two = strcmp(s->what, "copy") == 0 || strcmp(s->what, "axpy") == 0,
         sum = strcmp(s->what, "sum") == 0;
    uint64_t to = pointer(k, &s->on[0]), from = two || sum ? pointer(k, &s->on[1]) : 0;
    uint64_t n = (uint64_t)number(k, &s->on[s->n >= 3 && (two || sum) ? 2 : 1]);
    bool writes = strcmp(s->what, "fill") == 0 || strcmp(s->what, "write") == 0 ||
                  strcmp(s->what, "copy") == 0;
    double value = s->n == 4                   ? number(k, &s->on[3])
                   : s->n == 3 && !two && !sum ? number(k, &s->on[2])
                                               : 0;
    double total = 0;

    if (strcmp(s->what, "stride") == 0) { /* one byte read of every so many */
        for (uint64_t at = 0; at < n; at += value < 1 ? 1 : (uint64_t)value)
            if (!sg_touch(device, to + at, 1, false, false))
                return false;
        return true;
    }
    for (uint64_t i = 0; i < n;) {
        uint64_t addr = (sum ? from : to) + i * size, m = (PIECE - addr % PIECE) / size;
        m = m == 0 ? 1 : m < n - i ? m : n - i;
        /* "add" and "axpy" read first: the fault is a read's, as it is of real kernels. */
        char *x = sg_touch(device, addr, m * size, writes, false);
        char *y = two ? sg_touch(device, from + i * size, m * size, false, false) : NULL;
        if (!x || (two && !y))
            return false;
        if (s->type == 0) {
            i += m;
            continue;
        }
        if (!writes && !sum && !(x = sg_touch(device, addr, m * size, true, false)))
            return false;
        for (uint64_t j = 0; j < m; j++) {
            char *at = x + j * size;
            if (sum)
                total += load(s->type, at);
            else if (strcmp(s->what, "copy") == 0)
                memcpy(at, y + j * size, size);
            else if (strcmp(s->what, "fill") == 0)
                store(s->type, at, value);
            else if (two)
                store(s->type, at, load(s->type, at) + value * load(s->type, y + j * size));
            else
                store(s->type, at, load(s->type, at) + value);
        }
        i += m;
    }
    if (sum) {
        char *at = sg_touch(device, to, size, true, false);
        if (!at)
            return false;
        store(s->type, at, total);
    }
    return true;
}

void sg_kernel_run(const sg_kernel_args_t *k, sg_stream_t *stream, uint32_t correlation)
{
    sg_context_t *context = stream->context;
    sg_record_t record = {.start = sg_now_ns()};

    for (const step_t *s = k->function->steps; s; s = s->next) {
        if (strcmp(s->what, "wait") == 0) {
            uint64_t ns = (uint64_t)number(k, &s->on[0]);
            nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)},
                      NULL);
        } else if (strcmp(s->what, "trap") == 0) {
            sg_context_fails(context, CUDA_ERROR_LAUNCH_FAILED);
            return;
        } else if (!step_run(k, s, context->device)) {
            sg_context_fails(context, CUDA_ERROR_ILLEGAL_ADDRESS);
            return;
        }
    }
    record.end = sg_now_ns();
    record.device = (uint32_t)context->device;
    record.context = context->id;
    record.stream = stream->id;
    record.correlation = correlation;
    for (int i = 0; i < 3; i++) {
        record.grid[i] = k->grid[i];
        record.block[i] = k->block[i];
    }
    record.shared_bytes = k->shared_bytes;
    record.name = k->function->name;
    sg_record(&record);
}
