/* Advice at the gate: whole ranges, and never where the program advises itself. */
#include <criterion/criterion.h>

#include "gate_fake.h"

static uint32_t advise(um_gate_t *gate, uint32_t kind, uint64_t offset, uint64_t bytes)
{
    um_hint_t hint = prefetch(offset, bytes);

    hint.kind = kind;
    hint.device = UM_DEVICE_HOST;
    hint.order = UM_ORDER_BEFORE;
    return um_gate_propose(gate, &hint, &cause);
}

static void app_advises(um_gate_t *gate, uint32_t kind, uint64_t offset, uint64_t bytes)
{
    um_ev_hint_t hint = {.kind = kind,
                         .result = UM_HINT_APPLIED,
                         .addr = FAKE_BASE + offset,
                         .bytes = bytes,
                         .region = FAKE_REGION,
                         .who = "app"};

    um_gate_app(gate, &hint);
}

Test(gate, advice_is_one_piece_whatever_its_size_and_order)
{
    um_event_t own = event_sync(1, UM_SYNC_DEVICE, 0, 1);
    um_gate_t *gate;

    keeper.base.lacks_orders = 1u << UM_ORDER_BEFORE;
    gate = new_gate();
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, MIB, 500 * MIB), 1);
    cr_assert_eq(keeper.hint[0].bytes, REGION_BYTES - MIB);
    um_gate_sync(gate, &own);
    take(gate, FAKE_GPU, 0, 0, REGION_BYTES);
    cr_assert_eq(keeper.cancelled_launches + keeper.overtaken, 0, "it is not about this launch");
    finish(gate);
}

Test(gate, where_the_program_advises_nothing_else_is_advised)
{
    um_gate_t *gate = new_gate();

    app_advises(gate, UM_HINT_READ_MOSTLY, 8 * MIB, 8 * MIB);
    cr_assert_eq(advise(gate, UM_HINT_PREFERRED_LOCATION, 0, 9 * MIB), 0);
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 15 * MIB, 9 * MIB), 0);
    cr_assert_eq(advise(gate, UM_HINT_UNSET_READ_MOSTLY, 8 * MIB, MIB), 0, "it is the program's");
    expect_refused(gate, UM_HINT_REFUSED_DISABLED, 3);
    cr_assert_eq(advise(gate, UM_HINT_UNSET_ACCESSED_BY, 8 * MIB, MIB), 1, "that was ours");
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 16 * MIB, MIB), 1);
    cr_assert_eq(propose(gate, 8 * MIB, MIB, 1), 1, "a prefetch is no advice");
    um_gate_region_gone(gate, FAKE_REGION);
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 8 * MIB, MIB), 1);
    finish(gate);
}

Test(gate, more_advice_than_is_remembered_makes_the_region_the_programs)
{
    um_gate_t *gate = new_gate();

    for (uint64_t i = 0; i <= 256; i++)
        app_advises(gate, UM_HINT_ACCESSED_BY, i * 2 * UM_PAGE_BYTES, UM_PAGE_BYTES);
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 64 * MIB, MIB), 0);
    finish(gate);
}

Test(gate, discarding_is_the_programs_alone)
{
    um_hint_t hint = prefetch(0, MIB);
    um_gate_t *gate = new_gate();

    hint.kind = UM_HINT_DISCARD;
    cr_assert_eq(um_gate_propose(gate, &hint, &cause), 0);
    expect_refused(gate, UM_HINT_REFUSED_DISABLED, 1);
    hint.kind = UM_HINT_NONE;
    cr_assert_eq(um_gate_propose(gate, &hint, &cause), 0);
    expect_refused(gate, UM_HINT_REFUSED_RANGE, 1);
    finish(gate);
}

/* Advice takes its time in the driver, and whoever gave it cannot hold the range before it is told. */
Test(gate, nothing_is_brought_to_a_gpu_while_it_is_being_kept_with_the_cpu)
{
    um_gate_t *gate = new_gate();
    um_hint_t undone;

    cr_assert_eq(advise(gate, UM_HINT_PREFERRED_LOCATION, 8 * MIB, 8 * MIB), 1);
    undone = keeper.hint[0];
    cr_assert_eq(propose(gate, 8 * MIB, 8 * MIB, 1), 0);
    cr_assert_eq(propose(gate, 15 * MIB, 4 * MIB, 1), 0, "not in part either");
    expect_refused(gate, UM_HINT_REFUSED_BUSY, 2);
    cr_assert_eq(propose(gate, 16 * MIB, 4 * MIB, 1), 1);
    um_gate_done(gate, &(um_ev_hint_t){.kind = undone.kind,
                                       .result = UM_HINT_APPLIED,
                                       .addr = undone.addr,
                                       .bytes = undone.bytes,
                                       .device = undone.device});
    cr_assert_eq(propose(gate, 8 * MIB, 8 * MIB, 1), 1, "now it is for who keeps it to say");
    finish(gate);
}

Test(gate, what_is_being_kept_is_not_held_back_for_ever)
{
    um_gate_t *gate = new_gate();

    cr_assert_eq(advise(gate, UM_HINT_PREFERRED_LOCATION, 8 * MIB, 8 * MIB), 1);
    cr_assert_eq(propose(gate, 8 * MIB, 8 * MIB, 5000000000), 0);
    cr_assert_eq(propose(gate, 8 * MIB, 8 * MIB, 20000000000), 1, "its outcome was lost");
    finish(gate);
}

/* Its pages are another allocation's afterwards, and advice stays with the pages. */
Test(gate, what_comes_from_a_pool_gets_no_advice_that_outlives_it)
{
    um_gate_t *gate = new_gate();
    um_region_t region = {.family = UM_FAMILY_MANAGED,
                          .addr = FAKE_BASE + 2 * REGION_BYTES,
                          .bytes = 8 * MIB,
                          .id = FAKE_REGION + 1,
                          .flags = UM_REGION_POOL | UM_REGION_ASYNC};

    cr_assert_eq(um_regions_add(regions, &region, NULL, 0, NULL), UM_OK);
    cr_assert_eq(advise(gate, UM_HINT_PREFERRED_LOCATION, 2 * REGION_BYTES, 8 * MIB), 0);
    cr_assert_eq(advise(gate, UM_HINT_ACCESSED_BY, 2 * REGION_BYTES, 8 * MIB), 0);
    cr_assert_eq(advise(gate, UM_HINT_READ_MOSTLY, 2 * REGION_BYTES, 8 * MIB), 0);
    expect_refused(gate, UM_HINT_REFUSED_CAPABILITY, 3);
    cr_assert_eq(propose(gate, 2 * REGION_BYTES, 8 * MIB, 1), 1);
    finish(gate);
}
