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

uint64_t um_view_now_ns(const um_view_t *view)
{
    return view->now_ns;
}

bool um_view_region(const um_view_t *view, uint32_t region, uint64_t *addr, uint64_t *bytes)
{
    return um_residency_region(view->residency, region, addr, bytes);
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
    ((um_view_t *)view)->asked =
        true; /* the view is ours; it is the advisors who may not change it */
    return um_residency_extents(view->residency, region, addr, bytes, out, max);
}

uint64_t um_view_room_bytes(const um_view_t *view, int32_t device)
{
    if (!view->launch || view->launch->device != device)
        return 0;
    return um_gate_room_bytes(view->gate, view->launch, view->now_ns);
}

void um_view_kernel(um_view_t *view, const um_ev_kernel_t *kernel)
{
    um_view_params_t *entry;

    if (!kernel->n_params)
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

bool um_hints_add(um_hints_t *hints, const um_hint_t *hint)
{
    const um_ev_launch_t *launch = hints->view->launch;
    um_hint_t copy = *hint;
    uint32_t admitted;

    copy.who = hints->who;
    if (!copy.correlation)
        copy.correlation = launch->correlation;
    admitted = um_gate_propose(hints->gate, &copy, launch, hints->view->now_ns);
    hints->admitted += admitted;
    return admitted > 0;
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
