/* Faults: first touch, growth inside a block, what a sweep in each direction makes. */
#include "sim_uvm.h"

static sim_t sim;

Test(sim_uvm_faults, the_cpu_populates_a_block_in_six_growing_steps)
{
    static const uint64_t at[] = {0, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB};

    sim_config(&sim, 1, 64 * MIB);
    sim_start(&sim, 4 * MIB);
    sim_touch_once(&sim, HOST, 0, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.cpu_faults, 6);
    cr_assert_eq(sim.work.populated_host_bytes, BLOCK);
    cr_assert_eq(sim.n, 6);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(sim.log[i].u.cpu_fault.addr, BASE + at[i]);
    cr_assert_eq(sim_resident(&sim, HOST), BLOCK);
    sim_stop(&sim);
}

Test(sim_uvm_faults, growth_stops_at_the_block)
{
    sim_config(&sim, 1, 64 * MIB);
    sim_start(&sim, 4 * MIB);
    sim_touch_once(&sim, HOST, 0, 2 * MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim_resident(&sim, HOST), 2 * MIB);
    cr_assert(um_uvm_would_fault(sim.uvm, HOST, BASE + 2 * MIB, PAGE, UM_ACCESS_READ));
    sim_stop(&sim);
}

/* Measured: 3,072 CPU faults and 6,144 transfers for a GiB that comes back. */
Test(sim_uvm_faults, a_gib_that_comes_back_makes_the_measured_records)
{
    sim_config(&sim, 1, 4096 * MIB);
    sim_start(&sim, 1024 * MIB);
    sim_touch(&sim, 0, 0, 1024 * MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.populated_device_bytes, 1024 * MIB);
    sim_touch(&sim, HOST, 0, 1024 * MIB, UM_ACCESS_READ);
    cr_assert_eq(sim.work.cpu_faults, 3072);
    cr_assert_eq(sim_transfers(sim.work.transfers_to_host), 6144);
    cr_assert_eq(sim.work.bytes_to_host, 1024 * MIB);
    cr_assert_eq(sim_resident(&sim, 0), 0);
    sim_stop(&sim);
}

Test(sim_uvm_faults, the_gpu_takes_what_it_touches_in_one_visit)
{
    sim_config(&sim, 1, 64 * MIB);
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_touch_once(&sim, 0, 0, BLOCK, UM_ACCESS_READ);
    cr_assert_eq(sim.work.gpu_faults, 512);
    cr_assert_eq(sim.work.batches_blocks, 1);
    cr_assert_eq(sim.work.transfers_to_device[UM_UVM_SIZES - 1], 1);
    cr_assert_eq(sim.work.unmapped_host_bytes, BLOCK);
    cr_assert_eq(sim_resident(&sim, 0), BLOCK);
    cr_assert_eq(sim_resident(&sim, HOST), BLOCK);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 0, BASE, BLOCK, UM_ACCESS_WRITE));
    cr_assert(um_uvm_would_fault(sim.uvm, HOST, BASE, BLOCK, UM_ACCESS_READ));
    sim_stop(&sim);
}

Test(sim_uvm_faults, a_sweep_page_by_page_grows_as_published)
{
    static const uint64_t grown[] = {64, 128, 256, 512, 1024, 2048};
    int step = 0;

    sim_config(&sim, 1, 64 * MIB);
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, 4 * MIB, UM_ACCESS_WRITE);
    for (uint64_t at = 0; at < BLOCK; at += PAGE) {
        sim_touch_once(&sim, 0, at, PAGE, UM_ACCESS_READ);
        if (!sim.work.gpu_faults)
            continue;
        cr_assert_lt(step, 6);
        cr_assert_eq(sim_resident(&sim, 0), grown[step] * KIB);
        step++;
    }
    cr_assert_eq(step, 6);
    sim_stop(&sim);
}

Test(sim_uvm_faults, threshold_one_brings_the_block_at_the_first_fault)
{
    sim_config(&sim, 1, 64 * MIB);
    sim.config.params.uvm_perf_prefetch_threshold = 1;
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_touch_once(&sim, 0, 5 * PAGE, PAGE, UM_ACCESS_READ);
    cr_assert_eq(sim_resident(&sim, 0), BLOCK);
    cr_assert_eq(sim.work.prefetched_bytes, BLOCK - PAGE);
    sim_stop(&sim);
}

Test(sim_uvm_faults, threshold_hundred_brings_nothing_more)
{
    sim_config(&sim, 1, 64 * MIB);
    sim.config.params.uvm_perf_prefetch_threshold = 100;
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_touch(&sim, 0, 0, BLOCK - 2 * PAGE, UM_ACCESS_READ);
    sim_touch_once(&sim, 0, BLOCK - PAGE, PAGE, UM_ACCESS_READ);
    cr_assert_eq(sim.work.prefetched_bytes, 0);
    cr_assert_eq(sim_resident(&sim, 0), BLOCK - PAGE);
    sim_stop(&sim);
}

Test(sim_uvm_faults, threshold_ninety_nine_brings_the_big_page)
{
    sim_config(&sim, 1, 64 * MIB);
    sim.config.params.uvm_perf_prefetch_threshold = 99;
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_touch_once(&sim, 0, PAGE, PAGE, UM_ACCESS_READ);
    cr_assert_eq(sim_resident(&sim, 0), 64 * KIB);
    sim_stop(&sim);
}

Test(sim_uvm_faults, without_the_prefetcher_only_what_faults_comes)
{
    sim_config(&sim, 1, 64 * MIB);
    sim.config.params.uvm_perf_prefetch_enable = 0;
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.cpu_faults, 512);
    sim_touch_once(&sim, 0, 7 * PAGE, PAGE, UM_ACCESS_READ);
    cr_assert_eq(sim_resident(&sim, 0), PAGE);
    cr_assert_eq(sim.work.prefetched_bytes, 0);
    sim_stop(&sim);
}

Test(sim_uvm_faults, scattered_pages_of_one_visit_come_in_runs_by_cause)
{
    uint64_t pages[UM_UVM_PAGE_WORDS] = {0x0000000000000005ull};

    sim_config(&sim, 1, 64 * MIB);
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_begin(&sim);
    cr_assert_eq(um_uvm_touch_pages(sim.uvm, 0, BASE, pages, UM_ACCESS_READ, sim.now_ns, &sim.work),
                 UM_OK);
    cr_assert_eq(sim.work.gpu_faults, 2);
    cr_assert_eq(sim_transfers(sim.work.transfers_to_device), 4); /* fault, tree, fault, tree */
    cr_assert_eq(sim.work.bytes_to_device, 64 * KIB);
    cr_assert_eq(sim.work.prefetched_bytes, 64 * KIB - 2 * PAGE);
    cr_assert_eq(sim.log[1].u.migrate.cause, UM_CAUSE_COHERENCE);
    cr_assert_eq(sim.log[2].u.migrate.cause, UM_CAUSE_PREFETCH);
    sim_stop(&sim);
}

Test(sim_uvm_faults, a_region_that_begins_and_ends_inside_blocks_keeps_to_its_pages)
{
    sim_config(&sim, 1, 64 * MIB);
    cr_assert_eq(um_uvm_new(&sim.config, &sim.uvm), UM_OK);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 1, BASE + 1 * MIB, 2 * MIB), UM_OK);
    sim_touch_once(&sim, 0, 1 * MIB, MIB, UM_ACCESS_WRITE);
    sim_touch_once(&sim, 0, 2 * MIB, MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim_resident(&sim, 0), 2 * MIB);
    cr_assert_eq(um_uvm_free_bytes(sim.uvm, 0), 60 * MIB);
    cr_assert_eq(um_uvm_touch(sim.uvm, 0, BASE + 3 * MIB, PAGE, UM_ACCESS_READ, 0, &sim.work),
                 UM_ERR_INVALID);
    cr_assert_eq(um_uvm_release(sim.uvm, 1), UM_OK);
    cr_assert_eq(sim_resident(&sim, 0), 0);
    cr_assert_eq(um_uvm_free_bytes(sim.uvm, 0), 64 * MIB);
    sim_stop(&sim);
}
