/* Which kernel was it? Hand-made streams in time order; answers are collected as they come. */
#include <criterion/criterion.h>

#include "model/attribution.h"

#define ANSWERS 256

static struct {
    um_event_t event;
    um_attributed_t who;
} answer[ANSWERS];
static size_t answers;
static um_attribution_t *attribution;

static void on_answer(void *ctx, const um_event_t *event, const um_attributed_t *who)
{
    (void)ctx;
    cr_assert_lt(answers, (size_t)ANSWERS);
    answer[answers].event = *event;
    answer[answers++].who = *who;
}

static void setup(void)
{
    answers = 0;
    cr_assert_eq(um_attribution_new(on_answer, NULL, &attribution), UM_OK);
}

static void teardown(void)
{
    um_attribution_free(attribution);
}

static void put(um_event_t event)
{
    cr_assert_eq(um_attribution_event(attribution, &event), UM_OK);
}

static void launch(uint64_t at, uint32_t correlation, uint32_t kernel, uint32_t region)
{
    um_arg_t arg = {.region = region};

    put((um_event_t){.time_ns = at,
                     .type = UM_EV_LAUNCH,
                     .u.launch = {.correlation = correlation,
                                  .kernel = kernel,
                                  .n_args = region != 0,
                                  .args = &arg}});
}

static void exec(uint64_t at, uint64_t lasts, uint32_t correlation, uint32_t kernel, int32_t device)
{
    put((um_event_t){.time_ns = at,
                     .type = UM_EV_KERNEL_EXEC,
                     .u.kernel_exec = {.correlation = correlation,
                                       .kernel = kernel,
                                       .duration_ns = lasts,
                                       .device = device}});
}

static void fault(uint64_t at, uint64_t lasts, uint32_t region, int32_t device)
{
    put((um_event_t){
        .time_ns = at,
        .type = UM_EV_GPU_FAULT,
        .u.gpu_fault = {.duration_ns = lasts, .region = region, .device = device, .groups = 1}});
}

#define MS UINT64_C(1000000)

TestSuite(attribution, .init = setup, .fini = teardown);

Test(attribution, gives_a_fault_to_the_kernel_that_ran_when_it_began)
{
    exec(10 * MS, 5 * MS, 0, 7, 0);
    fault(11 * MS, MS, 0, 0);
    um_attribution_finish(attribution);
    cr_assert_eq(answers, 1u);
    cr_assert_eq(answer[0].who.to, (uint32_t)UM_TO_KERNEL);
    cr_assert_eq(answer[0].who.by, (uint32_t)UM_BY_TIME);
    cr_assert_eq(answer[0].who.kernel, 7u);
    cr_assert_eq(answer[0].who.serial, 1u);
    cr_assert_geq(answer[0].who.confidence, 80u);
}

Test(attribution, gives_nothing_to_anybody_when_no_kernel_is_near)
{
    exec(10 * MS, MS, 0, 7, 0);
    fault(20 * MS, MS, 0, 0);
    fault(2 * MS, MS, 0, 0); /* out of order and alone: no crash, no owner */
    um_attribution_finish(attribution);
    cr_assert_eq(answers, 2u);
    cr_assert_eq(answer[0].who.to, (uint32_t)UM_TO_NOBODY);
    cr_assert_eq(answer[0].who.confidence, 0u);
}

Test(attribution, waits_for_a_kernel_that_starts_while_the_fault_is_served)
{
    /* As in a real V100 log: the fault record begins 10 us before the kernel that caused it. */
    fault(457130000, 329120, 0, 0);
    cr_assert_eq(answers, 0u);
    exec(457140000, 380090, 0, 3, 0);
    um_attribution_finish(attribution);
    cr_assert_eq(answers, 1u);
    cr_assert_eq(answer[0].who.kernel, 3u);
    cr_assert_eq(answer[0].who.by, (uint32_t)UM_BY_OVERLAP);
    cr_assert_lt(answer[0].who.confidence, 80u);
}

Test(attribution, tells_kernels_at_once_apart_by_their_arguments)
{
    launch(1 * MS, 101, 1, 11);
    launch(1 * MS, 102, 2, 22);
    exec(2 * MS, 10 * MS, 101, 1, 0);
    exec(2 * MS, 10 * MS, 102, 2, 0);
    fault(5 * MS, MS, 22, 0);
    fault(6 * MS, MS, 11, 0);
    um_attribution_finish(attribution);
    cr_assert_eq(answers, 2u);
    cr_assert_eq(answer[0].who.kernel, 2u);
    cr_assert_eq(answer[0].who.correlation, 102u);
    cr_assert_eq(answer[0].who.by, (uint32_t)UM_BY_ARGUMENT);
    cr_assert_eq(answer[1].who.kernel, 1u);
    cr_assert_geq(answer[0].who.confidence, 90u);
}

Test(attribution, is_less_sure_when_two_kernels_fit_alike)
{
    launch(1 * MS, 101, 1, 11);
    launch(1 * MS, 102, 2, 11);
    exec(2 * MS, 10 * MS, 101, 1, 0);
    exec(3 * MS, 10 * MS, 102, 2, 0);
    fault(5 * MS, MS, 11, 0);
    um_attribution_finish(attribution);
    cr_assert_eq(answer[0].who.candidates, 2u);
    cr_assert_leq(answer[0].who.confidence, 50u);
    cr_assert_eq(answer[0].who.kernel, 2u, "the later one has more left to fault");
}

Test(attribution, doubts_a_kernel_whose_known_arguments_leave_the_region_out)
{
    launch(1 * MS, 101, 1, 11);
    exec(2 * MS, 10 * MS, 101, 1, 0);
    fault(5 * MS, MS, 33, 0);
    um_attribution_finish(attribution);
    cr_assert_eq(answer[0].who.kernel, 1u, "a pointer in memory may have led there");
    cr_assert_leq(answer[0].who.confidence, 50u);
    cr_assert_gt(answer[0].who.confidence, 0u);
}

Test(attribution, keeps_gpus_apart)
{
    exec(2 * MS, 10 * MS, 1, 1, 0);
    exec(2 * MS, 10 * MS, 2, 2, 1);
    fault(5 * MS, MS, 0, 1);
    um_attribution_finish(attribution);
    cr_assert_eq(answer[0].who.kernel, 2u);
    cr_assert_eq(answer[0].who.candidates, 1u);
}

Test(attribution, knows_a_copy_into_managed_memory_as_the_cause)
{
    put((um_event_t){.time_ns = 2 * MS,
                     .type = UM_EV_COPY,
                     .u.copy = {.duration_ns = MS,
                                .bytes = 262144,
                                .src_memory = UM_MEMORY_PAGEABLE,
                                .dst_memory = UM_MEMORY_MANAGED}});
    fault(2 * MS + 1000, MS / 2, 0, 0);
    um_attribution_finish(attribution);
    cr_assert_eq(answer[0].who.to, (uint32_t)UM_TO_COPY);
    cr_assert_eq(answer[0].who.serial, 0u);
}

Test(attribution, does_not_blame_a_copy_of_other_memory)
{
    put((um_event_t){.time_ns = 2 * MS,
                     .type = UM_EV_COPY,
                     .u.copy = {.duration_ns = MS,
                                .src_memory = UM_MEMORY_PAGEABLE,
                                .dst_memory = UM_MEMORY_DEVICE}});
    fault(2 * MS + 1000, MS / 2, 0, 0);
    um_attribution_finish(attribution);
    cr_assert_eq(answer[0].who.to, (uint32_t)UM_TO_NOBODY);
}

Test(attribution, goes_by_launch_order_where_there_are_no_kernel_times)
{
    launch(1 * MS, 101, 4, 11);
    fault(5 * MS, MS, 11, 0);
    put((um_event_t){.time_ns = 9 * MS,
                     .type = UM_EV_SYNC,
                     .u.sync = {.kind = UM_SYNC_DEVICE, .exit = 1}});
    fault(12 * MS, MS, 11, 0);
    um_attribution_finish(attribution);
    cr_assert_eq(answer[0].who.kernel, 4u);
    cr_assert_leq(answer[0].who.confidence, 60u);
    cr_assert_eq(answer[1].who.to, (uint32_t)UM_TO_NOBODY, "the wait is over");
}

Test(attribution, marks_the_first_fault_of_each_execution)
{
    exec(2 * MS, 4 * MS, 1, 1, 0);
    fault(3 * MS, MS, 0, 0);
    fault(4 * MS, MS, 0, 0);
    exec(10 * MS, 4 * MS, 2, 1, 0);
    fault(11 * MS, MS, 0, 0);
    um_attribution_finish(attribution);
    cr_assert(answer[0].who.first);
    cr_assert_not(answer[1].who.first);
    cr_assert(answer[2].who.first);
    cr_assert_eq(answer[2].who.serial, 2u);
}

Test(attribution, takes_migrations_that_a_gpu_caused_and_no_others)
{
    static const struct {
        int32_t src, dst;
        uint32_t cause;
        bool taken;
    } row[] = {
        {UM_DEVICE_HOST, 0, UM_CAUSE_COHERENCE, true},
        {UM_DEVICE_HOST, 0, UM_CAUSE_PREFETCH, true},
        {UM_DEVICE_HOST, 0, UM_CAUSE_UNKNOWN, true},
        {UM_DEVICE_HOST, 0, UM_CAUSE_USER, false},
        {0, UM_DEVICE_HOST, UM_CAUSE_EVICTION, true},
        {0, UM_DEVICE_HOST, UM_CAUSE_COHERENCE, false},
    };

    exec(1 * MS, 100 * MS, 1, 1, 0);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        size_t before = answers;

        put((um_event_t){.time_ns = (2 + i) * MS,
                         .type = UM_EV_MIGRATE,
                         .u.migrate = {.bytes = 4096,
                                       .src = row[i].src,
                                       .dst = row[i].dst,
                                       .cause = row[i].cause}});
        put((um_event_t){.time_ns = (2 + i) * MS + 1000, .type = UM_EV_MARK});
        cr_assert_eq(answers - before, (size_t)row[i].taken, "row %zu", i);
    }
}

Test(attribution, holds_a_bounded_number_of_records_whatever_their_length)
{
    /* Records that never end: the oldest are decided when the store is full. */
    for (uint64_t i = 0; i < 65536 + 100; i++)
        fault(i, UINT64_MAX, 0, 0);
    cr_assert_eq(answers, 100u);
}
