/* Launches that take a region piece by piece: the next pieces come with the first one. */
#include <criterion/criterion.h>

#include "program_fake.h"

#define KERNEL 7u
#define PIECE  (8 * MIB)
#define PIECES 8u
#define BYTES  (PIECES * PIECE)

static void start(void)
{
    program_start("ahead", NULL);
    define_kernel(KERNEL, true);
    allocate(1, 0, BYTES);
}

/* A launch with a pointer to there, which takes so much. Returns the bytes brought for it. */
static uint64_t launch_on(int32_t device, uint64_t at, uint64_t takes)
{
    um_arg_t arg = {.region = 1, .region_offset_bytes = at};
    um_event_t event = event_launch(tick(), ++program.correlation, &arg, 1);
    unsigned first = program.n_hints;
    uint64_t bytes;

    event.u.launch.kernel = KERNEL;
    event.u.launch.device = device;
    feed(event);
    fake_set(&program.tables, at, takes, false);
    hints_by(first, "ahead", UM_HINT_PREFETCH, &bytes);
    return bytes;
}

static uint64_t launch(uint64_t at, uint64_t takes)
{
    return launch_on(FAKE_GPU, at, takes);
}

/* The CPU writes what it does, then the pieces are taken, one after the other. */
static void round_of(uint64_t written, uint64_t brought[PIECES])
{
    program.tables.now_ns += 10000000;
    touch(0, written);
    for (uint64_t i = 0; i < PIECES; i++)
        brought[i] = launch(i * PIECE, PIECE);
    wait_all();
}

Test(ahead_sweep, the_second_time_all_pieces_come_with_the_first)
{
    uint64_t brought[PIECES];

    start();
    round_of(BYTES, brought);
    for (int round = 2; round < 6; round++) {
        round_of(BYTES, brought);
        cr_assert_eq(brought[0], BYTES, "round %d: %lu MiB", round, brought[0] / MIB);
        for (unsigned i = 1; i < PIECES; i++)
            cr_assert_eq(brought[i], 0);
    }
    program_stop();
}

Test(ahead_sweep, only_what_the_cpu_has_of_them)
{
    uint64_t brought[PIECES];

    start();
    round_of(BYTES, brought);
    round_of(3 * PIECE, brought);
    cr_assert_eq(brought[0], 3 * PIECE);
    program_stop();
}

Test(ahead_sweep, no_more_at_once_than_asked_for)
{
    uint64_t brought[PIECES];

    setenv("UMRT_AHEAD_SWEEP", "16M", 1);
    start();
    round_of(BYTES, brought);
    round_of(BYTES, brought);
    cr_assert_eq(brought[0], 3 * PIECE);
    for (unsigned i = 1; i < PIECES; i++)
        cr_assert_leq(brought[i], PIECE);
    program_stop();
}

/* The n-th launch of a round has its pointer at so many pieces. Returns the most that is brought for one. */
static uint64_t most_brought(const uint64_t *at, unsigned n, int rounds)
{
    uint64_t most = 0;

    for (int round = 0; round < rounds; round++) {
        program.tables.now_ns += 10000000;
        touch(0, BYTES);
        for (unsigned i = 0; i < n; i++) {
            uint64_t bytes = launch(at[i] * PIECE, PIECE);

            if (round)
                most = bytes > most ? bytes : most;
        }
        wait_all();
    }
    return most;
}

Test(ahead_sweep, pieces_here_and_there_come_one_by_one)
{
    static const uint64_t at[] = {0, 3, 1, 6, 2, 5, 7, 4};

    start();
    cr_assert_leq(most_brought(at, PIECES, 5),
                  3 * PIECE); /* up to the next pointer there has been */
    program_stop();
}

Test(ahead_sweep, two_pieces_are_no_sweep)
{
    static const uint64_t at[] = {0, 4};

    start();
    cr_assert_leq(most_brought(at, 2, 5), 4 * PIECE);
    program_stop();
}

/* By a second kernel, on the next stage of a pipeline. */
Test(ahead_sweep, each_piece_may_be_taken_several_times)
{
    static const uint64_t at[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};

    start();
    cr_assert_eq(most_brought(at, 16, 3), BYTES);
    program_stop();
}

Test(ahead_sweep, one_that_begins_elsewhere_is_another)
{
    start();
    for (unsigned round = 0; round < 4; round++) {
        touch(0, BYTES);
        for (uint64_t i = 0; i < 3; i++)
            launch((3 * (round % 2) + i) * PIECE, PIECE);
        wait_all();
    }
    cr_assert_gt(program.n_hints, 0);
    for (unsigned i = 0; i < program.n_hints; i++)
        cr_assert_str_eq(program.hint[i].why, "the cpu has it");
    program_stop();
}

Test(ahead_sweep, pieces_for_other_gpus_are_not_brought_to_this_one)
{
    start();
    for (unsigned round = 0; round < 4; round++) {
        program.tables.now_ns += 10000000;
        touch(0, BYTES);
        for (uint64_t i = 0; i < PIECES; i++)
            launch_on((int32_t)(i % 2), i * PIECE, PIECE);
        wait_all();
    }
    cr_assert_gt(program.n_hints, 0);
    for (unsigned i = 0; i < program.n_hints; i++)
        cr_assert_str_eq(program.hint[i].why, "the cpu has it");
    program_stop();
}

/* The whole sweep is another GPU's this time. */
Test(ahead_sweep, a_sweep_goes_on_where_it_is_made)
{
    unsigned ahead = 0;

    start();
    for (unsigned round = 0; round < 4; round++) {
        program.tables.now_ns += 10000000;
        touch(0, BYTES);
        for (uint64_t i = 0; i < PIECES; i++)
            launch_on((int32_t)(round % 2), i * PIECE, PIECE);
        wait_all();
    }
    for (unsigned i = 0; i < program.n_hints; i++)
        ahead += strcmp(program.hint[i].why, "the cpu has it") != 0;
    cr_assert_gt(ahead, 0);
    program_stop();
}

/* A trace can say anything. Without a wait it takes many launches until it is asked again what the CPU has. */
Test(ahead_sweep, pieces_beyond_the_region_are_none, .timeout = 60)
{
    start();
    for (unsigned round = 0; round < 3; round++) {
        program.tables.now_ns += 10000000;
        touch(0, BYTES);
        for (uint64_t i = 0; i < 4 * 80; i++) {
            um_arg_t args[] = {{.region = 1, .slot = 0},
                               {.region = 1, .slot = 1, .region_offset_bytes = i / 80 << 62}};
            um_event_t event = event_launch(tick(), ++program.correlation, args, 2);

            event.u.launch.kernel = KERNEL;
            feed(event);
        }
        wait_all();
    }
    for (unsigned i = 0; i < program.n_hints; i++)
        cr_assert_str_eq(program.hint[i].why, "the cpu has it");
    program_stop();
}
