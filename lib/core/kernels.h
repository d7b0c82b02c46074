/*
 * kernels.h - what is known of a kernel, by the handle seen at launch, and the pointers and integers in its
 * arguments. Lookup is lock-free; definition serialises. Knows no CUDA: cupti/ fetches layouts.
 */
#ifndef UM_KERNELS_H
#define UM_KERNELS_H

#include "regions.h"

typedef struct um_kernels um_kernels_t;

typedef struct um_kernel {
    uint32_t id;
    uint64_t module_hash;
    const char *name; /* mangled; lives as long as the table */
    bool layout_known;
    uint32_t n_params;
    const um_param_t *params; /* lives as long as the table */
    uint32_t block_bytes;     /* end of the last parameter: the size of the parameter block */
    uint64_t scalars;         /* bit i: the i-th of the first 64 parameters may be an integer */
} um_kernel_t;

um_status_t um_kernels_new(um_kernels_t **out);
void um_kernels_free(um_kernels_t *kernels);
/* Lock-free; NULL when the handle is not known. The result lives as long as the table. */
const um_kernel_t *um_kernels_find(const um_kernels_t *kernels, uint64_t handle);
/* Defines (copies name and params, adds the flags that the name shows) or returns what another
 * thread defined meanwhile. params NULL = layout unknown; so is one that cannot be true (parameters
 * that overlap, are out of order or end past CUDA's 32,764 bytes). A kernel without parameters has
 * n_params 0 and any params but NULL. Errors: INVALID (handle 0, name NULL), NO_MEMORY. */
um_status_t um_kernels_define(um_kernels_t *kernels, uint64_t handle, const char *name,
                              uint64_t module_hash, const um_param_t *params, uint32_t n_params,
                              const um_kernel_t **out);
/* fn is called once for each kernel that is new (a forgotten one that comes back is not), by the thread that defined it, before any finder can
 * see it: what it posts precedes every launch of the kernel. Set before the first define; fn must not
 * define or forget. */
void um_kernels_on_new(um_kernels_t *kernels, void (*fn)(void *ctx, const um_kernel_t *kernel),
                       void *ctx);
/* A handle died (module unloaded): it may come back as another kernel. */
void um_kernels_forget(um_kernels_t *kernels, uint64_t handle);
void um_kernels_forget_module(um_kernels_t *kernels, uint64_t module_hash);

/* Parameter layout from the .nv.info.<kernel> section of a cubin image (EIATTR_KPARAM_INFO). Never
 * reads past image_bytes. Calls fn once per kernel found. UM_ERR_FORMAT when it is no sane ELF. */
typedef void (*um_cubin_kernel_fn)(void *ctx, const char *name, const um_param_t *params,
                                   uint32_t n_params);
um_status_t um_cubin_layouts(const void *image, size_t image_bytes, um_cubin_kernel_fn fn,
                             void *ctx);

/* Flags (um_param_flag_t) of each parameter as the mangled name shows them; writes at most max and
 * returns how many parameters the name has, 0 when it is not a C++ name or not understood. */
uint32_t um_mangled_param_flags(const char *mangled, uint32_t *flags, uint32_t max);

/* Finds every aligned 8-byte word of the parameters that points into a known region.
 * `params` is CUDA's kernelParams (one pointer per parameter; exactly kernel->n_params are read),
 * `block` the packed `extra` buffer instead; one of them is NULL. Writes at most max, returns the
 * number found (may exceed max). A packed buffer of a kernel whose layout is unknown is read as one
 * parameter, slot 0; kernelParams of such a kernel are not read. Takes no lock, allocates nothing. */
uint32_t um_kernel_args(const um_kernel_t *kernel, const um_regions_t *regions, void *const *params,
                        const void *block, size_t block_bytes, um_arg_t *out, uint32_t max);

/* Takes the whole parameters of 4 or 8 bytes, of the first 64, that may be integers: not what the mangled name shows to be a pointer
 * or floating point, nor those in which `args` (um_kernel_args of the same launch) has a pointer. params and block
 * as above. Returns how many, at most max, the first ones; none of a kernel whose layout is unknown. */
uint32_t um_kernel_scalars(const um_kernel_t *kernel, void *const *params, const void *block,
                           size_t block_bytes, const um_arg_t *args, uint32_t n_args,
                           um_scalar_t *out, uint32_t max);

#endif
