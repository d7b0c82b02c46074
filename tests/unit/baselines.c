/* The baselines that are advisors: what they do, and that they know no better. */
#include <criterion/criterion.h>

#include "program_fake.h"
#include "sim/policy.h"

Test(static_baseline, prefetches_every_argument_whole_at_every_launch)
{
    uint32_t both[] = {1, 2};

    program_start("static", um_baseline_table);
    program.free_bytes = 0;
    allocate(1, 0, 100 * MIB);
    allocate(2, 128 * MIB, 4096);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(run_on(0, 7, 2, both), 2);
    for (unsigned i = 0; i < program.n_hints; i++) {
        cr_assert_eq(program.hint[i].bytes, i % 2 ? 4096 : 100 * MIB);
        cr_assert_eq(program.hint[i].order, UM_ORDER_BEFORE);
        cr_assert_eq(program.hint[i].device, FAKE_GPU);
    }
    program_stop();
}

static void fault(uint32_t region, uint64_t offset)
{
    um_event_t event = {.type = UM_EV_GPU_FAULT, .time_ns = tick()};

    event.u.gpu_fault = (um_ev_gpu_fault_t){.addr = FAKE_BASE + offset,
                                            .groups = 1,
                                            .device = FAKE_GPU,
                                            .region = region};
    feed(event);
}

/* A kernel that faults in the blocks given, and ends. */
static unsigned run_faulting(uint32_t kernel, uint32_t region, uint64_t first, uint64_t bytes)
{
    unsigned made = run(kernel, region);
    um_event_t exec = {.type = UM_EV_KERNEL_EXEC, .time_ns = tick()};

    for (uint64_t at = first; at < first + bytes; at += UM_BLOCK_BYTES)
        fault(region, at);
    exec.u.kernel_exec.correlation = program.correlation;
    feed(exec);
    return made;
}

/* Two kernels in turns; the CPU takes everything back between them. */
Test(deepum_baseline, prefetches_the_chain_of_the_kernels_predicted)
{
    unsigned made = 0;

    program_start("deepum", um_baseline_table);
    allocate(1, 0, 64 * MIB);
    allocate(2, 64 * MIB, 64 * MIB);
    for (int i = 0; i < 10; i++) {
        unsigned before = program.n_hints;

        touch(0, 128 * MIB);
        run_faulting(7, 1, 8 * MIB, i < 5 ? 16 * MIB : 0);
        wait_all();
        touch(0, 128 * MIB);
        run_faulting(8, 2, 64 * MIB, i < 5 ? 8 * MIB : 0);
        wait_all();
        made = program.n_hints - before;
        cr_assert(i > 0 || made == 0, "nothing is known in the first round");
    }
    cr_assert_gt(program.n_hints, 0);
    for (unsigned i = 0; i < program.n_hints; i++) { /* only what has faulted */
        uint64_t from = program.hint[i].addr - FAKE_BASE, to = from + program.hint[i].bytes;

        cr_assert((from >= 8 * MIB && to <= 24 * MIB) || (from >= 64 * MIB && to <= 72 * MIB));
    }
    program_stop();
}

Test(deepum_baseline, knows_nothing_without_faults)
{
    program_start("deepum", um_baseline_table);
    allocate(1, 0, 64 * MIB);
    for (int i = 0; i < 20; i++) {
        touch(0, 64 * MIB);
        cr_assert_eq(run_faulting(7, 1, 0, 0), 0);
        wait_all();
    }
    program_stop();
}
