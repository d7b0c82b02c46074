/*
 * gen_program.h - what a pattern is written in: regions, kernels, launches, host phases, waits.
 *
 * One thread of the program; time passes by itself. Sizes and offsets are bytes; accesses are widened
 * to whole pages and cut at the end of their region. After a failure all of it does nothing.
 */
#ifndef UM_GEN_PROGRAM_H
#define UM_GEN_PROGRAM_H

#include "gen.h"

#define UM_GEN_ARGS_MAX 8

/* How an access goes with the one before it in the same launch or phase. */
typedef enum um_gen_order { UM_GEN_AFTER = 0, UM_GEN_BESIDE = 1 } um_gen_order_t;

typedef struct um_gen um_gen_t;

/* Runs a program from its first event to its last, and frees what it has left; options complete. UM_ERR_NO_MEMORY. */
um_status_t um_gen_run(const um_gen_options_t *options, void (*run)(um_gen_t *gen), um_event_fn fn,
                       void *ctx);

const um_gen_options_t *um_gen_options(const um_gen_t *gen);
bool um_gen_failed(const um_gen_t *gen);

/* 0 .. below-1, evenly; below >= 1. */
uint64_t um_gen_random(um_gen_t *gen, uint64_t below);
double um_gen_uniform(um_gen_t *gen); /* in (0, 1] */

/* A managed region; label may be NULL. Returns its id. */
uint32_t um_gen_region(um_gen_t *gen, const char *label, uint64_t bytes);
/* Of another family: what kernels do there costs nothing but its time. */
uint32_t um_gen_memory(um_gen_t *gen, const char *label, uint64_t bytes, um_family_t family);
/* A prefetch or advice by the program, on a stream of the device. */
void um_gen_hint(um_gen_t *gen, um_hint_kind_t kind, int32_t device, uint32_t region, uint64_t at,
                 uint64_t bytes, uint32_t stream);
void um_gen_release(um_gen_t *gen, uint32_t region);

/* A kernel by its mangled name; a letter a parameter: c pointer to const, p pointer, v 8 bytes, i 4
 * bytes. Returns its id. */
uint32_t um_gen_kernel(um_gen_t *gen, const char *mangled, const char *params);

/* A launch: begun, its pointer parameters and accesses given in any order, ended. `at` of an argument
 * is where in the region it points. threads sets the grid, 256 to a block. Streams count from 0 and
 * belong to the device. */
void um_gen_launch(um_gen_t *gen, uint32_t kernel, uint32_t stream, int32_t device,
                   uint64_t threads);
void um_gen_arg(um_gen_t *gen, uint32_t slot, uint32_t region, uint64_t at);
void um_gen_access(um_gen_t *gen, um_access_kind_t kind, uint32_t region, uint64_t at,
                   uint64_t bytes, um_gen_order_t order);
void um_gen_end(um_gen_t *gen);

/* The CPU sweeps a range, behind what it did before; kind READ or WRITE. */
void um_gen_host(um_gen_t *gen, um_access_kind_t kind, uint32_t region, uint64_t at,
                 uint64_t bytes);

void um_gen_wait(um_gen_t *gen); /* for everything */
void um_gen_wait_stream(um_gen_t *gen, uint32_t stream, int32_t device);

#endif
