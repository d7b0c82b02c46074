#include "fix.h"

#include "findings/finding.h"

/* What of the region a call is for. */
typedef enum um_extent {
    ALL = 0, /* or the finding's part */
    FIRST,   /* what fits on the GPU */
    REST
} um_extent_t;

typedef struct um_fix_call {
    um_action_t action;
    um_when_t when;
    um_side_t to;
    um_extent_t extent;
} um_fix_call_t;

typedef struct um_fix {
    const char *name;
    bool bare; /* of no region: the finding's places are where, not what */
    uint32_t n;
    um_fix_call_t call[3];
} um_fix_t;

static const um_fix_t fixes[UM_CHANGE_COUNT] = {
    [UM_CHANGE_NONE] = {"none", true, 0, {{0}}},
    [UM_CHANGE_PREFETCH] = {"prefetch",
                            false,
                            1,
                            {{UM_DO_PREFETCH, UM_AT_BEFORE_LAUNCH, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_PREFETCH_BACK] = {"prefetch-back",
                                 false,
                                 1,
                                 {{UM_DO_PREFETCH, UM_AT_AFTER_LAUNCH, UM_SIDE_CPU, ALL}}},
    [UM_CHANGE_BOTH_WAYS] = {"prefetch-both-ways",
                             false,
                             2,
                             {{UM_DO_PREFETCH, UM_AT_BEFORE_LAUNCH, UM_SIDE_GPU, ALL},
                              {UM_DO_PREFETCH, UM_AT_AFTER_LAUNCH, UM_SIDE_CPU, ALL}}},
    [UM_CHANGE_POPULATE] = {"populate",
                            false,
                            1,
                            {{UM_DO_PREFETCH, UM_AT_ALLOCATION, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_MAP] = {"map",
                       false,
                       2,
                       {{UM_DO_PREFER, UM_AT_ALLOCATION, UM_SIDE_CPU, ALL},
                        {UM_DO_ACCESSED_BY, UM_AT_ALLOCATION, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_KEEP_PART] = {"keep-part",
                             false,
                             3,
                             {{UM_DO_PREFER, UM_AT_ALLOCATION, UM_SIDE_GPU, FIRST},
                              {UM_DO_PREFER, UM_AT_ALLOCATION, UM_SIDE_CPU, REST},
                              {UM_DO_ACCESSED_BY, UM_AT_ALLOCATION, UM_SIDE_GPU, REST}}},
    [UM_CHANGE_OWNER] = {"one-owner",
                         false,
                         2,
                         {{UM_DO_PREFER, UM_AT_ALLOCATION, UM_SIDE_GPU, ALL},
                          {UM_DO_ACCESSED_BY, UM_AT_ALLOCATION, UM_SIDE_OTHER, ALL}}},
    [UM_CHANGE_DEVICE] = {"device-memory",
                          false,
                          1,
                          {{UM_DO_ALLOC_DEVICE, UM_AT_INSTEAD, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_POOL] = {"pool", false, 1, {{UM_DO_ALLOC_POOL, UM_AT_INSTEAD, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_PAGES] = {"own-pages",
                         false,
                         1,
                         {{UM_DO_ALLOC_PAGES, UM_AT_INSTEAD, UM_SIDE_NONE, ALL}}},
    [UM_CHANGE_NO_READ_MOSTLY] = {"no-read-mostly",
                                  false,
                                  1,
                                  {{UM_DO_UNSET_READ_MOSTLY, UM_AT_BEFORE_LAUNCH, UM_SIDE_GPU,
                                    ALL}}},
    [UM_CHANGE_NO_LOCATION] = {"no-preferred-location",
                               false,
                               1,
                               {{UM_DO_UNSET_PREFER, UM_AT_BEFORE_LAUNCH, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_DROP_HINT] = {"drop-call",
                             false,
                             1,
                             {{UM_DO_DROP_CALL, UM_AT_CALL, UM_SIDE_NONE, ALL}}},
    [UM_CHANGE_DROP_REPEATS] = {"drop-repeats",
                                false,
                                1,
                                {{UM_DO_DROP_REPEATS, UM_AT_CALL, UM_SIDE_NONE, ALL}}},
    [UM_CHANGE_EARLIER] = {"earlier", false, 1, {{UM_DO_EARLIER, UM_AT_CALL, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_LIMIT] = {"limit", false, 1, {{UM_DO_ASK_ROOM, UM_AT_CALL, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_WAIT] = {"wait", true, 1, {{UM_DO_WAIT, UM_AT_AFTER_LAUNCH, UM_SIDE_NONE, ALL}}},
    [UM_CHANGE_PIN] = {"pin", true, 1, {{UM_DO_PIN, UM_AT_ANY, UM_SIDE_NONE, ALL}}},
    [UM_CHANGE_FLAG] = {"mapped-flag", true, 1, {{UM_DO_ALLOC_FLAG, UM_AT_ANY, UM_SIDE_NONE, ALL}}},
    [UM_CHANGE_STAGE] = {"stage", true, 1, {{UM_DO_ALLOC_STAGE, UM_AT_ANY, UM_SIDE_NONE, ALL}}},
    [UM_CHANGE_KEEP_POOL] = {"keep-pool",
                             true,
                             1,
                             {{UM_DO_KEEP_POOL, UM_AT_ANY, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_ROOM] = {"room", true, 1, {{UM_DO_TRIM_POOL, UM_AT_ANY, UM_SIDE_GPU, ALL}}},
    [UM_CHANGE_RECORD] = {"record", true, 1, {{UM_DO_RECORD, UM_AT_ANY, UM_SIDE_NONE, ALL}}},
};

um_change_t um_fix_change(const um_finding_t *f)
{
    return f->asks ? f->asks : f->change;
}

const char *um_change_name(um_change_t change)
{
    return change < UM_CHANGE_COUNT ? fixes[change].name : "none";
}

const char *um_action_name(um_action_t action)
{
    static const char *const name[UM_DO_COUNT] = {
        [UM_DO_PREFETCH] = "prefetch",
        [UM_DO_PREFER] = "set-preferred-location",
        [UM_DO_ACCESSED_BY] = "set-accessed-by",
        [UM_DO_UNSET_READ_MOSTLY] = "unset-read-mostly",
        [UM_DO_UNSET_PREFER] = "unset-preferred-location",
        [UM_DO_ALLOC_DEVICE] = "allocate-device",
        [UM_DO_ALLOC_POOL] = "allocate-from-pool",
        [UM_DO_ALLOC_PAGES] = "allocate-whole-pages",
        [UM_DO_ALLOC_FLAG] = "allocate-mapped",
        [UM_DO_ALLOC_STAGE] = "allocate-pinned",
        [UM_DO_PIN] = "register",
        [UM_DO_WAIT] = "synchronize",
        [UM_DO_KEEP_POOL] = "set-release-threshold",
        [UM_DO_TRIM_POOL] = "trim-pool",
        [UM_DO_ASK_ROOM] = "ask-free-memory",
        [UM_DO_DROP_CALL] = "drop-call",
        [UM_DO_DROP_REPEATS] = "drop-repeated-calls",
        [UM_DO_EARLIER] = "prefetch-earlier",
        [UM_DO_RECORD] = "record-again",
    };

    return name[action];
}

const char *um_when_name(um_when_t when)
{
    static const char *const name[UM_AT_COUNT] = {
        [UM_AT_ANY] = "any",
        [UM_AT_ALLOCATION] = "after-allocation",
        [UM_AT_INSTEAD] = "instead-of-allocation",
        [UM_AT_BEFORE_LAUNCH] = "before-launch",
        [UM_AT_AFTER_LAUNCH] = "after-launch",
        [UM_AT_CALL] = "at-call",
    };

    return name[when];
}

/* So much of a region stays on the GPU when its share of all managed memory must; as the driver model
 * tries it. 0: how large the GPU is, or how much there was, is not known. */
static uint64_t kept_bytes(const um_report_t *r, uint64_t bytes)
{
    uint64_t gpu = r->n_traces ? r->traces[0].gpu_memory_bytes : 0,
             peak = r->regions.uses.peak_bytes[UM_FAMILY_MANAGED];
    double keep;

    if (!gpu || peak <= gpu)
        return 0;
    keep = (double)bytes * (double)gpu * 0.9 / (double)peak;
    return (uint64_t)keep / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
}

static void set_extent(const um_report_t *r, const um_finding_t *f, um_extent_t extent,
                       um_fix_step_t *step)
{
    const um_group_t *group = &r->regions.groups[step->group];
    uint64_t keep = extent == ALL ? 0 : kept_bytes(r, group->bytes);

    step->bytes = group->first_region ? group->bytes : 0;
    step->whole = extent == ALL;
    if (extent == FIRST)
        step->bytes = keep;
    if (extent == REST) {
        step->from = keep;
        step->bytes = keep ? group->bytes - keep : 0;
    }
    if (extent == ALL && f->part_end > f->part_from && f->part_end <= group->bytes) {
        step->from = f->part_from;
        step->bytes = f->part_end - f->part_from;
        step->whole = step->bytes == group->bytes;
    }
}

/* What belongs to one place of the program stands together. */
static void by_place(um_fix_step_t *steps, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        um_fix_step_t step = steps[i];
        size_t at = i;

        for (; at && steps[at - 1].when > step.when; at--)
            steps[at] = steps[at - 1];
        steps[at] = step;
    }
}

size_t um_fix_steps(const um_report_t *r, const um_finding_t *f, um_fix_step_t *out, uint64_t *left)
{
    const um_fix_t *fix = &fixes[um_fix_change(f)];
    uint32_t places = fix->bare || !f->n_places ? 1 : f->n_places, done;
    size_t n = 0;

    for (done = 0; done < places && n + fix->n <= UM_STEPS_MAX; done++) {
        for (uint32_t i = 0; i < fix->n; i++) {
            um_fix_step_t step = {.action = fix->call[i].action,
                                  .when = fix->call[i].when,
                                  .to = fix->call[i].to,
                                  .group = UM_NO_INDEX,
                                  .kernel = f->kernel ? f->kernel - 1 : UM_NO_INDEX,
                                  .own = f->own ? f->own - 1 : UM_NO_INDEX};

            if (f->own)
                step.to = r->regions.uses.own[f->own - 1].device < 0 ? UM_SIDE_CPU : UM_SIDE_GPU;
            if (!fix->bare && f->n_places) {
                step.group = f->places[done].group;
                set_extent(r, f, fix->call[i].extent, &step);
            }
            out[n++] = step;
        }
    }
    by_place(out, n);
    *left = (places > done ? places - done : 0) + (fix->bare ? 0 : f->places_left);
    return n;
}
