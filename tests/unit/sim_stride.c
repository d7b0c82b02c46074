/* Runs at equal distances in the simulator, whatever they are: once known, only they are brought, and it is never slower
 * than the driver alone. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "sim_program.h"

#define ROUNDS 40u
#define LATE   30u /* rounds after which it must be known */
#define SEEDS  24u
#define BYTES  (512 * MIB)
#define MS     1000000u

static program_t p;
static um_machine_t machine;

static struct {
    uint64_t first, run, stride, n;
} truth;

static uint32_t round_number;
static uint64_t inside, outside; /* bytes brought in the late rounds */

static uint64_t drawn(uint64_t *state, uint64_t least, uint64_t most)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return least + (*state >> 33) % (most - least + 1);
}

static void draw(uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u;
    bool odd = drawn(&state, 0, 3) == 0;

    truth.run = drawn(&state, 1, 8) * UM_BLOCK_BYTES;
    truth.stride = truth.run + drawn(&state, 6, 24) * UM_BLOCK_BYTES + (odd ? 320 * 1024 : 0);
    truth.first = drawn(&state, 0, 4) * UM_BLOCK_BYTES;
    truth.n = (BYTES - truth.first - truth.run) / truth.stride + 1;
}

static void make_program(void)
{
    uint32_t region;

    program_init(&p);
    program_event(&p, UM_EV_KERNEL)->u.kernel =
        (um_ev_kernel_t){.kernel = 1, .name = "column", .module_hash = 1};
    region = program_alloc(&p, BYTES);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        um_event_t *event;

        program_host(&p, MS, region, UM_ACCESS_WRITE);
        program_launch(&p, 0, 0, 0, 0, UM_ACCESS_READ);
        event = &p.event[p.workload.n_steps - 1];
        p.arg[p.n_args] = (um_arg_t){.region = region};
        event->u.launch.args = &p.arg[p.n_args++];
        event->u.launch.n_args = 1;
        event->u.launch.grid[0] = 4096;
        event->u.launch.block[0] = 256;
        p.step[p.workload.n_steps - 1].compute_ns = MS;
        for (uint64_t k = 0; k < truth.n; k++)
            program_touch(&p, region, truth.first + k * truth.stride, truth.run, UM_ACCESS_WRITE,
                          false);
        program_sync(&p, UM_SYNC_DEVICE, 0);
    }
}

static bool is_touched(uint64_t addr)
{
    uint64_t at = addr - BASE;

    return at >= truth.first && (at - truth.first) % truth.stride < truth.run;
}

static void watch(void *ctx, const um_event_t *event)
{
    const um_ev_hint_t *hint = &event->u.hint;

    (void)ctx;
    if (event->type == UM_EV_LAUNCH)
        round_number++;
    if (event->type != UM_EV_HINT || hint->result != UM_HINT_APPLIED || hint->device < 0 ||
        round_number <= LATE)
        return;
    for (uint64_t at = 0; at < hint->bytes; at += 65536)
        *(is_touched(hint->addr + at) ? &inside : &outside) += 65536;
}

/* ---- what the first run has learned is told to the second one ---- */

static um_event_t known[64];
static char known_kernel[64][16];
static size_t n_known;

static void learn(void *ctx, const um_event_t *event)
{
    (void)ctx;
    cr_assert_lt(n_known, 64);
    known[n_known] = *event;
    snprintf(known_kernel[n_known], sizeof(known_kernel[0]), "%s", event->u.learned.kernel);
    known[n_known].u.learned.kernel = known_kernel[n_known];
    known[n_known++].u.learned.age = 1;
}

static uint64_t run(const um_policy_t *policy, bool taught)
{
    um_sim_config_t config = {.workload = &p.workload,
                              .machine = &machine,
                              .policy = policy,
                              .event = watch,
                              .known = known,
                              .n_known = taught ? n_known : 0,
                              .learned = taught ? NULL : learn};
    um_sim_result_t result;
    char error[512];

    n_known = taught ? n_known : 0;
    round_number = 0;
    inside = outside = 0;
    cr_assert_eq(um_sim_run(&config, &result, error, sizeof(error)), UM_OK, "%s", error);
    return result.total_ns;
}

Test(stride, only_the_runs_are_brought_whatever_they_are)
{
    um_policy_t *policy = um_policy_join("first_touch+ahead");
    char error[512];

    cr_assert_eq(um_machine_load("h200-pcie5", &machine, error, sizeof(error)), UM_OK);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t beside, driver, taught, all;

        draw(seed);
        make_program();
        driver = run(um_policy_find("driver"), false);
        run(policy, false);
        /* Runs that do not begin with a block take something along on either side. */
        beside = truth.stride % UM_BLOCK_BYTES ? 2 * UM_BLOCK_BYTES : 0;
        all = (ROUNDS - LATE) * truth.n * truth.run;
        cr_expect_leq(outside, (ROUNDS - LATE) * truth.n * beside,
                      "seed %lu: runs of %lu MiB every %lu MiB: %lu MiB in vain",
                      (unsigned long)seed, (unsigned long)(truth.run / MIB),
                      (unsigned long)(truth.stride / MIB), (unsigned long)(outside / MIB));
        cr_expect_geq(10 * inside, 7 * all, "seed %lu: %lu of %lu MiB", (unsigned long)seed,
                      (unsigned long)(inside / MIB), (unsigned long)(all / MIB));
        taught = run(policy, true);
        cr_expect_leq(taught, driver, "seed %lu: %.2f ms, the driver alone %.2f ms",
                      (unsigned long)seed, (double)taught / MS, (double)driver / MS);
    }
    free(policy);
}
