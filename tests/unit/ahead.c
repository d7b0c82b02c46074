/* The rule of advisors/ahead.c: what is brought to the GPU, and what is left to faults. */
#include <criterion/criterion.h>

#include "program_fake.h"

#define ADVISOR "ahead"
#define KERNEL  7u
#define BYTES   (128 * MIB)
#define LITTLE  ((uint64_t)128 * 1024)

static bool cpu_comes; /* and takes it all back before every launch */

/* Region 1, written by the CPU. Of nothing that large it is guessed that it is used all over. */
static void start(void)
{
    setenv("UMRT_AHEAD_DENSE_LIMIT", "1M", 1);
    program_start(ADVISOR, NULL);
    define_kernel(KERNEL, true);
    allocate(1, 0, BYTES);
    touch(0, BYTES);
}

/* The GPU touches so much of every 2 MiB. Returns the number of the first hint. */
static unsigned use(uint64_t touched)
{
    um_arg_t arg = {.region = 1};
    um_event_t event;
    unsigned first = program.n_hints;

    program.tables.now_ns += 10000000;
    if (cpu_comes)
        touch(0, BYTES);
    event = event_launch(tick(), ++program.correlation, &arg, 1);
    event.u.launch.kernel = KERNEL;
    feed(event);
    for (uint64_t at = 0; at < BYTES; at += 2 * MIB)
        fake_set(&program.tables, at, touched, false);
    wait_all();
    return first;
}

static uint64_t brought(unsigned first)
{
    uint64_t bytes;

    hints_by(first, ADVISOR, UM_HINT_PREFETCH, &bytes);
    return bytes;
}

/* Launches until it is brought; how many, 0 = it is not. */
static unsigned until_brought(uint64_t touched)
{
    for (unsigned i = 1; i <= 30; i++)
        if (brought(use(touched)))
            return i;
    return 0;
}

Test(ahead, what_a_launch_uses_little_of_is_brought_once_launches_add_up)
{
    unsigned n;

    start();
    n = until_brought(128 * 1024); /* 6 % */
    cr_assert_geq(n, 3);
    cr_assert_leq(n, 8);
    for (unsigned i = 0; i < program.n_hints; i++)
        cr_assert_eq(program.hint[i].order, UM_ORDER_IDLE, "it does not end with this launch");
    program_stop();
}

Test(ahead, another_run_knows_how_many_launches_it_serves)
{
    unsigned n;

    start();
    cr_assert_neq(until_brought(128 * 1024), 0);
    for (int i = 0; i < 10; i++)
        use(0);
    program_stop_and_keep(NULL);
    program_start_again(ADVISOR, 1);
    define_kernel(KERNEL, true);
    allocate(1, 0, BYTES);
    touch(0, BYTES);
    n = until_brought(128 * 1024);
    cr_assert(n == 1 || n == 2);
    program_stop();
}

Test(ahead, but_what_the_cpu_takes_back_each_time_only_once)
{
    uint64_t bytes = 0;

    start();
    cpu_comes = true;
    for (int i = 0; i < 60; i++)
        bytes += brought(use(128 * 1024));
    cr_assert_leq(bytes, BYTES);
    program_stop();
}

Test(ahead, of_what_the_cpu_takes_back_each_time_most_must_be_used)
{
    uint64_t bytes = 0;

    start();
    cpu_comes = true;
    for (int i = 0; i < 10; i++)
        use(640 * 1024); /* a third: worth it if it stayed */
    for (int i = 0; i < 20; i++)
        bytes += brought(use(640 * 1024));
    cr_assert_eq(bytes, 0);
    program_stop();
}

Test(ahead, what_stays_pays_from_a_fifth_on)
{
    start();
    cr_assert_leq(until_brought(640 * 1024), 2);
    cr_assert_eq(program.hint[0].order, UM_ORDER_RACING);
    program_stop();
}

/* A round in which the CPU has so much anew, and the GPU takes it. */
static uint64_t round_of(uint64_t bytes, uint64_t us)
{
    unsigned first = program.n_hints;

    touch(0, bytes);
    run(KERNEL, 1);
    program.tables.now_ns += us * 1000;
    wait_all();
    return brought(first);
}

Test(ahead, little_is_left_to_faults_where_waits_end_soon)
{
    program_start(ADVISOR, NULL);
    allocate(1, 0, LITTLE);
    for (int i = 0; i < 8; i++)
        round_of(LITTLE, 3000);
    cr_assert_eq(round_of(LITTLE, 3000), LITTLE);
    for (int i = 0; i < 32; i++)
        round_of(LITTLE, 50);
    cr_assert_eq(round_of(LITTLE, 50), 0);
    program_stop();
}

Test(ahead, nonsense_in_a_profile_is_survived)
{
    start();
    use(128 * 1024);
    use(128 * 1024);
    use(128 * 1024);
    program_stop_and_keep(ADVISOR);
    cr_assert_eq(kept.n, 1);
    kept.event[0].u.learned.value[0] = UINT64_MAX;
    kept.event[0].u.learned.value[1] = UINT64_MAX;
    program_start_again(ADVISOR, 1);
    define_kernel(KERNEL, true);
    allocate(1, 0, BYTES);
    touch(0, BYTES);
    cpu_comes = true;
    for (int i = 0; i < 10; i++)
        use(128 * 1024);
    program_stop();
}
