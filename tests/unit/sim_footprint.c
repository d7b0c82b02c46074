/* Footprints in the simulator: what is known exactly is brought, and hardly anything else; what is learned in
 * one run makes the next no slower. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "sim/gen.h"
#include "sim/sim.h"

#define MIB       ((uint64_t)1 << 20)
#define FACTS     256u
#define KERNELS   64u
#define REGIONS   4096u
#define WASTE_MAX 5 /* percent */

/* Patterns whose kernels go over ranges; the others draw by lot what they touch, and the cache of decode
 * grows from launch to launch. */
static const char *const patterns[] = {"stream",         "ping-pong", "stencil", "first-touch",
                                       "partial-update", "pipeline",  "table",   "matmul",
                                       "pool",           "sweep",     "halo"};

static um_workload_t *workload;
static um_machine_t machine;
static um_event_t fact[FACTS];
static size_t n_facts;
static const char *kernel_name[KERNELS];
static uint64_t region_addr[REGIONS];
static uint64_t hinted_bytes, wasted_bytes;

static void open_pattern(const char *name, uint64_t bytes, uint32_t iterations)
{
    um_gen_options_t options = {.bytes = bytes, .iterations = iterations};
    char error[512];

    cr_assert_eq(um_gen_workload(name, &options, &workload), UM_OK);
    cr_assert_eq(um_machine_load("h200-pcie5", &machine, error, sizeof(error)), UM_OK);
}

/* ---- the truth ---- */

static uint64_t shape_of(const um_ev_launch_t *launch)
{
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];

    return blocks << 12 | (threads & 0xfff);
}

static void know(const um_ev_launch_t *launch, uint32_t slot, uint64_t last)
{
    um_ev_learned_t learned = {.who = "footprint",
                               .what = "extent",
                               .kernel = kernel_name[launch->kernel],
                               .shape = shape_of(launch),
                               .slot = slot,
                               .count = 8,
                               .value = {last, last, 0, 100, 0, 8}};

    for (size_t i = 0; i < n_facts; i++) {
        um_ev_learned_t *known = &fact[i].u.learned;

        if (known->shape == learned.shape && known->slot == slot &&
            strcmp(known->kernel, learned.kernel) == 0) {
            if (last > known->value[0])
                known->value[0] = known->value[1] = last;
            return;
        }
    }
    cr_assert_lt(n_facts, FACTS);
    fact[n_facts] = (um_event_t){.type = UM_EV_LEARNED};
    fact[n_facts++].u.learned = learned;
}

/* A touch belongs to the launch's nearest pointer before it. */
static void look_at_launch(const um_step_t *step)
{
    const um_ev_launch_t *launch = &step->event->u.launch;
    uint64_t last[8] = {0};

    cr_assert_leq(launch->n_args, 8);
    for (uint32_t t = 0; t < step->n_touches; t++) {
        const um_touch_t *touch = &workload->touches[step->first_touch + t];
        uint32_t owner = UINT32_MAX;
        uint64_t at = 0;

        for (uint32_t a = 0; a < launch->n_args; a++) {
            uint64_t addr =
                region_addr[launch->args[a].region] + launch->args[a].region_offset_bytes;

            if (launch->args[a].region == touch->region && addr <= touch->addr && addr >= at) {
                owner = a;
                at = addr;
            }
        }
        if (owner != UINT32_MAX && touch->addr + touch->bytes - at > last[owner])
            last[owner] = touch->addr + touch->bytes - at;
    }
    for (uint32_t a = 0; a < launch->n_args; a++)
        if (last[a])
            know(launch, launch->args[a].slot, last[a]);
}

static void find_truth(void)
{
    n_facts = 0;
    for (uint64_t i = 0; i < workload->n_steps; i++) {
        const um_event_t *event = workload->steps[i].event;

        if (!event)
            continue;
        if (event->type == UM_EV_KERNEL) {
            cr_assert_lt(event->u.kernel.kernel, KERNELS);
            kernel_name[event->u.kernel.kernel] = event->u.kernel.name;
        } else if (event->type == UM_EV_REGION_ALLOC) {
            cr_assert_lt(event->u.region_alloc.region, REGIONS);
            region_addr[event->u.region_alloc.region] = event->u.region_alloc.addr;
        } else if (event->type == UM_EV_LAUNCH) {
            look_at_launch(&workload->steps[i]);
        }
    }
}

/* ---- what was brought ---- */

static const um_step_t *launch_of(uint32_t correlation)
{
    for (uint64_t i = 0; i < workload->n_steps; i++) {
        const um_event_t *event = workload->steps[i].event;

        if (event && event->type == UM_EV_LAUNCH && event->u.launch.correlation == correlation)
            return &workload->steps[i];
    }
    return NULL;
}

static bool touches(const um_step_t *step, uint64_t addr, uint64_t end)
{
    for (uint32_t t = 0; t < step->n_touches; t++) {
        const um_touch_t *touch = &workload->touches[step->first_touch + t];

        if (touch->addr < end && touch->addr + touch->bytes > addr)
            return true;
    }
    return false;
}

/* By the launch, or by one of those that follow before there is a wait: for these, too, a prefetch may be made. */
static bool is_touched(const um_step_t *launch, uint64_t addr, uint64_t end)
{
    const um_step_t *last = workload->steps + workload->n_steps;

    for (const um_step_t *step = launch; step < last; step++) {
        if (step->event && step->event->type == UM_EV_SYNC)
            return false;
        if (step->event && step->event->type == UM_EV_LAUNCH && touches(step, addr, end))
            return true;
    }
    return false;
}

/* Bytes of the hint that are touched, by 64 KiB: as pages move. */
static uint64_t used(const um_ev_hint_t *hint, const um_step_t *step)
{
    uint64_t bytes = 0;

    for (uint64_t at = hint->addr; at < hint->addr + hint->bytes; at += UM_BIG_PAGE_BYTES) {
        uint64_t end = at + UM_BIG_PAGE_BYTES;

        if (end > hint->addr + hint->bytes)
            end = hint->addr + hint->bytes;
        bytes += is_touched(step, at, end) ? end - at : 0;
    }
    return bytes;
}

static void watch(void *ctx, const um_event_t *event)
{
    const um_ev_hint_t *hint = &event->u.hint;

    (void)ctx;
    if (event->type != UM_EV_HINT || hint->result != UM_HINT_APPLIED ||
        hint->kind != UM_HINT_PREFETCH || hint->device < 0)
        return;
    cr_assert_not_null(launch_of(hint->correlation));
    hinted_bytes += hint->bytes;
    wasted_bytes += hint->bytes - used(hint, launch_of(hint->correlation));
}

static um_sim_result_t run(const char *policy, bool knowing, um_event_fn event, um_event_fn learned)
{
    um_sim_config_t config = {.workload = workload,
                              .machine = &machine,
                              .policy = um_policy_find(policy),
                              .event = event,
                              .known = fact,
                              .n_known = knowing ? n_facts : 0,
                              .learned = learned};
    um_sim_result_t result;
    char error[512];

    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_OK, "%s", error);
    return result;
}

Test(sim_footprint, what_is_known_exactly_is_brought_and_hardly_anything_else)
{
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        open_pattern(patterns[i], 512 * MIB, 4);
        find_truth();
        hinted_bytes = wasted_bytes = 0;
        run("run", true, watch, NULL);
        cr_assert_gt(hinted_bytes, 0, "%s", patterns[i]);
        cr_assert_leq(wasted_bytes * 100, hinted_bytes * WASTE_MAX, "%s: %llu of %llu KiB",
                      patterns[i], (unsigned long long)wasted_bytes >> 10,
                      (unsigned long long)hinted_bytes >> 10);
        um_workload_free(workload);
    }
}

/* ---- from run to run ---- */

static void forget(void)
{
    for (size_t i = 0; i < n_facts; i++) {
        free((char *)fact[i].u.learned.who);
        free((char *)fact[i].u.learned.what);
        free((char *)fact[i].u.learned.kernel);
    }
    n_facts = 0;
}

static void keep(void *ctx, const um_event_t *event)
{
    um_event_t *copy = &fact[n_facts++];

    (void)ctx;
    cr_assert_leq(n_facts, FACTS);
    *copy = *event;
    copy->u.learned.who = strdup(event->u.learned.who);
    copy->u.learned.what = strdup(event->u.learned.what);
    copy->u.learned.kernel = strdup(event->u.learned.kernel);
}

/* Where it was learned that a kernel is sparse, the cold run may have been faster by luck: it brought what a
 * later kernel uses. */
Test(sim_footprint, a_run_that_knows_is_not_slower_than_the_one_that_learned)
{
    for (const um_gen_pattern_t *pattern = um_gen_patterns; pattern->name; pattern++) {
        um_sim_result_t cold, warm;
        uint64_t percent = strcmp(pattern->name, "graph") == 0 ? 105 : 102;

        open_pattern(pattern->name, 512 * MIB, 4);
        forget();
        cold = run("run", false, NULL, keep);
        warm = run("run", true, NULL, NULL);
        cr_assert_leq(warm.total_ns * 100, cold.total_ns * percent, "%s: %.3f ms, cold %.3f",
                      pattern->name, (double)warm.total_ns * 1e-6, (double)cold.total_ns * 1e-6);
        um_workload_free(workload);
    }
    forget();
}

/* What is believed of another program's data must not cost more than the driver alone takes. */
Test(sim_footprint, a_profile_of_another_input_costs_little)
{
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        um_sim_result_t plain, misled;

        open_pattern(patterns[i], 64 * MIB, 4);
        forget();
        run("run", false, NULL, keep);
        um_workload_free(workload);
        open_pattern(patterns[i], 512 * MIB, 4);
        plain = run("driver", false, NULL, NULL);
        misled = run("run", true, NULL, NULL);
        cr_assert_leq(misled.total_ns, plain.total_ns + plain.total_ns / 50, "%s", patterns[i]);
        um_workload_free(workload);
    }
    forget();
}
