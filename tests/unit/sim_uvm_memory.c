/* Memory of the GPUs: what is evicted, in which order, and regions that share blocks. */
#include "sim_uvm.h"

static sim_t sim;

static uint32_t where(uint64_t block)
{
    um_extent_t extent;

    cr_assert_eq(um_uvm_extents(sim.uvm, BASE + block * BLOCK, BLOCK, &extent, 1), 1);
    return extent.where;
}

/* Capacity for `room` blocks, `blocks` of them written by the CPU. */
static void start(uint64_t room, uint64_t blocks)
{
    sim_config(&sim, 1, room * BLOCK);
    sim_start(&sim, blocks * BLOCK);
    sim_touch(&sim, HOST, 0, blocks * BLOCK, UM_ACCESS_WRITE);
}

Test(sim_uvm_memory, the_block_that_migrated_first_goes_first)
{
    start(3, 5);
    sim_touch(&sim, 0, 0, 3 * BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.evicted_blocks, 0);
    sim_touch_once(&sim, 0, 3 * BLOCK, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.evicted_blocks, 1);
    cr_assert_eq(sim.work.evicted_bytes, BLOCK);
    cr_assert_eq(sim.work.bytes_to_host, BLOCK);
    cr_assert_eq(where(0), UM_WHERE_HOST);
    cr_assert_eq(where(1), UM_WHERE_DEVICE);
    cr_assert_eq(sim_resident(&sim, 0), 3 * BLOCK);
    sim_stop(&sim);
}

Test(sim_uvm_memory, hits_do_not_save_a_block)
{
    start(3, 4);
    sim_touch(&sim, 0, 0, 3 * BLOCK, UM_ACCESS_WRITE);
    for (int i = 0; i < 100; i++) {
        sim_touch_once(&sim, 0, 0, BLOCK, UM_ACCESS_WRITE);
        cr_assert_eq(sim.work.gpu_faults, 0);
    }
    sim_touch_once(&sim, 0, 3 * BLOCK, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(where(0), UM_WHERE_HOST);
    cr_assert_eq(where(1), UM_WHERE_DEVICE);
    sim_stop(&sim);
}

Test(sim_uvm_memory, a_migration_of_part_of_a_block_saves_it)
{
    start(3, 4);
    sim_touch(&sim, 0, 0, 3 * BLOCK, UM_ACCESS_WRITE);
    sim_touch_once(&sim, HOST, 0, PAGE, UM_ACCESS_READ);
    sim_touch_once(&sim, 0, 0, PAGE, UM_ACCESS_READ);
    sim_touch_once(&sim, 0, 3 * BLOCK, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(where(0), UM_WHERE_DEVICE);
    cr_assert_eq(where(1), UM_WHERE_HOST);
    sim_stop(&sim);
}

Test(sim_uvm_memory, a_prefetch_of_a_whole_resident_block_saves_it)
{
    start(3, 4);
    sim_touch(&sim, 0, 0, 3 * BLOCK, UM_ACCESS_WRITE);
    sim_prefetch(&sim, 0, 0, BLOCK);
    cr_assert_eq(sim.work.bytes_to_device, 0);
    sim_touch_once(&sim, 0, 3 * BLOCK, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(where(0), UM_WHERE_DEVICE);
    cr_assert_eq(where(1), UM_WHERE_HOST);
    sim_stop(&sim);
}

Test(sim_uvm_memory, unused_memory_goes_before_discarded_before_used)
{
    start(3, 6);
    sim_touch(&sim, 0, 0, 3 * BLOCK, UM_ACCESS_WRITE);
    sim_begin(&sim);
    cr_assert_eq(um_uvm_discard(sim.uvm, BASE + BLOCK, BLOCK, &sim.work), UM_OK);
    sim_prefetch(&sim, HOST, 2 * BLOCK, BLOCK); /* leaves unused memory behind */
    cr_assert_eq(um_uvm_free_bytes(sim.uvm, 0), 0);

    sim_touch_once(&sim, 0, 3 * BLOCK, BLOCK, UM_ACCESS_WRITE); /* takes the unused */
    cr_assert_eq(sim.work.evicted_blocks, 0);
    cr_assert_eq(where(1), UM_WHERE_DEVICE);
    sim_touch_once(&sim, 0, 4 * BLOCK, BLOCK, UM_ACCESS_WRITE); /* the discarded: nothing to copy */
    cr_assert_eq(sim.work.evicted_blocks, 1);
    cr_assert_eq(sim.work.discarded_bytes, BLOCK);
    cr_assert_eq(sim.work.bytes_to_host, 0);
    cr_assert_eq(where(1), UM_WHERE_UNTOUCHED);
    sim_touch_once(&sim, 0, 5 * BLOCK, BLOCK, UM_ACCESS_WRITE); /* the used one that is oldest */
    cr_assert_eq(sim.work.bytes_to_host, BLOCK);
    cr_assert_eq(where(0), UM_WHERE_HOST);
    sim_stop(&sim);
}

Test(sim_uvm_memory, an_evicted_block_comes_back_to_the_cpu_without_a_copy)
{
    start(1, 2);
    sim_touch_once(&sim, 0, 0, BLOCK, UM_ACCESS_WRITE);
    sim_touch_once(&sim, 0, BLOCK, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(where(0), UM_WHERE_HOST);
    cr_assert_eq(um_uvm_host_mapped(sim.uvm, BASE, BLOCK, NULL, 0), 0);
    sim_touch_once(&sim, HOST, 0, BLOCK, UM_ACCESS_READ);
    cr_assert_gt(sim.work.cpu_faults, 0);
    cr_assert_eq(sim.work.bytes_to_host, 0);
    sim_stop(&sim);
}

Test(sim_uvm_memory, a_cyclic_sweep_one_block_over_capacity_misses_every_time)
{
    start(4, 5);
    for (int round = 0; round < 3; round++) {
        sim_touch(&sim, 0, 0, 5 * BLOCK, UM_ACCESS_READ);
        cr_assert_eq(sim.work.gpu_faults, 5 * 512);
        cr_assert_eq(sim.work.evicted_blocks, round ? 5 : 1);
    }
    sim_stop(&sim);
}

Test(sim_uvm_memory, a_prefetch_over_capacity_evicts_its_own_first_blocks)
{
    start(2, 5);
    sim_prefetch(&sim, 0, 0, 5 * BLOCK);
    cr_assert_eq(sim.work.bytes_to_device, 5 * BLOCK);
    cr_assert_eq(sim.work.wasted_bytes, 3 * BLOCK);
    cr_assert_eq(where(2), UM_WHERE_HOST);
    cr_assert_eq(where(3), UM_WHERE_DEVICE);
    sim_stop(&sim);
}

Test(sim_uvm_memory, prefetched_pages_are_wasted_unless_touched)
{
    start(4, 4);
    sim_prefetch(&sim, 0, 0, 2 * BLOCK);
    sim_touch_once(&sim, 0, 0, BLOCK, UM_ACCESS_READ);
    sim_touch_once(&sim, 0, BLOCK, 3 * PAGE, UM_ACCESS_READ);
    sim_prefetch(&sim, HOST, 0, 2 * BLOCK);
    cr_assert_eq(sim.work.wasted_bytes, BLOCK - 3 * PAGE);
    sim_stop(&sim);
}

/* Seen on a V100: arrays of 1 MiB lie side by side, and the tree reaches from one into the next. */
Test(sim_uvm_memory, small_regions_share_a_block)
{
    sim_config(&sim, 1, 8 * BLOCK);
    cr_assert_eq(um_uvm_new(&sim.config, &sim.uvm), UM_OK);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 7, BASE, MIB), UM_OK);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 8, BASE + MIB, MIB), UM_OK);
    sim_touch_once(&sim, HOST, 0, MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.cpu_faults, 5);
    sim_touch_once(&sim, HOST, MIB, MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.cpu_faults, 1);
    sim_touch_once(&sim, 0, MIB + 512 * KIB, 512 * KIB, UM_ACCESS_READ);
    cr_assert_eq(sim.log[1].u.migrate.region, 8);
    cr_assert_eq(um_uvm_release(sim.uvm, 7), UM_OK);
    sim_check(&sim);
    cr_assert_eq(sim_resident(&sim, HOST) + sim_resident(&sim, 0), BLOCK);
    cr_assert_eq(um_uvm_release(sim.uvm, 8), UM_OK);
    cr_assert_eq(sim_resident(&sim, HOST) + sim_resident(&sim, 0), 0);
    sim_stop(&sim);
}

Test(sim_uvm_memory, tiny_regions_share_a_page)
{
    sim_config(&sim, 1, 8 * BLOCK);
    cr_assert_eq(um_uvm_new(&sim.config, &sim.uvm), UM_OK);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 1, BASE, 2620), UM_OK);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 2, BASE + 3072, 2620), UM_OK);
    sim_touch_once(&sim, HOST, 0, 2620, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.cpu_faults, 1);
    cr_assert_not(um_uvm_would_fault(sim.uvm, HOST, BASE + 3072, 2620, UM_ACCESS_WRITE));
    sim_touch_once(&sim, 0, 3072, 1024, UM_ACCESS_WRITE);
    cr_assert(um_uvm_would_fault(sim.uvm, HOST, BASE, 1, UM_ACCESS_READ));
    sim_stop(&sim);
}

Test(sim_uvm_memory, refuses_what_is_not_so)
{
    um_uvm_t *none;

    sim_config(&sim, 1, BLOCK - 1);
    cr_assert_eq(um_uvm_new(&sim.config, &none), UM_ERR_INVALID);
    sim_config(&sim, UM_UVM_GPUS_MAX, BLOCK);
    sim.config.n_gpus = UM_UVM_GPUS_MAX + 1;
    cr_assert_eq(um_uvm_new(&sim.config, &none), UM_ERR_INVALID);
    sim_config(&sim, 1, BLOCK);
    sim.config.params.uvm_perf_prefetch_threshold = 0;
    cr_assert_eq(um_uvm_new(&sim.config, &none), UM_ERR_INVALID);

    sim_config(&sim, 1, BLOCK);
    sim_start(&sim, 4 * BLOCK);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 1, BASE + 8 * BLOCK, PAGE), UM_ERR_INVALID);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 2, BASE + 3 * BLOCK, PAGE), UM_ERR_INVALID);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 2, BASE - PAGE, 2 * PAGE), UM_ERR_INVALID);
    cr_assert_eq(um_uvm_release(sim.uvm, 2), UM_ERR_INVALID);
    cr_assert_eq(um_uvm_touch(sim.uvm, 0, BASE + PAGE, BLOCK, UM_ACCESS_READ, 0, &sim.work),
                 UM_ERR_INVALID);
    cr_assert_eq(um_uvm_touch(sim.uvm, 1, BASE, PAGE, UM_ACCESS_READ, 0, &sim.work),
                 UM_ERR_INVALID);
    cr_assert_eq(um_uvm_touch(sim.uvm, 0, BASE, 0, UM_ACCESS_READ, 0, &sim.work), UM_ERR_INVALID);
    cr_assert_eq(um_uvm_prefetch(sim.uvm, 0, BASE, 4 * BLOCK + 1, 0, &sim.work), UM_ERR_INVALID);
    cr_assert_eq(um_uvm_prefetch(sim.uvm, 0, BASE + 4 * BLOCK, PAGE, 0, &sim.work), UM_ERR_INVALID);
    cr_assert_eq(um_uvm_advise(sim.uvm, UM_HINT_PREFETCH, 0, BASE, BLOCK, &sim.work),
                 UM_ERR_INVALID);
    cr_assert_eq(um_uvm_advise(sim.uvm, UM_HINT_ACCESSED_BY, 3, BASE, BLOCK, &sim.work),
                 UM_ERR_INVALID);
    sim_stop(&sim);
}

Test(sim_uvm_memory, advice_counts_the_pages_of_regions_that_live)
{
    sim_config(&sim, 1, 8 * BLOCK);
    cr_assert_eq(um_uvm_new(&sim.config, &sim.uvm), UM_OK);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 1, BASE, MIB), UM_OK);
    cr_assert_eq(um_uvm_alloc(sim.uvm, 2, BASE + MIB, MIB), UM_OK);
    sim_touch_once(&sim, HOST, 0, MIB, UM_ACCESS_WRITE);
    sim_advise(&sim, UM_HINT_ACCESSED_BY, 0, 0, MIB - PAGE);
    cr_assert(um_uvm_would_fault(sim.uvm, 0, BASE, PAGE, UM_ACCESS_READ));
    cr_assert_eq(um_uvm_release(sim.uvm, 2), UM_OK);
    sim_advise(&sim, UM_HINT_ACCESSED_BY, 0, 0, 512 * KIB);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 0, BASE, PAGE, UM_ACCESS_READ));
    sim_stop(&sim);
}
