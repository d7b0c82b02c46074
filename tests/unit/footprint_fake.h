/* footprint_fake.h - a kernel with a pointer into region 1 that is launched round after round; what it touches
 * is the test's to say. */
#ifndef UM_FOOTPRINT_FAKE_H
#define UM_FOOTPRINT_FAKE_H

#include "program_fake.h"

#define KERNEL 7u

static um_arg_t arg[8];
static uint32_t n_args;
static uint64_t module_hash;
static uint32_t grid = 1000, grid_y, grid_z;

static inline void define(uint32_t kernel, const char *name)
{
    um_event_t event = {.type = UM_EV_KERNEL, .time_ns = tick()};

    event.u.kernel = (um_ev_kernel_t){.kernel = kernel, .name = name, .module_hash = module_hash};
    feed(event);
}

static inline void start(uint64_t bytes)
{
    program_start("first_touch,ahead", NULL);
    define(KERNEL, "kernel");
    allocate(1, 0, bytes);
}

static inline void point(uint32_t slot, uint64_t offset)
{
    arg[n_args++] = (um_arg_t){.slot = slot, .region = 1, .region_offset_bytes = offset};
}

/* A launch with what was pointed to; returns the number of its first hint. */
static inline unsigned launch(uint32_t kernel)
{
    um_event_t event = event_launch(tick(), ++program.correlation, arg, n_args);
    unsigned first = program.n_hints;

    event.u.launch.kernel = kernel;
    event.u.launch.grid[0] = grid;
    event.u.launch.grid[1] = grid_y;
    event.u.launch.grid[2] = grid_z;
    event.u.launch.block[0] = 256;
    tick();
    feed(event);
    n_args = 0;
    return first;
}

static inline void taken_by_gpu(uint64_t offset, uint64_t bytes)
{
    fake_set(&program.tables, offset, bytes, false);
}

static inline uint64_t hinted(unsigned first)
{
    uint64_t bytes = 0;

    for (unsigned i = first; i < program.n_hints; i++)
        bytes += program.hint[i].device >= 0 ? program.hint[i].bytes : 0;
    return bytes;
}

/* The CPU writes all of it, a kernel with a pointer to its start touches the first bytes of it. Returns the
 * bytes hinted. */
static inline uint64_t round_of(uint64_t bytes, uint64_t touched)
{
    unsigned first;

    program.tables.now_ns += 10000000; /* free memory is asked for now and then */
    touch(0, bytes);
    point(0, 0);
    first = launch(KERNEL);
    taken_by_gpu(0, touched);
    wait_all();
    return hinted(first);
}

#endif
