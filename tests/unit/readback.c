/* What the CPU reads after a wait is there when it leaves it. */
#include <criterion/criterion.h>

#include "advisors/mix.h"
#include "program_fake.h"

/* One round: the GPU writes a region, the CPU waits and reads [offset, offset+bytes) of it. */
static unsigned round_of(uint64_t offset, uint64_t bytes)
{
    unsigned made;

    run(7, 1);
    made = wait_all();
    if (bytes)
        touch(offset, bytes);
    return made;
}

/* `ahead` is there because what it brought to the GPU is known to have been there. */
static void start(void)
{
    program_start("first_touch,ahead,readback", NULL);
    allocate(1, 0, 64 * MIB);
}

Test(readback, brings_what_was_read_twice_at_the_third_wait)
{
    const um_hint_t *hint;

    start();
    cr_assert_eq(round_of(8 * MIB, 16 * MIB), 0);
    cr_assert_eq(round_of(8 * MIB, 16 * MIB), 0);
    run(7, 1);
    cr_assert_eq(wait_all(), 1);
    hint = &program.hint[program.n_hints - 1];
    cr_assert_eq(hint->kind, UM_HINT_PREFETCH);
    cr_assert_eq(hint->device, UM_DEVICE_HOST);
    cr_assert_eq(hint->order, UM_ORDER_AFTER);
    cr_assert_eq(hint->wait, UM_SYNC_DEVICE);
    cr_assert_eq(hint->addr, FAKE_BASE + 8 * MIB);
    cr_assert_eq(hint->bytes, 16 * MIB);
    program_stop();
}

/* Bytes that are brought at the wait of a round. */
static uint64_t brought(uint64_t offset, uint64_t bytes)
{
    unsigned first = program.n_hints;
    uint64_t all = 0;

    round_of(offset, bytes);
    hints_by(first, "readback", UM_HINT_PREFETCH, &all);
    return all;
}

/* All of it but for the last block, which shows whether the CPU comes again. */
Test(readback, what_was_read_whole_after_the_first_such_wait_is_tried_at_the_second)
{
    start();
    cr_assert_eq(brought(0, 64 * MIB), 0);
    cr_assert_eq(brought(0, 64 * MIB), 62 * MIB);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(brought(0, 64 * MIB), 64 * MIB, "round %d", i);
    program_stop();
}

Test(readback, what_was_tried_in_vain_has_to_be_read_twice_more)
{
    start();
    cr_assert_eq(brought(0, 64 * MIB), 0);
    cr_assert_eq(brought(0, 0), 62 * MIB);
    cr_assert_eq(brought(0, 0), 0);
    for (int i = 0; i < 9; i++) /* after every third wait */
        cr_assert_eq(brought(0, i % 3 ? 0 : 64 * MIB), i == 6 ? 64 * MIB : 0, "round %d", i);
    program_stop();
}

Test(readback, what_was_read_after_a_later_such_wait_is_not_tried)
{
    start();
    round_of(0, 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(brought(0, i ? 0 : 64 * MIB), 0);
    program_stop();
}

Test(readback, keeps_to_the_pages_that_were_read)
{
    start();
    for (int i = 0; i < 3; i++)
        round_of(3 * UM_PAGE_BYTES, 100 * UM_PAGE_BYTES);
    cr_assert_eq(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 1);
    cr_assert_eq(program.hint[program.n_hints - 1].addr, FAKE_BASE + 3 * UM_PAGE_BYTES);
    cr_assert_eq(program.hint[program.n_hints - 1].bytes, 100 * UM_PAGE_BYTES);
    program_stop();
}

Test(readback, a_wait_that_nobody_reads_after_stays_quiet)
{
    start();
    for (int i = 0; i < 100; i++)
        cr_assert_eq(round_of(0, 0), 0);
    program_stop();
}

Test(readback, a_few_pages_here_and_there_are_left_to_faults)
{
    start();
    for (int i = 0; i < 10; i++) {
        run(7, 1);
        cr_assert_eq(wait_all(), 0);
        for (uint64_t at = 0; at < 64 * MIB; at += 2 * MIB)
            touch(at, UM_PAGE_BYTES);
    }
    program_stop();
}

Test(readback, knows_a_read_after_every_fifth_wait)
{
    unsigned served = 0;

    start();
    for (int i = 1; i <= 60; i++) {
        unsigned made = round_of(0, i % 5 ? 0 : 16 * MIB);

        cr_assert(i % 5 == 0 || made == 0, "round %d", i);
        served += made;
    }
    cr_assert_geq(served, 8);
    program_stop();
}

Test(readback, tells_waits_apart_by_the_kernel_before)
{
    uint64_t bytes;

    start();
    for (int i = 0; i < 6; i++) {
        run(8, 1);
        cr_assert_eq(wait_all(), 0);
        round_of(0, 8 * MIB);
    }
    cr_assert_eq(hints_by(0, "readback", UM_HINT_PREFETCH, &bytes), 4);
    cr_assert_eq(bytes, 4 * 8 * MIB);
    program_stop();
}

/* One after the other, on streams with the same kernel: the last one's is what is read. */
Test(readback, tells_waits_in_a_row_apart)
{
    start();
    for (int i = 0; i < 6; i++) {
        for (uint64_t stream = 1; stream <= 3; stream++)
            run_on(stream, 7, 1, &(uint32_t){1});
        cr_assert_eq(wait_on(UM_SYNC_STREAM, 1), 0);
        cr_assert_eq(wait_on(UM_SYNC_STREAM, 2), 0);
        cr_assert_eq(wait_on(UM_SYNC_STREAM, 3), i >= 2, "round %d", i);
        touch(0, 8 * MIB);
    }
    program_stop();
}

/* The wait for stream 1 must not take what a kernel on stream 2 is still writing. */
Test(readback, waits_for_the_last_writer)
{
    start();
    allocate(2, 64 * MIB, 8 * MIB);
    for (int i = 0; i < 6; i++) {
        run_on(1, 7, 1, &(uint32_t){1});
        run_on(2, 9, 1, &(uint32_t){2});
        cr_assert_eq(wait_on(UM_SYNC_STREAM, 1), 0);
        cr_assert_eq(wait_on(UM_SYNC_STREAM, 2), i >= 1);
        touch(64 * MIB, 8 * MIB);
    }
    program_stop();
}

Test(readback, pages_nobody_wrote_are_never_populated)
{
    start();
    allocate(2, 128 * MIB, 32 * MIB);
    for (int i = 0; i < 10; i++) {
        round_of(0, 0);
        touch(128 * MIB, 32 * MIB);
    }
    cr_assert_eq(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 0);
    program_stop();
}

/* What a kernel is given but does not use stays with the CPU: it was not taken back. */
Test(readback, what_never_left_was_not_read)
{
    program_start("readback", NULL);
    allocate(1, 0, 64 * MIB);
    for (int i = 0; i < 10; i++) {
        touch(0, 16 * MIB);
        run(7, 1);
        fake_set(&program.tables, 0, 16 * MIB, true);
        cr_assert_eq(wait_all(), 0);
    }
    program_stop();
}

Test(readback, stops_when_the_cpu_stops_reading)
{
    unsigned late = 0;

    start();
    for (int i = 0; i < 20; i++)
        round_of(0, 16 * MIB);
    cr_assert_gt(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 10);
    for (int i = 0; i < 40; i++) {
        unsigned made = round_of(0, 0);

        late += i >= 20 && made;
    }
    cr_assert_eq(late, 0);
    for (int i = 0; i < 3; i++)
        late += round_of(0, 16 * MIB);
    cr_assert_eq(late, 1); /* learned anew */
    program_stop();
}

Test(readback, goes_on_as_long_as_the_cpu_reads)
{
    unsigned served = 0;

    start();
    for (int i = 0; i < 200; i++)
        served += round_of(0, 16 * MIB) > 0;
    cr_assert_eq(served, 198); /* now and then without the last block */
    program_stop();
}

/* What is brought is not seen to be read: it must not only ever grow. */
Test(readback, what_is_read_beside_it_takes_its_place)
{
    start();
    for (int i = 0; i < 6; i++)
        round_of(0, 16 * MIB);
    for (int i = 0; i < 6; i++)
        round_of(16 * MIB, 16 * MIB);
    program.n_hints = 0;
    round_of(16 * MIB, 16 * MIB);
    for (unsigned i = 0; i < program.n_hints; i++)
        if (program.hint[i].device == UM_DEVICE_HOST) {
            cr_assert_eq(program.hint[i].addr, FAKE_BASE + 16 * MIB);
            cr_assert_leq(program.hint[i].bytes, 16 * MIB);
        }
    cr_assert_geq(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 1);
    program_stop();
}

Test(readback, what_is_read_grows)
{
    uint64_t bytes;

    start();
    for (int i = 0; i < 6; i++)
        round_of(0, 16 * MIB);
    for (int i = 0; i < 6; i++)
        round_of(0, 32 * MIB);
    program.n_hints = 0;
    round_of(0, 32 * MIB);
    hints_by(0, "readback", UM_HINT_PREFETCH, &bytes);
    cr_assert_geq(bytes, 30 * MIB);
    program_stop();
}

Test(readback, a_region_freed_is_forgotten)
{
    start();
    for (int i = 0; i < 5; i++)
        round_of(0, 16 * MIB);
    cr_assert_gt(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 0);
    feed(event_free(tick(), 1, FAKE_BASE));
    program.n_hints = 0;
    for (int i = 0; i < 5; i++) {
        run(7, 1);
        cr_assert_eq(wait_all(), 0);
    }
    program_stop();
}

/* CUPTI's or the simulator's records, where page tables say nothing. */
Test(readback, learns_from_faults_and_migrations_too)
{
    um_event_t fault = {.type = UM_EV_CPU_FAULT}, move = {.type = UM_EV_MIGRATE};
    um_hint_t *hint = program.hint;

    program.tables.status = UM_ERR_IO;
    program_start("first_touch,readback", NULL);
    allocate(1, 0, 8 * MIB);
    for (int i = 0; i < 3; i++) {
        program.n_hints = 0;
        run(7, 1);
        program.n_hints = 0; /* first_touch's */
        wait_all();
        fault.time_ns = move.time_ns = tick();
        fault.u.cpu_fault = (um_ev_cpu_fault_t){.addr = FAKE_BASE + 5000, .region = 1};
        move.u.migrate = (um_ev_migrate_t){.addr = FAKE_BASE + 4096,
                                           .bytes = 2 * MIB - 4096,
                                           .src = FAKE_GPU,
                                           .dst = UM_DEVICE_HOST,
                                           .cause = UM_CAUSE_COHERENCE,
                                           .region = 1};
        if (i < 2) {
            feed(fault);
            feed(move);
        }
    }
    cr_assert_eq(program.n_hints, 1);
    cr_assert_eq(hint->addr, FAKE_BASE + 4096);
    cr_assert_eq(hint->bytes, 2 * MIB - 4096);
    program_stop();
}

/* ---- what is inherited ---- */

Test(readback, a_region_allocated_again_inherits)
{
    start();
    for (int i = 0; i < 5; i++)
        round_of(0, 16 * MIB);
    for (uint32_t id = 2; id < 12; id++) {
        feed(event_free(tick(), id - 1, FAKE_BASE + program.region[id - 1].offset));
        um_regions_remove(program.regions, FAKE_BASE + program.region[id - 1].offset, NULL);
        allocate(id, (id % 2) * 64 * MIB, 64 * MIB);
        run(7, id);
        unsigned made = wait_all();
        cr_assert_eq(made, 1, "region %u: %u", id, made);
        cr_assert_eq(program.hint[program.n_hints - 1].addr, FAKE_BASE + (id % 2) * 64 * MIB);
        cr_assert_geq(program.hint[program.n_hints - 1].bytes, 14 * MIB);
        touch((id % 2) * 64 * MIB, 16 * MIB);
    }
    program_stop();
}

Test(readback, of_regions_alike_the_one_that_was_read_is_brought)
{
    const um_hint_t *hint;

    start();
    allocate(2, 64 * MIB, 64 * MIB);
    for (int i = 0; i < 3; i++) {
        run_on(0, 7, 2, (const uint32_t[]){1, 2});
        wait_all();
        touch(64 * MIB, 16 * MIB);
    }
    hint = &program.hint[program.n_hints - 1];
    cr_assert_eq(hints_by(0, "readback", UM_HINT_PREFETCH, NULL), 1);
    cr_assert_eq(hint->addr, FAKE_BASE + 64 * MIB);
    program_stop();
}

/* ---- from run to run ---- */

/* A second run of the program, told what the first one knew `age` runs ago. */
static void start_again(uint32_t age)
{
    program_start_again("first_touch,ahead,readback", age);
    allocate(3, 0, 32 * MIB); /* other ids, other addresses */
    allocate(1, 64 * MIB, 64 * MIB);
}

static unsigned round_again(uint64_t bytes)
{
    unsigned made;

    run(7, 1);
    made = wait_all();
    if (bytes)
        touch(72 * MIB, bytes);
    return made;
}

static void first_run(void)
{
    start();
    for (int i = 0; i < 5; i++)
        round_of(8 * MIB, 16 * MIB);
    program_stop_and_keep("readback");
    cr_assert_eq(kept.n, 1);
    cr_assert_str_eq(kept.event[0].u.learned.who, "readback");
    cr_assert_eq(kept.event[0].u.learned.age, 0);
    cr_assert_geq(kept.event[0].u.learned.count, 2);
    cr_assert_eq(kept.event[0].u.learned.role & 1, 1);
}

Test(readback, the_next_run_acts_at_the_first_occurrence)
{
    first_run();
    start_again(1);
    cr_assert_eq(round_again(16 * MIB), 1);
    cr_assert_eq(program.hint[program.n_hints - 1].addr, FAKE_BASE + 72 * MIB);
    cr_assert_eq(program.hint[program.n_hints - 1].bytes, 16 * MIB);
    program_stop();
}

Test(readback, what_is_old_needs_one_confirmation)
{
    first_run();
    start_again(3);
    cr_assert_eq(round_again(16 * MIB), 0);
    cr_assert_eq(round_again(16 * MIB), 1);
    program_stop();
}

Test(readback, what_holds_no_more_is_told_as_refuted)
{
    unsigned made = 0;

    first_run();
    start_again(1);
    for (int i = 0; i < 40; i++)
        made += round_again(0);
    cr_assert_geq(made, 1);
    cr_assert_leq(made, 12);
    program_stop_and_keep("readback");
    cr_assert_eq(kept.n, 1);
    cr_assert_eq(kept.event[0].u.learned.count, 0);
    cr_assert_eq(kept.event[0].u.learned.age, 0);
    start_again(1);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(round_again(0), 0);
    program_stop();
}

Test(readback, another_run_counts_on)
{
    uint64_t before;

    first_run();
    before = kept.event[0].u.learned.count;
    start_again(3);
    for (int i = 0; i < 4; i++)
        round_again(16 * MIB);
    program_stop_and_keep("readback");
    cr_assert_gt(kept.event[0].u.learned.count, before);
    cr_assert_leq(kept.event[0].u.learned.count, before + 4);
}

/* Their keys have the same place in a table of 256. */
Test(readback, a_profile_of_several_waits_comes_back_whole)
{
    first_run();
    for (kept.n = 1; kept.n < 6; kept.n++) {
        kept.event[kept.n] = kept.event[0];
        kept.event[kept.n].u.learned.value[0] += 256 * kept.n;
    }
    start_again(1);
    cr_assert_eq(round_again(16 * MIB), 1);
    program_stop_and_keep("readback");
    cr_assert_eq(kept.n, 6);
}

/* A trace can say anything. What umrt does not keep track of is not gone through, piece by piece. */
Test(readback, what_is_told_of_a_region_beyond_measure_does_nothing)
{
    const um_arg_t arg = {.region = 1};
    um_event_t alloc = event_alloc(1, 1, FAKE_BASE, (uint64_t)1 << 62);
    um_event_t launch = event_launch(2, 1, &arg, 1);

    first_run();
    kept.event[0].u.learned.value[1] = um_mix(um_region_role(&alloc.u.region_alloc), 0) | 1;
    kept.event[0].u.learned.value[2] = 0;
    kept.event[0].u.learned.value[3] = alloc.u.region_alloc.bytes;
    program_start_again("readback", 1);
    feed(alloc);
    launch.u.launch.kernel = 7;
    feed(launch);
    cr_assert_eq(wait_all(), 0);
    program_stop();
}

Test(readback, nonsense_in_a_profile_does_nothing)
{
    first_run();
    kept.event[0].u.learned.value[2] = UINT64_MAX - 5;
    kept.event[0].u.learned.value[3] = UINT64_MAX;
    start_again(1);
    for (int i = 0; i < 5; i++)
        cr_assert_leq(round_again(16 * MIB), 1);
    program_stop();
}
