/* Pointers into one allocation: each is served for its slice, and learns of no other. */
#include <criterion/criterion.h>

#include "footprint_fake.h"

Test(footprint, a_pointer_does_not_reach_into_the_next_slice)
{
    unsigned first;

    start(256 * MIB);
    touch(0, 256 * MIB);
    point(0, 0);
    point(1, 32 * MIB);
    point(2, 64 * MIB);
    first = launch(KERNEL);
    for (unsigned i = first; i < program.n_hints; i++) /* the last is as wide as the others */
        cr_assert_leq(program.hint[i].addr + program.hint[i].bytes, FAKE_BASE + 96 * MIB);
    cr_assert_eq(hinted(first), 96 * MIB);
    taken_by_gpu(0, 96 * MIB);
    wait_all();
    touch(32 * MIB, 32 * MIB);
    point(0, 32 * MIB); /* where another one began before, this one ends */
    first = launch(KERNEL);
    cr_assert_eq(hinted(first), 32 * MIB);
    cr_assert_eq(program.hint[first].addr, FAKE_BASE + 32 * MIB);
    program_stop();
}

/* What the launch does not use of a region is not believed to be on the GPU. */
Test(footprint, slices_between_those_of_a_launch_stay_with_the_cpu)
{
    unsigned first;

    start(256 * MIB);
    touch(0, 256 * MIB);
    point(0, 64 * MIB);
    point(0, 128 * MIB);
    launch(KERNEL);
    taken_by_gpu(64 * MIB, 192 * MIB);
    wait_all();
    point(0, 0);
    first = launch(KERNEL);
    cr_assert_eq(hinted(first), 64 * MIB);
    program_stop();
}

/* A later launch before the wait may have been the one that took it. */
Test(footprint, what_another_slices_kernel_took_is_not_put_down_to_the_first)
{
    unsigned first;

    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1); /* all is left to faults */
    start(256 * MIB);
    define(8, "other");
    for (int i = 0; i < 4; i++) {
        touch(0, 256 * MIB);
        point(0, 0);
        launch(KERNEL);
        point(0, 128 * MIB);
        launch(8);
        taken_by_gpu(0, 64 * MIB);
        taken_by_gpu(128 * MIB, 128 * MIB);
        wait_all();
    }
    touch(0, 256 * MIB);
    point(0, 0);
    first = launch(KERNEL);
    cr_assert_geq(hinted(first), 60 * MIB);
    cr_assert_leq(hinted(first), 80 * MIB);
    program_stop();
}
