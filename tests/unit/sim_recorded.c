/* What a recording says of accesses: no more than it shows, and nothing of it is lost. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload_load.h"

#define BASE UINT64_C(0x700000000000)
#define MIB  ((uint64_t)1 << 20)
#define MS   UINT64_C(1000000)

static um_workload_loader_t *loader;
static uint64_t now = 1000 * MS;

static void put(um_event_t event, uint64_t time_ns, uint32_t tid)
{
    event.time_ns = time_ns;
    event.tid = tid;
    um_workload_loader_event(loader, &event);
}

static void begin(um_workload_kind_t kind)
{
    cr_assert_eq(um_workload_loader_new("recorded", kind, false, &loader), UM_OK);
}

static void region(uint32_t id, uint64_t addr, uint64_t bytes)
{
    um_event_t e = {.type = UM_EV_REGION_ALLOC};

    e.u.region_alloc = (um_ev_region_alloc_t){.region = id,
                                              .family = UM_FAMILY_MANAGED,
                                              .addr = addr,
                                              .bytes = bytes};
    put(e, now += 10000, 1);
}

static void kernel(uint32_t id, uint32_t flags)
{
    um_param_t p = {0, 8, flags};
    um_event_t e = {.type = UM_EV_KERNEL};

    e.u.kernel =
        (um_ev_kernel_t){.kernel = id, .name = "k", .n_params = 1, .layout_known = 1, .params = &p};
    put(e, now += 10000, 1);
}

static uint32_t correlation;

/* Launched now, runs from 1 ms later for so long; time goes on to its end. Returns its start. */
static uint64_t launch(uint32_t kernel_id, uint32_t arg, uint64_t duration_ns)
{
    um_event_t e = {.type = UM_EV_LAUNCH};
    um_arg_t a = {.region = arg};
    uint64_t start;

    e.u.launch = (um_ev_launch_t){.correlation = ++correlation,
                                  .kernel = kernel_id,
                                  .grid = {1, 1, 1},
                                  .block = {32, 1, 1},
                                  .n_args = 1,
                                  .args = &a};
    put(e, now += 10000, 1);
    start = now + MS;
    e = (um_event_t){.type = UM_EV_KERNEL_EXEC};
    e.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = correlation,
                                            .kernel = kernel_id,
                                            .duration_ns = duration_ns};
    put(e, start, 0);
    now = start + duration_ns;
    return start;
}

static void sync_enter_and_exit(void)
{
    um_event_t e = {.type = UM_EV_SYNC};

    e.u.sync = (um_ev_sync_t){.sync = 5000 + correlation, .kind = UM_SYNC_DEVICE};
    put(e, now += 1000, 1);
    e.u.sync.exit = 1;
    put(e, now += 100000, 1);
}

static void migrate(uint64_t time_ns, uint64_t addr, uint64_t bytes, int32_t src, int32_t dst,
                    um_migrate_cause_t cause, uint64_t duration_ns)
{
    um_event_t e = {.type = UM_EV_MIGRATE};

    e.u.migrate = (um_ev_migrate_t){.addr = addr,
                                    .bytes = bytes,
                                    .src = src,
                                    .dst = dst,
                                    .cause = cause,
                                    .duration_ns = duration_ns};
    put(e, time_ns, 0);
}

static void gpu_fault(uint64_t time_ns, uint64_t addr, um_access_kind_t access)
{
    um_event_t e = {.type = UM_EV_GPU_FAULT};

    e.u.gpu_fault =
        (um_ev_gpu_fault_t){.addr = addr, .duration_ns = 50000, .groups = 1, .access = access};
    put(e, time_ns, 0);
}

static void cpu_fault(uint64_t time_ns, uint64_t addr, um_access_kind_t access)
{
    um_event_t e = {.type = UM_EV_CPU_FAULT};

    e.u.cpu_fault = (um_ev_cpu_fault_t){.addr = addr, .access = access};
    put(e, time_ns, 0);
}

static um_workload_t *end(void)
{
    um_workload_t *w = NULL;
    char error[512] = "";

    cr_assert_eq(um_workload_loader_finish(loader, &w, error, sizeof error), UM_OK, "%s", error);
    return w;
}

static const um_step_t *nth(const um_workload_t *w, uint32_t type, unsigned n)
{
    for (uint64_t i = 0; i < w->n_steps; i++)
        if ((w->steps[i].event ? w->steps[i].event->type : UM_EV_NONE) == type && n-- == 0)
            return &w->steps[i];
    cr_assert_fail("no such step");
    return NULL;
}

Test(recorded, a_launch_touches_what_moved_for_it_and_may_write_it)
{
    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    uint64_t start = launch(1, 1, 10 * MS);
    /* out of order and in pieces, as the driver tells it */
    migrate(start + 2 * MS, BASE + 4 * MIB, 65536, -1, 0, UM_CAUSE_COHERENCE, 1000);
    migrate(start + 3 * MS, BASE + 65536, 65536, -1, 0, UM_CAUSE_PREFETCH, 1000);
    migrate(start + 4 * MS, BASE, 65536, -1, 0, UM_CAUSE_COHERENCE, 1000);
    um_workload_t *w = end();
    const um_step_t *s = nth(w, UM_EV_LAUNCH, 0);
    cr_assert_eq(s->n_touches, 4);
    const um_touch_t *t = &w->touches[s->first_touch];
    cr_expect_eq(t[0].addr, BASE + 4 * MIB, "that block came first");
    cr_expect_eq(t[0].kind, UM_ACCESS_READ);
    cr_expect_eq(t[1].kind, UM_ACCESS_WRITE);
    cr_expect_eq(t[1].beside, 1);
    cr_expect_eq(t[2].addr, BASE);
    cr_expect_eq(t[2].bytes, 131072, "one run");
    cr_expect_eq(t[2].region, 1, "found by its address");
    um_workload_free(w);
}

Test(recorded, through_a_pointer_to_const_nothing_is_written)
{
    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER | UM_PARAM_CONST_POINTER);
    uint64_t start = launch(1, 1, 10 * MS);
    migrate(start + MS, BASE, 65536, -1, 0, UM_CAUSE_COHERENCE, 1000);
    um_workload_t *w = end();
    const um_step_t *s = nth(w, UM_EV_LAUNCH, 0);
    cr_assert_eq(s->n_touches, 1);
    cr_expect_eq(w->touches[s->first_touch].kind, UM_ACCESS_READ);
    um_workload_free(w);
}

Test(recorded, what_a_launch_alike_needed_was_in_place)
{
    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    region(2, BASE + 16 * MIB, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    uint64_t start = launch(1, 1, 10 * MS);
    migrate(start + MS, BASE, 2 * MIB, -1, 0, UM_CAUSE_COHERENCE, 1000);
    launch(1, 1, MS);
    launch(1, 2, MS); /* other arguments: nothing is known */
    um_workload_t *w = end();
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 0)->n_touches, 2);
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 1)->n_touches, 2);
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 2)->n_touches, 0);
    um_workload_free(w);
}

Test(recorded, in_a_deep_one_each_launch_stands_for_itself)
{
    begin(UM_WORKLOAD_DEEP);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    uint64_t start = launch(1, 1, 10 * MS);
    migrate(start + MS, BASE, 2 * MIB, -1, 0, UM_CAUSE_COHERENCE, 1000);
    launch(1, 1, MS);
    um_workload_t *w = end();
    cr_expect_eq(w->kind, UM_WORKLOAD_DEEP);
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 1)->n_touches, 0);
    um_workload_free(w);
}

Test(recorded, faults_without_migrations_are_first_touches)
{
    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 3 * MIB);
    kernel(1, UM_PARAM_POINTER);
    uint64_t start = launch(1, 1, 10 * MS);
    gpu_fault(start + MS, BASE + 4096, UM_ACCESS_WRITE);
    gpu_fault(start + 2 * MS, BASE + MIB, UM_ACCESS_WRITE);
    gpu_fault(start + 3 * MS, BASE + 2 * MIB + 131072, UM_ACCESS_WRITE);
    um_workload_t *w = end();
    const um_step_t *s = nth(w, UM_EV_LAUNCH, 0);
    cr_assert_eq(s->n_touches, 2);
    cr_expect_eq(w->touches[s->first_touch].kind, UM_ACCESS_WRITE);
    cr_expect_eq(w->touches[s->first_touch].addr, BASE);
    cr_expect_eq(w->touches[s->first_touch].bytes, 2 * MIB);
    cr_expect_eq(w->touches[s->first_touch + 1].bytes, 65536);
    um_workload_free(w);
}

Test(recorded, compute_time_is_without_the_service_of_faults)
{
    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    uint64_t start = launch(1, 1, 10 * MS);
    migrate(start + MS, BASE, 65536, -1, 0, UM_CAUSE_COHERENCE, 2 * MS);
    migrate(start + 2 * MS, BASE + 65536, 65536, -1, 0, UM_CAUSE_COHERENCE, 2 * MS); /* overlaps */
    launch(1, 1, 8 * MS); /* undisturbed: 8 ms is the least */
    kernel(2, UM_PARAM_POINTER);
    start = launch(2, 1, 10 * MS);
    migrate(start + MS, BASE + MIB, 65536, -1, 0, UM_CAUSE_COHERENCE, 2 * MS);
    um_workload_t *w = end();
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 0)->compute_ns, 8 * MS);
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 1)->compute_ns, 8 * MS);
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 2)->compute_ns, 8 * MS, "2 of 10 ms served a fault");
    um_workload_free(w);
}

Test(recorded, cpu_faults_are_a_host_phase_at_their_place)
{
    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    cpu_fault(now += MS, BASE, UM_ACCESS_WRITE); /* as the tree grows in one block */
    cpu_fault(now += MS, BASE + 65536, UM_ACCESS_WRITE);
    cpu_fault(now += MS, BASE + 131072, UM_ACCESS_WRITE);
    launch(1, 1, MS);
    sync_enter_and_exit();
    cpu_fault(now += MS, BASE + 4 * MIB, UM_ACCESS_READ);
    migrate(now + 1000, BASE + 4 * MIB, 131072, 0, -1, UM_CAUSE_COHERENCE, 1000);
    um_workload_t *w = end();
    const um_step_t *first = nth(w, UM_EV_NONE, 0), *second = nth(w, UM_EV_NONE, 1);
    cr_expect_eq(first->n_touches, 1);
    cr_expect_eq(w->touches[first->first_touch].kind, UM_ACCESS_WRITE);
    cr_expect_eq(w->touches[first->first_touch].bytes, 262144);
    cr_expect(first->cpu_ns > 2 * MS && first->cpu_ns < 3 * MS, "3 ms less what the faults took");
    cr_expect_eq(w->touches[second->first_touch].kind, UM_ACCESS_READ);
    cr_expect_eq(w->touches[second->first_touch].bytes, 131072);
    cr_expect(second > nth(w, UM_EV_SYNC, 0));
    cr_expect_eq(second->cpu_ns, MS, "the wait was no work");
    um_workload_free(w);
}

Test(recorded, prefetches_and_evictions_are_no_accesses)
{
    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    migrate(now += MS, BASE, 2 * MIB, 0, -1, UM_CAUSE_USER, 1000);
    uint64_t start = launch(1, 1, 10 * MS);
    migrate(start + MS, BASE, 2 * MIB, -1, 0, UM_CAUSE_USER, 1000);
    migrate(start + 2 * MS, BASE + 4 * MIB, 2 * MIB, 0, -1, UM_CAUSE_EVICTION, 1000);
    um_workload_t *w = end();
    cr_expect_eq(w->n_touches, 0);
    um_workload_free(w);
}

Test(recorded, records_that_come_after_the_free_are_of_the_region_that_was)
{
    um_event_t gone = {.type = UM_EV_REGION_FREE};

    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    uint64_t start = launch(1, 1, 10 * MS);
    migrate(start + 9 * MS, BASE, 2 * MIB, -1, 0, UM_CAUSE_COHERENCE, 5 * MS);
    gone.u.region_free.region = 1;
    put(gone, now += 1000, 1);
    region(2, BASE, 8 * MIB); /* in its place */
    now += 50 * MS;
    launch(1, 2, MS);
    um_workload_t *w = end();
    const um_step_t *s = nth(w, UM_EV_LAUNCH, 0);
    cr_assert_eq(s->n_touches, 2);
    cr_expect_eq(w->touches[s->first_touch].region, 1);
    um_workload_free(w);
}

Test(recorded, what_the_recorder_itself_does_is_not_the_programs_work)
{
    um_event_t push = {.type = UM_EV_HINT}, fact = {.type = UM_EV_FACT};
    um_event_t had = {.type = UM_EV_ACCESS};

    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    had.u.access = (um_ev_access_t){
        .addr = BASE, .bytes = MIB, .device = UM_DEVICE_HOST, .kind = UM_ACCESS_WRITE, .region = 1};
    put(had, now += MS, 1);
    push.u.hint = (um_ev_hint_t){.kind = UM_HINT_PREFETCH,
                                 .result = UM_HINT_APPLIED,
                                 .duration_ns = 20 * MS,
                                 .who = "deep",
                                 .why = ""};
    put(push, now += 1000, 1);
    fact.u.fact = (um_ev_fact_t){"workload.accesses", "deep"};
    put(fact, now += 20 * MS, 1);
    uint64_t start = launch(1, 1, 10 * MS);
    migrate(start + MS, BASE, 2 * MIB, -1, 0, UM_CAUSE_COHERENCE, 1000);
    launch(1, 1, MS);
    um_workload_t *w = end();
    cr_expect_eq(w->kind, UM_WORKLOAD_DEEP);
    cr_expect_eq(nth(w, UM_EV_NONE, 0)->cpu_ns, MS);
    cr_expect_eq(w->touches[nth(w, UM_EV_NONE, 0)->first_touch].bytes, MIB);
    cr_expect_leq(nth(w, UM_EV_LAUNCH, 0)->cpu_ns, 20000, "not the 20 ms of the push");
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 1)->n_touches, 0, "each shows its own");
    for (uint64_t i = 0; i < w->n_steps; i++)
        cr_expect(!w->steps[i].event || w->steps[i].event->type != UM_EV_HINT);
    um_workload_free(w);
}

Test(recorded, kernels_of_a_foreign_trace_are_launches_that_are_waited_for)
{
    um_event_t exec = {.type = UM_EV_KERNEL_EXEC};

    begin(UM_WORKLOAD_RECORDED);
    um_workload_loader_imported(loader);
    region(1, BASE, 8 * MIB);
    cpu_fault(now += MS, BASE, UM_ACCESS_WRITE);
    for (int i = 0; i < 2; i++) {
        exec.u.kernel_exec = (um_ev_kernel_exec_t){.kernel = 1, .duration_ns = 10 * MS};
        put(exec, now += MS, 0);
        migrate(now + MS, BASE + (uint64_t)i * 4 * MIB, 65536, -1, 0, UM_CAUSE_COHERENCE, 1000);
        now += 10 * MS;
    }
    cpu_fault(now += MS, BASE, UM_ACCESS_READ);
    cpu_fault(now += MS, BASE + MIB, UM_ACCESS_READ);
    um_workload_t *w = end();
    cr_assert_eq(w->n_launches, 2);
    cr_expect_eq(nth(w, UM_EV_LAUNCH, 0)->n_touches, 2);
    cr_expect_eq(w->touches[nth(w, UM_EV_LAUNCH, 1)->first_touch].addr, BASE + 4 * MIB);
    cr_expect_leq(nth(w, UM_EV_LAUNCH, 1)->cpu_ns, MS, "the first one was waited for");
    cr_expect(nth(w, UM_EV_SYNC, 0) > nth(w, UM_EV_LAUNCH, 1));
    cr_expect(nth(w, UM_EV_NONE, 1) > nth(w, UM_EV_SYNC, 0));
    cr_expect_eq(nth(w, UM_EV_NONE, 1)->n_touches, 2, "one phase");
    cr_expect_eq(w->n_steps, 6, "one wait");
    um_workload_free(w);
}

/* Recordings of programs whose accesses are known: tests/gpu/record_traces.sh. */
Test(recorded, real_recordings_load)
{
    static const struct {
        const char *name;
        uint32_t launches;
        uint64_t touched_min, touched_max; /* MiB, reads and writes */
    } known[] = {
        {"alternate", 3, 3 * 128, 3 * 128}, /* 64 MiB updated three times */
        {"first-touch", 2, 240, 256},       /* 128 MiB written twice */
        {"churn", 20, 155, 340},            /* 16 MiB written and read ten times */
        {"stencil", 6, 3 * 128, 6 * 128},
        {"table", 4, 100, 300},
        {"gather", 2, 80, 512},
        {"streams", 24, 24 * 64, 26 * 64},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        um_workload_t *w;
        char path[4096], error[512] = "";
        bool whole;

        snprintf(path, sizeof path, "%s/tests/data/h200/%s.umt", getenv("UM_SRCDIR"),
                 known[i].name);
        cr_assert_eq(um_workload_load(path, &w, &whole, error, sizeof error), UM_OK, "%s", error);
        cr_expect(whole);
        cr_expect_eq(w->kind, UM_WORKLOAD_RECORDED);
        cr_expect_eq(w->n_launches, known[i].launches, "%s", known[i].name);
        cr_expect(w->touched_bytes / MIB >= known[i].touched_min &&
                      w->touched_bytes / MIB <= known[i].touched_max,
                  "%s: %llu MiB", known[i].name, (unsigned long long)(w->touched_bytes / MIB));
        um_workload_free(w);
    }
}

/* The records that follow are refused as well; the first reason is the one to know. */
Test(recorded, a_launch_that_is_refused_is_told_of_whatever_the_records_say)
{
    um_workload_t *workload = NULL;
    char line[256] = "";
    uint64_t start;

    begin(UM_WORKLOAD_RECORDED);
    region(1, BASE, 8 * MIB);
    kernel(1, UM_PARAM_POINTER);
    start = launch(1, 1, MS);
    gpu_fault(start + 1000, BASE, UM_ACCESS_WRITE);
    migrate(start + 2000, BASE, 2 * MIB, UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE, 1000);
    sync_enter_and_exit();
    launch(1, 7, MS);
    cpu_fault(now += 1000, BASE, UM_ACCESS_READ);
    migrate(now += 1000, BASE, 2 * MIB, 0, UM_DEVICE_HOST, UM_CAUSE_COHERENCE, 1000);
    cr_assert_eq(um_workload_loader_finish(loader, &workload, line, sizeof line), UM_ERR_INVALID);
    cr_assert_eq(strncmp(line, "recorded: launch at ", 20), 0, "%s", line);
    cr_assert_not_null(strstr(line, "points into region 7, which is not alive"), "%s", line);
}
