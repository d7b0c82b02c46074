/* Where the model believes things are, and when it asks the page tables. */
#include <criterion/criterion.h>

#include "hints_fake.h"

static fake_tables_t fake;

static um_residency_t *new_model(uint64_t bytes)
{
    um_page_tables_t tables = fake_interface(&fake);
    um_event_t alloc = event_alloc(1, FAKE_REGION, FAKE_BASE, bytes);
    um_residency_t *model;

    cr_assert_eq(um_residency_new(&tables, &model), UM_OK);
    um_residency_observe(model, &alloc);
    fake.now_ns = 1000;
    return model;
}

/* One launch on the whole region that asks about all of it; returns the extents it was given. */
static size_t launch(um_residency_t *model, uint64_t bytes, um_extent_t *out, bool useful)
{
    size_t n;

    fake.now_ns += 1000;
    um_residency_launch_begin(model, FAKE_REGION, FAKE_BASE, bytes, fake.now_ns - 500);
    n = um_residency_extents(model, FAKE_REGION, FAKE_BASE, bytes, out, 64);
    um_residency_launch_end(model, FAKE_REGION, FAKE_GPU, useful);
    return n;
}

static void sync_exit(um_residency_t *model)
{
    um_event_t event = event_sync(fake.now_ns += 1000, UM_SYNC_DEVICE, 0, 1);

    um_residency_observe(model, &event);
}

Test(residency, a_fresh_region_is_untouched_until_a_launch_takes_it)
{
    um_residency_t *model = new_model(8 * MIB);
    um_extent_t out[64];

    cr_assert_eq(launch(model, 8 * MIB, out, true), 1);
    cr_assert_eq(out[0].where, UM_WHERE_UNTOUCHED);
    cr_assert_eq(out[0].bytes, 8 * MIB);
    cr_assert_eq(launch(model, 8 * MIB, out, false), 1);
    cr_assert_eq(out[0].where, UM_WHERE_DEVICE);
    cr_assert_eq(out[0].device, FAKE_GPU);
    um_residency_free(model);
}

/* Sums of addresses would go round there. */
Test(residency, a_region_at_the_end_of_all_addresses_is_left_alone)
{
    const uint64_t at[] = {UINT64_MAX - 64 * MIB, (uint64_t)INT64_MAX - MIB, (uint64_t)1 << 63};
    um_residency_t *model = new_model(8 * MIB);
    uint64_t addr, bytes;

    for (uint32_t i = 0; i < 3; i++) {
        um_event_t alloc = event_alloc(2, 10 + i, at[i], 8 * MIB);

        um_residency_observe(model, &alloc);
        cr_assert_not(um_residency_region(model, 10 + i, &addr, &bytes));
    }
    cr_assert(um_residency_region(model, FAKE_REGION, &addr, &bytes));
    um_residency_free(model);
}

/* Each block takes memory. Nobody has so much; a trace can say anything. */
Test(residency, regions_beyond_measure_are_left_alone)
{
    const uint64_t tib = (uint64_t)1 << 40;
    um_residency_t *model = new_model(8 * MIB);
    uint64_t addr, bytes;

    for (uint32_t id = 2; id < 30; id++) {
        um_event_t alloc = event_alloc(2, id, FAKE_BASE + id * tib, id < 4 ? 1024 * tib : tib);
        um_event_t gone = event_free(3, id, alloc.u.region_alloc.addr);

        um_residency_observe(model, &alloc);
        cr_assert_eq(um_residency_region(model, id, &addr, &bytes), id >= 4 && id < 20, "%u", id);
        if (id == 4) /* makes room */
            um_residency_observe(model, &gone);
    }
    um_residency_free(model);
}

Test(residency, the_cpu_may_touch_a_fresh_region_without_any_wait)
{
    um_residency_t *model = new_model(8 * MIB);
    um_extent_t out[64];

    fake_set(&fake, 2 * MIB, UM_PAGE_BYTES, true);
    cr_assert_eq(launch(model, 8 * MIB, out, true), 3);
    cr_assert_eq(out[0].where, UM_WHERE_UNTOUCHED);
    cr_assert_eq(out[1].where, UM_WHERE_HOST);
    cr_assert_eq(out[1].addr, FAKE_BASE + 2 * MIB);
    cr_assert_eq(out[1].bytes, 2 * MIB);
    cr_assert_eq(out[2].where, UM_WHERE_UNTOUCHED);
    um_residency_free(model);
}

Test(residency, asks_nothing_while_the_cpu_has_not_waited)
{
    um_residency_t *model = new_model(8 * MIB);
    um_extent_t out[64];

    launch(model, 8 * MIB, out, true);
    fake.looks = fake.pages_asked = 0;
    for (int i = 0; i < 32; i++)
        launch(model, 8 * MIB, out, false);
    cr_assert_eq(fake.looks, 0);
    cr_assert_eq(fake.pages_asked, 0);
    um_residency_free(model);
}

Test(residency, after_a_wait_exactly_what_the_cpu_took_is_on_the_host)
{
    um_residency_t *model = new_model(16 * MIB);
    um_extent_t out[64];

    launch(model, 16 * MIB, out, true);
    sync_exit(model);
    fake_set(&fake, 4 * MIB, 4 * MIB, true);
    cr_assert_eq(launch(model, 16 * MIB, out, true), 3);
    cr_assert_eq(out[0].where, UM_WHERE_DEVICE);
    cr_assert_eq(out[1].where, UM_WHERE_HOST);
    cr_assert_eq(out[1].addr, FAKE_BASE + 4 * MIB);
    cr_assert_eq(out[1].bytes, 4 * MIB);
    cr_assert_eq(out[2].where, UM_WHERE_DEVICE);
    um_residency_free(model);
}

Test(residency, data_that_stays_on_the_gpu_is_soon_only_sampled)
{
    um_residency_t *model = new_model(64 * MIB);
    um_extent_t out[64];

    launch(model, 64 * MIB, out, true);
    fake.looks = fake.pages_asked = 0;
    for (int i = 0; i < 1000; i++) {
        sync_exit(model);
        cr_assert_eq(launch(model, 64 * MIB, out, false), 1);
    }
    cr_assert_leq(fake.looks, 25); /* 1, 2, 4, ... 64, 64, 64 */
    cr_assert_geq(fake.looks, 15);
    cr_assert_leq(fake.pages_asked, 1000 * 8);
    um_residency_free(model);
}

Test(residency, a_sample_that_hits_brings_the_whole_look_back)
{
    um_residency_t *model = new_model(64 * MIB);
    um_extent_t out[64];

    launch(model, 64 * MIB, out, true);
    for (int i = 0; i < 40; i++) { /* far into the back-off */
        sync_exit(model);
        launch(model, 64 * MIB, out, false);
    }
    fake_set(&fake, 0, 64 * MIB, true);
    sync_exit(model);
    fake.looks = 0;
    cr_assert_eq(launch(model, 64 * MIB, out, true), 1);
    cr_assert_eq(out[0].where, UM_WHERE_HOST);
    cr_assert_geq(fake.looks, 1);
    fake_set(&fake, 0, 64 * MIB, false);
    fake_set(&fake, 30 * MIB, 2 * MIB, true); /* where no sample need fall */
    sync_exit(model);
    cr_assert_eq(launch(model, 64 * MIB, out, true), 3);
    um_residency_free(model);
}

Test(residency, looking_that_leads_to_no_hint_backs_off_too)
{
    um_residency_t *model = new_model(64 * MIB);
    um_extent_t out[64];

    launch(model, 64 * MIB, out, true);
    fake_set(&fake, 30 * MIB, UM_PAGE_BYTES, true);
    fake.looks = 0;
    for (int i = 0; i < 200; i++) {
        sync_exit(model);
        launch(model, 64 * MIB, out, false);
        fake.page[30 * MIB / UM_PAGE_BYTES] = i % 100 == 99; /* rarely there when sampled */
    }
    cr_assert_leq(fake.looks, 40);
    um_residency_free(model);
}

Test(residency, a_program_that_never_waits_is_sampled_now_and_then)
{
    um_residency_t *model = new_model(8 * MIB);
    um_extent_t out[64];
    int hits = 0;

    launch(model, 8 * MIB, out, true);
    fake_set(&fake, 0, 8 * MIB, true);
    for (int i = 0; i < 130; i++) {
        launch(model, 8 * MIB, out, true);
        hits += out[0].where == UM_WHERE_HOST;
    }
    cr_assert_eq(hits, 2);
    um_residency_free(model);
}

Test(residency, a_backlog_of_launches_is_looked_at_once)
{
    um_residency_t *model = new_model(8 * MIB);
    um_extent_t out[64];

    fake.now_ns = 1000000; /* all of what follows is past when it is looked at */
    for (uint64_t t = 2000; t < 102000; t += 1000) {
        um_event_t sync = event_sync(t + 500, UM_SYNC_DEVICE, 0, 1);

        um_residency_launch_begin(model, FAKE_REGION, FAKE_BASE, 8 * MIB, t);
        um_residency_extents(model, FAKE_REGION, FAKE_BASE, 8 * MIB, out, 64);
        um_residency_launch_end(model, FAKE_REGION, FAKE_GPU, true);
        um_residency_observe(model, &sync);
    }
    cr_assert_eq(fake.looks, 1);
    um_residency_free(model);
}

Test(residency, a_region_settles_until_the_cpu_waits_or_something_moves)
{
    um_residency_t *model = new_model(16 * MIB);
    um_event_t copy = {.type = UM_EV_COPY};
    um_extent_t out[64];
    int passed = 0;

    cr_assert_not(um_residency_settled(model, FAKE_REGION, FAKE_BASE, 16 * MIB, FAKE_GPU));
    launch(model, 16 * MIB, out, true);
    cr_assert(um_residency_settled(model, FAKE_REGION, FAKE_BASE, 16 * MIB, FAKE_GPU));
    cr_assert(um_residency_settled(model, FAKE_REGION, FAKE_BASE + 3 * MIB, MIB, FAKE_GPU));
    cr_assert_not(um_residency_settled(model, FAKE_REGION, FAKE_BASE, 16 * MIB, FAKE_GPU + 1));
    cr_assert_not(um_residency_settled(model, FAKE_REGION + 1, FAKE_BASE, MIB, FAKE_GPU));
    sync_exit(model);
    cr_assert_not(um_residency_settled(model, FAKE_REGION, FAKE_BASE, 16 * MIB, FAKE_GPU));
    launch(model, 4 * MIB, out, true);
    cr_assert(um_residency_settled(model, FAKE_REGION, FAKE_BASE, 4 * MIB, FAKE_GPU));
    cr_assert_not(um_residency_settled(model, FAKE_REGION, FAKE_BASE, 16 * MIB, FAKE_GPU));
    copy.u.copy = (um_ev_copy_t){.dst_addr = FAKE_BASE, .bytes = MIB, .dst_region = FAKE_REGION};
    um_residency_observe(model, &copy);
    cr_assert_not(um_residency_settled(model, FAKE_REGION, FAKE_BASE, 4 * MIB, FAKE_GPU));
    launch(model, 16 * MIB, out, true);
    for (int i = 0; i < 100; i++) /* nobody waits: now and then it is doubted all the same */
        passed += um_residency_settled(model, FAKE_REGION, FAKE_BASE, 16 * MIB, FAKE_GPU);
    cr_assert_gt(passed, 50);
    cr_assert_lt(passed, 100);
    um_residency_free(model);
}

Test(residency, late_news_does_not_undo_what_is_known_since)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t set = {.type = UM_EV_SET, .time_ns = 500}; /* before the launch, told after it */
    um_extent_t out[64];

    fake_set(&fake, 0, 8 * MIB, true);
    um_residency_launch_begin(model, FAKE_REGION, FAKE_BASE, 8 * MIB, 900);
    um_residency_extents(model, FAKE_REGION, FAKE_BASE, 8 * MIB, out, 64);
    set.u.set = (um_ev_set_t){.addr = FAKE_BASE, .bytes = 8 * MIB, .region = FAKE_REGION};
    um_residency_observe(model, &set);
    um_residency_extents(model, FAKE_REGION, FAKE_BASE, 8 * MIB, out, 64);
    cr_assert_eq(out[0].where, UM_WHERE_HOST);
    um_residency_free(model);
}

Test(residency, unaligned_regions_and_questions_are_trimmed)
{
    um_page_tables_t tables = fake_interface(&fake);
    um_event_t alloc = event_alloc(1, 7, FAKE_BASE + 3 * MIB + 4096, 2 * MIB + 100);
    um_extent_t out[4];
    um_residency_t *model;
    uint64_t addr, bytes;

    cr_assert_eq(um_residency_new(&tables, &model), UM_OK);
    um_residency_observe(model, &alloc);
    cr_assert(um_residency_region(model, 7, &addr, &bytes));
    cr_assert_eq(addr, FAKE_BASE + 3 * MIB + 4096);
    cr_assert_eq(um_residency_extents(model, 7, FAKE_BASE, 100 * MIB, out, 4), 1);
    cr_assert_eq(out[0].addr, addr);
    cr_assert_eq(out[0].bytes, bytes);
    cr_assert_eq(um_residency_extents(model, 7, addr + 10, 20, out, 4), 1);
    cr_assert_eq(out[0].addr, addr + 10);
    cr_assert_eq(out[0].bytes, 20);
    cr_assert_eq(um_residency_extents(model, 7, addr + bytes, 20, out, 4), 0);
    cr_assert_eq(um_residency_extents(model, 8, addr, 20, out, 4), 0);
    um_residency_free(model);
}

Test(residency, a_freed_region_is_gone_and_other_families_never_come)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t gone = event_free(2, FAKE_REGION, FAKE_BASE);
    um_event_t device = event_alloc(3, 2, FAKE_BASE + 64 * MIB, MIB);
    uint64_t addr, bytes;

    device.u.region_alloc.family = UM_FAMILY_DEVICE;
    um_residency_observe(model, &gone);
    um_residency_observe(model, &gone);
    um_residency_observe(model, &device);
    cr_assert_not(um_residency_region(model, FAKE_REGION, &addr, &bytes));
    cr_assert_not(um_residency_region(model, 2, &addr, &bytes));
    um_residency_free(model);
}

Test(residency, regions_from_before_umrt_are_unknown_once)
{
    um_residency_t *model = new_model(MIB);
    um_event_t alloc = event_alloc(3, 2, FAKE_BASE + 64 * MIB, 4 * MIB);
    um_extent_t out[4];

    alloc.u.region_alloc.flags = UM_REGION_BEFORE_UMRT;
    um_residency_observe(model, &alloc);
    um_residency_launch_begin(model, 2, FAKE_BASE + 64 * MIB, 4 * MIB, 2000);
    cr_assert_eq(um_residency_extents(model, 2, FAKE_BASE + 64 * MIB, 4 * MIB, out, 4), 1);
    cr_assert_eq(out[0].where, UM_WHERE_UNKNOWN);
    um_residency_launch_end(model, 2, FAKE_GPU, true);
    um_residency_extents(model, 2, FAKE_BASE + 64 * MIB, 4 * MIB, out, 4);
    cr_assert_eq(out[0].where, UM_WHERE_DEVICE);
    um_residency_free(model);
}

static um_event_t app_hint(uint32_t kind, int32_t device, uint64_t addr, uint64_t bytes)
{
    um_event_t event = {.type = UM_EV_HINT, .time_ns = fake.now_ns += 1000};

    event.u.hint = (um_ev_hint_t){.kind = kind,
                                  .result = UM_HINT_APPLIED,
                                  .addr = addr,
                                  .bytes = bytes,
                                  .device = device,
                                  .region = FAKE_REGION,
                                  .who = "app",
                                  .why = ""};
    return event;
}

Test(residency, what_the_program_prefetches_itself_is_there)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t hint = app_hint(UM_HINT_PREFETCH, FAKE_GPU, FAKE_BASE, 4 * MIB);
    um_extent_t out[64];

    fake_set(&fake, 0, 8 * MIB, true);
    um_residency_observe(model, &hint);
    fake_set(&fake, 0, 4 * MIB, false);
    cr_assert_eq(launch(model, 8 * MIB, out, true), 2);
    cr_assert_eq(out[0].where, UM_WHERE_DEVICE);
    cr_assert_eq(out[1].where, UM_WHERE_HOST);
    um_residency_free(model);
}

Test(residency, a_refused_prefetch_changes_nothing)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t hint = app_hint(UM_HINT_PREFETCH, FAKE_GPU, FAKE_BASE, 8 * MIB);
    um_extent_t out[64];

    hint.u.hint.result = UM_HINT_FAILED;
    um_residency_observe(model, &hint);
    launch(model, 8 * MIB, out, true);
    cr_assert_eq(out[0].where, UM_WHERE_UNTOUCHED);
    um_residency_free(model);
}

Test(residency, host_pages_that_advice_maps_are_left_there)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t hint = app_hint(UM_HINT_ACCESSED_BY, FAKE_GPU, FAKE_BASE, 8 * MIB);
    um_event_t unset = app_hint(UM_HINT_UNSET_ACCESSED_BY, FAKE_GPU, FAKE_BASE, 8 * MIB);
    um_extent_t out[64];

    um_residency_observe(model, &hint);
    fake_set(&fake, 0, 8 * MIB, true);
    launch(model, 8 * MIB, out, true);
    cr_assert_eq(out[0].where, UM_WHERE_BOTH);
    sync_exit(model);
    launch(model, 8 * MIB, out, true);
    cr_assert_eq(out[0].where, UM_WHERE_BOTH);
    um_residency_observe(model, &unset);
    sync_exit(model);
    launch(model, 8 * MIB, out, true);
    cr_assert_eq(out[0].where, UM_WHERE_HOST);
    um_residency_free(model);
}

Test(residency, read_mostly_copies_count_as_both)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t hint = app_hint(UM_HINT_READ_MOSTLY, UM_DEVICE_NONE, FAKE_BASE, 8 * MIB);
    um_extent_t out[64];

    um_residency_observe(model, &hint);
    fake_set(&fake, 0, 8 * MIB, true);
    launch(model, 8 * MIB, out, true);
    cr_assert_eq(out[0].where, UM_WHERE_HOST); /* the first time it has to go */
    sync_exit(model);
    launch(model, 8 * MIB, out, true);
    cr_assert_eq(out[0].where, UM_WHERE_BOTH);
    um_residency_free(model);
}

Test(residency, a_set_lands_on_the_gpu_and_a_copy_must_be_looked_at)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t set = {.type = UM_EV_SET, .time_ns = fake.now_ns};
    um_event_t copy = {.type = UM_EV_COPY, .time_ns = fake.now_ns};
    um_extent_t out[64];

    set.u.set = (um_ev_set_t){.addr = FAKE_BASE, .bytes = 4 * MIB, .region = FAKE_REGION};
    copy.u.copy = (um_ev_copy_t){.dst_addr = FAKE_BASE + 4 * MIB,
                                 .bytes = 4 * MIB,
                                 .dst_region = FAKE_REGION};
    um_residency_observe(model, &set);
    um_residency_observe(model, &copy);
    fake_set(&fake, 6 * MIB, 2 * MIB, true);
    cr_assert_eq(launch(model, 8 * MIB, out, true), 2);
    cr_assert_eq(out[0].where, UM_WHERE_DEVICE);
    cr_assert_eq(out[0].bytes, 6 * MIB);
    cr_assert_eq(out[1].where, UM_WHERE_HOST);
    um_residency_free(model);
}

Test(residency, page_tables_that_fail_are_not_asked_again)
{
    um_residency_t *model = new_model(8 * MIB);
    um_extent_t out[64];

    fake.status = UM_ERR_IO;
    cr_assert_eq(launch(model, 8 * MIB, out, true), 1);
    cr_assert_eq(out[0].where, UM_WHERE_UNTOUCHED);
    sync_exit(model);
    launch(model, 8 * MIB, out, true);
    cr_assert_eq(fake.looks, 1);
    um_residency_free(model);
}

static um_ev_residency_t told[16];
static unsigned n_told;

static void hear(void *ctx, const um_event_t *event)
{
    (void)ctx;
    cr_assert_eq(event->type, UM_EV_RESIDENCY);
    told[n_told++] = event->u.residency;
}

Test(residency, tells_what_the_cpu_took_once_and_to_the_page)
{
    um_residency_t *model = new_model(16 * MIB);
    um_extent_t out[64];

    um_residency_tell(model, hear, NULL);
    launch(model, 16 * MIB, out, true);
    cr_assert_eq(n_told, 0);
    sync_exit(model);
    fake_set(&fake, MIB, 4 * MIB, true);
    fake_set(&fake, 5 * MIB + UM_PAGE_BYTES, UM_PAGE_BYTES, true); /* in a block told of already */
    fake_set(&fake, 14 * MIB, 2 * MIB, true);
    launch(model, 16 * MIB, out, true);
    cr_assert_eq(n_told, 3);
    cr_assert_eq(told[0].addr, FAKE_BASE + MIB);
    cr_assert_eq(told[0].bytes, 4 * MIB);
    cr_assert_eq(told[0].present_bytes, 4 * MIB);
    cr_assert_eq(told[1].bytes, UM_PAGE_BYTES);
    cr_assert_eq(told[2].addr, FAKE_BASE + 14 * MIB);
    launch(model, 16 * MIB, out, true);
    cr_assert_eq(n_told, 3);
    um_residency_free(model);
}

static void launch_at(um_residency_t *model, uint64_t time_ns)
{
    um_event_t event = event_launch(time_ns, 1, NULL, 0);
    um_extent_t out[64];

    um_residency_observe(model, &event);
    um_residency_launch_begin(model, FAKE_REGION, FAKE_BASE, 8 * MIB, time_ns);
    um_residency_extents(model, FAKE_REGION, FAKE_BASE, 8 * MIB, out, 64);
    um_residency_launch_end(model, FAKE_REGION, FAKE_GPU, true);
}

/* A short kernel is over, and the CPU at work on what it is to read, before the page tables are looked at for it. */
Test(residency, a_look_that_comes_after_the_wait_does_not_stand_for_what_the_cpu_does_then)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t left = event_sync(3000, UM_SYNC_DEVICE, 0, 1);

    um_residency_tell(model, hear, NULL);
    n_told = 0;
    fake.now_ns = 5000;
    launch_at(model, 2000); /* finds it all with the GPU */
    um_residency_observe(model, &left);
    fake_set(&fake, 0, 8 * MIB, true);
    fake.now_ns = 9000;
    launch_at(model, 8000);
    cr_assert_eq(n_told, 1);
    cr_assert_eq(told[0].bytes, 8 * MIB);
    um_residency_free(model);
}

/* What a launch has taken is found to be gone when its wait is over. */
Test(residency, what_has_gone_by_the_end_of_the_wait_is_looked_at_again)
{
    um_residency_t *model = new_model(8 * MIB);
    um_extent_t out[64];
    um_chunks_t chunks;

    fake_set(&fake, 0, 8 * MIB, true);
    fake.now_ns += 1000;
    um_residency_launch_begin(model, FAKE_REGION, FAKE_BASE, 8 * MIB, fake.now_ns - 500);
    um_residency_extents(model, FAKE_REGION, FAKE_BASE, 8 * MIB, out, 64);
    um_residency_leave(model, FAKE_REGION, FAKE_BASE, 8 * MIB); /* to faults */
    um_residency_launch_end(model, FAKE_REGION, FAKE_GPU, false);
    fake_set(&fake, 0, 8 * MIB, false);
    sync_exit(model);
    fake.now_ns += 100;
    for (uint64_t at = 0; at < 8 * MIB; at += UM_BLOCK_BYTES)
        cr_assert(um_residency_peek(model, FAKE_REGION, FAKE_BASE + at, &chunks) && !chunks.any);
    fake_set(&fake, 0, 8 * MIB, true);
    cr_assert_eq(launch(model, 8 * MIB, out, true), 1);
    cr_assert_eq(out[0].where, UM_WHERE_HOST);
    um_residency_free(model);
}

Test(residency, what_comes_to_the_gpu_after_the_wait_is_looked_at_again)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t left = event_sync(3000, UM_SYNC_DEVICE, 0, 1);
    um_event_t late = {.type = UM_EV_HINT, .time_ns = 4000};

    um_residency_tell(model, hear, NULL);
    n_told = 0;
    fake_set(&fake, 0, 8 * MIB, true);
    fake.now_ns = 2500;
    launch_at(model, 2000);
    um_residency_observe(model, &left);
    late.u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                                 .result = UM_HINT_APPLIED,
                                 .addr = FAKE_BASE,
                                 .bytes = 8 * MIB,
                                 .region = FAKE_REGION,
                                 .who = "ahead",
                                 .why = ""};
    um_residency_observe(model, &late);
    fake.now_ns = 9000;
    launch_at(model, 8000); /* the CPU has taken it back */
    cr_assert_eq(n_told, 1);
    cr_assert_eq(told[0].bytes, 8 * MIB);
    um_residency_free(model);
}

Test(residency, what_no_launch_takes_is_looked_up_when_asked_for)
{
    um_residency_t *model = new_model(16 * MIB);
    um_extent_t out[64];

    launch(model, 16 * MIB, out, true);
    um_residency_tell(model, hear, NULL);
    n_told = 0;
    sync_exit(model);
    fake_set(&fake, 4 * MIB, 6 * MIB, true);
    um_residency_taken(model, FAKE_REGION, FAKE_BASE + 2 * MIB, 6 * MIB, fake.now_ns);
    cr_assert_eq(n_told, 1);
    cr_assert_eq(told[0].addr, FAKE_BASE + 4 * MIB);
    cr_assert_eq(told[0].bytes, 4 * MIB); /* no further than was asked */
    um_residency_taken(model, FAKE_REGION, FAKE_BASE + 2 * MIB, 6 * MIB, fake.now_ns);
    um_residency_taken(model, FAKE_REGION + 1, FAKE_BASE + 2 * MIB, 6 * MIB, fake.now_ns);
    cr_assert_eq(n_told, 1);
    cr_assert_eq(um_residency_extents(model, FAKE_REGION, FAKE_BASE, 16 * MIB, out, 64), 3);
    cr_assert_eq(out[1].where, UM_WHERE_HOST);
    cr_assert_eq(out[1].bytes, 4 * MIB);
    um_residency_free(model);
}

Test(residency, tells_nothing_of_what_was_brought_to_the_cpu_on_purpose)
{
    um_residency_t *model = new_model(16 * MIB);
    um_event_t hint = {.type = UM_EV_HINT};
    um_extent_t out[64];

    um_residency_tell(model, hear, NULL);
    launch(model, 16 * MIB, out, true);
    hint.time_ns = fake.now_ns += 1000;
    hint.u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                                 .result = UM_HINT_APPLIED,
                                 .addr = FAKE_BASE,
                                 .bytes = 8 * MIB,
                                 .device = UM_DEVICE_HOST,
                                 .region = FAKE_REGION,
                                 .who = "readback"};
    um_residency_observe(model, &hint);
    sync_exit(model);
    fake_set(&fake, 0, 10 * MIB, true);
    cr_assert_eq(launch(model, 16 * MIB, out, true), 2);
    cr_assert_eq(n_told, 1);
    cr_assert_eq(told[0].addr, FAKE_BASE + 8 * MIB);
    cr_assert_eq(told[0].bytes, 2 * MIB);
    um_residency_free(model);
}

/* Evicted data is with the CPU, which does not map it: no look finds it. */
Test(residency, what_the_driver_evicted_is_on_the_host_until_it_moves_again)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t move = {.type = UM_EV_MIGRATE};
    um_extent_t out[64];

    launch(model, 8 * MIB, out, true);
    move.time_ns = fake.now_ns += 1000;
    move.u.migrate = (um_ev_migrate_t){.addr = FAKE_BASE + 2 * MIB,
                                       .bytes = 2 * MIB,
                                       .src = FAKE_GPU,
                                       .dst = UM_DEVICE_HOST,
                                       .cause = UM_CAUSE_EVICTION,
                                       .region = FAKE_REGION};
    um_residency_observe(model, &move);
    sync_exit(model);
    cr_assert_eq(launch(model, 8 * MIB, out, true), 3);
    cr_assert_eq(out[1].where, UM_WHERE_HOST);
    cr_assert_eq(out[1].bytes, 2 * MIB);
    move.time_ns = fake.now_ns += 1000;
    move.u.migrate.src = UM_DEVICE_HOST;
    move.u.migrate.dst = FAKE_GPU;
    move.u.migrate.cause = UM_CAUSE_COHERENCE;
    um_residency_observe(model, &move);
    cr_assert_eq(launch(model, 8 * MIB, out, true), 1);
    cr_assert_eq(out[0].where, UM_WHERE_DEVICE);
    um_residency_free(model);
}

Test(residency, advice_holds_for_its_blocks)
{
    um_residency_t *model = new_model(8 * MIB);
    um_event_t hint = {.type = UM_EV_HINT};
    um_extent_t out[64];

    launch(model, 8 * MIB, out, true);
    hint.time_ns = fake.now_ns += 1000;
    hint.u.hint = (um_ev_hint_t){.kind = UM_HINT_ACCESSED_BY,
                                 .result = UM_HINT_APPLIED,
                                 .addr = FAKE_BASE,
                                 .bytes = 2 * MIB,
                                 .device = FAKE_GPU,
                                 .region = FAKE_REGION,
                                 .who = "app"};
    um_residency_observe(model, &hint);
    fake_set(&fake, 0, 4 * MIB, true);
    sync_exit(model);
    cr_assert_eq(launch(model, 8 * MIB, out, true), 3);
    cr_assert_eq(out[0].where, UM_WHERE_BOTH);
    cr_assert_eq(out[1].where, UM_WHERE_HOST);
    cr_assert_eq(out[2].where, UM_WHERE_DEVICE);
    um_residency_free(model);
}

Test(residency, what_a_launch_is_told_to_leave_stays_where_it_was)
{
    um_residency_t *model = new_model(8 * MIB);
    um_extent_t out[64];

    fake_set(&fake, 0, 8 * MIB, true);
    fake.now_ns += 1000;
    um_residency_launch_begin(model, FAKE_REGION, FAKE_BASE, 8 * MIB, fake.now_ns);
    cr_assert_eq(um_residency_extents(model, FAKE_REGION, FAKE_BASE, 8 * MIB, out, 64), 1);
    um_residency_leave(model, FAKE_REGION, FAKE_BASE + 4 * MIB, 2 * MIB);
    um_residency_launch_end(model, FAKE_REGION, FAKE_GPU, true);
    cr_assert_eq(um_residency_extents(model, FAKE_REGION, FAKE_BASE, 8 * MIB, out, 64), 3);
    cr_assert_eq(out[0].where, UM_WHERE_DEVICE);
    cr_assert_eq(out[1].where, UM_WHERE_HOST);
    cr_assert_eq(out[1].bytes, 2 * MIB);
    cr_assert_not(um_residency_settled(model, FAKE_REGION, FAKE_BASE, 8 * MIB, FAKE_GPU));
    um_residency_free(model);
}
