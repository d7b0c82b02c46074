#include "hinter_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/log.h"

#define LONG_PHASE 3u /* drains that find nothing, from which on the CPU's phase is long */
#define EVERY      "all"

/* ---- waking ---- */

void um_hinter_set_hinting(um_hinter_t *hinter, bool on)
{
    on = on && hinter->n_advisors > 0 && (!hinter->no_hints || hinter->takes_hints);
    if (hinter->config.hinting)
        atomic_store_explicit(hinter->config.hinting, on, memory_order_relaxed);
    if (on)
        hinter->quiet = 0;
}

/* ---- events ---- */

static void on_device(um_hinter_t *hinter, const um_ev_device_t *device)
{
    const char *no = um_gate_device(hinter->gate, device);

    if (!no) {
        hinter->only_device =
            atomic_load(&hinter->takes_hints) && hinter->only_device != device->device
                ? UM_DEVICE_NONE
                : device->device;
        atomic_store(&hinter->takes_hints, true);
        um_hinter_set_hinting(hinter, true);
        return;
    }
    atomic_store(&hinter->no_hints, no);
    if (!atomic_load(&hinter->takes_hints))
        um_hinter_set_hinting(hinter, false);
    um_log(UM_LOG_INFO, "gpu %d (%s) is only observed: %s", device->device, device->name, no);
}

static void enter_outcome(um_hinter_t *hinter, const um_ev_hint_t *hint)
{
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        um_account_t *account = &hinter->advisor[i].account;

        if (strcmp(account->who, hint->who) != 0)
            continue;
        account->driver_ns += hint->duration_ns;
        if (hint->result == UM_HINT_APPLIED) {
            account->applied++;
            account->applied_bytes += hint->bytes;
        } else if (hint->result == UM_HINT_FAILED) {
            account->failed++;
        } else {
            account->cancelled++;
        }
        return;
    }
}

/* Launches with managed memory are to be expected. */
static void on_managed(um_hinter_t *hinter)
{
    um_executor_t *executor = hinter->config.executor;

    um_hinter_set_hinting(hinter, true);
    if (hinter->context == hinter->prepared || !hinter->n_advisors)
        return;
    hinter->prepared = hinter->context;
    if (executor->ops->prepare)
        executor->ops->prepare(executor, hinter->context);
}

static void on_outcome(um_hinter_t *hinter, const um_event_t *event)
{
    const um_ev_hint_t *hint = &event->u.hint;

    if (strcmp(hint->who, "app") == 0) {
        um_gate_app(hinter->gate, hint);
        return;
    }
    enter_outcome(hinter, hint);
    um_gate_done(hinter->gate, hint);
    um_log(UM_LOG_DEBUG,
           "%.3f ms: %s of %" PRIu64 " bytes at 0x%" PRIx64 ": %s, %.1f us in the driver (%s: %s)",
           (double)event->time_ns * 1e-6, um_hint_kind_name((um_hint_kind_t)hint->kind),
           hint->bytes, hint->addr, um_hint_result_name((um_hint_result_t)hint->result),
           (double)hint->duration_ns * 1e-3, hint->who, hint->why);
}

static void show_advisors(void *ctx, const um_event_t *event)
{
    um_hinter_t *hinter = ctx;

    for (unsigned i = 0; i < hinter->n_advisors; i++)
        if (hinter->advisor[i].ops->observe)
            hinter->advisor[i].ops->observe(hinter->advisor[i].state, event);
}

/* The page tables show what the CPU has taken. */
static void on_shown(void *ctx, const um_event_t *event)
{
    um_hinter_t *hinter = ctx;

    show_advisors(hinter, event);
    um_sequences_observe(hinter->sequences, event);
    um_expect_hurry(&hinter->expect);
}

static void on_event(void *ctx, const um_event_t *event)
{
    um_hinter_t *hinter = ctx;
    bool quiet = event->type == UM_EV_SYNC && event->u.sync.exit &&
                 um_sequences_is_quiet(hinter->sequences, event);

    if (event->type != UM_EV_ACCESS)
        show_advisors(hinter, event);
    if (hinter->guard)
        um_guard_observe(hinter->guard, event);
    if (!quiet)
        um_residency_observe(hinter->residency, event);
    um_footprints_observe(hinter->footprints, event);
    um_sequences_observe(hinter->sequences, event);
    hinter->expect.now_ns = event->time_ns;
    hinter->cpu_is_busy = event->type == UM_EV_SYNC && event->u.sync.exit ? LONG_PHASE : 0;
    switch (event->type) {
    case UM_EV_LAUNCH:
        hinter->expect.context = event->u.launch.context;
        hinter->expect.correlation = event->u.launch.correlation;
        hinter->launched = true;
        um_hinter_on_launch(hinter, event);
        break;
    case UM_EV_SYNC:
        um_gate_sync(hinter->gate, event);
        um_sharing_sync(&hinter->sharing, &event->u.sync);
        if (event->u.sync.exit)
            um_hinter_on_left(hinter, event->time_ns);
        else
            um_hinter_on_wait(hinter, event);
        break;
    case UM_EV_HINT:
        on_outcome(hinter, event);
        break;
    case UM_EV_CONTEXT:
        if (event->u.context.change == UM_CONTEXT_CREATED)
            hinter->context = hinter->expect.context = event->u.context.context;
        break;
    case UM_EV_DEVICE:
        on_device(hinter, &event->u.device);
        break;
    case UM_EV_REGION_ALLOC:
        um_expect_hurry(&hinter->expect);
        if (event->u.region_alloc.family != UM_FAMILY_MANAGED)
            break;
        on_managed(hinter);
        um_hinter_on_new(hinter, event);
        break;
    case UM_EV_REGION_FREE:
        um_gate_region_gone(hinter->gate, event->u.region_free.region);
        um_slices_forget(hinter->slices, event->u.region_free.region);
        break;
    case UM_EV_KERNEL:
        um_view_kernel(&hinter->view, &event->u.kernel);
        break;
    default:
        break;
    }
}

/* All that was posted has been seen. The program is in a phase of the CPU: the launch that ends it may
 * well need something, and at once. Where it hardly ever does, only long phases count. */
static void on_idle(void *ctx)
{
    um_hinter_t *hinter = ctx;

    um_hinter_look_ahead(hinter);
    if (!hinter->cpu_is_busy || hinter->quiet < UM_HINTER_QUIET_AFTER)
        return;
    if (--hinter->cpu_is_busy && ++hinter->since_rearm < hinter->rearm)
        return;
    hinter->cpu_is_busy = hinter->since_rearm = 0;
    hinter->armed = true;
    um_hinter_set_hinting(hinter, true);
    hinter->quiet = UM_HINTER_QUIET_AFTER - 1; /* one launch that needs nothing is enough */
}

um_sink_t um_hinter_sink(um_hinter_t *hinter)
{
    return (um_sink_t){.ctx = hinter, .event = on_event, .idle = on_idle};
}

/* ---- outcomes; on the executor's threads ---- */

static void on_done(void *ctx, const um_hint_t *hint, um_hint_result_t result, int32_t error,
                    uint64_t duration_ns)
{
    um_hinter_t *hinter = ctx;
    um_event_t event = {.type = UM_EV_HINT};

    event.u.hint = (um_ev_hint_t){.kind = hint->kind,
                                  .result = result,
                                  .addr = hint->addr,
                                  .bytes = hint->bytes,
                                  .device = hint->device,
                                  .region = hint->region,
                                  .correlation = hint->correlation,
                                  .error = error,
                                  .duration_ns = duration_ns,
                                  .who = hint->who,
                                  .why = hint->why};
    hinter->config.post(hinter->config.post_ctx, &event);
}

/* ---- going ---- */

void um_hinter_region_going(um_hinter_t *hinter, uint64_t addr, uint64_t now_ns)
{
    um_region_t region;

    if (um_regions_find(hinter->config.regions, addr, &region) &&
        region.family == UM_FAMILY_MANAGED)
        um_gate_region_going(hinter->gate, region.addr, region.bytes, now_ns);
}

void um_hinter_context_going(um_hinter_t *hinter, uint32_t context, uint64_t now_ns)
{
    um_gate_context_going(hinter->gate, context, now_ns);
}

/* ---- life ---- */

static bool named(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        at += strspn(at, " ");
        if (strncmp(at, name, length) == 0 && strchr(", ", at[length]))
            return true;
    }
    return false;
}

/* Of a table of one's own all are meant unless some are named. */
static const char *list_of(const um_hinter_config_t *config)
{
    if (config->advisors && *config->advisors)
        return config->advisors;
    return config->table ? EVERY : UM_ADVISORS_DEFAULT;
}

/* Names that nobody has. */
static void warn_of_unknown(const char *list, const um_advisor_ops_t *const *table)
{
    while (list && *list) {
        size_t length = strcspn(list += strspn(list, ", "), ", "), i = 0;

        while (table[i] &&
               (strlen(table[i]->name) != length || strncmp(table[i]->name, list, length) != 0))
            i++;
        if (length && !table[i] && (length != strlen(EVERY) || strncmp(list, EVERY, length) != 0))
            um_log(UM_LOG_WARN, "there is no advisor '%.*s'", (int)length, list);
        list += length;
    }
}

static um_status_t add_guard(um_hinter_t *hinter)
{
    um_guard_config_t config = {.budget_per_mille = hinter->config.guard_per_mille,
                                .trial = hinter->config.guard_trial};

    for (unsigned i = 0; i < hinter->n_advisors; i++)
        config.advisor[i] = hinter->advisor[i].ops->name;
    return config.budget_per_mille || config.trial ? um_guard_new(&config, &hinter->guard) : UM_OK;
}

static um_status_t add_advisor(um_hinter_t *hinter, const um_advisor_ops_t *ops)
{
    um_hinter_advisor_t *advisor = &hinter->advisor[hinter->n_advisors];
    size_t bytes = ops->state_bytes ? ops->state_bytes : 1;

    if (ops->abi != UM_ADVISOR_ABI || hinter->n_advisors == UM_HINTER_ADVISORS)
        return UM_OK;
    *advisor =
        (um_hinter_advisor_t){.ops = ops, .state = calloc(1, bytes), .account = {.who = ops->name}};
    if (!advisor->state)
        return UM_ERR_NO_MEMORY;
    um_advisor_options(ops, advisor->state);
    if (ops->init && !ops->init(advisor->state)) {
        free(advisor->state);
        return UM_OK;
    }
    hinter->n_advisors++;
    hinter->any_always |= ops->always || ops->blind;
    hinter->any_sync |= ops->decide_sync != NULL;
    hinter->any_ahead |= ops->ahead;
    hinter->any_alloc |= ops->decide_alloc != NULL;
    return UM_OK;
}

static uint64_t device_bytes(void *ctx, int32_t device)
{
    return um_residency_device_bytes(((um_hinter_t *)ctx)->residency, device);
}

um_status_t um_hinter_new(const um_hinter_config_t *config, um_hinter_t **out)
{
    const um_advisor_ops_t *const *table = config->table ? config->table : um_advisor_table;
    const char *advisors = list_of(config);
    um_hinter_t *hinter = calloc(1, sizeof(*hinter));
    um_status_t status = UM_ERR_NO_MEMORY;

    if (!hinter)
        return UM_ERR_NO_MEMORY;
    hinter->config = *config;
    hinter->config.gate.regions = config->regions;
    hinter->config.gate.executor = config->executor;
    hinter->config.gate.device_bytes = device_bytes;
    hinter->config.gate.device_bytes_ctx = hinter;
    if ((status = um_gate_new(&hinter->config.gate, &hinter->gate)) != UM_OK ||
        (status = um_residency_new(config->page_tables, &hinter->residency)) != UM_OK ||
        (status = um_footprints_new(hinter->residency, &hinter->footprints)) != UM_OK ||
        (status = um_slices_new(&hinter->slices)) != UM_OK)
        goto fail;
    hinter->view.gate = hinter->gate;
    hinter->view.residency = hinter->residency;
    hinter->view.slices = hinter->slices;
    hinter->view.footprints = hinter->footprints;
    for (size_t i = 0; table[i]; i++)
        if ((named(advisors, table[i]->name) || named(advisors, EVERY)) &&
            (status = add_advisor(hinter, table[i])) != UM_OK)
            goto fail;
    if ((status = um_sequences_new(hinter->any_ahead ? hinter->residency : NULL, hinter->footprints,
                                   &hinter->sequences)) != UM_OK ||
        (status = add_guard(hinter)) != UM_OK)
        goto fail;
    hinter->view.sequences = hinter->sequences;
    um_residency_tell(hinter->residency, on_shown, hinter);
    warn_of_unknown(advisors, table);
    hinter->rearm = 1;
    hinter->only_device = UM_DEVICE_NONE;
    config->executor->done = on_done;
    config->executor->done_ctx = hinter;
    um_hinter_set_hinting(hinter, true);
    *out = hinter;
    return UM_OK;
fail:
    um_hinter_free(hinter);
    return status;
}

void um_hinter_free(um_hinter_t *hinter)
{
    if (!hinter)
        return;
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        if (hinter->advisor[i].ops->fini)
            hinter->advisor[i].ops->fini(hinter->advisor[i].state);
        free(hinter->advisor[i].state);
    }
    um_view_fini(&hinter->view);
    um_sequences_free(hinter->sequences);
    um_slices_free(hinter->slices);
    um_footprints_free(hinter->footprints);
    um_residency_free(hinter->residency);
    um_guard_free(hinter->guard);
    um_gate_free(hinter->gate);
    free(hinter);
}

/* ---- what was learned ---- */

typedef struct signer {
    const char *who;
    um_event_fn fn;
    void *ctx;
} signer_t;

static void sign(void *ctx, const um_event_t *event)
{
    const signer_t *signer = ctx;
    um_event_t copy = *event;

    copy.u.learned.who = signer->who;
    signer->fn(signer->ctx, &copy);
}

void um_hinter_learned(const um_hinter_t *hinter, um_event_fn fn, void *ctx)
{
    um_footprints_learned(hinter->footprints, fn, ctx);
    if (hinter->any_ahead) /* nobody else would want to know */
        um_sequences_learned(hinter->sequences, fn, ctx);
    for (unsigned i = 0; i < hinter->n_advisors; i++) {
        const um_advisor_ops_t *ops = hinter->advisor[i].ops;
        signer_t signer = {.who = ops->name, .fn = fn, .ctx = ctx};

        if (ops->learned)
            ops->learned(hinter->advisor[i].state, sign, &signer);
    }
    if (hinter->guard)
        um_guard_learned(hinter->guard, fn, ctx);
}

size_t um_hinter_accounts(const um_hinter_t *hinter, um_account_t *out, size_t max)
{
    size_t n = hinter->n_advisors < max ? hinter->n_advisors : max;

    for (size_t i = 0; i < n; i++)
        out[i] = hinter->advisor[i].account;
    return n;
}

bool um_hinter_where(const um_hinter_t *hinter, uint32_t region, uint64_t *bytes)
{
    um_extent_t extent[64];
    const uint64_t step = sizeof(extent) / sizeof(*extent) * UM_BLOCK_BYTES;
    uint64_t addr, size;

    if (!um_residency_region(hinter->residency, region, &addr, &size))
        return false;
    for (uint64_t at = addr, next; at < addr + size; at = next) {
        size_t n;

        next = (at / step + 1) * step; /* no more blocks than extents */
        if (next > addr + size)
            next = addr + size;
        n = um_residency_extents(hinter->residency, region, at, next - at, extent,
                                 sizeof(extent) / sizeof(*extent));
        for (size_t i = 0; i < n; i++)
            bytes[extent[i].where] += extent[i].bytes;
    }
    return true;
}

void um_hinter_stats(const um_hinter_t *hinter, um_hinter_stats_t *out)
{
    um_gate_stats(hinter->gate, &out->gate);
    out->guard = (um_guard_stats_t){0};
    if (hinter->guard)
        um_guard_stats(hinter->guard, &out->guard);
    out->hinted_launches = atomic_load(&hinter->hinted_launches);
    out->declined = atomic_load(&hinter->declined);
    out->no_hints = atomic_load(&hinter->takes_hints) ? NULL : atomic_load(&hinter->no_hints);
    if (!hinter->n_advisors)
        out->no_hints = "none of the advisors that were named is there";
}
