/* Records, where there are some: faults and the migrations they cause say what lies beyond the end that was
 * believed, and in which direction a kernel goes. They say nothing of what was there already. */
#include <stdlib.h>
#include <string.h>

#include "footprint_impl.h"

#define SURE    60u       /* of an attribution, at least */
#define SETTLED 50000000u /* ns after a launch: its records have come */
#define STEPS   16u       /* from block to block that tell a direction */

static um_recorded_arg_t *arg_of(um_recorded_t *launch, uint32_t region, uint64_t addr)
{
    for (uint32_t i = 0; i < launch->n; i++) {
        const um_argument_t *argument = &launch->arg[i].argument;

        if (argument->region == region && addr >= argument->addr && addr < argument->limit)
            return &launch->arg[i];
    }
    return NULL;
}

static void note(um_recorded_t *launch, uint32_t region, uint64_t addr, uint64_t bytes, bool fault)
{
    um_recorded_arg_t *arg = arg_of(launch, region, addr);
    uint64_t block = addr / UM_BLOCK_BYTES;

    if (!arg)
        return;
    if (addr + bytes - arg->argument.addr > arg->last)
        arg->last = addr + bytes - arg->argument.addr;
    if (!fault)
        return;
    arg->up += arg->block && block > arg->block;
    arg->down += arg->block && block < arg->block;
    arg->block = block;
}

static void on_attributed(void *ctx, const um_event_t *event, const um_attributed_t *who)
{
    um_footprints_t *footprints = ctx;

    if (who->to != UM_TO_KERNEL || who->confidence < SURE || !who->correlation)
        return;
    for (uint32_t i = 0; i < UM_RECORDED; i++) {
        um_recorded_t *launch = &footprints->recorded[i];

        if (!launch->n || launch->correlation != who->correlation)
            continue;
        if (event->type == UM_EV_GPU_FAULT)
            note(launch, event->u.gpu_fault.region, event->u.gpu_fault.addr, UM_PAGE_BYTES, true);
        else if (event->type == UM_EV_MIGRATE && event->u.migrate.dst >= 0)
            note(launch, event->u.migrate.region, event->u.migrate.addr, event->u.migrate.bytes,
                 false);
        return;
    }
}

static void conclude(um_footprints_t *footprints, um_recorded_t *launch)
{
    for (uint32_t i = 0; i < launch->n; i++) {
        const um_recorded_arg_t *arg = &launch->arg[i];
        um_record_t *record = um_footprint_find(footprints, launch->kernel, arg->argument.slot);
        um_shape_t *shape = um_footprint_find_shape(record, launch->shape);

        uint64_t most = arg->argument.limit - arg->argument.addr;

        if (!shape || !shape->seen || !arg->last)
            continue;
        if (arg->up + arg->down >= STEPS)
            shape->backwards = arg->down > 3 * arg->up;
        um_footprint_reached(footprints, shape, arg->last < most ? arg->last : most);
        um_footprint_integers_learn(record, &launch->integers, arg->last < most ? arg->last : most,
                                    UM_FAR);
    }
    launch->n = 0;
}

void um_footprint_record_launch(um_footprints_t *footprints, const um_ev_launch_t *launch,
                                uint64_t now_ns)
{
    um_recorded_t *next = &footprints->recorded[footprints->n_recorded % UM_RECORDED];
    uint64_t grid_blocks;

    for (uint32_t i = 0; i < UM_RECORDED; i++)
        if (footprints->recorded[i].n && footprints->recorded[i].time_ns + SETTLED < now_ns)
            conclude(footprints, &footprints->recorded[i]);
    if (next->n)
        conclude(footprints, next);
    footprints->n_recorded++;
    next->correlation = launch->correlation;
    next->time_ns = now_ns;
    next->kernel = um_footprint_kernel(footprints, launch);
    next->shape = um_footprint_shape(launch, &grid_blocks);
    next->integers = um_footprint_integers(launch);
}

/* What another launch may have done counts for nobody. */
void um_footprint_record_argument(um_footprints_t *footprints, const um_argument_t *argument,
                                  bool alone)
{
    um_recorded_t *launch = &footprints->recorded[(footprints->n_recorded - 1) % UM_RECORDED];

    for (uint32_t i = 0; i < UM_RECORDED; i++)
        for (uint32_t k = 0; k < footprints->recorded[i].n; k++) {
            um_recorded_arg_t *other = &footprints->recorded[i].arg[k];

            if (other->argument.region == argument->region &&
                argument->addr > other->argument.addr && argument->addr < other->argument.limit)
                other->argument.limit = argument->addr;
        }
    if (alone && launch->n < UM_RECORDED_ARGS)
        launch->arg[launch->n++] = (um_recorded_arg_t){.argument = *argument};
}

void um_footprint_on_record(um_footprints_t *footprints, const um_event_t *event)
{
    bool is_record = event->type == UM_EV_GPU_FAULT ||
                     (event->type == UM_EV_MIGRATE && event->u.migrate.dst >= 0 &&
                      (event->u.migrate.cause == UM_CAUSE_COHERENCE ||
                       event->u.migrate.cause == UM_CAUSE_PREFETCH));

    /* Most runs have none: what it takes is there from the first one on. */
    if (!footprints->attribution && is_record)
        footprints->recorded = calloc(UM_RECORDED, sizeof(um_recorded_t));
    if (!footprints->attribution && footprints->recorded &&
        um_attribution_new(on_attributed, footprints, &footprints->attribution) != UM_OK) {
        free(footprints->recorded);
        footprints->recorded = NULL;
    }
    if (footprints->attribution)
        um_attribution_event(footprints->attribution, event);
}
