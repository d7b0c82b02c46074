/* A kernel of a fixed grid that goes as far as one of its integers says: what is learned of that, and what is not. */
#include <criterion/criterion.h>

#include "program_fake.h"

#define KERNEL 7u
#define BYTES  (256 * MIB)
#define N      1u /* slots of its integers */
#define OTHER  2u

static um_scalar_t scalar[2] = {{N, 4, 0}, {OTHER, 4, 0}};
static uint32_t n_scalars = 2;

static void start(const char *advisors)
{
    um_event_t kernel = {.type = UM_EV_KERNEL, .time_ns = tick()};

    kernel.u.kernel = (um_ev_kernel_t){.kernel = KERNEL, .name = "kernel"};
    program_start(advisors, NULL);
    feed(kernel);
}

/* With n floats as its integer. Returns what was hinted. */
static uint64_t launch(uint64_t n_bytes, uint32_t other)
{
    um_arg_t arg = {.slot = 0, .region = 1};
    um_event_t event = event_launch(tick(), ++program.correlation, &arg, 1);
    unsigned first = program.n_hints;
    uint64_t bytes = 0;

    event.u.launch.kernel = KERNEL;
    event.u.launch.grid[0] = 264;
    event.u.launch.block[0] = 256;
    scalar[0].value = n_bytes / sizeof(float);
    scalar[1].value = other;
    event.u.launch.n_scalars = n_scalars;
    event.u.launch.scalars = scalar;
    tick();
    feed(event);
    for (unsigned i = first; i < program.n_hints; i++)
        bytes += program.hint[i].device >= 0 ? program.hint[i].bytes : 0;
    return bytes;
}

/* The CPU writes all of it, the kernel touches the first bytes. */
static uint64_t round_of(uint64_t n_bytes, uint32_t other, uint64_t touched)
{
    uint64_t bytes;

    program.tables.now_ns += 10000000;
    touch(0, BYTES);
    bytes = launch(n_bytes, other);
    fake_set(&program.tables, 0, touched, false);
    wait_all();
    return bytes;
}

static const uint64_t size[] = {40 * MIB, 200 * MIB, 120 * MIB, 64 * MIB, 168 * MIB, 96 * MIB};

static void learn(uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++)
        round_of(size[i % 6], i, size[i % 6]);
}

/* But for what is left out, and what cannot be told exactly. */
static void check_foreseen(uint64_t bytes)
{
    uint64_t got = round_of(bytes, 5, bytes);

    cr_expect_geq(got, bytes - bytes / 16 - 4 * MIB, "%llu MiB of %llu",
                  (unsigned long long)(got / MIB), (unsigned long long)(bytes / MIB));
    cr_expect_leq(got, bytes + bytes / 16 + 4 * MIB, "%llu MiB of %llu",
                  (unsigned long long)(got / MIB), (unsigned long long)(bytes / MIB));
}

Test(footprint_integer, an_end_that_follows_an_integer_is_foreseen_at_a_new_value)
{
    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    learn(24);
    check_foreseen(144 * MIB);
    check_foreseen(80 * MIB);
    check_foreseen(224 * MIB); /* beyond what was seen */
    check_foreseen(12 * MIB);
    program_stop();
}

/* No wait lies between, so that what is the same again need not be looked at. */
Test(footprint_integer, a_launch_that_goes_further_than_the_one_right_before_is_served)
{
    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    learn(24);
    touch(0, BYTES);
    launch(40 * MIB, 1);
    fake_set(&program.tables, 0, 40 * MIB, false);
    launch(40 * MIB, 2);
    cr_assert_eq(launch(40 * MIB, 3), 0);
    cr_assert_geq(launch(200 * MIB, 4), 140 * MIB);
    program_stop();
}

Test(footprint_integer, is_learned_from_what_is_left_to_faults_as_well)
{
    setenv("UMRT_AHEAD_DENSE_LIMIT", "0", 1);
    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    learn(12);
    check_foreseen(144 * MIB);
    program_stop();
}

/* Up to 64 MiB an argument has no sentinels but the one that is in doubt. */
Test(footprint_integer, is_found_in_a_few_launches_where_sizes_are_small)
{
    static const uint64_t mib[] = {16, 72, 40, 24, 56, 32};

    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    for (uint32_t i = 0; i < 12; i++)
        round_of(mib[i % 6] * MIB, i, mib[i % 6] * MIB);
    check_foreseen(20 * MIB);
    program_stop();
}

Test(footprint_integer, never_reaches_beyond_the_argument)
{
    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    learn(24);
    cr_assert_leq(round_of(4096 * MIB, 5, BYTES), BYTES);
    program_stop();
}

Test(footprint_integer, zero_and_what_may_be_negative_say_nothing)
{
    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    learn(24);
    round_of(0, 5, 200 * MIB);
    round_of((uint64_t)UINT32_MAX * sizeof(float), 5, 200 * MIB);
    check_foreseen(144 * MIB);
    program_stop();
}

Test(footprint_integer, gives_way_when_it_is_wrong)
{
    uint64_t bytes = 0;

    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    learn(24);
    for (int i = 0; i < 24; i++)
        bytes = round_of(size[i % 6] / 4, 5, 200 * MIB);
    cr_assert_geq(bytes, 190 * MIB);
    cr_assert_leq(bytes, 220 * MIB);
    program_stop();
}

static um_event_t profile[64];
static char profile_kernel[64][64]; /* the names: those of the events go with the run */
static unsigned n_profile;

static void keep(void *ctx, const um_event_t *event)
{
    (void)ctx;
    cr_assert_lt(n_profile, 64);
    snprintf(profile_kernel[n_profile], sizeof(profile_kernel[0]), "%s", event->u.learned.kernel);
    profile[n_profile] = *event;
    profile[n_profile].u.learned.kernel = profile_kernel[n_profile];
    n_profile++;
}

static um_ev_learned_t *learned_integer(void)
{
    for (unsigned i = 0; i < n_profile; i++)
        if (strcmp(profile[i].u.learned.who, "footprint") == 0 &&
            strcmp(profile[i].u.learned.what, "integer") == 0)
            return &profile[i].u.learned;
    return NULL;
}

static bool is_learned(void)
{
    n_profile = 0;
    um_hinter_learned(program.hinter, keep, NULL);
    return learned_integer() != NULL;
}

Test(footprint_integer, two_values_prove_nothing_and_three_do)
{
    static const uint64_t near[] = {100 * MIB, 101 * MIB, 102 * MIB};

    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    for (uint32_t i = 0; i < 40; i++)
        round_of(size[i % 2], i, size[i % 2]);
    cr_assert_not(is_learned());
    for (uint32_t i = 0; i < 12; i++)
        round_of(size[i % 3], i, size[i % 3]);
    cr_assert(is_learned());
    program_stop();
    program = (program_t){.free_bytes = 4096 * MIB};
    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    round_of(near[0], 1, 20 * MIB); /* the end is known to vary */
    round_of(near[0], 2, 20 * MIB);
    for (uint32_t i = 0; i < 40; i++)
        round_of(near[i % 3], i, near[i % 3]);
    cr_assert_not(is_learned(), "their ends are not told apart");
    program_stop();
}

/* Rounds in which integers come along that explain nothing: what is hinted must be as it is without any. */
static void check_as_without(uint64_t (*integer)(uint32_t round),
                             uint64_t (*touched)(uint32_t round))
{
    uint64_t with[48];

    for (int pass = 0; pass < 2; pass++) {
        program = (program_t){.free_bytes = 4096 * MIB};
        n_scalars = pass ? 0 : 2;
        start("first_touch,ahead");
        allocate(1, 0, BYTES);
        for (uint32_t i = 0; i < 48; i++) {
            uint64_t bytes = round_of(integer(i), i + 1, touched(i));

            if (pass == 0)
                with[i] = bytes;
            else
                cr_expect_eq(with[i], bytes, "round %u: %lu %lu", i, with[i] >> 16, bytes >> 16);
        }
        program_stop();
    }
}

static uint64_t counter(uint32_t round)
{
    return (uint64_t)round * 4 * MIB;
}

static uint64_t always_100(uint32_t round)
{
    (void)round;
    return 100 * MIB;
}

/* The bits of 1.0f, 2.0f, ... in the place of an integer. */
static uint64_t bits_of_float(uint32_t round)
{
    float value = (float)(round % 7 + 1);
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint64_t)bits * sizeof(float);
}

Test(footprint_integer, a_counter_explains_no_end_that_stays)
{
    check_as_without(counter, always_100);
}

Test(footprint_integer, floats_explain_no_end_that_stays)
{
    check_as_without(bits_of_float, always_100);
}

/* The end follows another rule: the integer must not be believed, whatever was seen by chance. */
Test(footprint_integer, a_counter_and_a_float_do_not_explain_what_varies_by_itself)
{
    uint64_t seed = 1, most = 0;

    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    for (uint32_t i = 0; i < 200; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        round_of(i % 2 ? bits_of_float(i) : counter(i), i + 1,
                 (seed >> 40) % 100 * 2 * MIB + 20 * MIB);
    }
    cr_assert_not(is_learned());
    /* by either of them next to nothing would be brought */
    for (int i = 0; i < 8; i++) {
        uint64_t bytes = round_of(4, 1, 200 * MIB);

        most = bytes > most ? bytes : most;
    }
    cr_assert_geq(most, 100 * MIB);
    program_stop();
}

/* ---- other runs ---- */

static void start_with_profile(void)
{
    program = (program_t){.free_bytes = 4096 * MIB};
    start("first_touch,ahead");
    for (unsigned i = 0; i < n_profile; i++)
        feed(profile[i]);
    allocate(1, 0, BYTES);
}

static void learn_a_profile(void)
{
    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    learn(24);
    cr_assert(is_learned());
    program_stop();
    cr_assert_eq(learned_integer()->slot, 0);
    cr_assert_eq(learned_integer()->value[0], N, "the integer's slot");
}

Test(footprint_integer, another_run_begins_with_it)
{
    learn_a_profile();
    start_with_profile();
    check_foreseen(144 * MIB);
    check_foreseen(16 * MIB);
    program_stop();
}

Test(footprint_integer, another_runs_word_gives_way)
{
    uint64_t bytes = 0;

    learn_a_profile();
    start_with_profile();
    for (int i = 0; i < 16; i++)
        bytes = round_of(16 * MIB + size[i % 6] / 16, 5, 200 * MIB);
    cr_assert_geq(bytes, 190 * MIB);
    program_stop();
}

Test(footprint_integer, a_forged_profile_is_not_believed)
{
    static const uint64_t wrong[][UM_LEARNED_VALUES] = {
        {N, 0, 0, 0, 0, 0},
        {N, 5, 4, 1, 2, 3},                               /* bounds the wrong way round */
        {N, 0, UINT64_MAX, 10, 1000, 100000},             /* no bounds */
        {N, 4u << 20, 5u << 20, 10u << 20, 10u << 20, 0}, /* the same value twice */
        {UINT64_MAX, 4u << 20, 4u << 20, 1u << 20, 10u << 20, 40u << 20}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        um_event_t *forged = &profile[0];

        *forged = (um_event_t){.type = UM_EV_LEARNED,
                               .u.learned = {.who = "footprint",
                                             .what = "integer",
                                             .kernel = "kernel",
                                             .shape = (uint64_t)264 << 12 | 256,
                                             .count = 9}};
        memcpy(forged->u.learned.value, wrong[i], sizeof wrong[i]);
        n_profile = 1;
        start_with_profile();
        cr_expect_geq(round_of(size[0], 1, size[0]), BYTES - 8 * MIB, "%zu: not known", i);
        cr_expect_not(is_learned(), "%zu", i);
        program_stop();
    }
}

/* A launch without integers, as older traces and foreign ones have. */
Test(footprint_integer, does_without)
{
    n_scalars = 0;
    start("first_touch,ahead");
    allocate(1, 0, BYTES);
    learn(24);
    cr_assert_not(is_learned());
    program_stop();
}
