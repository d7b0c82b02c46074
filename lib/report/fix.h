/*
 * fix.h - what a finding's advice comes to, as data: calls, each on a range of one buffer, at one place,
 * with one target. What they look like in a library's words is code.h's.
 */
#ifndef UM_FIX_H
#define UM_FIX_H

#include "collect.h"

/* The change. Those up to UM_CHANGE_REPLAYED can be tried in the driver model (sim/change.h). */
typedef enum um_change {
    UM_CHANGE_NONE = 0,           /* nothing that a call does */
    UM_CHANGE_PREFETCH = 1,       /* to the GPU before each launch that takes it */
    UM_CHANGE_PREFETCH_BACK = 2,  /* to the CPU before it reads */
    UM_CHANGE_MAP = 3,            /* kept with the CPU, reached over the link */
    UM_CHANGE_KEEP_PART = 4,      /* what fits stays on the GPU, the rest is mapped */
    UM_CHANGE_DEVICE = 5,         /* cudaMalloc or a pool that keeps its memory */
    UM_CHANGE_OWNER = 6,          /* stays on the GPU that had it first, mapped for the others */
    UM_CHANGE_NO_READ_MOSTLY = 7, /* the program's advice is left out */
    UM_CHANGE_NO_LOCATION = 8,
    UM_CHANGE_DROP_HINT = 9,     /* the program's own calls of that kind on it are left out */
    UM_CHANGE_EARLIER = 10,      /* its prefetches come before the launch before */
    UM_CHANGE_ROOM = 11,         /* all of the GPU's memory for managed data */
    UM_CHANGE_DROP_REPEATS = 12, /* its own calls that ask for what holds already */
    UM_CHANGE_BOTH_WAYS = 13,    /* to the GPU before the launch, to the CPU behind it */
    UM_CHANGE_REPLAYED = 13,
    UM_CHANGE_POPULATE = 14,  /* to the GPU, once, behind the allocation */
    UM_CHANGE_POOL = 15,      /* from a stream-ordered pool */
    UM_CHANGE_WAIT = 16,      /* for the kernel, before the CPU touches it */
    UM_CHANGE_PAGES = 17,     /* pages of its own: the size rounded up */
    UM_CHANGE_PIN = 18,       /* the host side of copies */
    UM_CHANGE_FLAG = 19,      /* pinned and mapped, instead of copies */
    UM_CHANGE_STAGE = 20,     /* a few pinned pieces in turns */
    UM_CHANGE_KEEP_POOL = 21, /* a pool keeps what it has */
    UM_CHANGE_LIMIT = 22,     /* the program's own prefetches to what there is room for */
    UM_CHANGE_RECORD = 23,    /* the trace again: a command */
    UM_CHANGE_COUNT = 24
} um_change_t;

/* One call. */
typedef enum um_action {
    UM_DO_PREFETCH = 0,
    UM_DO_PREFER,      /* preferred location */
    UM_DO_ACCESSED_BY, /* mapped for `to` */
    UM_DO_UNSET_READ_MOSTLY,
    UM_DO_UNSET_PREFER,
    UM_DO_ALLOC_DEVICE, /* instead of a managed allocation */
    UM_DO_ALLOC_POOL,
    UM_DO_ALLOC_PAGES,
    UM_DO_ALLOC_FLAG,
    UM_DO_ALLOC_STAGE,
    UM_DO_PIN,
    UM_DO_WAIT,
    UM_DO_KEEP_POOL,
    UM_DO_TRIM_POOL,
    UM_DO_ASK_ROOM,
    UM_DO_DROP_CALL, /* the program's own */
    UM_DO_DROP_REPEATS,
    UM_DO_EARLIER,
    UM_DO_RECORD,
    UM_DO_COUNT
} um_action_t;

typedef enum um_when {
    UM_AT_ANY = 0,       /* where it suits */
    UM_AT_ALLOCATION,    /* once, behind it */
    UM_AT_INSTEAD,       /* of the allocation */
    UM_AT_BEFORE_LAUNCH, /* of `kernel` */
    UM_AT_AFTER_LAUNCH,
    UM_AT_CALL, /* the program's own hint */
    UM_AT_COUNT
} um_when_t;

typedef enum um_side {
    UM_SIDE_NONE = 0,
    UM_SIDE_GPU, /* that uses it */
    UM_SIDE_CPU,
    UM_SIDE_OTHER, /* another GPU */
    UM_SIDE_COUNT
} um_side_t;

#define UM_NO_INDEX UINT32_MAX

/* A call in its place; indices are the report's, UM_NO_INDEX = none or not known. */
typedef struct um_fix_step {
    um_action_t action;
    um_when_t when;
    um_side_t to;
    uint32_t group;       /* of regions */
    uint64_t from, bytes; /* in the region; bytes 0 = not known */
    bool whole;           /* all of the region */
    uint32_t kernel;
    uint32_t own; /* the program's own hint */
} um_fix_step_t;

#define UM_STEPS_MAX 24

struct um_finding;

/* What f asks for: at most UM_STEPS_MAX steps, how many; *left = places that they leave out. */
size_t um_fix_steps(const um_report_t *report, const struct um_finding *f, um_fix_step_t *out,
                    uint64_t *left);
/* Of f: what is written, which may be more than what is replayed. */
um_change_t um_fix_change(const struct um_finding *f);
const char *um_change_name(um_change_t change); /* "prefetch": in JSON */
const char *um_action_name(um_action_t action);
const char *um_when_name(um_when_t when);

#endif
