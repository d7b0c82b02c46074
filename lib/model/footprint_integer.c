/*
 * Arguments that end in proportion to an integer argument: a kernel of a fixed grid that goes through n elements. The
 * grid does not tell where it ends; one of the integers of the launch may.
 *
 * Each integer of a kernel is a candidate until it is wrong once; then it begins anew. A launch that ended between
 * two offsets leaves between what bounds the end for one unit can lie, and nothing left refutes. A candidate is
 * believed when it is known exactly, and has held for three values whose ends it sets apart by more than a block: no
 * fixed end can have passed for it. Floating point and pointers that the name does not show, counters and sizes
 * of something else do not survive that.
 */
#include "footprint_impl.h"

#define UNIT  ((uint64_t)1 << 20) /* bounds are for so many: of one they would be too coarse */
#define MOST  ((uint64_t)1 << 56) /* bytes for a UNIT; beyond it nothing is believed */
#define EXACT (2 * (uint64_t)UM_BLOCK_BYTES)

/* Bytes for a value; rounded down. */
static uint64_t bytes_for(uint64_t per_unit, uint64_t value)
{
    double bytes = (double)per_unit * (double)value / (double)UNIT;

    return per_unit == UM_FAR || bytes >= (double)MOST ? UM_FAR : (uint64_t)bytes;
}

static uint64_t per_unit(uint64_t bytes, uint64_t value)
{
    double unit = (double)bytes * (double)UNIT / (double)value;

    return bytes == UM_FAR || unit >= (double)MOST ? UM_FAR : (uint64_t)unit;
}

/* Not zero, and not negative whether it is signed or not. */
static bool counts(const um_scalar_t *scalar)
{
    return scalar->value && scalar->value >> (scalar->size_bytes == 8 ? 63 : 31) == 0;
}

static uint64_t largest(const um_integer_t *integer)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < integer->n_values; i++)
        most = integer->value[i] > most ? integer->value[i] : most;
    return most;
}

static bool is_exact(const um_integer_t *integer, uint64_t value)
{
    uint64_t off = integer->hi == UM_FAR ? UM_FAR : integer->hi - integer->lo;

    return off != UM_FAR && (off <= integer->hi / 16 || bytes_for(off, value) <= EXACT);
}

static bool is_proven(const um_integer_t *integer)
{
    return integer->n_values == UM_INTEGER_VALUES && is_exact(integer, largest(integer));
}

/* Does it set the ends for the two values apart, wherever between the bounds it lies? */
static bool sets_apart(const um_integer_t *integer, uint64_t a, uint64_t b)
{
    uint64_t less = bytes_for(integer->hi, a < b ? a : b);
    uint64_t more = bytes_for(integer->lo, a < b ? b : a);

    return less != UM_FAR && more != UM_FAR && more > less + UM_BLOCK_BYTES;
}

static void note_value(um_integer_t *integer, uint64_t value)
{
    for (uint32_t i = 0; i < integer->n_values; i++)
        if (!sets_apart(integer, integer->value[i], value))
            return;
    if (integer->n_values < UM_INTEGER_VALUES)
        integer->value[integer->n_values++] = value;
}

static um_integer_t *candidate(um_record_t *record, uint32_t slot)
{
    for (uint32_t i = 0; i < UM_INTEGERS; i++) {
        um_integer_t *integer = &record->integer[i];

        if (!integer->fits || integer->slot == slot)
            return integer;
    }
    return NULL;
}

void um_footprint_integers_learn(um_record_t *record, const um_integers_t *launch, uint64_t last,
                                 uint64_t clear)
{
    /* The driver takes along what is left of the last block. */
    uint64_t least = last > UM_BLOCK_BYTES ? last - UM_BLOCK_BYTES : 0;
    uint64_t most = clear == UM_FAR ? UM_FAR : clear + UM_BIG_PAGE_BYTES;

    for (uint32_t i = 0; record && i < launch->n; i++) {
        const um_scalar_t *scalar = &launch->scalar[i];
        um_integer_t *integer = candidate(record, scalar->slot);
        uint64_t lo, hi;

        if (!integer || !counts(scalar))
            continue;
        lo = per_unit(least, scalar->value);
        hi = per_unit(most, scalar->value);
        hi += hi != UM_FAR;
        if (!integer->fits || lo > integer->hi || hi < integer->lo)
            *integer = (um_integer_t){.slot = scalar->slot, .hi = UM_FAR};
        integer->lo = lo > integer->lo ? lo : integer->lo;
        integer->hi = hi < integer->hi ? hi : integer->hi;
        integer->fits += integer->fits < UM_SURE_MOST;
        note_value(integer, scalar->value);
    }
}

/* The one that has held for longest; of those that are proven, or of all. */
static const um_integer_t *best(const um_record_t *record, const um_integers_t *launch, bool proven,
                                uint64_t *value)
{
    const um_integer_t *found = NULL;

    for (uint32_t i = 0; record && i < UM_INTEGERS; i++) {
        const um_integer_t *integer = &record->integer[i];

        if (!integer->fits || (found && found->fits >= integer->fits) ||
            (proven && !is_proven(integer)))
            continue;
        for (uint32_t k = 0; k < launch->n; k++)
            if (launch->scalar[k].slot == integer->slot && counts(&launch->scalar[k])) {
                found = integer;
                *value = launch->scalar[k].value;
            }
    }
    return found;
}

static um_span_t span_of(const um_integer_t *integer, uint64_t value)
{
    return (um_span_t){.lo = bytes_for(integer->lo, value),
                       .hi = bytes_for(integer->hi, value),
                       .sure = integer->fits};
}

bool um_footprint_by_integer(const um_record_t *record, const um_integers_t *launch, um_span_t *end)
{
    uint64_t value = 0;
    const um_integer_t *integer = best(record, launch, true, &value);

    if (!integer)
        return false;
    *end = span_of(integer, value);
    return end->lo != UM_FAR && end->hi != UM_FAR;
}

uint64_t um_footprint_integer_slot(const um_record_t *record, const um_integers_t *launch)
{
    uint64_t value = 0;
    const um_integer_t *integer = best(record, launch, true, &value);

    return integer ? (uint64_t)1 << integer->slot % 64 : 0;
}

bool um_footprint_integer_is_open(const um_record_t *record, const um_integers_t *launch)
{
    uint64_t value = 0;

    return !best(record, launch, true, &value) && best(record, launch, false, &value);
}

uint64_t um_footprint_integer_doubt(const um_record_t *record, const um_integers_t *launch)
{
    uint64_t value = 0;
    const um_integer_t *integer = best(record, launch, false, &value);
    um_span_t end;

    if (!integer || is_exact(integer, value))
        return 0;
    end = span_of(integer, value);
    return end.hi == UM_FAR ? 0 : end.lo + (end.hi - end.lo) / 2;
}

/* ---- other runs ---- */

enum { SLOT, LO, HI, VALUE };

bool um_footprint_integer_told(um_record_t *record, const um_ev_learned_t *learned)
{
    um_integer_t integer = {.slot = (uint32_t)learned->value[SLOT],
                            .fits = 1,
                            .lo = learned->value[LO],
                            .hi = learned->value[HI]};
    um_integer_t *place = candidate(record, integer.slot);

    if (!place || place->fits || learned->value[SLOT] > UINT32_MAX || integer.lo > integer.hi ||
        integer.hi > MOST)
        return false;
    for (uint32_t i = 0; i < UM_INTEGER_VALUES; i++)
        note_value(&integer, learned->value[VALUE + i]);
    if (!is_proven(&integer))
        return false;
    *place = integer;
    return true;
}

void um_footprint_tell_integer(const um_record_t *record, const um_shape_t *shape,
                               const um_ev_learned_t *like, um_event_fn emit, void *ctx)
{
    um_event_t event = {.type = UM_EV_LEARNED, .u.learned = *like};
    const um_integer_t *found = NULL;

    for (uint32_t i = 0; i < UM_INTEGERS; i++)
        if (is_proven(&record->integer[i]) && (!found || record->integer[i].fits > found->fits))
            found = &record->integer[i];
    if (!found || !shape->varies)
        return;
    event.u.learned.what = "integer";
    event.u.learned.value[SLOT] = found->slot;
    event.u.learned.value[LO] = found->lo;
    event.u.learned.value[HI] = found->hi;
    for (uint32_t i = 0; i < UM_INTEGER_VALUES; i++)
        event.u.learned.value[VALUE + i] = found->value[i];
    emit(ctx, &event);
}
