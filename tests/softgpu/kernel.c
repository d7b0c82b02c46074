/*
 * kernel.c - launching and running kernels.
 */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    function->loaded = true;
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
