/* How advisors are asked, and what they may say: waits, holds, blindness, the default list. */
#include <criterion/criterion.h>

#include "program_fake.h"

static unsigned asked, asked_blind, asked_at_wait;

/* The whole of the stretch, to the device. */
static void add_all(const um_view_t *view, um_hints_t *hints)
{
    um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                     .addr = um_view_stretch(view)->addr,
                                     .bytes = um_view_stretch(view)->bytes,
                                     .device = FAKE_GPU,
                                     .why = "test"});
}

static void propose_all(const void *state, const um_view_t *view, um_hints_t *hints)
{
    um_extent_t extent;

    (void)state;
    asked++;
    cr_assert_null(um_view_sync(view));
    um_view_extents(view, um_view_stretch(view)->region, um_view_stretch(view)->addr,
                    um_view_stretch(view)->bytes, &extent, 1);
    add_all(view, hints);
}

static void hold_some(const void *state, const um_view_t *view, um_hints_t *hints)
{
    (void)state;
    (void)view;
    um_hints_hold(hints, FAKE_BASE + 3 * MIB, 2 * MIB); /* parts of two blocks */
    um_hints_hold(hints, FAKE_BASE + 63 * MIB, 20 * MIB);
    um_hints_hold(hints, FAKE_BASE - 4 * MIB, 3 * MIB); /* outside */
    um_hints_hold(hints, FAKE_BASE + 512 * MIB, MIB);
    add_all(view, hints); /* the holder itself is held to it */
}

static void propose_blindly(const void *state, const um_view_t *view, um_hints_t *hints)
{
    const um_stretch_t *stretch = um_view_stretch(view);
    uint64_t addr, bytes;

    (void)state;
    if (++asked_blind <= 5)
        return;
    cr_assert(um_view_region(view, stretch->region, &addr, &bytes));
    um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                     .order = UM_ORDER_BEFORE,
                                     .addr = addr,
                                     .bytes = bytes,
                                     .device = FAKE_GPU,
                                     .why = "test"});
}

static void ask_at_wait(const void *state, const um_view_t *view, um_hints_t *hints)
{
    (void)state;
    asked_at_wait++;
    cr_assert_null(um_view_launch(view));
    cr_assert_not_null(um_view_sync(view));
    cr_assert_eq(um_view_stretch(view)->bytes, 0);
    cr_assert_eq(um_view_room_bytes(view, FAKE_GPU), 0);
    um_hints_hold(hints, FAKE_BASE, MIB);
    um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                     .order = UM_ORDER_AFTER,
                                     .addr = FAKE_BASE,
                                     .bytes = 2 * MIB,
                                     .device = UM_DEVICE_HOST,
                                     .why = "test"});
}

static const um_advisor_ops_t plain = {.abi = UM_ADVISOR_ABI,
                                       .name = "plain",
                                       .decide = propose_all};
static const um_advisor_ops_t holder = {.abi = UM_ADVISOR_ABI,
                                        .name = "holder",
                                        .decide = hold_some};
static const um_advisor_ops_t blind = {.abi = UM_ADVISOR_ABI,
                                       .name = "blind",
                                       .decide = propose_blindly,
                                       .blind = true};
static const um_advisor_ops_t waiter = {.abi = UM_ADVISOR_ABI,
                                        .name = "waiter",
                                        .decide_sync = ask_at_wait};
static const um_advisor_ops_t *const holding[] = {&holder, &plain, NULL};
static const um_advisor_ops_t *const seeing[] = {&plain, &blind, NULL};
static const um_advisor_ops_t *const waiting[] = {&waiter, NULL};

Test(decisions, what_is_held_is_cut_out_of_what_others_propose)
{
    program_start(NULL, holding);
    allocate(1, 0, 70 * MIB);
    run(1, 1);
    /* 0-2 and 6-62 of the first stretch by each; of the second, 64-70, all is held too. */
    for (unsigned i = 0; i < program.n_hints; i++) {
        uint64_t from = program.hint[i].addr - FAKE_BASE, to = from + program.hint[i].bytes;

        cr_assert(to <= 2 * MIB || from >= 6 * MIB);
        cr_assert_leq(to, 62 * MIB);
    }
    cr_assert_eq(hints_by(0, "holder", UM_HINT_PREFETCH, NULL), 3);
    cr_assert_eq(hints_by(0, "plain", UM_HINT_PREFETCH, NULL), 3);
    program_stop();
}

Test(decisions, the_blind_are_asked_about_what_is_there_and_pay_for_it)
{
    program_start(NULL, seeing);
    program.free_bytes = 0; /* nor does room matter */
    allocate(1, 0, 60 * MIB);
    for (int i = 1; i <= 10; i++) {
        cr_assert_eq(run(1, 1), i > 5);
        cr_assert_eq(asked_blind, (unsigned)i);
        cr_assert(i > 5 || asked == 1);
    }
    cr_assert_eq(program.hint[0].bytes, 60 * MIB); /* one call */
    cr_assert(program.hint[0].blind);
    program_stop();
}

Test(decisions, each_wait_is_asked_about_as_it_is_entered)
{
    program_start(NULL, waiting);
    cr_assert_eq(wait_on(UM_SYNC_STREAM, 5), 0); /* no region yet: refused */
    allocate(1, 0, 8 * MIB);
    cr_assert_eq(wait_on(UM_SYNC_STREAM, 5), 1);
    cr_assert_eq(asked_at_wait, 2);
    cr_assert_eq(program.hint[0].wait, UM_SYNC_STREAM);
    cr_assert_eq(program.hint[0].stream, 5);
    cr_assert_eq(program.hint[0].correlation, program.correlation);
    program_stop();
}

static bool wants_at_wait;

static void want_at_wait(const void *state, const um_view_t *view, um_hints_t *hints)
{
    if (wants_at_wait)
        ask_at_wait(state, view, hints);
}

static const um_advisor_ops_t wanter = {.abi = UM_ADVISOR_ABI,
                                        .name = "wanter",
                                        .decide_sync = want_at_wait};
static const um_advisor_ops_t *const wanting[] = {&wanter, NULL};

Test(decisions, waits_wake_while_something_was_wanted_at_one_of_the_last)
{
    program_start(NULL, wanting);
    allocate(1, 0, 8 * MIB);
    wait_all();
    cr_assert_not(program.waiting);
    wants_at_wait = true;
    wait_all();
    cr_assert(program.waiting);
    wants_at_wait = false;
    for (int i = 0; i < 15; i++) {
        wait_all();
        cr_assert(program.waiting);
    }
    wait_all();
    cr_assert_not(program.waiting);
    for (int i = 0; i < 100; i++)
        wait_all();
    cr_assert_not(program.waiting);
    program_stop();
}

/* ---- looking further than the launch ---- */

static void look_ahead(const void *state, const um_view_t *view, um_hints_t *hints)
{
    um_extent_t extent[4];
    uint64_t addr, bytes;
    size_t n;

    (void)state;
    if (!um_view_region(view, 2, &addr, &bytes))
        return;
    n = um_view_extents(view, 2, addr, bytes, extent, 4);
    for (size_t i = 0; i < n; i++)
        um_hints_add(hints, &(um_hint_t){.kind = UM_HINT_PREFETCH,
                                         .order = UM_ORDER_IDLE,
                                         .addr = extent[i].addr,
                                         .bytes = 2 * extent[i].bytes, /* trimmed */
                                         .device = FAKE_GPU,
                                         .why = "the next launch has it"});
}

static const um_advisor_ops_t looker_ahead = {.abi = UM_ADVISOR_ABI,
                                              .name = "looker_ahead",
                                              .decide = look_ahead};
static const um_advisor_ops_t *const looking_ahead[] = {&looker_ahead, NULL};

Test(decisions, hints_may_be_for_regions_that_the_launch_does_not_take)
{
    program_start(NULL, looking_ahead);
    allocate(1, 0, 4 * MIB);
    cr_assert_eq(run(1, 1), 0, "there is none");
    allocate(2, 64 * MIB, 6 * MIB);
    cr_assert_eq(run(1, 1), 1);
    cr_assert_eq(program.hint[0].addr, FAKE_BASE + 64 * MIB);
    cr_assert_eq(program.hint[0].bytes, 6 * MIB);
    cr_assert_eq(program.hint[0].region, 2);
    cr_assert_eq(program.hint[0].order, UM_ORDER_IDLE);
    program_stop();
}

Test(decisions, an_executor_is_not_given_what_it_cannot_carry_out)
{
    um_hinter_stats_t stats;

    program_start(NULL, waiting);
    program.executor.lacks_orders = 1u << UM_ORDER_AFTER;
    allocate(1, 0, 8 * MIB);
    cr_assert_eq(wait_all(), 0);
    program.executor.lacks_orders = 0;
    program.executor.lacks_kinds = 1u << UM_HINT_PREFETCH;
    cr_assert_eq(wait_all(), 0);
    um_hinter_stats(program.hinter, &stats);
    cr_assert_eq(stats.gate.refused[UM_HINT_REFUSED_CAPABILITY], 2);
    program_stop();
}

/* What `umrt run` asks unless told otherwise. */
Test(decisions, by_default_the_measured_advisors_are_asked_and_no_others)
{
    unsigned others = 0;

    program_start(NULL, NULL);
    allocate(1, 0, 8 * MIB);
    for (int i = 0; i < 20; i++) {
        run(1, 1);
        wait_all();
        touch(0, 8 * MIB);
    }
    cr_assert_gt(hints_by(0, "first_touch", UM_HINT_PREFETCH, NULL) +
                     hints_by(0, "ahead", UM_HINT_PREFETCH, NULL),
                 0);
    for (unsigned i = 0; i < program.n_hints; i++)
        others += !strstr("," UM_ADVISORS_DEFAULT ",", program.hint[i].who);
    cr_assert_eq(others, 0);
    program_stop();
}

Test(decisions, all_means_every_one)
{
    program_start("all", NULL);
    allocate(1, 0, 8 * MIB);
    for (int i = 0; i < 20; i++) {
        run(1, 1);
        wait_all();
        touch(0, 8 * MIB);
    }
    cr_assert_gt(hints_by(0, "ahead", UM_HINT_PREFETCH, NULL), 10);
    cr_assert_gt(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 10);
    program_stop();
}

/* Advisors remember regions by their id modulo something. */
Test(decisions, two_live_regions_whose_ids_collide_are_kept_apart)
{
    static const uint32_t id[] = {5, 5 + 1024, 5 + 4096};
    um_arg_t args[3];
    unsigned first = 0;

    program_start("all", NULL);
    for (uint32_t i = 0; i < 3; i++) {
        um_region_t region = {.family = UM_FAMILY_MANAGED,
                              .addr = FAKE_BASE + i * 64 * MIB,
                              .bytes = (8 + i) * MIB,
                              .id = id[i]};

        cr_assert_eq(um_regions_add(program.regions, &region, NULL, 0, NULL), UM_OK);
        feed(event_alloc(tick(), id[i], region.addr, region.bytes));
        args[i] = (um_arg_t){.slot = i, .region = id[i]};
    }
    for (int round = 0; round < 40; round++) {
        um_event_t event = event_launch(tick(), ++program.correlation, args, 3);

        feed(event);
        for (uint32_t i = 0; i < 3; i++)
            fake_set(&program.tables, i * 64 * MIB, (8 + i) * MIB, false);
        wait_all();
        for (uint32_t i = 0; i < 3; i++)
            touch(i * 64 * MIB, (8 + i) * MIB);
        if (round == 20) /* the others go on */
            feed(event_free(tick(), id[0], FAKE_BASE));
        if (round == 20)
            cr_assert_eq(um_regions_remove(program.regions, FAKE_BASE, NULL), UM_OK);
        first = round == 20 ? program.n_hints : first;
    }
    cr_assert_gt(program.n_hints, 0);
    for (unsigned h = 0; h < program.n_hints; h++) {
        const um_hint_t *hint = &program.hint[h];
        uint64_t offset = hint->addr - FAKE_BASE, i = offset / (64 * MIB);

        cr_assert_lt(i, 3);
        cr_assert_eq(hint->region, id[i]);
        cr_assert_leq(offset % (64 * MIB) + hint->bytes, (8 + i) * MIB);
        cr_assert(h < first || i > 0, "a hint for what is gone, by %s", hint->who);
    }
    program_stop();
}

Test(hinting, a_region_that_is_to_be_left_alone_is)
{
    program_start("all", NULL);
    allocate(1, 0, 16 * MIB);
    say(1, UM_REGION_HINT_OFF);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(run(7, 1), 0);
        cr_assert_eq(wait_all(), 0);
        touch(0, 16 * MIB);
    }
    say(1, 0);
    cr_assert_geq(run(7, 1), 1);
    program_stop();
}
