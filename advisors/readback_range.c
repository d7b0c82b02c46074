#include "readback_range.h"

#include "um_event.h"

#define FORGET  4u                    /* periods without a read after which a range is given up */
#define CHECKED ((uint64_t)512 << 20) /* bytes; from here on a block is left out each time */
#define CHANCES 3u /* a block left out and not missed: how often before it is given up */

static uint64_t seen_bytes(const um_range_seen_t *seen)
{
    /* The driver brings a block in about three faults. */
    uint64_t bytes = seen->faults * (UM_BLOCK_BYTES / 3);

    if (bytes < seen->migrated_bytes)
        bytes = seen->migrated_bytes;
    return bytes < seen->present_bytes ? seen->present_bytes : bytes;
}

static bool overlap_half(const um_range_t *range)
{
    uint64_t from = range->addr > range->seen.addr ? range->addr : range->seen.addr;
    uint64_t to = range->end < range->seen.end ? range->end : range->seen.end;
    uint64_t both = to > from ? to - from : 0;

    return 2 * both >= range->end - range->addr && 2 * both >= range->seen.end - range->seen.addr;
}

static bool is_dense(const um_range_rules_t *rules, const um_range_seen_t *seen)
{
    return seen_bytes(seen) * 100 >= (seen->end - seen->addr) * rules->density;
}

/* It is so no more. What earlier runs told is kept as refuted, so that they hear of it. */
static void give_up(um_range_t *range)
{
    *range = range->told ? (um_range_t){.place = range->place,
                                        .role = range->role,
                                        .nth = range->nth,
                                        .told = true,
                                        .held = true}
                         : (um_range_t){0};
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* The driver takes along what is left of the first and the last block. */
static uint64_t slack(const um_range_t *range)
{
    uint64_t most = (range->end - range->addr) / 4;

    return most < 2 * UM_BLOCK_BYTES ? most : 2 * UM_BLOCK_BYTES;
}

/* How far it has moved since the time before, as a whole; 0 = it has not, or has grown or shrunk. */
static int64_t moved(const um_range_t *range)
{
    uint64_t size = range->end - range->addr, now = range->seen.end - range->seen.addr;

    return apart(now, size) <= slack(range) ? (int64_t)(range->seen.addr - range->addr) : 0;
}

static bool is_next_step(const um_range_t *range, int64_t step)
{
    return step && (step > 0) == (range->step > 0) &&
           apart((uint64_t)step, (uint64_t)range->step) <= slack(range);
}

/* The CPU read it at the latest occurrence, without our help. */
static void learn(um_range_t *range, const um_range_rules_t *rules)
{
    bool dense = is_dense(rules, &range->seen), again = range->count == range->period;
    int64_t step = moved(range);
    bool same = range->step ? is_next_step(range, step) : overlap_half(range);

    if (range->agreed && dense && same && again) {
        range->agreed++;
        range->times++;
        range->held = true;
    } else {
        range->step = dense ? step : 0;
        range->agreed = dense;
        range->times = range->agreed;
        range->held |= range->told;
        /* The first time nobody knows how often: taken to be every time. */
        range->period = range->addr == range->end ? 1 : range->count;
    }
    range->addr = range->seen.addr;
    range->end = range->seen.end;
    range->count = range->missed = 0;
}

/* The CPU took some of it although it was brought: what was left out, came late, or lies beside it. */
static void correct(um_range_t *range, const um_range_rules_t *rules)
{
    uint64_t size = range->end - range->addr, ahead = 0, behind = 0;

    if (!is_dense(rules, &range->seen))
        return;
    if (range->seen.addr < range->addr)
        ahead = range->addr - range->seen.addr;
    if (range->seen.end > range->end)
        behind = range->seen.end - range->end;
    if (range->step) { /* it has gone less far than was thought, or farther */
        range->addr = ahead ? range->seen.addr : range->addr + behind;
        range->end = range->addr + size;
    } else if (ahead > UM_BLOCK_BYTES || behind > UM_BLOCK_BYTES) {
        range->agreed = 0; /* whether it is larger now or elsewhere shows when it is not brought */
    } else {
        range->addr -= ahead;
        range->end += behind;
    }
}

void um_range_saw(um_range_t *range, const um_range_seen_t *part)
{
    um_range_seen_t *seen = &range->seen;

    if (!seen->end)
        *seen = (um_range_seen_t){.addr = part->addr, .end = part->end};
    if (part->addr < seen->addr)
        seen->addr = part->addr;
    if (part->end > seen->end)
        seen->end = part->end;
    seen->present_bytes += part->present_bytes;
    seen->migrated_bytes += part->migrated_bytes;
    seen->faults += part->faults;
}

void um_range_trim(um_range_t *range, uint64_t end)
{
    um_range_seen_t *seen = &range->seen;
    uint64_t bytes;

    if (seen->end <= end)
        return;
    if (seen->addr >= end) {
        *seen = (um_range_seen_t){0};
        return;
    }
    seen->end = end;
    bytes = seen->end - seen->addr;
    if (seen->present_bytes > bytes)
        seen->present_bytes = bytes;
    if (seen->migrated_bytes > bytes)
        seen->migrated_bytes = bytes;
}

/* Has the CPU taken the block that was left out, or what lies beside? Within what was brought it may be that which was
 * seen, on its way. */
static bool has_missed(const um_range_t *range)
{
    return range->seen.end &&
           (range->seen.addr < range->addr || range->seen.end + UM_BLOCK_BYTES > range->served_end);
}

/* It was brought after one read, to see. Read again is what was left out, and nothing beside it; else it is as if
 * nothing had been brought, and two reads have to agree. */
static void judge_trial(um_range_t *range)
{
    if (!has_missed(range) || range->seen.addr < range->addr || range->seen.end > range->end)
        return;
    range->agreed = UM_RANGE_AGREED;
    range->times++;
    range->held = true;
    range->count = 0;
}

void um_range_judge(um_range_t *range, const um_range_rules_t *rules, bool alive)
{
    bool read = range->seen.end != 0, missed = range->left_out && has_missed(range);

    if (range->pending && range->agreed < UM_RANGE_AGREED) {
        judge_trial(range);
    } else if (range->pending) {
        if (read)
            correct(range, rules);
        range->count = 0; /* what came by prefetch is not seen: taken to be as always */
        if (missed) {
            range->times++;
            range->held = true;
            range->missed = 0;
        } else if (range->left_out && alive && ++range->missed == CHANCES) {
            give_up(range);
        }
    } else if (read) {
        learn(range, rules);
    } else if (range->period && range->count > FORGET * range->period) {
        give_up(range);
    }
    range->pending = range->left_out = false;
    range->seen = (um_range_seen_t){0};
}

/* Where it is this time: a step further, and from the end back to the start. */
static void move_on(um_range_t *range, uint64_t bytes)
{
    uint64_t size = range->end - range->addr, room = bytes > size ? bytes - size : 0;
    uint64_t on = range->addr + (uint64_t)range->step; /* below 0 = very much */

    range->addr = on <= room ? on : range->step > 0 ? 0 : room;
    range->end = range->addr + size;
}

/* Occurrences that are served whole between two from which a block is left out. That costs a fault of the CPU; to go
 * on bringing what nobody reads costs the more the larger it is. */
static uint64_t unchecked(const um_range_t *range, const um_range_rules_t *rules)
{
    uint64_t most = CHECKED / (range->end - range->addr);

    return most < rules->check ? most : rules->check;
}

/* Read once, and whole: what is read in part may be elsewhere the next time. */
static bool is_worth_trying(const um_range_t *range, uint64_t bytes)
{
    return range->agreed && !range->tried && range->times == 1 && range->addr < UM_BLOCK_BYTES &&
           range->end + UM_BLOCK_BYTES > bytes;
}

void um_range_foresee(um_range_t *range, const um_range_rules_t *rules, uint64_t bytes,
                      uint64_t limit, uint32_t region)
{
    bool trial = range->agreed < UM_RANGE_AGREED;

    if ((trial && !is_worth_trying(range, bytes)) || range->count != range->period ||
        range->end - range->addr < rules->min || range->end > bytes)
        return;
    if (range->step)
        move_on(range, bytes);
    range->pending = true;
    range->served = region;
    range->served_end = range->end < limit ? range->end : limit;
    range->tried |= trial;
    range->left_out = trial || range->missed || ++range->brought > unchecked(range, rules);
    if (range->left_out)
        range->brought = 0;
}
