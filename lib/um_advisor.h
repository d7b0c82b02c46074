/*
 * um_advisor.h - how a policy looks at the world and speaks.
 *
 * An advisor observes events in O(1) each and, when asked, proposes hints for one launch, for one wait of
 * the CPU for the GPU or for one new region. It never acts, never allocates after init, never reads a clock and keeps no state outside its own block:
 * the same events give the same hints, live, from a trace or in the simulator.
 *
 * Threads: all calls for one instance come from one thread at a time.
 */
#ifndef UM_ADVISOR_H
#define UM_ADVISOR_H

#include "um_event.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UM_ADVISOR_ABI 4u

/* Where the bytes of an extent are, as far as umrt knows. */
typedef enum um_where {
    UM_WHERE_UNKNOWN = 0,
    UM_WHERE_UNTOUCHED = 1, /* nobody wrote it since the allocation */
    UM_WHERE_HOST = 2,
    UM_WHERE_DEVICE = 3, /* on `device` */
    UM_WHERE_BOTH = 4    /* duplicated (ReadMostly) */
} um_where_t;

typedef struct um_extent {
    uint64_t addr;
    uint64_t bytes;
    uint32_t where; /* um_where_t */
    int32_t device; /* for DEVICE and BOTH */
} um_extent_t;

/* How a prefetch is to be ordered against the launch or the wait that it is made for. Advice is given
 * at once, whatever its order. */
typedef enum um_hint_order {
    UM_ORDER_RACING = 0, /* on side streams while the kernel starts at once */
    /* The kernel waits for it. Only in the simulator, for baselines: a running program is not stopped at
     * its launch to decide, so the kernel is on its way by then, and the gate refuses it. Racing is no
     * slower (an H200 has 1 GiB there, kernel included, in 22.0 ms racing and in 24 to 29 ms before). */
    UM_ORDER_BEFORE = 1,
    UM_ORDER_IDLE = 2, /* only while the link has nothing better to do; may be for regions that the
                          launch does not take, and outlives it */
    UM_ORDER_AFTER =
        3 /* once the wait is over, racing the CPU: what moves to the CPU must not be taken
                          from under a kernel */
} um_hint_order_t;

/* One proposal. Ranges need not be aligned; the gate trims them to the region. */
typedef struct um_hint {
    uint32_t kind;  /* um_hint_kind_t */
    uint32_t order; /* um_hint_order_t */
    uint64_t addr;
    uint64_t bytes;
    int32_t device;       /* target */
    uint32_t correlation; /* the launch or wait it serves; um_hints_add fills it in where 0 */
    const char *why;      /* static string */
    /* Filled in on the way, whatever the advisor wrote: */
    const char *who; /* the advisor's name (um_hints_add) */
    uint32_t region; /* the region it lies in (gate) */
    uint32_t wait;   /* um_sync_kind_t of the wait it serves, 0 = it serves a launch */
    uint64_t stream; /* of that launch or wait; the event's handle for UM_SYNC_EVENT */
    bool blind;      /* a baseline's: not checked for being there or having room, not split */
} um_hint_t;

/* Where an advisor puts its proposals; um_hints_add copies. Beyond the capacity proposals are
 * dropped and counted by the caller: an advisor need not look at the result. */
typedef struct um_hints um_hints_t;
bool um_hints_add(um_hints_t *hints, const um_hint_t *hint);
/* Says that the advisor leaves the argument alone on purpose, so that it can be counted. */
void um_hints_decline(um_hints_t *hints);
/* Nobody prefetches these bytes to the device at this decision any more, whoever is asked next: what
 * is proposed is cut around the blocks that they meet. Only inside the stretch; nothing at a wait or a new region. */
void um_hints_hold(um_hints_t *hints, uint64_t addr, uint64_t bytes);

/* The arguments of a launch are decided front to back and side by side, one stretch of one argument at
 * a time: decide is called for each, and what it proposes is on its way while the next is looked at.
 * Pointers into one 2 MiB block count as one argument. An argument is taken to begin at its pointer and
 * to end where its kernel is known to stop; where nothing is known, at the next pointer into its region
 * that there has been, or at the region's end. One that is known to be on the launch's device already is
 * passed over. */
#define UM_VIEW_STRETCH_BYTES   (64u << 20)
#define UM_VIEW_STRETCH_EXTENTS (UM_VIEW_STRETCH_BYTES / UM_BLOCK_BYTES + 1) /* at most so many */

/* What an advisor may know at a decision; every answer is about "now" in event time. */
typedef struct um_view um_view_t;
/* What is being decided about; two of them are NULL. */
const um_ev_launch_t *um_view_launch(const um_view_t *view);
const um_ev_sync_t *um_view_sync(const um_view_t *view); /* the wait being entered */
const um_ev_region_alloc_t *um_view_alloc(const um_view_t *view);
/* The launch's device; at a new region the only GPU there is for hints; else UM_DEVICE_NONE. */
int32_t um_view_device(const um_view_t *view);
uint64_t um_view_now_ns(const um_view_t *view);
/* From the end of one wait that followed a launch to the end of the next, the mean of the latest; 0 = not known
 * yet. */
uint64_t um_view_pace_ns(const um_view_t *view);
typedef struct um_stretch {
    uint32_t region;                       /* managed and alive */
    uint64_t addr, bytes;                  /* what is to be decided now */
    uint64_t range_bytes;                  /* of the whole argument */
    bool first_of_launch, first_of_region; /* there is no other before it */
} um_stretch_t;
const um_stretch_t *
um_view_stretch(const um_view_t *view); /* all zero at a wait, all of a new region */
/* Managed region by id; false when it is gone or not managed. */
bool um_view_region(const um_view_t *view, uint32_t region, uint64_t *addr, uint64_t *bytes);
/* Parameter flags (um_param_flag_t) of the launch's kernel, 0 where unknown. */
uint32_t um_view_param_flags(const um_view_t *view, uint32_t slot);
/* Splits [addr, addr+bytes) into extents of one whereabouts, in address order; returns how many
 * there are and writes at most max. Trimmed to the region; asking is what costs: where nobody asks
 * about the first stretch of an argument, the others are skipped. */
size_t um_view_extents(const um_view_t *view, uint32_t region, uint64_t addr, uint64_t bytes,
                       um_extent_t *out, size_t max);
/* Looks up what the CPU has taken, since the last wait that it left, of what an earlier launch's pointer to addr pointed
 * to: at most so many bytes, no further than where another pointer into the region has been. It comes to observe as
 * RESIDENCY. For what this launch does not take, which um_view_extents answers without looking. Costs a look at
 * its page tables. Does nothing but at a launch that is being made. */
void um_view_look(const um_view_t *view, uint32_t region, uint64_t addr, uint64_t bytes);
/* What the program says about a region (um_region_hint_flag_t). One that it wants left alone is never asked
 * about. */
uint32_t um_view_word(const um_view_t *view, uint32_t region);
/* Of a managed region, 0 where it is gone: um_region_role. */
uint64_t um_view_role(const um_view_t *view, uint32_t region);

/* What the launch's kernel is expected to touch of the argument that the stretch is of, learned from
 * what it touched before or in other runs. The stretches are of nothing else: where it touches runs at equal
 * distances (a column of blocks of a matrix), each is of a run, and this is about the runs. But whether it touches enough
 * of them to be worth it is for the advisor to say. */
typedef struct um_footprint {
    uint64_t first_bytes, end_bytes; /* from the argument's pointer on */
    uint32_t density_percent;        /* of the bytes between, as the driver would move them */
    uint32_t launches;               /* seen; 0 = nothing is known, the other fields are 0 */
    bool backwards;                  /* it goes from the end to the start */
} um_footprint_t;
um_footprint_t um_view_footprint(const um_view_t *view);
/* Bytes that may still be put on the device: free memory less headroom and what is under way. For a launch that is
 * only expected 0 unless all managed memory that is not there would fit: nothing is to be pushed out for it. 0 for
 * devices other than the launch's. */
uint64_t um_view_room_bytes(const um_view_t *view, int32_t device);

/* ---- launches that are expected ----
 * An advisor that says so (`ahead`) is asked, while the program does something else, about the stretches of the
 * launches that it will make next as well: `decide`, with um_view_launch the launch as it is expected (its
 * correlation is that of the latest launch there was). What it proposes is to be for idle times (UM_ORDER_IDLE): it
 * goes one piece at a time, while nothing that a launch or a wait needs is waiting or on its way. */

/* How far off the launch is: 0 = it is being made; n = it is the n-th of the launches and waits to come. */
uint32_t um_view_steps(const um_view_t *view);

/* What the CPU does with the region of the stretch between now and that launch. */
typedef enum um_cpu {
    UM_CPU_UNKNOWN = 0,
    UM_CPU_LEAVES =
        1, /* nothing: what was brought so early was always there when the launch came */
    UM_CPU_TAKES =
        2 /* it still writes or reads it; or leave it alone for other reasons: the last times it was
                          brought in vain, or it is time to see whether it is still so */
} um_cpu_t;
um_cpu_t um_view_cpu(const um_view_t *view); /* UNKNOWN at a launch and at a wait */

/* One option of an advisor, set as UMRT_<ADVISOR>_<NAME> or --<advisor>-<name>. */
typedef struct um_advisor_option {
    const char *name;
    const char *doc; /* one line with the unit */
    uint64_t fallback, min, max;
    size_t offset; /* of a uint64_t in the state block */
} um_advisor_option_t;

typedef struct um_advisor_ops {
    uint32_t abi; /* UM_ADVISOR_ABI */
    const char *name;
    const char *doc;                    /* one line: what it proposes and when */
    size_t state_bytes;                 /* zeroed, options filled in, then init */
    const um_advisor_option_t *options; /* ends with name == NULL; may be NULL */
    bool (*init)(void *state);          /* may be NULL; false = this advisor gives no hints */
    void (*fini)(void *state);          /* may be NULL */
    /* May be NULL; O(1). An event is observed before it is decided about. Never ACCESS. RESIDENCY with
     * present_bytes == bytes: the page tables were looked at for a launch, and the CPU had taken this
     * extent since `sync`. */
    void (*observe)(void *state, const um_event_t *event);
    /* A launch: asked for each stretch of its arguments. May be NULL. */
    void (*decide)(const void *state, const um_view_t *view, um_hints_t *hints);
    /* The CPU enters a wait: asked once. May be NULL. Nothing is known yet of what it will touch;
     * um_view_extents answers without looking. */
    void (*decide_sync)(const void *state, const um_view_t *view, um_hints_t *hints);
    /* A managed region is new, and nobody has touched it: asked once, with the whole of it as the stretch,
     * by an advisor that knows its role from before. What it proposes is ordered as for a launch. Only where
     * one GPU alone takes hints: nobody knows yet which would use it; and not about what was there before
     * umrt or comes from a pool, where other regions were before. No withholding and no verdict of the guard's
     * is about it. May be NULL. */
    void (*decide_alloc)(const void *state, const um_view_t *view, um_hints_t *hints);
    /* May be NULL. Tells, as LEARNED events (`who` is filled in by the caller), all that it knows and that
     * would hold in another run. In that run they come to observe before the first launch. */
    void (*learned)(const void *state, um_event_fn emit, void *ctx);
    bool always; /* asked also about arguments that are known to be on the device already */
    /* For baselines without any sense of residency: as always, and what they propose is carried out
     * whatever is known about it. */
    bool blind;
    bool ahead; /* asked also about the launches that are expected next: um_view_steps */
} um_advisor_ops_t;

/* Every advisor there is, in the order in which they are asked; ends with NULL. advisors/table.c. */
extern const um_advisor_ops_t *const um_advisor_table[];

/* Those that `umrt run` asks unless told otherwise (option `advisors`); "all" = the whole table. */
#define UM_ADVISORS_DEFAULT "calm,placement,first_touch,ahead,readback"

#ifdef __cplusplus
}
#endif
#endif
