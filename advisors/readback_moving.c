/*
 * Arguments whose pointer is another one each time, as slices of a pool are: what the CPU reads of one after a wait is
 * counted from its pointer.
 */
#include "readback_impl.h"

#define TRIES  8u  /* looks at an argument that the CPU never took, */
#define SELDOM 16u /* and from then on after every so many waits */

um_read_given_t um_read_given(const um_ev_launch_t *launch)
{
    um_read_given_t given = {0};

    for (; given.n < launch->n_args && given.n < UM_READ_GIVEN; given.n++) {
        const um_arg_t *arg = &launch->args[given.n];

        given.arg[given.n].slot = um_mix(arg->slot, arg->offset_bytes) | 1;
        given.arg[given.n].at = arg->region_offset_bytes;
        given.arg[given.n].end = UINT64_MAX;
        given.arg[given.n].region = arg->region;
    }
    return given;
}

um_read_origin_t um_read_origin(const um_readback_t *self, const um_read_wait_t *wait, uint32_t i,
                                const um_read_given_t *given)
{
    uint64_t place = wait->range[i].place;

    if (i < UM_READ_RANGES)
        return (um_read_origin_t){.region =
                                      um_read_region(self, um_place_region(&self->places, place)),
                                  .end = UINT64_MAX};
    for (uint32_t a = 0; a < given->n; a++)
        if (given->arg[a].slot == place)
            return (um_read_origin_t){.region = um_read_region(self, given->arg[a].region),
                                      .at = given->arg[a].at,
                                      .end = given->arg[a].end};
    return (um_read_origin_t){0};
}

void um_read_follow(um_readback_t *self, uint64_t key, const um_read_given_t *given)
{
    const um_read_recent_t *before = um_read_latest(self, key);

    for (uint32_t a = 0; before && a < given->n && a < before->given.n; a++) {
        um_range_t *empty = NULL, *range;
        um_read_wait_t *wait;

        if (given->arg[a].slot != before->given.arg[a].slot ||
            (given->arg[a].region == before->given.arg[a].region &&
             given->arg[a].at == before->given.arg[a].at))
            continue;
        wait = um_read_make_wait(self, key);
        wait->lru.used = self->seq;
        for (range = wait->range + UM_READ_RANGES; range < wait->range + UM_READ_ALL; range++) {
            if (range->place == given->arg[a].slot)
                break;
            if (!range->place && !empty)
                empty = range;
        }
        if (range == wait->range + UM_READ_ALL && empty)
            *empty = (um_range_t){.place = given->arg[a].slot};
    }
}

/* ---- where they end ---- */

/* Arguments end where others begin. */
static void end_at_pointers(um_read_given_t *given, const um_read_given_t *others)
{
    for (uint32_t i = 0; i < given->n; i++)
        for (uint32_t o = 0; o < others->n; o++)
            if (others->arg[o].region == given->arg[i].region &&
                others->arg[o].at > given->arg[i].at && others->arg[o].at < given->arg[i].end)
                given->arg[i].end = others->arg[o].at;
}

void um_read_find_ends(const um_readback_t *self, um_read_given_t *given)
{
    end_at_pointers(given, given);
    for (uint32_t i = 0; i < UM_READ_RECENT && i < self->n_recent; i++)
        end_at_pointers(given, &self->recent[i].given);
}

/* Waits since the launch before this one, latest first: the i-th, NULL = there are no more. */
static const um_read_recent_t *since_launch(const um_readback_t *self, uint32_t i)
{
    const um_read_recent_t *recent = &self->recent[(self->n_recent - 1 - i) % UM_READ_RECENT];

    return i < UM_READ_RECENT && i < self->n_recent && recent->seq > self->launch_before ? recent
                                                                                         : NULL;
}

/* Bytes of the argument, before what the latest launch was given begins. */
static uint64_t bytes_of(const um_readback_t *self, const um_read_origin_t *origin)
{
    uint64_t end = origin->end < origin->region->bytes ? origin->end : origin->region->bytes;

    for (uint32_t a = 0; a < self->given.n; a++)
        if (self->given.arg[a].region == origin->region->id && self->given.arg[a].at > origin->at &&
            self->given.arg[a].at < end)
            end = self->given.arg[a].at;
    return end > origin->at ? end - origin->at : 0;
}

void um_read_part_from_next(um_readback_t *self)
{
    const um_read_recent_t *recent;

    for (uint32_t n = 0; (recent = since_launch(self, n)); n++) {
        um_read_wait_t *wait = um_read_wait(self, recent->key);

        for (uint32_t i = UM_READ_RANGES; wait && i < UM_READ_ALL; i++) {
            um_read_origin_t origin = um_read_origin(self, wait, i, &recent->given);

            if (wait->range[i].place && origin.region)
                um_range_trim(&wait->range[i], bytes_of(self, &origin));
        }
    }
}

/* ---- what the CPU took ---- */

/* The part from `from` to `to`, counted from `origin`. What is seen of a whole is not known of its parts: at most all. */
static um_range_seen_t cut(const um_range_seen_t *whole, uint64_t from, uint64_t to,
                           uint64_t origin)
{
    uint64_t bytes = to - from;
    um_range_seen_t part = *whole;

    part.addr = from - origin;
    part.end = to - origin;
    part.present_bytes = part.present_bytes < bytes ? part.present_bytes : bytes;
    part.migrated_bytes = part.migrated_bytes < bytes ? part.migrated_bytes : bytes;
    return part;
}

um_range_seen_t um_read_saw_of_arguments(const um_readback_t *self, um_read_wait_t *wait,
                                         const um_read_recent_t *cause,
                                         const um_read_region_t *region,
                                         const um_range_seen_t *whole)
{
    um_range_seen_t left = *whole;

    for (uint32_t i = UM_READ_RANGES; i < UM_READ_ALL; i++) {
        um_read_origin_t origin = um_read_origin(self, wait, i, &cause->given);
        uint64_t from, to;
        um_range_seen_t part;

        if (!wait->range[i].place || origin.region != region || origin.at >= region->bytes)
            continue;
        to = origin.at + bytes_of(self, &origin);
        from = origin.at > left.addr ? origin.at : left.addr;
        to = to < left.end ? to : left.end;
        if (from >= to)
            continue;
        part = cut(&left, from, to, origin.at);
        um_range_saw(&wait->range[i], &part);
        left = from - left.addr > left.end - to ? cut(&left, left.addr, from, 0)
                                                : cut(&left, to, left.end, 0);
    }
    return left;
}

/* Whether a look at the argument could tell anything: not where it was brought as a whole, and seldom where the CPU
 * has never taken any of it. */
static bool is_asked(const um_range_t *range)
{
    if (range->pending)
        return range->left_out;
    return range->period || range->count <= TRIES || range->count % SELDOM == 0;
}

void um_read_look_back(const um_readback_t *self, const um_view_t *view)
{
    const um_read_recent_t *recent;

    for (uint32_t n = 0; (recent = since_launch(self, n)); n++) {
        const um_read_wait_t *wait = um_read_wait(self, recent->key);

        for (uint32_t i = UM_READ_RANGES; wait && wait->lru.used == recent->seq && i < UM_READ_ALL;
             i++) {
            um_read_origin_t origin = um_read_origin(self, wait, i, &recent->given);
            uint64_t bytes;

            if (!wait->range[i].place || !origin.region || !is_asked(&wait->range[i]))
                continue;
            bytes = bytes_of(self, &origin);
            if (bytes >= self->rules.min)
                um_view_look(view, origin.region->id, origin.region->addr + origin.at,
                             bytes < self->limit ? bytes : self->limit);
        }
    }
}
