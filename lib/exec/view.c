#include "view.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/log.h"

/* ---- what an advisor may know ---- */

const um_ev_launch_t *um_view_launch(const um_view_t *view)
{
    return view->launch;
}

const um_ev_sync_t *um_view_sync(const um_view_t *view)
{
    return view->sync;
}

const um_ev_region_alloc_t *um_view_alloc(const um_view_t *view)
{
    return view->alloc;
}

int32_t um_view_device(const um_view_t *view)
{
    return view->launch ? view->launch->device : view->alloc ? view->device : UM_DEVICE_NONE;
}

uint64_t um_view_now_ns(const um_view_t *view)
{
    return view->now_ns;
}

bool um_view_region(const um_view_t *view, uint32_t region, uint64_t *addr, uint64_t *bytes)
{
    return um_residency_region(view->residency, region, addr, bytes);
}

uint64_t um_view_pace_ns(const um_view_t *view)
{
    return view->pace_ns;
}

uint32_t um_view_word(const um_view_t *view, uint32_t region)
{
    return um_residency_word(view->residency, region);
}

uint64_t um_view_role(const um_view_t *view, uint32_t region)
{
    return um_residency_role(view->residency, region);
}

um_footprint_t um_view_footprint(const um_view_t *view)
{
    return view->footprint;
}

uint32_t um_view_param_flags(const um_view_t *view, uint32_t slot)
{
    uint32_t kernel = view->launch ? view->launch->kernel : 0;

    if (kernel >= view->n_kernels || slot >= view->kernel[kernel].n)
        return 0;
    return view->kernel[kernel].flags[slot];
}

const um_stretch_t *um_view_stretch(const um_view_t *view)
{
    return &view->stretch;
}

size_t um_view_extents(const um_view_t *view, uint32_t region, uint64_t addr, uint64_t bytes,
                       um_extent_t *out, size_t max)
{
    um_view_t *own =
        (um_view_t *)view; /* the view is ours; it is the advisors who may not change it */
    bool found;
    size_t n;

    own->asked = true;
    if (view->next) {
        um_sequences_cpu(view->sequences, view->next, region, &found);
        um_residency_refresh(view->residency, region, addr, bytes, found);
    }
    n = um_residency_extents(view->residency, region, addr, bytes, out, max);
    if (view->watch && region == view->stretch.region)
        own->held |= um_footprints_sentinels(view->footprints, view->watch, view->stretch.addr,
                                             view->stretch.bytes);
    return n;
}

void um_view_look(const um_view_t *view, uint32_t region, uint64_t addr, uint64_t bytes)
{
    uint64_t start, all, slice;

    if (!view->launch || view->next || !um_view_region(view, region, &start, &all) ||
        addr < start || addr - start >= all)
        return;
    slice = um_slices_end(view->slices, region, addr - start, all) - (addr - start);
    um_residency_taken(view->residency, region, addr, bytes < slice ? bytes : slice, view->now_ns);
}

uint32_t um_view_steps(const um_view_t *view)
{
    return view->next ? view->next->steps : 0;
}

um_cpu_t um_view_cpu(const um_view_t *view)
{
    bool found;

    return view->next ? um_sequences_cpu(view->sequences, view->next, view->stretch.region, &found)
                      : UM_CPU_UNKNOWN;
}

uint64_t um_view_room_bytes(const um_view_t *view, int32_t device)
{
    um_view_t *own = (um_view_t *)view; /* as above */
    uint64_t room;

    if (!view->launch || view->launch->device != device)
        return 0;
    room = um_gate_room_bytes(view->gate, view->launch, view->now_ns);
    if (!view->next)
        return room;
    if (!view->missing)
        own->missing = um_residency_missing(view->residency, device);
    return view->missing <= room ? room : 0;
}

void um_view_kernel(um_view_t *view, const um_ev_kernel_t *kernel)
{
    um_view_params_t *entry;

    if (!kernel->n_params || kernel->kernel >= UM_KERNEL_IDS_MAX)
        return;
    if (kernel->kernel >= view->n_kernels) {
        uint32_t n = kernel->kernel + 64;
        um_view_params_t *grown = realloc(view->kernel, n * sizeof(*grown));

        if (!grown)
            return;
        memset(grown + view->n_kernels, 0, (n - view->n_kernels) * sizeof(*grown));
        view->kernel = grown;
        view->n_kernels = n;
    }
    entry = &view->kernel[kernel->kernel];
    free(entry->flags);
    *entry = (um_view_params_t){.flags = calloc(kernel->n_params, sizeof(*entry->flags))};
    if (!entry->flags)
        return;
    entry->n = kernel->n_params;
    for (uint32_t i = 0; i < kernel->n_params; i++)
        entry->flags[i] = kernel->params[i].flags;
}

void um_view_fini(um_view_t *view)
{
    for (uint32_t i = 0; i < view->n_kernels; i++)
        free(view->kernel[i].flags);
    free(view->kernel);
}

/* ---- where it speaks ---- */

_Static_assert(UM_VIEW_STRETCH_EXTENTS <= 64, "a stretch has more blocks than `held` has bits");

static uint64_t block_of_stretch(const um_view_t *view, uint64_t addr)
{
    return addr / UM_BLOCK_BYTES - view->stretch.addr / UM_BLOCK_BYTES;
}

static bool is_held(const um_view_t *view, uint64_t addr)
{
    uint64_t block = block_of_stretch(view, addr);

    return block < 64 && view->held >> block & 1;
}

static uint32_t propose(um_hints_t *hints, const um_hint_t *hint)
{
    const um_view_t *view = hints->view;
    um_gate_cause_t cause = {.now_ns = view->now_ns, .tid = view->tid};
    uint64_t before = um_gate_proposed(hints->gate);
    uint32_t admitted;

    if (hints->guard && !um_guard_takes(hints->guard, hints->index, hint))
        return 0;
    if (view->launch) {
        cause.context = view->launch->context;
        cause.stream = view->launch->stream;
        cause.captured = view->launch->flags & UM_LAUNCH_CAPTURED;
    } else if (view->alloc) {
        cause.context = view->context;
    } else if (view->sync) {
        cause.context = view->sync->context;
        cause.stream = view->sync->stream;
        cause.wait = view->sync->kind ? view->sync->kind : UM_SYNC_DEVICE;
    }
    admitted = um_gate_propose(hints->gate, hint, &cause);
    hints->account->proposals++;
    hints->account->proposed_bytes += hint->bytes;
    hints->account->admitted += admitted;
    hints->account->refused += um_gate_proposed(hints->gate) - before - admitted;
    if (admitted && hints->guard)
        um_guard_admitted(hints->guard, hints->index, hint);
    if (admitted && hint->kind == UM_HINT_PREFETCH)
        um_footprints_moved(view->footprints, hint->addr, hint->bytes);
    if (admitted && view->next)
        um_sequences_brought(view->sequences, view->next, view->stretch.region, hint->addr,
                             hint->bytes);
    return admitted;
}

/* What is not held of it, run by run. */
static uint32_t propose_around(um_hints_t *hints, const um_hint_t *hint)
{
    uint64_t end = hint->addr + hint->bytes, at = hint->addr;
    um_hint_t part = *hint;
    uint32_t admitted = 0;

    while (at < end) {
        uint64_t stop = at;
        bool held = is_held(hints->view, at);

        while (stop < end && is_held(hints->view, stop) == held)
            stop = (stop / UM_BLOCK_BYTES + 1) * UM_BLOCK_BYTES;
        part.addr = at;
        part.bytes = (stop < end ? stop : end) - at;
        if (!held)
            admitted += propose(hints, &part);
        at = stop;
    }
    return admitted;
}

bool um_hints_add(um_hints_t *hints, const um_hint_t *hint)
{
    const um_view_t *view = hints->view;
    um_hint_t copy = *hint;
    uint32_t admitted;

    if (view->next && copy.kind != UM_HINT_PREFETCH)
        return false; /* advice is for launches that there are */
    if (view->next)
        copy.order = UM_ORDER_IDLE;
    copy.who = hints->who->name;
    copy.blind = hints->who->blind;
    if (!copy.correlation)
        copy.correlation = view->launch ? view->launch->correlation
                           : view->sync ? view->sync->sync
                                        : 0;
    if (view->held && copy.kind == UM_HINT_PREFETCH && copy.device >= 0 &&
        copy.addr + copy.bytes > copy.addr)
        admitted = propose_around(hints, &copy);
    else
        admitted = propose(hints, &copy);
    hints->admitted += admitted;
    return admitted > 0;
}

void um_hints_hold(um_hints_t *hints, uint64_t addr, uint64_t bytes)
{
    um_view_t *view = hints->view;
    uint64_t end = view->stretch.addr + view->stretch.bytes;

    if (view->alloc)
        return; /* there is no other decision about it yet */
    if (addr < view->stretch.addr) {
        bytes = addr + bytes > view->stretch.addr ? addr + bytes - view->stretch.addr : 0;
        addr = view->stretch.addr;
    }
    if (addr >= end)
        return;
    if (bytes < end - addr)
        end = addr + bytes;
    for (uint64_t at = addr; at < end; at = (at / UM_BLOCK_BYTES + 1) * UM_BLOCK_BYTES)
        view->held |= (uint64_t)1 << block_of_stretch(view, at);
}

void um_hints_decline(um_hints_t *hints)
{
    hints->declined = true;
}

/* ---- options ---- */

void um_advisor_variable(const um_advisor_ops_t *ops, const um_advisor_option_t *option, char *out,
                         size_t bytes)
{
    snprintf(out, bytes, "UMRT_%s_%s", ops->name, option->name);
    for (char *c = out; *c; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

void um_advisor_options(const um_advisor_ops_t *ops, void *state)
{
    for (const um_advisor_option_t *option = ops->options; option && option->name; option++) {
        uint64_t *value = (uint64_t *)(void *)((char *)state + option->offset), given;
        char variable[96];
        const char *text;

        *value = option->fallback;
        um_advisor_variable(ops, option, variable, sizeof(variable));
        text = getenv(variable);
        if (!text || !*text)
            continue;
        if (um_parse_bytes(text, &given) && given >= option->min && given <= option->max)
            *value = given;
        else
            um_log(UM_LOG_WARN, "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, variable,
                   text, option->min, option->max);
    }
}
