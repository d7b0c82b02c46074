/* What comes later than its call: records, waits, and what the page tables say after a wait. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cupti_program.h"
#include "model/residency.h"

Test(live, records_are_switched_on_later_when_no_context_was_there)
{
    start(UM_MODE_RECORD);
    CUPTI_INT("fake_cupti_enable_result") = 13;
    create_context();
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 0);
    CUPTI_INT("fake_cupti_enable_result") = 0;
    alloc_managed(A, 1 << 20);
    cr_assert_eq(CUPTI_INT("fake_cupti_um_enabled"), 1);
}

Test(live, a_refusal_of_records_is_said_in_the_trace_and_the_program_goes_on)
{
    start(UM_MODE_RECORD);
    CUPTI_INT("fake_cupti_enable_result") = 31;
    create_context();
    alloc_managed(A, 1 << 20);
    launch(0x1000, A, A, NULL);
    um_bus_sync(runtime.bus);
    const um_event_t *option = NULL;
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == UM_EV_OPTION &&
            strcmp(events[i]->u.option.name, "cupti.unified-memory") == 0)
            option = events[i];
    cr_assert(option);
    cr_assert(strstr(option->u.option.value, "Multi-Process Service"));
    cr_assert_eq(count_of(UM_EV_LAUNCH), 1);
}

Test(live, dropped_records_are_told)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    *(uint64_t *)CUPTI_SYMBOL("fake_cupti_dropped") = 7;
    counter_t moved = migration(A, 4096), zero = migration(A, 4096);
    zero.start = 0;
    record(&moved, sizeof(moved));
    record(&zero, sizeof(zero));
    um_backend()->detach();
    uint64_t dropped = 0, insane = 0;
    um_bus_sync(runtime.bus);
    for (size_t i = 0; i < n_events; i++)
        if (events[i]->type == UM_EV_LOSS) {
            if (strstr(events[i]->u.loss.reason, "dropped"))
                dropped += events[i]->u.loss.count;
            if (strstr(events[i]->u.loss.reason, "sane time"))
                insane += events[i]->u.loss.count;
        }
    cr_assert_eq(dropped, 7);
    cr_assert_eq(insane, 1);
    cr_assert_eq(count_of(UM_EV_MIGRATE), 1);
}

Test(live, kernel_times_name_the_launched_kernel_and_those_of_graphs_by_name)
{
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed(A, 1 << 20);
    launch(0x1000, A, A, NULL);
    uint64_t now = clock_ns(CLOCK_REALTIME);
    kernel_times_t mine = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                           .start = now - 1000,
                           .end = now,
                           .correlation = correlation,
                           .name = "_Z3addPfPKfi"};
    kernel_times_t of_a_graph = mine;
    of_a_graph.correlation = 999999;
    of_a_graph.name = "in_graph";
    record(&mine, sizeof(mine));
    record(&of_a_graph, sizeof(of_a_graph));
    um_backend()->detach();
    cr_assert_eq(event_of(UM_EV_KERNEL_EXEC, 0)->u.kernel_exec.kernel,
                 event_of(UM_EV_KERNEL, 0)->u.kernel.kernel);
    cr_assert_eq(event_of(UM_EV_KERNEL_EXEC, 1)->u.kernel_exec.kernel,
                 event_of(UM_EV_KERNEL, 1)->u.kernel.kernel);
    cr_assert_str_eq(event_of(UM_EV_KERNEL, 1)->u.kernel.name, "in_graph");
}

Test(live, waits_come_in_pairs)
{
    start(UM_MODE_RECORD);
    create_context();
    device_sync();
    CALL(cuStreamSynchronize, {(CUstream)8});
    cr_assert_eq(count_of(UM_EV_SYNC), 4);
    const um_event_t *in = event_of(UM_EV_SYNC, 2), *out = event_of(UM_EV_SYNC, 3);
    cr_assert_eq(in->u.sync.kind, UM_SYNC_STREAM);
    cr_assert_eq(in->u.sync.stream, 8);
    cr_assert_eq(in->u.sync.exit, 0);
    cr_assert_eq(out->u.sync.exit, 1);
    cr_assert_eq(in->u.sync.sync, out->u.sync.sync);
}

/* The page tables do not care what kind of memory it is. */
Test(live, after_a_wait_the_page_tables_say_what_the_cpu_has, .timeout = 300)
{
    size_t bytes = 4 << 20, touched = 1 << 20;
    um_pagemap_t *pagemap;

    if (um_pagemap_open(&pagemap) != UM_OK)
        cr_skip_test("/proc/self/pagemap says nothing here");
    um_pagemap_close(pagemap);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    memset(memory + touched, 1, touched);
    page_tables = 1;
    start(UM_MODE_RECORD);
    create_context();
    alloc_managed((uintptr_t)memory, bytes);
    launch(0x1000, (uintptr_t)memory, 0, NULL);
    /* A look that comes too late, on a busy machine, is dropped: then the next wait brings another. */
    while (!event_of(UM_EV_RESIDENCY, 1)) {
        usleep(2000); /* and all events that are made meanwhile are kept */
        device_sync();
        launch(0x1000, (uintptr_t)memory, (uintptr_t)memory + 64, NULL);
        launch(0x1000, (uintptr_t)memory, 0, NULL);
    }
    const um_ev_residency_t *all = &event_of(UM_EV_RESIDENCY, 0)->u.residency;
    const um_ev_residency_t *part = &event_of(UM_EV_RESIDENCY, 1)->u.residency;
    cr_assert_eq(all->addr, (uintptr_t)memory);
    cr_assert_eq(all->bytes, bytes);
    cr_assert_eq(all->present_bytes, touched);
    cr_assert_neq(all->sync, 0);
    cr_assert_eq(part->addr, (uintptr_t)memory + touched);
    cr_assert_eq(part->bytes, touched);
    um_backend()->detach();
    cr_assert_eq(count_of(UM_EV_RESIDENCY) % 2, 0,
                 "a region that is named twice is looked at once");
}
