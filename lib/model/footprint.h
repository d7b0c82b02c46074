/*
 * footprint.h - what does a kernel touch of an argument?
 *
 * Learned for each kernel (name and module), parameter and shape (grid and block size): where from its
 * pointer on it begins and ends, how much of that is touched, in which direction. What ends at a fixed place
 * or in proportion to the grid is foreseen for other shapes, too; where launches of one shape end differently, an
 * integer argument may say where (footprint_integer.c). What is touched in runs at equal distances is
 * known as such where the gaps are worth leaving out (footprint_stride.c).
 *
 * The evidence costs nothing: what the CPU had before a launch and has no more after it was waited for, a GPU has
 * taken. Of what is prefetched that says nothing; so now and then a few 2 MiB blocks ("sentinels") are left
 * out, ever fewer as long as nothing new shows. A page takes its 64 KiB along, and the driver's tree
 * prefetcher more: what is learned is what moves, which is what it costs. What the GPU only maps looks
 * untouched. Memory nobody has touched yet shows nothing. Records of faults, where there are some, say
 * what lies beyond the end that was believed, and the direction.
 *
 * An observation that contradicts what is believed halves the belief's weight; so does what a profile
 * said give way to what is seen.
 *
 * Threads: one (the bus thread). Memory is bounded; what was used longest ago is forgotten.
 */
#ifndef UM_FOOTPRINT_H
#define UM_FOOTPRINT_H

#include "residency.h"

/* Ids of kernels are given one after the other: of greater ones, as a forged trace may have, nothing is kept. */
#define UM_KERNEL_IDS_MAX (1u << 20)

typedef struct um_footprints um_footprints_t;

/* residency: whose page tables are asked; not owned. UM_ERR_NO_MEMORY. */
um_status_t um_footprints_new(um_residency_t *residency, um_footprints_t **out);
void um_footprints_free(um_footprints_t *footprints); /* NULL is fine */

/* Every event, after the residency model: KERNEL, SYNC, HINT, COPY, SET, CPU_FAULT, REGION_FREE and the
 * records matter; LEARNED of "footprint" brings what other runs knew. */
void um_footprints_observe(um_footprints_t *footprints, const um_event_t *event);

/* All that is known, as LEARNED events of "footprint". */
void um_footprints_learned(const um_footprints_t *footprints, um_event_fn emit, void *ctx);

/* Stands for the launch's kernel: of a kernel with a name in every run, of a graph in this one; 0 = not known. */
uint64_t um_footprints_kernel(const um_footprints_t *footprints, const um_ev_launch_t *launch);
uint64_t um_footprints_kernel_named(const char *name, uint64_t module_hash);
/* The name of a kernel that was defined, owned by the model; NULL = it was not. */
const char *um_footprints_name(const um_footprints_t *footprints, uint32_t kernel,
                               uint64_t *module_hash);

/* An argument of a launch; pointers into one 2 MiB block are one. */
typedef struct um_argument {
    uint32_t region; /* managed and alive */
    uint32_t
        slot; /* parameter index; of one inside a struct, offset / 4 << 12 besides; of a graph's,
                       its number */
    uint64_t addr;  /* its pointer */
    uint64_t limit; /* the launch's next pointer into the region, or the region's end */
} um_argument_t;

/* A launch begins; then each of its managed arguments, before the questions about them. */
void um_footprints_launch(um_footprints_t *footprints, const um_ev_launch_t *launch,
                          uint64_t now_ns);
void um_footprints_take(um_footprints_t *footprints, const um_ev_launch_t *launch,
                        const um_argument_t *argument);

/* Stands for the values of those integers of the launch that say where it ends; 0 = none is known to. */
uint64_t um_footprints_integers(const um_footprints_t *footprints, const um_ev_launch_t *launch);

/* What the launch is expected to touch of it; launches == 0 = nothing is known. end_bytes is cut at the
 * argument's limit; where it is only known how far the kernel goes at least, it is no less than
 * guess_bytes. */
um_footprint_t um_footprints_expect(const um_footprints_t *footprints, const um_ev_launch_t *launch,
                                    const um_argument_t *argument, uint64_t guess_bytes);

/* The same of a launch that is only expected, by what um_footprints_kernel says of its kernel. */
um_footprint_t um_footprints_expect_of(const um_footprints_t *footprints, uint64_t kernel,
                                       const um_ev_launch_t *launch, const um_argument_t *argument,
                                       uint64_t guess_bytes);

/* Runs at equal distances are all that it touches; bytes from the pointer on. */
typedef struct um_stride {
    uint64_t first;  /* where the first run begins */
    uint64_t run;    /* its bytes */
    uint64_t stride; /* from one's beginning to the next one's; 0 = it touches all there is */
} um_stride_t;
um_stride_t um_footprints_stride(const um_footprints_t *footprints, uint64_t kernel,
                                 const um_ev_launch_t *launch, const um_argument_t *argument);
/* What is taken along on either side of a run: strides that are not whole blocks are not known exactly. */
static inline uint64_t um_stride_slack(const um_stride_t *stride)
{
    return stride->stride % UM_BLOCK_BYTES ? UM_BIG_PAGE_BYTES : 0;
}
static inline uint64_t um_stride_reach(const um_stride_t *stride)
{
    return stride->run + 2 * um_stride_slack(stride);
}

/* ---- watching a launch: once for each argument that is decided about ---- */

typedef struct um_watch um_watch_t;

/* It is taken to touch [first, end) of the argument. NULL = there is nothing to find out this time. withheld = hints
 * are kept back from this launch: that is seldom, and where small arguments without sentinels show what they are. */
um_watch_t *um_footprints_watch(um_footprints_t *footprints, const um_ev_launch_t *launch,
                                const um_argument_t *argument, uint64_t first, uint64_t end,
                                bool withheld);
/* Which blocks of [addr, addr+bytes) are to be left out: bit i = the i-th block that it meets. Only
 * what the CPU has; for each the page tables are looked at once. At most 64 blocks. */
uint64_t um_footprints_sentinels(um_footprints_t *footprints, um_watch_t *watch, uint64_t addr,
                                 uint64_t bytes);
typedef enum um_watch_end {
    UM_WATCH_QUIET,  /* nothing needed to be moved */
    UM_WATCH_HINTED, /* it was prefetched, but for the sentinels */
    UM_WATCH_LEFT    /* it was left to faults */
} um_watch_end_t;
/* It has been decided about. NULL is fine. */
void um_footprints_decided(um_footprints_t *footprints, um_watch_t *watch, um_watch_end_t how);
/* These bytes are moved by a hint: whoever watches them learns nothing there. */
void um_footprints_moved(um_footprints_t *footprints, uint64_t addr, uint64_t bytes);

/* Figures since the start. */
typedef struct um_footprint_stats {
    uint64_t known;        /* kernels' parameters, each with its shapes */
    uint64_t observations; /* launches that showed something */
    uint64_t contrary;     /* of them, that contradicted what was believed */
    uint64_t sentinels;    /* blocks left out */
    uint64_t strides;      /* arguments that were found to be touched in runs */
} um_footprint_stats_t;
void um_footprints_stats(const um_footprints_t *footprints, um_footprint_stats_t *out);

#endif
