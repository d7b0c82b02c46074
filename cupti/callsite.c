/*
 * callsite.c - where in the program a call was made: a hash of the stack that is the same from run to
 * run of one build, and the frames behind it, told once.
 */
#include "live.h"

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UM_FRAMES  16   /* of the program, told */
#define UM_LOOK    48   /* looked at: our own, CUPTI's and the driver's come first */
#define UM_MODULES 1024 /* loaded segments remembered */
#define UM_SITES   4096 /* call sites told; further ones are told again */

typedef struct um_segment {
    uintptr_t begin, end, base;
    const char *name; /* base name of the file */
    bool skipped;     /* umrt itself, CUPTI, the driver */
} um_segment_t;

/* The loaded code, by address. Guarded by the lock: taken at allocations, not at launches. */
static pthread_mutex_t um_segments_lock = PTHREAD_MUTEX_INITIALIZER;
static um_segment_t um_segments[UM_MODULES];
static size_t um_n_segments;
static _Atomic uint64_t um_sites[UM_SITES];

static bool um_is_tooling(const char *name)
{
    static const char *const tools[] = {"libumrt", "libcupti", "libcuda.so"};

    for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++)
        if (strncmp(name, tools[i], strlen(tools[i])) == 0)
            return true;
    return false;
}

static int um_segment_seen(struct dl_phdr_info *info, size_t size, void *ctx)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    const char *kept = NULL;

    (void)size;
    (void)ctx;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || um_n_segments == UM_MODULES)
            continue;
        /* The first object is the program and has no name. Names are few and kept for ever: the
         * object may be unloaded while its name is in use. */
        if (!kept)
            kept = strdup(*name ? name : program_invocation_short_name);
        uintptr_t begin = info->dlpi_addr + p->p_vaddr;
        um_segments[um_n_segments++] = (um_segment_t){begin, begin + p->p_memsz, info->dlpi_addr,
                                                      kept ? kept : "?", um_is_tooling(name)};
    }
    return 0;
}

static int um_segment_order(const void *a, const void *b)
{
    const um_segment_t *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static const um_segment_t *um_segment_find(uintptr_t pc)
{
    size_t low = 0, high = um_n_segments;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pc < um_segments[middle].begin)
            high = middle;
        else if (pc >= um_segments[middle].end)
            low = middle + 1;
        else
            return &um_segments[middle];
    }
    return NULL;
}

/* Looks again after a miss: something was loaded since. Generated code is in nothing and would make
 * every call look again, so misses back off. */
static const um_segment_t *um_segment_of(uintptr_t pc)
{
    static unsigned misses, wait;
    const um_segment_t *segment = um_segment_find(pc);

    if (segment || misses++ < wait)
        return segment;
    um_n_segments = 0;
    dl_iterate_phdr(um_segment_seen, NULL);
    qsort(um_segments, um_n_segments, sizeof(*um_segments), um_segment_order);
    segment = um_segment_find(pc);
    misses = 0;
    wait = segment ? 0 : 2 * wait + 1 < 1024 ? 2 * wait + 1 : 1024;
    return segment;
}

static bool um_site_is_new(uint64_t id)
{
    for (size_t i = 0; i < 8; i++) {
        _Atomic uint64_t *slot = &um_sites[(id + i) % UM_SITES];
        uint64_t empty = 0;
        if (*slot == id)
            return false;
        if (atomic_compare_exchange_strong(slot, &empty, id))
            return true;
        if (empty == id)
            return false;
    }
    return true;
}

uint64_t um_callsite_here(void)
{
    void *pc[UM_LOOK];
    char frames[UM_FRAMES * 64];
    size_t used = 0, told = 0;

    /* Also while hinting: a region is known again by where it was allocated. */
    if ((!um_live.record && um_live.runtime->settings.mode < UM_MODE_HINT) ||
        !um_live.runtime->settings.call_sites)
        return 0;
    int n = backtrace(pc, UM_LOOK);
    pthread_mutex_lock(&um_segments_lock);
    for (int i = 0; i < n && told < UM_FRAMES; i++) {
        /* A return address may be the next function's first byte. */
        uintptr_t at = (uintptr_t)pc[i] - 1;
        const um_segment_t *segment = um_segment_of(at);
        if (told == 0 && (!segment || segment->skipped))
            continue;
        int wrote =
            segment ? snprintf(frames + used, sizeof(frames) - used, "%s%s+0x%lx", told ? ";" : "",
                               segment->name, (unsigned long)(at - segment->base))
                    : snprintf(frames + used, sizeof(frames) - used, "%s?+0x0", told ? ";" : "");
        if (wrote < 0 || (size_t)wrote >= sizeof(frames) - used)
            break;
        used += (size_t)wrote;
        told++;
    }
    pthread_mutex_unlock(&um_segments_lock);
    if (told == 0)
        return 0;
    frames[used] = '\0';
    uint64_t id = XXH3_64bits(frames, used);
    if (id == 0)
        id = 1;
    if (um_site_is_new(id)) {
        um_event_t event = um_live_event(UM_EV_CALL_SITE);
        event.u.call_site = (um_ev_call_site_t){.call_site = id, .frames = frames};
        um_live_post(&event, false);
    }
    return id;
}

void um_callsite_prepare(void)
{
    void *pc[2];

    (void)!backtrace(pc, 2); /* loads libgcc_s the first time */
}
