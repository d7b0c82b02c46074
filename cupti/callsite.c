/*
 * callsite.c - where in the program a call was made: a hash of the stack that is the same from run to
 * run of one build, and the frames behind it, told once.
 *
 * The stack is unwound by glibc's backtrace(): libgcc_s follows the unwind tables, so that code without
 * frame pointers is no hindrance, and once loaded it takes no lock and allocates nothing (the registered
 * frames of a JIT aside). Nothing here uses malloc or waits, so a call site may be taken while the
 * program's allocator is held.
 */
#include "live.h"
#include "loaded.h"
#include "python.h"

#include <execinfo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/log.h"

#define UM_FRAMES      16    /* of the program, told */
#define UM_NATIVE      8     /* of a Python program's libraries, before its own */
#define UM_LOOK        48    /* looked at: our own, CUPTI's and the driver's come first */
#define UM_LOOK_BRIEF  14    /* while hinting: enough to know a place again; 1 to 2 us a frame */
#define UM_FRAME_BYTES 1536  /* of one call site's text */
#define UM_SITES       16384 /* remembered; three quarters of them are told, further ones are 0 */
#define UM_RECENT      4096

/* Ids that were told. */
static _Atomic uint64_t um_sites[UM_SITES];
static _Atomic uint32_t um_n_sites;

/* From a stack's addresses to its id. The words are written one by one: `check` tells a torn pair. */
static struct {
    _Atomic uint64_t id, check;
} um_recent[UM_RECENT];

/* 1 = new, 0 = told before, -1 = no room. */
static int um_site_add(uint64_t id)
{
    for (size_t i = 0; i < 64; i++) {
        _Atomic uint64_t *slot = &um_sites[(id + i) % UM_SITES];
        uint64_t there = *slot;

        if (there == 0 && um_n_sites >= UM_SITES / 4 * 3)
            return -1;
        if (there == 0 && atomic_compare_exchange_strong(slot, &there, id)) {
            um_n_sites++;
            return 1;
        }
        if (there == id)
            return 0;
    }
    return -1;
}

/* Appends one frame; false when the text is full. */
static bool um_frame_put(char *text, size_t *used, const um_loaded_t *module, uintptr_t at)
{
    size_t left = UM_FRAME_BYTES - *used;
    const char *between = *used ? ";" : "";
    int wrote = module ? snprintf(text + *used, left, "%s%s+0x%lx", between, module->name,
                                  (unsigned long)(at - module->bias))
                       : snprintf(text + *used, left, "%s?+0x0", between);

    if (wrote < 0 || (size_t)wrote >= left) {
        text[*used] = '\0';
        return false;
    }
    *used += (size_t)wrote;
    return true;
}

/* While hinting a place has only to be known again, and cheaply: native frames do. */
static bool um_python_wanted(void)
{
    return um_live.record && um_python_is_there();
}

/* The frames as text, without those of the tools on top. Where an interpreter runs, its program's
 * frames stand for it and for what is below. */
static size_t um_frames_text(void *const *pc, int n, char *text)
{
    size_t used = 0, told = 0, most = um_python_wanted() ? UM_NATIVE : UM_FRAMES;

    for (int i = 0; i < n && told < most; i++) {
        /* A return address may be the next function's first byte. */
        uintptr_t at = (uintptr_t)pc[i] - 1;
        const um_loaded_t *module = um_loaded_at(at);
        if (told == 0 && (!module || module->tooling))
            continue;
        if (um_live.record && module && module->python &&
            um_python_frames(text, UM_FRAME_BYTES, &used))
            return used;
        if (!um_frame_put(text, &used, module, at))
            return used;
        told++;
    }
    if (um_live.record)
        um_python_frames(text, UM_FRAME_BYTES, &used);
    return used;
}

static uint64_t um_site_of(void *const *pc, int n)
{
    char text[UM_FRAME_BYTES];
    size_t used = um_frames_text(pc, n, text);

    if (used == 0)
        return 0;
    uint64_t id = XXH3_64bits(text, used);
    id += id == 0;
    int added = um_site_add(id);
    if (added < 0) {
        um_log_once(UM_LOG_INFO, "more than %u call sites: further ones are not told",
                    UM_SITES / 4 * 3);
        return 0;
    }
    if (added) {
        um_event_t event = um_live_event(UM_EV_CALL_SITE);
        event.u.call_site = (um_ev_call_site_t){.call_site = id, .frames = text};
        um_live_post(&event, false);
    }
    return id;
}

static uint64_t um_site_here(void)
{
    void *pc[UM_LOOK];
    int n = backtrace(pc, um_live.record ? UM_LOOK : UM_LOOK_BRIEF);

    if (n <= 0)
        return 0;
    um_loaded_refresh();
    /* A Python program's place is not in the addresses. */
    if (um_python_wanted())
        return um_site_of(pc, n);
    uint64_t stack = XXH3_64bits_withSeed(pc, (size_t)n * sizeof(*pc), um_loaded_generation());
    size_t slot = stack % UM_RECENT;
    uint64_t id = um_recent[slot].id, check = um_recent[slot].check;
    if ((id ^ check) == stack && id)
        return id;
    id = um_site_of(pc, n);
    um_recent[slot].id = id;
    um_recent[slot].check = id ^ stack;
    return id;
}

uint64_t um_callsite_here(void)
{
    /* A signal handler of the program that allocates while this one's place is being told. */
    static _Thread_local bool inside;
    uint64_t id = 0;

    /* Also while hinting: a region is known again by where it was allocated. */
    if ((!um_live.record && um_live.runtime->settings.mode < UM_MODE_HINT) ||
        !um_live.runtime->settings.call_sites || inside)
        return 0;
    inside = true;
    id = um_site_here();
    inside = false;
    return id;
}

void um_callsite_prepare(void)
{
    void *pc[2];

    (void)!backtrace(pc, 2); /* loads libgcc_s the first time */
    um_loaded_refresh();
    um_python_look();
}
