/* The thrashing detector: counted, throttled, pinned, forgotten. */
#include "sim_uvm.h"

#define US 1000ull

static sim_t sim;

static um_uvm_work_t touch_at(int32_t who, uint64_t now_ns)
{
    um_uvm_work_t work = {0};

    sim.n = 0;
    cr_assert_eq(um_uvm_touch(sim.uvm, who, BASE, PAGE, UM_ACCESS_WRITE, now_ns, &work), UM_OK);
    return work;
}

static void start(void)
{
    sim_config(&sim, 1, 64 * MIB);
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, BLOCK, UM_ACCESS_WRITE);
}

/* Bounces the page until it thrashes; returns the time. The GPU has it then. */
static uint64_t bounce(uint64_t now_ns)
{
    static const int32_t who[] = {0, HOST, 0, HOST, 0};

    for (int i = 0; i < 5; i++) {
        cr_assert_eq(sim_count(&sim, UM_EV_THRASH), 0);
        cr_assert_eq(touch_at(who[i], now_ns += 100 * US).throttles, 0);
    }
    cr_assert_eq(sim_count(&sim, UM_EV_THRASH), 16);
    return now_ns;
}

Test(sim_uvm_thrash, four_quick_bounces_make_a_page_thrash)
{
    start();
    bounce(0);
    sim_stop(&sim);
}

Test(sim_uvm_thrash, bounces_further_apart_than_a_lapse_do_not_count)
{
    uint64_t now_ns = 0;

    start();
    for (int i = 0; i < 40; i++) {
        cr_assert_eq(touch_at(i % 2 ? HOST : 0, now_ns += 501 * US).throttles, 0);
        cr_assert_eq(sim_count(&sim, UM_EV_THRASH), 0);
    }
    sim_stop(&sim);
}

Test(sim_uvm_thrash, a_thrashing_page_moves_alone)
{
    uint64_t now_ns;

    start();
    now_ns = bounce(0);
    cr_assert_eq(touch_at(HOST, now_ns + 600 * US).bytes_to_host, PAGE);
    sim_stop(&sim);
}

/* The host goes first; then each in turn comes while the other is let through, naps, and is let through
 * itself, until the page is pinned. How often somebody was throttled. */
static int until_pinned(uint64_t *now_ns)
{
    int throttles = 0;

    cr_assert_eq(touch_at(HOST, *now_ns += 50 * US).throttles, 0);
    for (int32_t who = 0;; who = who == HOST ? 0 : HOST) {
        um_uvm_work_t work = touch_at(who, *now_ns += 50 * US);

        cr_assert_eq(work.throttles, 1);
        cr_assert_eq(work.nap_ns, 450 * US);
        cr_assert_eq(work.bytes_to_host + work.bytes_to_device, 0);
        cr_assert_eq(work.batches_blocks, 0);
        cr_assert_eq(sim_count(&sim, UM_EV_THROTTLE), 1);
        throttles++;
        work = touch_at(who, *now_ns += work.nap_ns);
        cr_assert_eq(work.throttles, 0);
        if (work.pins)
            return throttles;
        cr_assert_eq(work.bytes_to_host + work.bytes_to_device, PAGE);
        cr_assert_lt(throttles, 100);
    }
}

Test(sim_uvm_thrash, ten_throttles_then_a_pin_where_both_reach_it)
{
    uint64_t now_ns;

    start();
    now_ns = bounce(0);
    cr_assert_eq(until_pinned(&now_ns), 10);
    cr_assert_eq(touch_at(0, now_ns += 10 * US).gpu_faults, 1);
    cr_assert_eq(sim_count(&sim, UM_EV_REMOTE_MAP), 1);
    cr_assert_eq(sim.log[1].u.remote_map.cause, UM_REMOTE_THRASHING);
    for (int i = 0; i < 10; i++) {
        um_uvm_work_t work = touch_at(i % 2 ? HOST : 0, now_ns += 10 * US);

        cr_assert_eq(work.cpu_faults + work.gpu_faults, 0);
        cr_assert_eq(work.remote_written_bytes, i % 2 ? 0 : PAGE);
    }
    sim_stop(&sim);
}

Test(sim_uvm_thrash, a_pin_lasts_300_lapses)
{
    for (int over = 0; over < 2; over++) {
        um_uvm_work_t work;
        uint64_t now_ns;

        start();
        /* A GPU without the mapping faults on the pinned page: before the end it maps, then it moves. */
        now_ns = bounce(0);
        until_pinned(&now_ns);
        sim_advise(&sim, UM_HINT_UNSET_ACCESSED_BY, 0, 0, BLOCK);
        work = touch_at(0, now_ns + 300 * 500 * US - (over ? 0 : US));
        cr_assert_eq(work.gpu_faults, 1);
        cr_assert_eq(work.bytes_to_device, over ? PAGE : 0);
        cr_assert_eq(work.remote_written_bytes, over ? 0 : PAGE);
        sim_stop(&sim);
    }
}

Test(sim_uvm_thrash, a_users_migration_resets_the_state)
{
    uint64_t now_ns;

    start();
    now_ns = bounce(0);
    sim_prefetch(&sim, HOST, 0, BLOCK);
    cr_assert_eq(touch_at(0, now_ns += 50 * US).throttles, 0);
    cr_assert_eq(sim_resident(&sim, 0), 64 * KIB); /* grows again */
    cr_assert_eq(touch_at(HOST, now_ns += 50 * US).throttles, 0);
    sim_stop(&sim);
}

Test(sim_uvm_thrash, without_the_reset_the_same_touch_is_throttled)
{
    uint64_t now_ns;

    start();
    now_ns = bounce(0);
    cr_assert_eq(touch_at(HOST, now_ns += 50 * US).throttles, 0);
    cr_assert_eq(touch_at(0, now_ns += 50 * US).throttles, 1);
    sim_stop(&sim);
}

Test(sim_uvm_thrash, nobody_is_let_through_twice_running)
{
    uint64_t now_ns;

    start();
    now_ns = bounce(0);
    cr_assert_eq(touch_at(HOST, now_ns += 50 * US).throttles, 0);
    sim_advise(&sim, UM_HINT_READ_MOSTLY, 0, 0,
               BLOCK); /* takes the right to write: it faults again */
    sim_advise(&sim, UM_HINT_UNSET_READ_MOSTLY, 0, 0, BLOCK);
    cr_assert_eq(touch_at(HOST, now_ns += 500 * US).throttles, 1);
    cr_assert_eq(touch_at(0, now_ns += 50 * US).throttles, 0);
    sim_stop(&sim);
}

Test(sim_uvm_thrash, a_page_that_comes_back_after_a_quiet_lapse_starts_anew)
{
    uint64_t now_ns;

    start();
    now_ns = bounce(0);
    cr_assert_eq(touch_at(HOST, now_ns += 501 * US).throttles, 0);
    cr_assert_eq(touch_at(0, now_ns += 100 * US).throttles, 0);
    sim_stop(&sim);
}

Test(sim_uvm_thrash, who_retries_too_early_naps_on)
{
    um_uvm_work_t work;
    uint64_t now_ns;

    start();
    now_ns = bounce(0);
    touch_at(HOST, now_ns += 50 * US);
    work = touch_at(0, now_ns += 50 * US);
    cr_assert_eq(work.nap_ns, 450 * US);
    work = touch_at(0, now_ns + 200 * US);
    cr_assert_eq(work.throttles, 1);
    cr_assert_eq(work.nap_ns, 250 * US);
    sim_stop(&sim);
}

Test(sim_uvm_thrash, evictions_do_not_count)
{
    uint64_t now_ns = 0;

    sim_config(&sim, 1, BLOCK);
    sim_start(&sim, 2 * BLOCK);
    sim_touch(&sim, HOST, 0, 2 * BLOCK, UM_ACCESS_WRITE);
    for (int i = 0; i < 20; i++) {
        um_uvm_work_t work = {0};

        sim.n = 0;
        for (uint64_t b = 0; b < 2; b++)
            cr_assert_eq(um_uvm_touch(sim.uvm, 0, BASE + b * BLOCK, BLOCK, UM_ACCESS_WRITE,
                                      now_ns += 10 * US, &work),
                         UM_OK);
        cr_assert_eq(work.throttles, 0);
        cr_assert_eq(work.evicted_blocks, i ? 2 : 1);
        cr_assert_eq(sim_count(&sim, UM_EV_THRASH), 0);
    }
    sim_stop(&sim);
}

Test(sim_uvm_thrash, switched_off_it_finds_nothing)
{
    uint64_t now_ns = 0;

    sim_config(&sim, 1, 64 * MIB);
    sim.config.params.uvm_perf_thrashing_enable = 0;
    sim_start(&sim, 4 * MIB);
    sim_touch(&sim, HOST, 0, BLOCK, UM_ACCESS_WRITE);
    for (int i = 0; i < 40; i++) {
        cr_assert_eq(touch_at(i % 2 ? HOST : 0, now_ns += 100 * US).throttles, 0);
        cr_assert_eq(sim_count(&sim, UM_EV_THRASH), 0);
    }
    sim_stop(&sim);
}

Test(sim_uvm_thrash, a_quiet_epoch_forgets_four_times_and_no_more)
{
    uint64_t now_ns = 0;
    int32_t who = 0;

    start();
    for (int round = 0; round < 5; round++) {
        um_uvm_work_t work;

        do {
            work = touch_at(who, now_ns += 100 * US);
            cr_assert_eq(work.bytes_to_host + work.bytes_to_device, 64 * KIB);
            who = who == HOST ? 0 : HOST;
        } while (!sim_count(&sim, UM_EV_THRASH));
        work = touch_at(who, now_ns += 2000 * 500 * US + US);
        cr_assert_eq(work.bytes_to_host + work.bytes_to_device, round < 4 ? 64 * KIB : PAGE);
        who = who == HOST ? 0 : HOST;
    }
    sim_stop(&sim);
}

Test(sim_uvm_thrash, less_than_an_epoch_forgets_nothing)
{
    start();
    cr_assert_eq(touch_at(HOST, bounce(0) + 2000 * 500 * US).bytes_to_host, PAGE);
    sim_stop(&sim);
}
