/* Prefetch, advice and discard: what moves, who maps what, what a write costs. */
#include "sim_uvm.h"

static sim_t sim;

static um_extent_t at(uint64_t offset, uint64_t bytes)
{
    um_extent_t extent[2];

    cr_assert_eq(um_uvm_extents(sim.uvm, BASE + offset, bytes, extent, 2), 1);
    return extent[0];
}

static void start(uint32_t gpus, bool peers, bool written)
{
    sim_config(&sim, gpus, 64 * MIB);
    sim.config.peers = peers;
    sim_start(&sim, 8 * MIB);
    if (written)
        sim_touch(&sim, HOST, 0, 8 * MIB, UM_ACCESS_WRITE);
}

/* ---- prefetch ---- */

Test(sim_uvm_advice, a_prefetch_moves_populates_and_leaves_alone)
{
    start(1, false, false);
    sim_touch(&sim, HOST, 0, 2 * MIB, UM_ACCESS_WRITE);
    sim_prefetch(&sim, 0, 0, 8 * MIB);
    cr_assert_eq(sim.work.bytes_to_device, 2 * MIB);
    cr_assert_eq(sim.work.transfers_to_device[UM_UVM_SIZES - 1], 1);
    cr_assert_eq(sim.work.populated_device_bytes, 6 * MIB);
    cr_assert_eq(sim.work.batches_blocks, 4);
    cr_assert_eq(sim.work.gpu_faults, 0);
    cr_assert_eq(sim.log[0].u.migrate.cause, UM_CAUSE_USER);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 0, BASE, 2 * MIB, UM_ACCESS_WRITE));
    sim_prefetch(&sim, 0, 0, 8 * MIB);
    cr_assert_eq(sim.work.bytes_to_device + sim.work.populated_device_bytes, 0);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_prefetch_of_part_of_a_block_moves_that_part)
{
    start(1, false, true);
    sim_prefetch(&sim, 0, 100 * PAGE, 50 * PAGE);
    cr_assert_eq(sim.work.bytes_to_device, 50 * PAGE);
    cr_assert_eq(sim_resident(&sim, 0), 50 * PAGE);
    cr_assert_eq(at(100 * PAGE, 50 * PAGE).where, UM_WHERE_DEVICE);
    cr_assert_eq(at(0, 100 * PAGE).where, UM_WHERE_HOST);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_prefetch_to_the_host_leaves_it_mapped_there)
{
    um_extent_t extent;

    start(1, false, false);
    sim_touch(&sim, 0, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_prefetch(&sim, HOST, 0, 4 * MIB);
    cr_assert_eq(sim.work.bytes_to_host, 4 * MIB);
    cr_assert_eq(um_uvm_host_mapped(sim.uvm, BASE, 4 * MIB, &extent, 1), 1);
    cr_assert_eq(extent.bytes, 4 * MIB);
    sim_touch(&sim, HOST, 0, 4 * MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.cpu_faults, 0);
    sim_stop(&sim);
}

/* ---- ReadMostly ---- */

Test(sim_uvm_advice, read_mostly_duplicates_on_read)
{
    start(1, false, true);
    sim_advise(&sim, UM_HINT_READ_MOSTLY, HOST, 0, 8 * MIB);
    sim_touch(&sim, 0, 0, 4 * MIB, UM_ACCESS_READ);
    cr_assert_eq(sim.work.duplicated_blocks, 2);
    cr_assert_eq(sim.work.bytes_to_device, 4 * MIB);
    cr_assert_eq(at(0, 4 * MIB).where, UM_WHERE_BOTH);
    cr_assert_eq(sim_resident(&sim, HOST), 8 * MIB);
    cr_assert_not(um_uvm_would_fault(sim.uvm, HOST, BASE, BLOCK, UM_ACCESS_READ));
    cr_assert(um_uvm_would_fault(sim.uvm, HOST, BASE, PAGE, UM_ACCESS_WRITE));
    cr_assert(um_uvm_would_fault(sim.uvm, 0, BASE, PAGE, UM_ACCESS_WRITE));
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_gpu_write_collapses_only_what_it_writes)
{
    start(1, false, true);
    sim_advise(&sim, UM_HINT_READ_MOSTLY, HOST, 0, 8 * MIB);
    sim_prefetch(&sim, 0, 0, 8 * MIB);
    cr_assert_eq(sim.work.duplicated_blocks, 4);
    sim_touch_once(&sim, 0, 0, 8 * PAGE, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.gpu_faults, 8);
    cr_assert_eq(sim.work.collapsed_blocks, 1);
    cr_assert_eq(sim.work.collapsed_bytes, 8 * PAGE);
    cr_assert_eq(sim.work.unmapped_host_bytes, 8 * PAGE);
    cr_assert_eq(sim.work.bytes_to_device, 0);
    cr_assert_eq(at(0, 8 * PAGE).where, UM_WHERE_DEVICE);
    cr_assert_eq(at(8 * PAGE, BLOCK - 8 * PAGE).where, UM_WHERE_BOTH);
    /* Every other group of pages costs a fault and a collapse of its own: no tree helps. */
    sim_touch_once(&sim, 0, 8 * PAGE, PAGE, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.gpu_faults, 1);
    cr_assert_eq(sim.work.collapsed_blocks, 1);
    cr_assert_eq(sim_resident(&sim, HOST), 8 * MIB - 9 * PAGE);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_cpu_write_collapses_and_the_next_gpu_read_duplicates_again)
{
    start(1, false, true);
    sim_advise(&sim, UM_HINT_READ_MOSTLY, HOST, 0, 8 * MIB);
    sim_prefetch(&sim, 0, 0, 8 * MIB);
    sim_touch_once(&sim, HOST, 0, 16 * PAGE, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.cpu_faults, 16);
    cr_assert_eq(sim.work.collapsed_bytes, 16 * PAGE);
    cr_assert_eq(at(0, 16 * PAGE).where, UM_WHERE_HOST);
    sim_touch_once(&sim, 0, 0, BLOCK, UM_ACCESS_READ);
    cr_assert_eq(sim.work.bytes_to_device, 16 * PAGE);
    cr_assert_eq(at(0, BLOCK).where, UM_WHERE_BOTH);
    cr_assert(um_uvm_would_fault(sim.uvm, HOST, BASE, PAGE, UM_ACCESS_WRITE));
    sim_stop(&sim);
}

Test(sim_uvm_advice, unset_read_mostly_leaves_one_copy)
{
    start(1, false, true);
    sim_advise(&sim, UM_HINT_READ_MOSTLY, HOST, 0, 8 * MIB);
    sim_prefetch(&sim, 0, 0, 8 * MIB);
    sim_advise(&sim, UM_HINT_UNSET_READ_MOSTLY, HOST, 0, 4 * MIB);
    cr_assert_eq(at(0, 4 * MIB).where, UM_WHERE_HOST);
    cr_assert_eq(at(4 * MIB, 4 * MIB).where, UM_WHERE_BOTH);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_duplicate_is_evicted_without_a_copy)
{
    sim_config(&sim, 1, BLOCK);
    sim_start(&sim, 8 * MIB);
    sim_touch(&sim, HOST, 0, 8 * MIB, UM_ACCESS_WRITE);
    sim_advise(&sim, UM_HINT_READ_MOSTLY, HOST, 0, 8 * MIB);
    sim_touch(&sim, 0, 0, 8 * MIB, UM_ACCESS_READ);
    cr_assert_eq(sim.work.evicted_blocks, 3);
    cr_assert_eq(sim.work.bytes_to_host, 0);
    sim_stop(&sim);
}

/* ---- PreferredLocation ---- */

Test(sim_uvm_advice, the_gpu_maps_what_prefers_the_cpu)
{
    start(1, false, true);
    sim_advise(&sim, UM_HINT_PREFERRED_LOCATION, HOST, 0, 8 * MIB);
    sim_touch_once(&sim, 0, 0, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.gpu_faults, 512);
    cr_assert_eq(sim.work.bytes_to_device, 0);
    cr_assert_eq(sim.work.mapped_remote_bytes, BLOCK);
    cr_assert_eq(sim.work.remote_written_bytes, BLOCK);
    cr_assert_eq(sim.log[1].u.remote_map.cause, UM_REMOTE_POLICY);
    sim_touch_once(&sim, 0, 0, BLOCK, UM_ACCESS_READ);
    cr_assert_eq(sim.work.gpu_faults, 0);
    cr_assert_eq(sim.work.remote_read_bytes, BLOCK);
    cr_assert_not(um_uvm_would_fault(sim.uvm, HOST, BASE, BLOCK, UM_ACCESS_WRITE));
    sim_stop(&sim);
}

Test(sim_uvm_advice, the_cpu_cannot_map_a_gpu_and_takes_the_pages_from_their_preferred_place)
{
    start(1, false, false);
    sim_advise(&sim, UM_HINT_PREFERRED_LOCATION, 0, 0, 8 * MIB);
    sim_touch_once(&sim, 0, 0, PAGE, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.populated_device_bytes, BLOCK); /* first touch there: the whole block */
    sim_touch_once(&sim, HOST, 0, PAGE, UM_ACCESS_READ);
    cr_assert_eq(sim.work.bytes_to_host, 64 * KIB); /* and its neighbours, as from anywhere */
    cr_assert_eq(sim_resident(&sim, 0), BLOCK - 64 * KIB);
    sim_stop(&sim);
}

Test(sim_uvm_advice, pages_from_elsewhere_come_to_a_preferred_gpu_as_to_any)
{
    uint32_t with = 0, without = 0;

    start(1, false, true);
    sim_advise(&sim, UM_HINT_PREFERRED_LOCATION, 0, 0, BLOCK);
    for (uint64_t page = 0; page < 512; page++) {
        sim_touch_once(&sim, 0, page * PAGE, PAGE, UM_ACCESS_READ);
        with += sim.work.gpu_faults;
        sim_touch_once(&sim, 0, BLOCK + page * PAGE, PAGE, UM_ACCESS_READ);
        without += sim.work.gpu_faults;
    }
    cr_assert_eq(with, 6);
    cr_assert_eq(without, 6);
    sim_stop(&sim);
}

/* ---- AccessedBy ---- */

Test(sim_uvm_advice, accessed_by_maps_at_once_and_stays_mapped_when_pages_move)
{
    start(1, false, true);
    sim_advise(&sim, UM_HINT_ACCESSED_BY, 0, 0, 8 * MIB);
    cr_assert_eq(sim.work.mapped_remote_bytes, 8 * MIB);
    sim_touch(&sim, 0, 0, 8 * MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.gpu_faults, 0);
    cr_assert_eq(sim.work.remote_written_bytes, 8 * MIB);
    cr_assert_eq(sim_resident(&sim, 0), 0);

    sim_prefetch(&sim, 0, 0, BLOCK);
    sim_touch_once(&sim, HOST, 0, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.bytes_to_host, BLOCK);
    cr_assert_eq(sim.work.mapped_remote_bytes, BLOCK);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 0, BASE, BLOCK, UM_ACCESS_WRITE));

    sim_advise(&sim, UM_HINT_UNSET_ACCESSED_BY, 0, 0, 8 * MIB);
    cr_assert(um_uvm_would_fault(sim.uvm, 0, BASE, PAGE, UM_ACCESS_READ));
    sim_stop(&sim);
}

Test(sim_uvm_advice, accessed_by_is_kept_up_when_the_page_is_born_and_when_it_is_evicted)
{
    sim_config(&sim, 1, BLOCK);
    sim_start(&sim, 8 * MIB);
    sim_advise(&sim, UM_HINT_ACCESSED_BY, 0, 0, 8 * MIB);
    sim_touch_once(&sim, HOST, 0, BLOCK, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.mapped_remote_bytes, BLOCK);
    sim_prefetch(&sim, 0, 0, BLOCK);
    sim_prefetch(&sim, 0, BLOCK, BLOCK);
    cr_assert_eq(at(0, BLOCK).where, UM_WHERE_HOST);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 0, BASE, BLOCK, UM_ACCESS_WRITE));
    sim_stop(&sim);
}

Test(sim_uvm_advice, takes_where_it_covers_half_of_a_block)
{
    start(1, false, true);
    sim_advise(&sim, UM_HINT_ACCESSED_BY, 0, 0, BLOCK + MIB - PAGE);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 0, BASE, BLOCK, UM_ACCESS_WRITE));
    cr_assert(um_uvm_would_fault(sim.uvm, 0, BASE + BLOCK, PAGE, UM_ACCESS_READ));
    sim_advise(&sim, UM_HINT_ACCESSED_BY, 0, BLOCK, MIB);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 0, BASE + BLOCK, BLOCK, UM_ACCESS_WRITE));
    sim_stop(&sim);
}

/* ---- discard ---- */

Test(sim_uvm_advice, discarded_pages_are_not_copied)
{
    start(1, false, false);
    sim_touch(&sim, 0, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_begin(&sim);
    cr_assert_eq(um_uvm_discard(sim.uvm, BASE, 2 * MIB, &sim.work), UM_OK);
    cr_assert_eq(sim.work.unmapped_device_bytes, 2 * MIB);
    sim_prefetch(&sim, HOST, 0, 4 * MIB);
    cr_assert_eq(sim.work.bytes_to_host, 2 * MIB);
    cr_assert_eq(sim.work.populated_host_bytes, 2 * MIB);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_write_takes_a_discard_back)
{
    start(1, false, false);
    sim_touch(&sim, 0, 0, 2 * MIB, UM_ACCESS_WRITE);
    sim_begin(&sim);
    cr_assert_eq(um_uvm_discard(sim.uvm, BASE, 2 * MIB, &sim.work), UM_OK);
    sim_touch(&sim, 0, 0, 2 * MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim.work.populated_device_bytes, 0);
    sim_prefetch(&sim, HOST, 0, 2 * MIB);
    cr_assert_eq(sim.work.bytes_to_host, 2 * MIB);
    sim_stop(&sim);
}

/* ---- several GPUs ---- */

Test(sim_uvm_advice, peers_copy_directly)
{
    start(2, true, false);
    sim_touch(&sim, 0, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_touch(&sim, 1, 0, 4 * MIB, UM_ACCESS_READ);
    cr_assert_eq(sim.work.bytes_peer, 4 * MIB);
    cr_assert_eq(sim.work.bytes_to_host + sim.work.bytes_to_device, 0);
    cr_assert_eq(sim_resident(&sim, 1), 4 * MIB);
    cr_assert_eq(sim_resident(&sim, 0), 0);
    sim_stop(&sim);
}

Test(sim_uvm_advice, without_a_link_the_host_is_in_between)
{
    start(2, false, false);
    sim_touch(&sim, 0, 0, 4 * MIB, UM_ACCESS_WRITE);
    sim_prefetch(&sim, 1, 0, 4 * MIB);
    cr_assert_eq(sim.work.bytes_peer, 0);
    cr_assert_eq(sim.work.bytes_to_host, 4 * MIB);
    cr_assert_eq(sim.work.bytes_to_device, 4 * MIB);
    cr_assert_eq(sim_resident(&sim, 1), 4 * MIB);
    cr_assert_eq(sim_resident(&sim, HOST), 0);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_peer_maps_what_prefers_another_gpu)
{
    start(2, true, false);
    sim_advise(&sim, UM_HINT_PREFERRED_LOCATION, 0, 0, 8 * MIB);
    sim_touch(&sim, 0, 0, 2 * MIB, UM_ACCESS_WRITE);
    sim_touch(&sim, 1, 0, 2 * MIB, UM_ACCESS_READ);
    cr_assert_eq(sim.work.bytes_peer, 0);
    cr_assert_eq(sim.work.remote_read_bytes, 2 * MIB);
    cr_assert_eq(sim_resident(&sim, 0), 2 * MIB);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_write_takes_the_copies_of_all_gpus)
{
    start(3, true, true);
    sim_advise(&sim, UM_HINT_READ_MOSTLY, HOST, 0, 8 * MIB);
    for (int32_t gpu = 0; gpu < 3; gpu++)
        sim_touch(&sim, gpu, 0, 2 * MIB, UM_ACCESS_READ);
    cr_assert_eq(at(0, 2 * MIB).where, UM_WHERE_BOTH);
    sim_touch(&sim, 2, 0, 2 * MIB, UM_ACCESS_WRITE);
    cr_assert_eq(sim_resident(&sim, 0) + sim_resident(&sim, 1), 0);
    cr_assert_eq(at(0, 2 * MIB).device, 2);
    cr_assert_eq(at(0, 2 * MIB).where, UM_WHERE_DEVICE);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_coherent_cpu_maps_what_prefers_the_gpu)
{
    sim_config(&sim, 1, 64 * MIB);
    sim.config.coherent = true;
    sim_start(&sim, 8 * MIB);
    sim_advise(&sim, UM_HINT_PREFERRED_LOCATION, 0, 0, 8 * MIB);
    sim_touch(&sim, 0, 0, 2 * MIB, UM_ACCESS_WRITE);
    sim_touch(&sim, HOST, 0, 2 * MIB, UM_ACCESS_READ);
    cr_assert_eq(sim.work.bytes_to_host, 0);
    cr_assert_eq(sim.work.remote_read_bytes, 2 * MIB);
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_mapping_of_a_copy_that_went_goes_too)
{
    start(2, false, true);
    sim_advise(&sim, UM_HINT_ACCESSED_BY, 1, 0, 8 * MIB);
    sim_advise(&sim, UM_HINT_READ_MOSTLY, HOST, 0, 8 * MIB);
    sim_touch(&sim, 0, 0, 2 * MIB, UM_ACCESS_READ);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 1, BASE, BLOCK, UM_ACCESS_READ));
    sim_touch(&sim, 0, 0, 2 * MIB, UM_ACCESS_WRITE); /* the host's copy goes */
    cr_assert(um_uvm_would_fault(sim.uvm, 1, BASE, PAGE, UM_ACCESS_READ));
    sim_check(&sim);
    sim_stop(&sim);
}

Test(sim_uvm_advice, pages_that_growth_takes_to_their_preferred_place_are_mapped_again)
{
    start(1, false, true);
    sim_prefetch(&sim, 0, PAGE, 7 * PAGE);
    sim_advise(&sim, UM_HINT_PREFERRED_LOCATION, HOST, 0, 8 * MIB);
    sim_touch(&sim, 0, 0, 8 * PAGE, UM_ACCESS_READ); /* page 0 faults, the others go home with it */
    cr_assert_eq(sim.work.gpu_faults, 8);
    cr_assert_eq(sim.work.batches_blocks, 2);
    cr_assert_eq(sim.work.bytes_to_host, 7 * PAGE);
    cr_assert_not(um_uvm_would_fault(sim.uvm, 0, BASE, 8 * PAGE, UM_ACCESS_READ));
    sim_stop(&sim);
}

Test(sim_uvm_advice, a_touch_of_a_discarded_page_is_noticed_whatever_maps_its_neighbours)
{
    sim_config(&sim, 1, BLOCK);
    sim_start(&sim, 8 * MIB);
    sim_touch(&sim, 0, 0, BLOCK, UM_ACCESS_WRITE);
    sim_begin(&sim);
    cr_assert_eq(um_uvm_discard(sim.uvm, BASE, 16 * PAGE, &sim.work), UM_OK);
    sim_touch_once(&sim, 0, 0, PAGE, UM_ACCESS_WRITE);
    cr_assert(um_uvm_would_fault(sim.uvm, 0, BASE + PAGE, PAGE, UM_ACCESS_WRITE));
    sim_advise(&sim, UM_HINT_ACCESSED_BY, 0, 0, 8 * MIB);
    cr_assert(um_uvm_would_fault(sim.uvm, 0, BASE + PAGE, PAGE, UM_ACCESS_WRITE));
    sim_touch_once(&sim, 0, PAGE, PAGE, UM_ACCESS_WRITE);
    sim_touch_once(&sim, 0, BLOCK, BLOCK, UM_ACCESS_WRITE); /* evicts the first block */
    cr_assert_eq(sim.work.discarded_bytes, 14 * PAGE);
    cr_assert_eq(at(0, 2 * PAGE).where, UM_WHERE_HOST);
    cr_assert_eq(at(2 * PAGE, 14 * PAGE).where, UM_WHERE_UNTOUCHED);
    sim_stop(&sim);
}
