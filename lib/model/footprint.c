#include <stdlib.h>
#include <string.h>

#include "footprint_impl.h"

#define PLACES      8u  /* for a record in the table */
#define FAR_OFF     30u /* percent: a density that far from what was believed contradicts it */
#define PRIOR_MOST  4u  /* what another run's word weighs at most */
#define PER         256u
#define SOUGHT_MOST 32u /* launches that are watched to find the integer that says where they end */
#define GRID_MOST   ((uint64_t)1 << 48)

static uint64_t mix(uint64_t x, uint64_t y)
{
    x = (x ^ (y + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    return x ^ x >> 32;
}

/* ---- who it is about ---- */

static uint64_t hash_of(const char *name, uint64_t module_hash)
{
    uint64_t hash = mix(module_hash, 1);

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return mix(hash, 2) | 1;
}

/* A grid of so many blocks of so many threads. */
uint64_t um_footprint_shape(const um_ev_launch_t *launch, uint64_t *grid_blocks)
{
    uint64_t blocks = 1, threads = 1;

    for (int i = 0; i < 3; i++) {
        uint64_t side = launch->grid[i] ? launch->grid[i] : 1;

        blocks = blocks < GRID_MOST / side ? blocks * side : GRID_MOST;
        threads *= launch->block[i] ? launch->block[i] : 1;
    }
    *grid_blocks = blocks;
    return blocks << 12 | (threads & 0xfff);
}

uint64_t um_footprint_kernel(const um_footprints_t *footprints, const um_ev_launch_t *launch)
{
    if (launch->flags & UM_LAUNCH_GRAPH)
        return launch->graph ? mix(launch->graph, 3) | 1 : 0;
    if (!launch->kernel || launch->kernel >= footprints->n_kernels)
        return 0;
    return footprints->kernel[launch->kernel].hash;
}

uint64_t um_footprints_kernel(const um_footprints_t *footprints, const um_ev_launch_t *launch)
{
    return um_footprint_kernel(footprints, launch);
}

uint64_t um_footprints_kernel_named(const char *name, uint64_t module_hash)
{
    return hash_of(name, module_hash);
}

const char *um_footprints_name(const um_footprints_t *footprints, uint32_t kernel,
                               uint64_t *module_hash)
{
    if (!kernel || kernel >= footprints->n_kernels)
        return NULL;
    *module_hash = footprints->kernel[kernel].module_hash;
    return footprints->kernel[kernel].name;
}

static void on_kernel(um_footprints_t *footprints, const um_ev_kernel_t *kernel)
{
    um_kernel_name_t *entry;

    if (kernel->kernel >= UM_KERNEL_IDS_MAX)
        return;
    if (kernel->kernel >= footprints->n_kernels) {
        uint32_t n = kernel->kernel + 64;
        um_kernel_name_t *grown = realloc(footprints->kernel, n * sizeof(*grown));

        if (!grown)
            return;
        memset(grown + footprints->n_kernels, 0, (n - footprints->n_kernels) * sizeof(*grown));
        footprints->kernel = grown;
        footprints->n_kernels = n;
    }
    entry = &footprints->kernel[kernel->kernel];
    free(entry->name);
    *entry = (um_kernel_name_t){.hash = hash_of(kernel->name, kernel->module_hash),
                                .module_hash = kernel->module_hash,
                                .name = strdup(kernel->name)};
}

/* ---- records ---- */

um_record_t *um_footprint_find(const um_footprints_t *footprints, uint64_t kernel, uint32_t slot)
{
    uint64_t hash = mix(kernel, slot);

    for (uint32_t i = 0; kernel && i < PLACES; i++) {
        um_record_t *record = &footprints->record[(hash + i) % UM_RECORDS];

        if (record->kernel == kernel && record->slot == slot)
            return record;
    }
    return NULL;
}

static um_record_t *new_record(um_footprints_t *footprints, uint64_t kernel, uint32_t slot,
                               const char *name, uint64_t module_hash)
{
    uint64_t hash = mix(kernel, slot);
    um_record_t *oldest = NULL;

    for (uint32_t i = 0; i < PLACES; i++) {
        um_record_t *record = &footprints->record[(hash + i) % UM_RECORDS];

        if (!oldest || record->used < oldest->used)
            oldest = record;
    }
    free(oldest->name);
    *oldest = (um_record_t){.kernel = kernel,
                            .slot = slot,
                            .module_hash = module_hash,
                            .name = name ? strdup(name) : NULL,
                            .used = ++footprints->clock};
    return oldest;
}

um_shape_t *um_footprint_find_shape(um_record_t *record, uint64_t shape)
{
    for (uint32_t i = 0; record && i < UM_SHAPES; i++)
        if (record->shape[i].shape == shape)
            return &record->shape[i];
    return NULL;
}

static um_shape_t *shape_of(um_footprints_t *footprints, um_record_t *record, uint64_t shape)
{
    um_shape_t *found = um_footprint_find_shape(record, shape);

    if (!found) {
        found = &record->shape[0];
        for (uint32_t i = 1; i < UM_SHAPES; i++)
            if (record->shape[i].used < found->used)
                found = &record->shape[i];
        *found = (um_shape_t){.shape = shape, .interval = 1};
    }
    found->used = record->used = ++footprints->clock;
    return found;
}

um_shape_t *um_footprint_entry(um_footprints_t *footprints, const um_ev_launch_t *launch,
                               uint64_t kernel, uint32_t slot, uint64_t shape)
{
    um_record_t *record = um_footprint_find(footprints, kernel, slot);

    if (!record) {
        const um_kernel_name_t *known =
            launch->flags & UM_LAUNCH_GRAPH ? NULL : &footprints->kernel[launch->kernel];

        record = new_record(footprints, kernel, slot, known ? known->name : NULL,
                            known ? known->module_hash : 0);
    }
    return shape_of(footprints, record, shape);
}

/* ---- beliefs ---- */

/* What was touched ended behind `last` and before `clear`. Returns whether that was to be expected; `slack`
 * is how exactly it can be told. */
static bool agrees(um_span_t *span, uint64_t last, uint64_t clear, uint64_t slack)
{
    bool further, shorter;

    if (!span->sure) {
        *span = (um_span_t){.lo = last, .hi = clear, .sure = 1};
        return true;
    }
    further = span->hi != UM_FAR && last > span->hi + slack;
    shorter = clear != UM_FAR && clear + slack <= span->lo;
    if (further || shorter) {
        span->sure = span->sure > 1 ? span->sure / 2 : 1;
        /* Less than usual may be an exception: only what happens twice is the rule. */
        if (further || ++span->short_of == 2) {
            span->lo = last;
            span->hi = clear;
            span->short_of = 0;
        }
        return false;
    }
    if (last > span->lo)
        span->lo = last;
    if (clear < span->hi)
        span->hi = clear;
    if (span->hi < span->lo)
        span->hi = span->lo;
    span->short_of = 0;
    span->sure += span->sure < UM_SURE_MOST;
    return true;
}

/* In percent of what lies before `end`; UINT32_MAX = nothing was seen of that. */
static uint32_t density_of(const um_seen_t *seen, uint64_t end)
{
    uint32_t touched = 0, of = 0;

    for (uint32_t i = 0; i < seen->n; i++)
        if (seen->chunk[i] < end) {
            bool stops = seen->chunk[i] + UM_BLOCK_BYTES > end && seen->clear == seen->last;

            touched += seen->touched[i];
            of += stops ? seen->touched[i] : seen->of[i];
        }
    return of ? (100 * touched + of / 2) / of : UINT32_MAX;
}

static uint64_t scaled(uint64_t bytes, uint64_t by, uint64_t over)
{
    double product = (double)bytes * (double)by / (double)over;

    return bytes == UM_FAR || product >= (double)INT64_MAX ? UM_FAR : (uint64_t)product;
}

/* What holds whatever the shape. */
static void generalise(um_record_t *record, uint64_t shape, uint64_t grid_blocks, uint64_t last,
                       uint64_t clear, uint32_t density)
{
    uint64_t page = UM_BIG_PAGE_BYTES;

    agrees(&record->fixed, last, clear, UM_BLOCK_BYTES);
    agrees(&record->linear, scaled(last > page ? last - page : 0, PER, grid_blocks),
           scaled(clear == UM_FAR ? UM_FAR : clear + page, PER, grid_blocks),
           scaled(UM_BLOCK_BYTES, PER, grid_blocks));
    record->density = density;
    if (record->shape_seen != shape)
        record->n_shapes_seen++;
    record->shape_seen = shape;
}

static uint64_t width_of(const um_span_t *span)
{
    return span->hi == UM_FAR ? UM_FAR : span->hi - span->lo;
}

/* When it is watched again: soon, while it shows what was not known; ever later once it does not. */
static void set_interval(um_shape_t *shape, bool news)
{
    if (news)
        shape->interval = 1;
    else if (2 * shape->interval < UM_WIDEST)
        /* Odd numbers: of launches that differ by turns all have their turn. */
        shape->interval = 2 * shape->interval + 1;
}

/* An integer may say where it ends, but which is not known yet. */
static bool seeks_integer(um_shape_t *shape, const um_record_t *record,
                          const um_integers_t *integers)
{
    return shape->varies && um_footprint_integer_is_open(record, integers) &&
           shape->sought++ < SOUGHT_MOST;
}

void um_footprint_learn(um_footprints_t *footprints, const um_watch_t *watch, const um_seen_t *seen)
{
    um_record_t *record = um_footprint_find(footprints, watch->kernel, watch->argument.slot);
    um_shape_t *shape = um_footprint_find_shape(record, watch->shape);
    um_span_t by_integer, *end = &by_integer;
    uint32_t density, before;
    uint64_t width;
    bool agreed, narrower;

    if (!shape)
        return; /* forgotten meanwhile */
    before = shape->density;
    width = shape->end.sure ? width_of(&shape->end) : UM_FAR;
    agreed = agrees(&shape->end, seen->last, seen->clear, UM_BLOCK_BYTES);
    narrower = width_of(&shape->end) < width - width / 4;
    shape->varies |= !agreed;
    if (shape->varies && um_footprint_by_integer(record, &watch->integers, end))
        agreed = seen->last <= end->hi + UM_BLOCK_BYTES &&
                 (seen->clear == UM_FAR || seen->clear + UM_BLOCK_BYTES > end->lo);
    else
        end = &shape->end;
    um_footprint_integers_learn(record, &watch->integers, seen->last, seen->clear);
    density = density_of(seen, end->lo);
    if (!shape->seen) {
        shape->density = density == UINT32_MAX ? 100 : density;
        shape->first = seen->first == UM_FAR ? 0 : seen->first;
    } else if (density != UINT32_MAX) {
        uint32_t off = density > before ? density - before : before - density;

        agreed &= off <= FAR_OFF;
        shape->density = off > FAR_OFF ? (before + density) / 2 : (3 * before + density + 2) / 4;
    }
    if (seen->first < shape->first) {
        shape->first = seen->first;
        agreed = false;
    }
    if (!agreed && shape->prior && shape->end.sure <= 1) {
        /* Another run's word that does not hold here. */
        shape->end = (um_span_t){.lo = seen->last, .hi = seen->clear, .sure = 1};
        shape->density = density == UINT32_MAX ? 100 : density;
        shape->first = seen->first == UM_FAR ? 0 : seen->first;
        shape->prior = false;
    } else if (agreed) {
        shape->prior = false;
    }
    um_footprint_note_holes(shape, seen);
    shape->age = 0;
    shape->seen++;
    set_interval(shape, !agreed || narrower || seeks_integer(shape, record, &watch->integers));
    generalise(record, watch->shape, watch->grid_blocks, seen->last, seen->clear, shape->density);
    footprints->stats.observations++;
    footprints->stats.contrary += !agreed;
}

void um_footprint_reached(um_footprints_t *footprints, um_shape_t *shape, uint64_t last)
{
    if (shape->end.hi != UM_FAR && last > shape->end.hi + UM_BLOCK_BYTES) {
        shape->end = (um_span_t){.lo = last, .hi = UM_FAR, .sure = (shape->end.sure + 1) / 2};
        shape->interval = 1;
        footprints->stats.contrary++;
    } else if (last > shape->end.lo) {
        shape->end.lo = last;
        if (shape->end.hi < last)
            shape->end.hi = last;
    }
}

um_footprint_t um_footprints_expect(const um_footprints_t *footprints, const um_ev_launch_t *launch,
                                    const um_argument_t *argument, uint64_t guess_bytes)
{
    return um_footprints_expect_of(footprints, um_footprint_kernel(footprints, launch), launch,
                                   argument, guess_bytes);
}

um_footprint_t um_footprints_expect_of(const um_footprints_t *footprints, uint64_t kernel,
                                       const um_ev_launch_t *launch, const um_argument_t *argument,
                                       uint64_t guess_bytes)
{
    uint64_t grid_blocks, id = um_footprint_shape(launch, &grid_blocks);
    uint64_t left = argument->limit - argument->addr;
    um_record_t *record = um_footprint_find(footprints, kernel, argument->slot);
    const um_shape_t *shape = um_footprint_find_shape(record, id);
    um_footprint_t out = {.end_bytes = UM_FAR};
    um_integers_t integers = um_footprint_integers(launch);
    um_span_t by_integer;
    bool is_integer = um_footprint_by_integer(record, &integers, &by_integer);
    uint64_t least = 0;

    if (shape && shape->seen) {
        out = (um_footprint_t){.first_bytes = shape->first,
                               .end_bytes = shape->end.hi,
                               .density_percent = shape->density,
                               .launches = shape->seen,
                               .backwards = shape->backwards};
        least = shape->end.lo;
        if (shape->varies && is_integer) {
            out.end_bytes = by_integer.hi;
            least = by_integer.lo;
        }
    } else if (record && record->n_shapes_seen) {
        bool several = record->n_shapes_seen > 1;

        out.density_percent = record->density;
        out.launches = 1;
        if (several && record->linear.sure > 1 && record->linear.sure >= record->fixed.sure) {
            out.end_bytes = scaled(record->linear.hi, grid_blocks, PER);
            least = scaled(record->linear.lo, grid_blocks, PER);
        } else if (is_integer) {
            out.end_bytes = by_integer.hi;
            least = by_integer.lo;
        } else if (several && record->fixed.sure > 1) {
            out.end_bytes = record->fixed.hi;
            least = record->fixed.lo;
        } else if (record->density >= 50)
            out.launches = 0; /* where it ends is not known, and that it is sparse neither */
    }
    if (!out.launches)
        return (um_footprint_t){0};
    if (out.end_bytes == UM_FAR)
        out.end_bytes = least > guess_bytes ? least : guess_bytes;
    if (out.end_bytes > left)
        out.end_bytes = left;
    if (out.first_bytes >= out.end_bytes)
        out.first_bytes = 0;
    return out;
}

/* ---- other runs ---- */

enum { LO, HI, FIRST, DENSITY, BACKWARDS, SURE };

static void on_learned(um_footprints_t *footprints, const um_ev_learned_t *learned)
{
    const uint64_t *value = learned->value;
    uint64_t kernel = hash_of(learned->kernel, learned->module_hash);
    um_record_t *record;
    um_shape_t *shape;

    bool stride = strcmp(learned->what, "stride") == 0;
    bool integer = strcmp(learned->what, "integer") == 0;

    if (strcmp(learned->who, "footprint") != 0 || !*learned->kernel ||
        learned->slot == UM_SLOT_NONE || !(learned->shape >> 12) || !learned->count ||
        (!stride && !integer &&
         (strcmp(learned->what, "extent") != 0 || value[LO] > value[HI] || value[DENSITY] > 100 ||
          value[FIRST] > value[HI])))
        return;
    record = um_footprint_find(footprints, kernel, learned->slot);
    if (!record)
        record =
            new_record(footprints, kernel, learned->slot, learned->kernel, learned->module_hash);
    shape = um_footprint_find_shape(record, learned->shape);
    if (shape && shape->seen && !shape->prior)
        return; /* this run knows better */
    shape = shape_of(footprints, record, learned->shape);
    if (integer) {
        shape->varies |= um_footprint_integer_told(record, learned);
        return;
    }
    if (stride) {
        um_footprint_stride_told(shape, learned);
        return;
    }
    shape->end = (um_span_t){.lo = value[LO], .hi = value[HI], .sure = 1};
    if (learned->age < 2 && value[SURE] > 1)
        shape->end.sure = value[SURE] < PRIOR_MOST ? (uint32_t)value[SURE] : PRIOR_MOST;
    shape->first = value[FIRST];
    shape->density = (uint32_t)value[DENSITY];
    shape->backwards = value[BACKWARDS] != 0;
    shape->seen = learned->count < UINT32_MAX / 2 ? (uint32_t)learned->count : UINT32_MAX / 2;
    shape->age = learned->age;
    shape->prior = true;
    generalise(record, learned->shape, learned->shape >> 12, value[LO], value[HI], shape->density);
}

void um_footprints_learned(const um_footprints_t *footprints, um_event_fn emit, void *ctx)
{
    for (uint32_t r = 0; r < UM_RECORDS; r++) {
        const um_record_t *record = &footprints->record[r];

        for (uint32_t s = 0; record->kernel && record->name && s < UM_SHAPES; s++) {
            const um_shape_t *shape = &record->shape[s];
            um_event_t event = {.type = UM_EV_LEARNED};

            if (!shape->seen)
                continue;
            event.u.learned =
                (um_ev_learned_t){.who = "footprint",
                                  .what = "extent",
                                  .kernel = record->name,
                                  .module_hash = record->module_hash,
                                  .shape = shape->shape,
                                  .slot = record->slot,
                                  .age = shape->prior ? shape->age + 1 : 0,
                                  .count = shape->seen,
                                  .value = {shape->end.lo, shape->end.hi, shape->first,
                                            shape->density, shape->backwards, shape->end.sure}};
            emit(ctx, &event);
            um_footprint_tell_stride(shape, &event.u.learned, emit, ctx);
            um_footprint_tell_integer(record, shape, &event.u.learned, emit, ctx);
        }
    }
}

/* ---- events and life ---- */

void um_footprints_observe(um_footprints_t *footprints, const um_event_t *event)
{
    um_footprint_on_record(footprints, event);
    switch (event->type) {
    case UM_EV_KERNEL:
        on_kernel(footprints, &event->u.kernel);
        break;
    case UM_EV_LEARNED:
        on_learned(footprints, &event->u.learned);
        break;
    case UM_EV_SYNC:
        if (event->u.sync.exit)
            um_footprint_on_wait(footprints, &event->u.sync, event->time_ns);
        break;
    case UM_EV_HINT:
        if (strcmp(event->u.hint.who, "app") == 0)
            um_footprints_moved(footprints, event->u.hint.addr, event->u.hint.bytes);
        break;
    case UM_EV_COPY:
        um_footprints_moved(footprints, event->u.copy.dst_addr, event->u.copy.bytes);
        um_footprints_moved(footprints, event->u.copy.src_addr, event->u.copy.bytes);
        break;
    case UM_EV_SET:
        um_footprints_moved(footprints, event->u.set.addr, event->u.set.bytes);
        break;
    case UM_EV_CPU_FAULT:
        um_footprint_taken(footprints, event->u.cpu_fault.addr, 1);
        break;
    case UM_EV_REGION_FREE:
        um_footprint_on_free(footprints, event->u.region_free.region);
        break;
    default:
        break;
    }
}

um_status_t um_footprints_new(um_residency_t *residency, um_footprints_t **out)
{
    um_footprints_t *footprints = calloc(1, sizeof(*footprints));

    if (footprints)
        footprints->record = calloc(UM_RECORDS, sizeof(um_record_t));
    if (!footprints || !footprints->record) {
        free(footprints);
        return UM_ERR_NO_MEMORY;
    }
    footprints->residency = residency;
    *out = footprints;
    return UM_OK;
}

void um_footprints_free(um_footprints_t *footprints)
{
    if (!footprints)
        return;
    for (uint32_t i = 0; i < footprints->n_kernels; i++)
        free(footprints->kernel[i].name);
    for (uint32_t i = 0; i < UM_RECORDS; i++)
        free(footprints->record[i].name);
    um_attribution_free(footprints->attribution);
    free(footprints->recorded);
    free(footprints->kernel);
    free(footprints->record);
    free(footprints);
}

void um_footprints_stats(const um_footprints_t *footprints, um_footprint_stats_t *out)
{
    *out = footprints->stats;
    out->known = 0;
    for (uint32_t r = 0; r < UM_RECORDS; r++)
        for (uint32_t s = 0; s < UM_SHAPES; s++)
            out->known += footprints->record[r].shape[s].seen > 0;
}
