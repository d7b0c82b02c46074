/* Several GPUs at one allocation: where what a launch takes is held to end. */
#include <criterion/criterion.h>

#include "exec/sharing.h"

#define START 1000u
#define END   9000u

static um_sharing_t sharing;
static bool others;

/* A launch on the device, in a context of the same number and one, from that offset on. */
static uint64_t end_of(int32_t device, uint64_t from)
{
    um_ev_launch_t launch = {.device = device, .context = (uint32_t)device + 1};
    uint64_t end = END;

    others = um_sharing_launch(&sharing, &launch, 1, from, &end);
    return end;
}

static void wait_for(int32_t device)
{
    um_sharing_sync(&sharing, &(um_ev_sync_t){.context = (uint32_t)device + 1, .exit = 1});
}

static void wait_for_both(void)
{
    wait_for(0);
    wait_for(1);
}

Test(sharing, of_one_gpu_everything_is_its_own)
{
    for (uint64_t from = START; from < END; from += 1000)
        cr_assert_eq(end_of(0, from), END);
    cr_assert_not(others);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(end_of(0, START), END);
}

Test(sharing, a_slice_ends_where_another_gpus_begins)
{
    cr_assert_eq(end_of(0, START), END, "nobody else is known yet");
    cr_assert_eq(end_of(1, 5000), END);
    cr_assert(others);
    wait_for_both();
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(end_of(0, START), 5000);
        cr_assert_eq(end_of(1, 5000), END);
        wait_for_both();
    }
}

Test(sharing, slices_of_many_gpus_and_many_launches_each)
{
    for (int round = 0; round < 20; round++) {
        for (int32_t gpu = 0; gpu < 4; gpu++)
            for (uint64_t part = 0; part < 2; part++) {
                uint64_t slice = START + (uint64_t)gpu * 2000;
                uint64_t end = end_of(gpu, slice + part * 1000);
                if (round > 0)
                    cr_assert_eq(end, gpu < 3 ? slice + 2000 : END, "round %d, gpu %d", round, gpu);
            }
        for (int32_t gpu = 0; gpu < 4; gpu++)
            wait_for(gpu);
    }
}

Test(sharing, what_starts_at_the_same_place_at_the_same_time_is_nobodys)
{
    cr_assert_eq(end_of(0, START), END);
    cr_assert_eq(end_of(1, START), START);
    wait_for_both();
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(end_of(0, START), START);
        cr_assert_eq(end_of(1, START), START);
        wait_for_both();
    }
}

Test(sharing, taking_turns_is_no_sharing)
{
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(end_of(i % 2, START), END);
        wait_for(i % 2);
    }
}

Test(sharing, a_gpu_that_leaves_the_region_alone_no_longer_counts)
{
    end_of(1, 5000);
    wait_for(1);
    for (unsigned i = 0; i < UM_SHARING_RECENT; i++)
        cr_assert_eq(end_of(0, START), 5000);
    for (int i = 0; i < 50; i++)
        cr_assert_eq(end_of(0, START), END);
    cr_assert_not(others);
}

Test(sharing, what_a_gpu_took_once_is_not_held_against_it_for_ever)
{
    end_of(0, START); /* all of it, at the start */
    wait_for(0);
    for (unsigned i = 0; i < 3 * UM_SHARING_RECENT; i++) {
        end_of(0, 5000);
        end_of(1, START);
        wait_for_both();
    }
    cr_assert_eq(end_of(1, START), 5000);
}

Test(sharing, a_launch_on_an_unknown_device_says_nothing)
{
    end_of(0, START);
    cr_assert_eq(end_of(UM_DEVICE_NONE, 5000), END);
    cr_assert_eq(end_of(0, START), END);
    cr_assert_not(others);
}

Test(sharing, another_region_in_the_same_place_starts_anew)
{
    um_ev_launch_t launch = {.device = 0, .context = 1};
    uint64_t end = END;

    end_of(1, 5000);
    cr_assert_not(um_sharing_launch(&sharing, &launch, 1 + UM_SHARING_REGIONS, START, &end));
    cr_assert_eq(end, END);
}
