/*
 * Arguments of which a kernel touches runs at equal distances: a column of blocks of a matrix, a plane of every
 * slab. Seen by a survey: a launch is left to its faults, and what the CPU had of every block before it and no more
 * afterwards is compared.
 *
 * Only gaps that are worth it count. A call for a piece costs about 70 us (an H200 moves 2 MiB calls at 18 GB/s, large
 * ones at 48), in which 3.4 MB would have been brought: with smaller gaps, bringing all is as fast. In what lies
 * within a 2 MiB block the driver's tree prefetcher fills the gaps anyway.
 */
#include <string.h>

#include "footprint_impl.h"

#define GAP_LEAST    (2 * (uint64_t)UM_BLOCK_BYTES)
#define RUNS_LEAST   3u
#define RUNS_MOST    512u
#define BLOCKS_LEAST 16u /* of an argument that is surveyed */
#define SURVEYS_MOST 3u  /* of one shape */
#define SEEN_LEAST   2u  /* observations before one is left to its faults for it */

static bool bit(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* ---- surveys ---- */

void um_footprint_note_holes(um_shape_t *shape, const um_seen_t *seen)
{
    if (seen->last > shape->reach)
        shape->reach = seen->last;
    for (uint32_t i = 0; i < seen->n; i++)
        shape->holes |= !seen->touched[i] && seen->chunk[i] + UM_BLOCK_BYTES <= shape->reach;
}

bool um_footprint_wants_survey(const um_footprints_t *footprints, const um_shape_t *shape,
                               uint64_t bytes)
{
    return !footprints->survey.watch && !shape->stride.stride && !shape->surveys && shape->holes &&
           shape->seen >= SEEN_LEAST && bytes >= BLOCKS_LEAST * UM_BLOCK_BYTES;
}

void um_footprint_survey_begin(um_footprints_t *footprints, const um_watch_t *watch,
                               um_shape_t *shape)
{
    const um_argument_t *argument = &watch->argument;
    um_survey_t *survey = &footprints->survey;
    uint64_t first = (argument->addr + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;
    uint64_t end = argument->limit / UM_BLOCK_BYTES;
    uint32_t had = 0;

    if (survey->watch || shape->stride.stride || shape->surveys >= SURVEYS_MOST ||
        end < first + BLOCKS_LEAST)
        return;
    survey->n = end - first < UM_SURVEY_BLOCKS ? (uint32_t)(end - first) : UM_SURVEY_BLOCKS;
    survey->first = first;
    if (!um_residency_whole(footprints->residency, argument->region, first * UM_BLOCK_BYTES,
                            survey->n, survey->had))
        return;
    for (uint32_t i = 0; i < survey->n; i++)
        had += bit(survey->had, i);
    if (had < survey->n - survey->n / 8)
        return; /* what the GPU has already would not show */
    survey->watch = watch;
    shape->surveys++;
}

void um_footprint_survey_void(um_footprints_t *footprints, const um_watch_t *watch)
{
    if (footprints->survey.watch == watch)
        footprints->survey.watch = NULL;
}

void um_footprint_survey_moved(um_footprints_t *footprints, uint64_t addr, uint64_t bytes)
{
    um_survey_t *survey = &footprints->survey;

    if (survey->watch && addr < (survey->first + survey->n) * UM_BLOCK_BYTES &&
        addr + bytes > survey->first * UM_BLOCK_BYTES)
        survey->watch = NULL;
}

/* ---- what it shows ---- */

/* The next run of touched blocks from *at on; what cannot be told is as what is before it. */
static bool next_run(const um_survey_t *survey, uint32_t *at, uint32_t *start, uint32_t *end)
{
    uint32_t i = *at;

    while (i < survey->n && !(bit(survey->had, i) && !bit(survey->left, i)))
        i++;
    *start = i;
    while (i < survey->n && !bit(survey->left, i))
        i++;
    *end = *at = i;
    return *start < *end;
}

typedef struct runs {
    uint32_t n;
    uint64_t longest;
    uint64_t start[RUNS_MOST], end[RUNS_MOST]; /* addresses */
} runs_t;

/* Of a block that is touched in part, what is: the CPU has the rest. */
static um_chunks_t chunks_of(const um_footprints_t *footprints, const um_watch_t *watch,
                             uint64_t addr)
{
    um_chunks_t chunks = {0};

    um_residency_peek(footprints->residency, watch->argument.region, addr, &chunks);
    return chunks.any == UINT32_MAX ? (um_chunks_t){0} : chunks;
}

static void find_runs(const um_footprints_t *footprints, const um_watch_t *watch, runs_t *runs)
{
    const um_survey_t *survey = &footprints->survey;
    uint32_t at = 0, start, end;

    runs->n = 0;
    runs->longest = 0;
    while (next_run(survey, &at, &start, &end) && runs->n < RUNS_MOST) {
        uint64_t from = (survey->first + start) * UM_BLOCK_BYTES;
        uint64_t to = (survey->first + end) * UM_BLOCK_BYTES;
        uint32_t before = ~chunks_of(footprints, watch, from).any;
        uint32_t behind = ~chunks_of(footprints, watch, to - UM_BLOCK_BYTES).any;

        from += (uint64_t)__builtin_ctz(before) * UM_BIG_PAGE_BYTES;
        to -= (uint64_t)__builtin_clz(behind) * UM_BIG_PAGE_BYTES;
        runs->start[runs->n] = from;
        runs->end[runs->n++] = to;
        runs->longest = to - from > runs->longest ? to - from : runs->longest;
    }
}

static bool near(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) <= UM_BLOCK_BYTES;
}

/* Are they at equal distances, and equally long, but for what the driver brought along? The first one counts by its
 * end alone, the last one by its beginning: by now the CPU may be at the former again, and the argument may end in the
 * latter. */
static bool find_stride(const runs_t *runs, uint64_t pointer, um_stride_t *out)
{
    uint32_t last = runs->n - 1;
    uint64_t step;

    if (runs->n < RUNS_LEAST)
        return false;
    step = (runs->start[last] - runs->start[1]) / (last - 1);
    step = (step + UM_PAGE_BYTES / 2) / UM_PAGE_BYTES * UM_PAGE_BYTES;
    for (uint32_t i = 1; i <= last; i++)
        if (!near(runs->start[i], runs->start[1] + (i - 1) * step) ||
            (i < last && !near(runs->end[i] - runs->start[i], runs->longest)))
            return false;
    if (!near(runs->end[0] + step, runs->end[1]))
        return false;
    *out = (um_stride_t){.first =
                             runs->start[1] > pointer + step ? runs->start[1] - step - pointer : 0,
                         .run = runs->longest,
                         .stride = step};
    return step >= um_stride_reach(out) + GAP_LEAST;
}

/* From its first block to its last one all has been looked at. */
static void learn_extent(const um_footprints_t *footprints, const um_watch_t *watch,
                         const runs_t *runs, um_shape_t *shape)
{
    const um_survey_t *survey = &footprints->survey;
    uint64_t end;

    if (!runs->n || runs->n == RUNS_MOST)
        return;
    end = runs->end[runs->n - 1];
    shape->end.lo = end - watch->argument.addr;
    shape->end.hi = end < (survey->first + survey->n) * UM_BLOCK_BYTES ? shape->end.lo : UM_FAR;
    shape->end.short_of = 0;
    um_footprint_integers_learn(um_footprint_find(footprints, watch->kernel, watch->argument.slot),
                                &watch->integers, shape->end.lo, shape->end.hi);
}

void um_footprint_survey_end(um_footprints_t *footprints, const um_watch_t *watch,
                             um_shape_t *shape, bool at_once)
{
    um_survey_t *survey = &footprints->survey;
    const um_argument_t *argument = &watch->argument;
    um_stride_t stride;
    runs_t runs;

    if (survey->watch != watch)
        return;
    survey->watch = NULL;
    if (!shape || !at_once || watch->foreign != UM_FAR ||
        !um_residency_whole(footprints->residency, argument->region, survey->first * UM_BLOCK_BYTES,
                            survey->n, survey->left))
        return;
    find_runs(footprints, watch, &runs);
    learn_extent(footprints, watch, &runs, shape);
    if (!find_stride(&runs, argument->addr, &stride))
        return;
    shape->stride = stride;
    footprints->stats.strides++;
}

/* ---- whether it is still so ---- */

void um_footprint_watch_gaps(um_footprints_t *footprints, um_watch_t *watch,
                             const um_shape_t *shape)
{
    const um_stride_t *stride = &shape->stride;
    uint64_t n = stride->stride ? (watch->end - stride->first) / stride->stride : 0;

    watch->gap = (um_probe_t){0};
    if (!n || watch->end < stride->first)
        return;
    /* the middle of one, another one each time */
    watch->gap.addr = (watch->argument.addr + stride->first +
                       (++footprints->turn * 2654435761u >> 8 & 0xffffff) % n * stride->stride +
                       (stride->run + stride->stride) / 2) /
                      UM_BLOCK_BYTES * UM_BLOCK_BYTES;
    if (watch->gap.addr + UM_BLOCK_BYTES <= watch->argument.limit) {
        um_chunks_t chunks;

        if (um_residency_peek(footprints->residency, watch->argument.region, watch->gap.addr,
                              &chunks))
            watch->gap.before = chunks.all;
    }
}

void um_footprint_check_gaps(um_footprints_t *footprints, um_watch_t *watch, um_shape_t *shape)
{
    um_chunks_t chunks;

    if (!shape || !shape->stride.stride || !watch->gap.before || watch->foreign != UM_FAR ||
        !um_residency_peek(footprints->residency, watch->argument.region, watch->gap.addr,
                           &chunks) ||
        !(watch->gap.before & ~chunks.any))
        return;
    shape->stride = (um_stride_t){0};
    shape->interval = 1;
    footprints->stats.contrary++;
}

um_stride_t um_footprints_stride(const um_footprints_t *footprints, uint64_t kernel,
                                 const um_ev_launch_t *launch, const um_argument_t *argument)
{
    uint64_t grid_blocks, id = um_footprint_shape(launch, &grid_blocks);
    const um_shape_t *shape =
        um_footprint_find_shape(um_footprint_find(footprints, kernel, argument->slot), id);

    return shape ? shape->stride : (um_stride_t){0};
}

/* ---- other runs ---- */

enum { FIRST, RUN, STRIDE };

bool um_footprint_stride_told(um_shape_t *shape, const um_ev_learned_t *learned)
{
    um_stride_t stride = {.first = learned->value[FIRST],
                          .run = learned->value[RUN],
                          .stride = learned->value[STRIDE]};

    if (!stride.run || stride.stride > INT64_MAX || stride.first > INT64_MAX ||
        stride.run >= stride.stride || stride.stride < um_stride_reach(&stride) + GAP_LEAST)
        return false;
    shape->stride = stride;
    return true;
}

void um_footprint_tell_stride(const um_shape_t *shape, const um_ev_learned_t *like,
                              um_event_fn emit, void *ctx)
{
    um_event_t event = {.type = UM_EV_LEARNED, .u.learned = *like};

    if (!shape->stride.stride)
        return;
    event.u.learned.what = "stride";
    memset(event.u.learned.value, 0, sizeof(event.u.learned.value));
    event.u.learned.value[FIRST] = shape->stride.first;
    event.u.learned.value[RUN] = shape->stride.run;
    event.u.learned.value[STRIDE] = shape->stride.stride;
    emit(ctx, &event);
}
