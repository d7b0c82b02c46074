/* What one run learned of a kernel, in another. */
#include <criterion/criterion.h>

#include "footprint_fake.h"

static void learn_and_stop(uint64_t touched)
{
    start(256 * MIB);
    for (int i = 0; i < 12; i++)
        round_of(256 * MIB, touched);
    program_stop_and_keep(NULL);
    cr_assert_geq(kept.n, 1);
    cr_assert_str_eq(kept.event[0].u.learned.who, "footprint");
    cr_assert_str_eq(kept.event[0].u.learned.kernel, "kernel");
}

static void start_with_profile(void)
{
    program_start_again("first_touch,ahead", 0);
    define(KERNEL, "kernel");
    allocate(1, 0, 256 * MIB);
}

Test(footprint, what_one_run_learned_another_knows_from_its_first_launch)
{
    uint64_t bytes;

    learn_and_stop(40 * MIB);
    start_with_profile();
    bytes = round_of(256 * MIB, 40 * MIB);
    cr_assert_geq(bytes, 36 * MIB);
    cr_assert_leq(bytes, 50 * MIB);
    program_stop();
}

Test(footprint, of_another_build_it_knows_nothing)
{
    learn_and_stop(40 * MIB);
    module_hash = 5;
    start_with_profile();
    cr_assert_geq(round_of(256 * MIB, 256 * MIB), 240 * MIB);
    program_stop();
}

Test(footprint, a_profile_that_is_wrong_is_soon_forgotten)
{
    uint64_t bytes = 0;

    learn_and_stop(40 * MIB);
    start_with_profile();
    for (int i = 0; i < 6; i++)
        bytes = round_of(256 * MIB, 200 * MIB);
    cr_assert_geq(bytes, 190 * MIB);
    program_stop();
}

Test(footprint, nonsense_in_a_profile_is_not_believed)
{
    um_event_t event = {.type = UM_EV_LEARNED};

    program_start("first_touch,ahead", NULL);
    for (unsigned i = 0; i < 6; i++) {
        event.u.learned = (um_ev_learned_t){.who = "footprint",
                                            .what = "extent",
                                            .kernel = i == 0 ? "" : "kernel",
                                            .shape = i == 1 ? 7 : 1000u << 12 | 256,
                                            .slot = i == 2 ? UM_SLOT_NONE : 0,
                                            .count = i != 3,
                                            .value = {MIB, 2 * MIB, 0, 100, 0, 8}};
        if (i == 4)
            event.u.learned.value[0] = 3 * MIB;
        if (i == 5)
            event.u.learned.value[3] = 101;
        feed(event);
    }
    define(KERNEL, "kernel");
    allocate(1, 0, 256 * MIB);
    cr_assert_geq(round_of(256 * MIB, 256 * MIB), 240 * MIB);
    program_stop();
}
