/* Jobs are numbered group by group; each rank takes its part of the numbers. */
#include "sweep.h"

#include <stdlib.h>

#include "core/bus.h"
#include "crew.h"

uint64_t um_capacity_bytes(const um_capacity_t *capacity, const um_workload_t *workload,
                           const um_machine_t *machine)
{
    uint64_t bytes;

    switch (capacity->kind) {
    case UM_CAPACITY_BYTES:
        return capacity->value;
    case UM_CAPACITY_PERCENT:
        /* In two parts: a peak of some TiB times a thousand does not fit in 64 bits otherwise. */
        bytes = workload->memory_peak_bytes / 100 * capacity->value +
                workload->memory_peak_bytes % 100 * capacity->value / 100;
        return (bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    default:
        return machine->memory_bytes;
    }
}

size_t um_sweep_jobs(const um_sweep_t *sweep)
{
    return sweep->n_groups * (sweep->n_policies + 1);
}

const um_bounds_t *um_sweep_bounds(const um_sweep_t *sweep, size_t group)
{
    return &sweep->outcomes[group * (sweep->n_policies + 1)].u.bounds;
}

const um_sim_result_t *um_sweep_result(const um_sweep_t *sweep, size_t group, size_t policy)
{
    return &sweep->outcomes[group * (sweep->n_policies + 1) + 1 + policy].u.sim;
}

/* ---- a second run ---- */

typedef struct lesson {
    um_event_t *event; /* what the first run learned; what they point to is each one's own */
    void **memory;
    size_t n, room;
    bool failed;
} lesson_t;

static void take_in(void *ctx, const um_event_t *event)
{
    lesson_t *lesson = ctx;
    size_t bytes = um_event_pack(event, NULL, 0);

    if (lesson->n == lesson->room) {
        size_t room = lesson->room ? 2 * lesson->room : 256;
        um_event_t *grown = realloc(lesson->event, room * sizeof(*grown));
        void **memory = realloc(lesson->memory, room * sizeof(*memory));

        lesson->event = grown ? grown : lesson->event;
        lesson->memory = memory ? memory : lesson->memory;
        lesson->failed |= !grown || !memory;
        lesson->room = lesson->failed ? lesson->room : room;
    }
    if (lesson->failed || !(lesson->memory[lesson->n] = malloc(bytes))) {
        lesson->failed = true;
        return;
    }
    um_event_pack(event, lesson->memory[lesson->n], bytes);
    lesson->event[lesson->n] = *(um_event_t *)lesson->memory[lesson->n];
    lesson->event[lesson->n++].u.learned.age = 1;
}

static um_status_t run_again(um_sim_config_t config, um_sim_result_t *out, char *error,
                             size_t error_bytes)
{
    lesson_t lesson = {0};
    um_status_t status;

    config.learned = take_in;
    config.learned_ctx = &lesson;
    status = um_sim_run(&config, out, error, error_bytes);
    config.learned = NULL;
    config.known = lesson.event;
    config.n_known = lesson.n;
    if (status == UM_OK)
        status = lesson.failed ? UM_ERR_NO_MEMORY : um_sim_run(&config, out, error, error_bytes);
    for (size_t i = 0; i < lesson.n; i++)
        free(lesson.memory[i]);
    free(lesson.memory);
    free(lesson.event);
    return status;
}

/* This rank's jobs. */
typedef struct part {
    um_sweep_t *sweep;
    size_t *job;
} part_t;

static void job_run(void *ctx, size_t i)
{
    const part_t *part = ctx;
    um_sweep_t *sweep = part->sweep;
    size_t job = part->job[i];
    const um_sweep_group_t *group = &sweep->groups[job / (sweep->n_policies + 1)];
    size_t which = job % (sweep->n_policies + 1);
    um_outcome_t *outcome = &sweep->outcomes[job];

    if (which == 0) {
        outcome->status = um_bounds_find(group->workload, group->machine, group->gpu_bytes, 0,
                                         &outcome->u.bounds);
    } else {
        um_sim_config_t config = {
            .workload = group->workload,
            .machine = group->machine,
            .policy = sweep->policies[which - 1],
            .gpu_bytes = group->gpu_bytes,
            .params = group->params,
        };

        outcome->status =
            (config.policy->again
                 ? run_again(config, &outcome->u.sim, outcome->error, sizeof(outcome->error))
                 : um_sim_run(&config, &outcome->u.sim, outcome->error, sizeof(outcome->error)));
    }
}

/* Neighbours go to different ranks, and the bounds of all groups not to one. */
static uint32_t rank_of(const um_sweep_t *sweep, size_t job, uint32_t size)
{
    return (uint32_t)((job / (sweep->n_policies + 1) + job) % size);
}

um_status_t um_sweep_run(um_sweep_t *sweep, const um_sweep_options_t *options)
{
    size_t all = um_sweep_jobs(sweep), n = 0;
    part_t part = {sweep, calloc(all + 1, sizeof(*part.job))};

    sweep->outcomes = calloc(all + 1, sizeof(um_outcome_t));
    if (!sweep->outcomes || !part.job) {
        free(part.job);
        return UM_ERR_NO_MEMORY;
    }
    for (size_t job = 0; job < all; job++) {
        if (rank_of(sweep, job, options->size) == options->rank)
            part.job[n++] = job;
    }
    um_crew_run(n, options->threads, job_run, &part, options->progress, options->progress_ctx);
    free(part.job);
    return UM_OK;
}

const um_outcome_t *um_sweep_failed(const um_sweep_t *sweep, size_t *group)
{
    for (size_t job = 0; job < um_sweep_jobs(sweep); job++) {
        if (sweep->outcomes[job].status) {
            *group = job / (sweep->n_policies + 1);
            return &sweep->outcomes[job];
        }
    }
    return NULL;
}

void um_sweep_fini(um_sweep_t *sweep)
{
    free(sweep->outcomes);
    sweep->outcomes = NULL;
}
