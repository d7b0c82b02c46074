/* The live CUDA source from end to end: how it attaches, what it refuses to do, and how it ends. */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "cupti_program.h"

Test(live, a_managed_program_is_recorded_from_allocation_to_migration)
{
    start(UM_MODE_RECORD);
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 0, "refused inside the injection: not tried");
    create_context();
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 1);
    alloc_managed(A, 1 << 20);
    alloc_managed(B, 1 << 20);
    launch(0x1000, A + 64, B, (CUstream)0x10);
    counter_t moved = migration(A + 4096, 65536);
    record(&moved, sizeof(moved));
    free_device(A);
    um_backend()->detach();

    const um_event_t *alloc = event_of(UM_EV_REGION_ALLOC, 0);
    cr_assert(alloc);
    cr_assert_eq(alloc->u.region_alloc.family, UM_FAMILY_MANAGED);
    cr_assert_eq(alloc->u.region_alloc.addr, A);
    cr_assert_eq(alloc->u.region_alloc.bytes, 1 << 20);
    cr_assert_eq(alloc->u.region_alloc.flags, UM_REGION_ATTACH_GLOBAL);
    cr_assert_neq(alloc->u.region_alloc.call_site, 0);
    cr_assert_eq(alloc->tid, (uint32_t)gettid());
    const um_event_t *site = event_of(UM_EV_CALL_SITE, 0);
    cr_assert(site);
    cr_assert_eq(site->u.call_site.call_site, alloc->u.region_alloc.call_site);
    cr_assert(strstr(site->u.call_site.frames, "+0x"), "%s", site->u.call_site.frames);

    const um_event_t *kernel = event_of(UM_EV_KERNEL, 0);
    cr_assert(kernel);
    cr_assert_str_eq(kernel->u.kernel.name, "_Z3addPfPKfi");
    cr_assert_eq(kernel->u.kernel.n_params, 3);
    cr_assert_eq(kernel->u.kernel.layout_known, 1);

    const um_event_t *l = event_of(UM_EV_LAUNCH, 0);
    cr_assert(l);
    cr_assert_eq(l->u.launch.kernel, kernel->u.kernel.kernel);
    cr_assert_eq(l->u.launch.n_args, 2);
    cr_assert_eq(l->u.launch.args[0].region, alloc->u.region_alloc.region);
    cr_assert_eq(l->u.launch.args[0].region_offset_bytes, 64);
    cr_assert_eq(l->u.launch.args[1].slot, 1);
    cr_assert_eq(l->u.launch.grid[0], 10);
    cr_assert_eq(l->u.launch.block[0], 256);
    cr_assert_eq(l->u.launch.shared_bytes, 64);
    cr_assert_eq(l->u.launch.stream, 0x10);
    cr_assert_eq(l->u.launch.device, 0);
    cr_assert_geq(l->time_ns, kernel->time_ns);

    const um_event_t *m = event_of(UM_EV_MIGRATE, 0);
    cr_assert(m, "what was recorded before the exit is in the trace");
    cr_assert_eq(m->u.migrate.bytes, 65536);
    uint64_t age = clock_ns(CLOCK_MONOTONIC) - m->time_ns;
    cr_assert_lt(age, 3600ull * 1000000000u, "CUPTI's clock is brought to CLOCK_MONOTONIC");

    const um_event_t *gone = event_of(UM_EV_REGION_FREE, 0);
    cr_assert(gone);
    cr_assert_eq(gone->u.region_free.region, alloc->u.region_alloc.region);
    cr_assert_eq(CUPTI_INT("fake_cupti_disabled"), 0);
    cr_assert_eq(CUPTI_INT("fake_cupti_finalized"), 0);
    cr_assert_leq(CUPTI_INT("fake_cupti_forced"), 1, "one forced flush at exit at most");
}

Test(live, callbacks_leave_errno_alone)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    errno = EDOM;
    launch(0x1000, A, A, NULL); /* the kernel's first: the driver is asked about it */
    cr_assert_eq(errno, EDOM);
}

Test(live, the_end_is_not_held_up_inside_cupti, .timeout = 300)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    CUPTI_INT("fake_cupti_stuck") = 1; /* as if the thread that ends held its lock */
    um_backend()->detach();
}

Test(live, what_umrt_calls_itself_is_not_seen)
{
    start(UM_MODE_RECORD);
    create_context();
    um_cuda_own = true;
    alloc_managed(A, 1 << 20);
    um_cuda_own = false;
    cr_assert_eq(count_of(UM_EV_REGION_ALLOC), 0);
}

Test(live, a_forked_child_is_inert)
{
    start(UM_MODE_RECORD);
    create_context();
    um_backend()->abandon();
    alloc_managed(A, 1 << 20);
    cr_assert_eq(count_of(UM_EV_REGION_ALLOC), 0);
}

static um_status_t refused(int code, char *reason, size_t bytes)
{
    open_fakes();
    CUPTI_INT("fake_cupti_subscribe_result") = code;
    um_regions_new(&runtime.regions);
    um_kernels_new(&runtime.kernels);
    um_bus_new(1 << 20, 1000, &runtime.bus);
    um_bus_start(runtime.bus);
    return um_backend()->attach(&runtime, reason, bytes);
}

Test(live, another_client_is_named)
{
    char reason[256] = "";

    cr_assert_eq(refused(39, reason, sizeof(reason)), UM_ERR_BUSY);
    cr_assert_str_eq(reason, "another profiler or CUPTI client is already in this process: "
                             "CUPTI for Fake Profiler");
}

Test(live, any_other_refusal_has_its_reason)
{
    char reason[256] = "";

    cr_assert_eq(refused(999, reason, sizeof(reason)), UM_ERR_UNSUPPORTED);
    cr_assert_str_eq(reason, "the fake says no");
}

Test(live, the_probe_tells_devices_versions_and_what_can_be_done)
{
    um_regions_new(&runtime.regions);
    open_fakes();
    cr_assert_eq(um_backend()->probe(keep, NULL), UM_OK);
    const um_event_t *device = NULL;
    const char *record_fact = NULL, *hint_fact = NULL, *path = NULL;
    for (size_t i = 0; i < n_events; i++) {
        const um_event_t *e = events[i];
        if (e->type == UM_EV_DEVICE)
            device = e;
        else if (e->type == UM_EV_FACT && strcmp(e->u.fact.key, "can.record") == 0)
            record_fact = e->u.fact.value;
        else if (e->type == UM_EV_FACT && strcmp(e->u.fact.key, "can.hint") == 0)
            hint_fact = e->u.fact.value;
        else if (e->type == UM_EV_FACT && strcmp(e->u.fact.key, "cupti.path") == 0)
            path = e->u.fact.value;
    }
    cr_assert(device);
    cr_assert_str_eq(device->u.device.name, "Fake GPU");
    cr_assert_str_eq(device->u.device.uuid, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
    cr_assert_eq(device->u.device.attributes, UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED);
    cr_assert_str_eq(record_fact, "yes");
    cr_assert_str_eq(hint_fact, "yes");
    cr_assert(path && strstr(path, "libcupti.so.13"), "%s", path);
}

Test(live, a_driver_that_does_not_start_is_the_reason)
{
    open_fakes();
    CUDA_INT("fake_cuda_initialised") = 0;
    um_backend()->probe(keep, NULL);
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == UM_EV_FACT && strncmp(events[i]->u.fact.key, "can.", 4) == 0)
            cr_assert_str_eq(events[i]->u.fact.value,
                             "no: the driver does not start (CUDA_ERROR_NO_DEVICE)");
}
