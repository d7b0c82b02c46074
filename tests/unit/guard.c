/* The guard against programs whose times are known. */
#include "exec/guard.h"

#include <criterion/criterion.h>
#include <string.h>

#define MS  1000000u
#define MIB ((uint64_t)1 << 20)

/* A loop: launch, wait, some time of the CPU's. */
typedef struct program {
    um_guard_t *guard;
    uint64_t now_ns, started_ns, plain_ns; /* plain: what the same steps take without hints */
    uint64_t steps, withheld;
    uint64_t with_ns, without_ns; /* of a step */
    uint64_t bytes;               /* hinted in a step */
    uint64_t seed, noise_ns;
    bool no_waits;
    unsigned advisor;
    uint32_t kind; /* of the hint */
    uint32_t tid;
} program_t;

static uint64_t noise(program_t *program)
{
    program->seed = program->seed * 6364136223846793005u + 1442695040888963407u;
    return program->noise_ns ? (program->seed >> 33) % program->noise_ns : 0;
}

static void see(program_t *program, um_event_t *event)
{
    event->time_ns = program->now_ns;
    event->tid = program->tid;
    um_guard_observe(program->guard, event);
}

static program_t start(const um_guard_config_t *config, uint64_t with_ns, uint64_t without_ns)
{
    program_t program = {.now_ns = 1000 * MS,
                         .started_ns = 1000 * MS,
                         .with_ns = with_ns,
                         .without_ns = without_ns,
                         .bytes = 4 * MIB,
                         .seed = 7,
                         .kind = UM_HINT_PREFETCH};
    um_event_t kernel = {.type = UM_EV_KERNEL}, alloc = {.type = UM_EV_REGION_ALLOC};

    cr_assert_eq(um_guard_new(config, &program.guard), UM_OK);
    for (uint32_t i = 1; i <= 4; i++) {
        char name[] = {'k', (char)('0' + i), 0};

        kernel.u.kernel = (um_ev_kernel_t){.kernel = i, .name = name};
        see(&program, &kernel);
        alloc.u.region_alloc = (um_ev_region_alloc_t){.region = i,
                                                      .family = UM_FAMILY_MANAGED,
                                                      .addr = i << 28,
                                                      .bytes = i * MIB};
        see(&program, &alloc);
    }
    return program;
}

/* Is the advisor allowed at the launch of that kernel? */
static bool launch(program_t *program, uint32_t kernel)
{
    um_arg_t arg = {.region = kernel};
    um_event_t event = {.type = UM_EV_LAUNCH};
    um_hint_t hint = {.kind = program->kind, .bytes = program->bytes, .addr = kernel << 28};

    event.u.launch = (um_ev_launch_t){
        .kernel = kernel, .grid = {8, 1, 1}, .block = {64, 1, 1}, .n_args = 1, .args = &arg};
    see(program, &event);
    if (!(um_guard_allowed(program->guard) >> program->advisor & 1))
        return false;
    um_guard_admitted(program->guard, program->advisor, &hint);
    return true;
}

static void wait_for_it(program_t *program, uint64_t ns)
{
    um_event_t event = {.type = UM_EV_SYNC};

    if (!program->no_waits) {
        event.u.sync.kind = UM_SYNC_DEVICE;
        see(program, &event);
    }
    program->now_ns += ns;
    if (program->no_waits)
        return;
    event.u.sync.exit = 1;
    see(program, &event);
}

static void step(program_t *program)
{
    bool hinted = launch(program, 1);
    uint64_t extra = noise(program);

    wait_for_it(program, (hinted ? program->with_ns : program->without_ns) + extra);
    program->plain_ns += program->without_ns + extra;
    program->steps++;
    program->withheld += !hinted;
}

static void run_for(program_t *program, uint64_t ns)
{
    for (uint64_t until = program->now_ns + ns; program->now_ns < until;)
        step(program);
}

static const um_guard_config_t one_per_cent = {.budget_per_mille = 10, .advisor = {"a", "b"}};

Test(guard, what_wins_is_kept_and_its_baseline_costs_no_more_than_the_budget)
{
    program_t p = start(&one_per_cent, 2 * MS, 10 * MS);
    um_guard_stats_t stats;
    uint64_t took, best;

    p.noise_ns = MS / 10;
    run_for(&p, 4000ull * MS);
    um_guard_stats(p.guard, &stats);
    took = p.now_ns - p.started_ns;
    best = p.plain_ns - p.steps * 8 * MS;
    cr_assert(stats.measured && stats.won == 1 && stats.lost == 0);
    cr_assert(p.withheld >= 3, "%lu of %lu", p.withheld, p.steps);
    cr_assert((double)took < 1.011 * (double)best + 8 * MS, "%lu ns, at best %lu", took, best);
    /* It says what was saved: 8 ms each time. */
    cr_assert((double)stats.saved_ns > 0.95 * 8 * MS * (double)(p.steps - p.withheld));
    cr_assert((double)stats.saved_ns < 1.05 * 8 * MS * (double)(p.steps - p.withheld));
    um_guard_free(p.guard);
}

Test(guard, what_loses_is_given_up_before_it_costs_two_per_cent_of_two_seconds)
{
    static const uint64_t step_ns[] = {MS / 2, 2 * MS, 8 * MS};

    for (size_t i = 0; i < 3; i++)
        for (uint64_t percent = 5; percent <= 40; percent += 5) {
            program_t p = start(&one_per_cent, step_ns[i] * (100 + percent) / 100, step_ns[i]);
            um_guard_stats_t stats;

            p.noise_ns = step_ns[i] / 100;
            p.bytes = MIB;
            run_for(&p, 2000ull * MS);
            um_guard_stats(p.guard, &stats);
            cr_expect_eq(stats.lost, 1);
            cr_expect((double)(p.now_ns - p.started_ns) < 1.02 * (double)p.plain_ns,
                      "steps of %lu ns, %lu %% slower: %.3f of plain", step_ns[i], percent,
                      (double)(p.now_ns - p.started_ns) / (double)p.plain_ns);
            um_guard_free(p.guard);
        }
}

Test(guard, what_gains_nothing_is_given_up)
{
    program_t p = start(&one_per_cent, MS, MS);
    um_guard_stats_t stats;

    p.noise_ns = MS / 100;
    run_for(&p, 2000ull * MS);
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.lost, 1);
    um_guard_free(p.guard);
}

Test(guard, a_lost_hint_gets_a_rare_second_look_and_may_come_back)
{
    program_t p = start(&one_per_cent, 2 * MS, MS);
    um_guard_stats_t stats;
    uint64_t steps, withheld;

    p.bytes = MIB;
    run_for(&p, 1000ull * MS);
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.lost, 1);
    steps = p.steps;
    withheld = p.withheld;
    run_for(&p, 1000ull * MS);
    cr_assert((p.steps - steps) - (p.withheld - withheld) <= 1 + 9 * (p.steps - steps) / 64,
              "%lu of %lu", p.steps - steps - (p.withheld - withheld), p.steps - steps);
    p.with_ns = MS / 4; /* the program has changed */
    run_for(&p, 6000ull * MS);
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.lost, 0);
    um_guard_free(p.guard);
}

Test(guard, without_waits_there_are_no_rounds_and_nothing_is_withheld)
{
    program_t p = start(&one_per_cent, MS, MS);

    p.no_waits = true;
    run_for(&p, 2000ull * MS);
    cr_assert_eq(p.withheld, 0);
    um_guard_free(p.guard);
}

Test(guard, never_withholds_without_a_budget)
{
    um_guard_config_t none = {.advisor = {"a"}};
    program_t p = start(&none, MS, 5 * MS);

    run_for(&p, 2000ull * MS);
    cr_assert_eq(p.withheld, 0);
    um_guard_free(p.guard);
}

Test(guard, a_trial_withholds_every_other_round)
{
    um_guard_config_t trial = {.trial = true, .advisor = {"a"}};
    program_t p = start(&trial, MS, 5 * MS);

    run_for(&p, 2000ull * MS);
    cr_assert(p.withheld >= p.steps / 2 - 4 && p.withheld <= p.steps / 2 + 1, "%lu of %lu",
              p.withheld, p.steps);
    um_guard_free(p.guard);
}

Test(guard, withholds_at_one_place_at_a_time)
{
    program_t p = start(&one_per_cent, 0, 0);

    p.bytes = MIB / 4;
    for (uint32_t i = 0; i < 4000; i++) {
        unsigned without = 0;

        for (uint32_t k = 1; k <= 4; k++) {
            bool hinted = launch(&p, k);

            without += !hinted;
            wait_for_it(&p, hinted ? MS / 10 : MS / 5);
        }
        cr_assert_leq(without, 1);
        p.withheld += without;
    }
    cr_assert_geq(p.withheld, 12); /* each has had its turn */
    um_guard_free(p.guard);
}

Test(guard, advice_that_makes_rounds_longer_is_taken_back)
{
    program_t p = start(&one_per_cent, 2 * MS, 2 * MS);
    um_hint_t back;
    unsigned who = 99;

    for (int i = 0; i < 10; i++) { /* before: nothing is proposed */
        um_event_t event = {.type = UM_EV_LAUNCH};
        um_arg_t arg = {.region = 1};

        event.u.launch = (um_ev_launch_t){
            .kernel = 1, .grid = {8, 1, 1}, .block = {64, 1, 1}, .n_args = 1, .args = &arg};
        see(&p, &event);
        wait_for_it(&p, 2 * MS);
    }
    p.kind = UM_HINT_READ_MOSTLY;
    p.advisor = 1;
    cr_assert(launch(&p, 1));
    wait_for_it(&p, 20 * MS);
    cr_assert_not(um_guard_take_back(p.guard, &back, &who));
    p.kind = UM_HINT_PREFETCH;
    p.with_ns = 20 * MS;
    for (int i = 0; i < 8 && !um_guard_take_back(p.guard, &back, &who); i++)
        step(&p);
    cr_assert_eq(who, 1);
    cr_assert_eq(back.kind, UM_HINT_UNSET_READ_MOSTLY);
    cr_assert_eq(back.addr, 1 << 28);
    cr_assert_eq(back.bytes, p.bytes);
    cr_assert_not(um_guard_take_back(p.guard, &back, &who));
    cr_assert_not(launch(&p, 1));
    um_guard_free(p.guard);
}

Test(guard, rounds_in_which_its_advisor_has_taken_advice_back_are_rounds_without)
{
    program_t p = start(&one_per_cent, 2 * MS, 2 * MS);
    um_guard_stats_t stats;

    p.kind = UM_HINT_READ_MOSTLY;
    for (int i = 0; i < 6; i++)
        step(&p); /* no rounds before it */
    um_guard_stats(p.guard, &stats);
    p.kind = UM_HINT_UNSET_READ_MOSTLY;
    p.with_ns = 10 * MS;
    for (int i = 0; i < 6; i++)
        step(&p);
    um_guard_stats(p.guard, &stats);
    cr_assert(stats.measured);
    cr_assert(stats.saved_ns > 0);
    um_guard_free(p.guard);
}

Test(guard, advice_that_wins_stays)
{
    program_t p = start(&one_per_cent, 20 * MS, 20 * MS);
    um_hint_t back;
    unsigned who;
    um_guard_stats_t stats;

    p.bytes = 0; /* nothing admitted yet */
    for (int i = 0; i < 10; i++)
        step(&p);
    p.kind = UM_HINT_READ_MOSTLY;
    p.bytes = MIB;
    p.with_ns = 2 * MS;
    for (int i = 0; i < 40; i++) {
        step(&p);
        p.bytes = 0;
        p.kind = UM_HINT_PREFETCH;
        cr_assert_not(um_guard_take_back(p.guard, &back, &who));
    }
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.won, 1);
    um_guard_free(p.guard);
}

/* ---- programs whose steps take longer and longer, whatever is hinted ---- */

/* By a percent of the first in each. */
static void grow(program_t *p, uint64_t first_with_ns, uint64_t first_without_ns, int steps)
{
    for (int i = 0; i < steps; i++) {
        p->with_ns = first_with_ns + (uint64_t)i * first_with_ns / 100;
        p->without_ns = first_without_ns + (uint64_t)i * first_without_ns / 100;
        step(p);
    }
}

Test(guard, what_wins_a_little_is_kept_though_steps_grow)
{
    program_t p = start(&one_per_cent, 0, 0);
    um_guard_stats_t stats;

    p.bytes = MIB / 8;
    grow(&p, 10 * MS, 11 * MS, 400);
    um_guard_stats(p.guard, &stats);
    cr_assert(stats.won == 1 && stats.lost == 0);
    cr_assert(p.withheld < 100, "%lu", p.withheld);
    um_guard_free(p.guard);
}

Test(guard, what_loses_is_given_up_though_steps_shrink)
{
    program_t p = start(&one_per_cent, 0, 0);
    um_guard_stats_t stats;

    p.bytes = MIB / 8;
    for (int i = 0; i < 100; i++) {
        p.with_ns = (uint64_t)(200 - i) * MS / 10;
        p.without_ns = p.with_ns - p.with_ns / 20;
        step(&p);
    }
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.lost, 1);
    um_guard_free(p.guard);
}

/* As with a cache that grows: the rounds before the advice are shorter for another reason. */
Test(guard, advice_is_not_blamed_for_steps_that_grow)
{
    program_t p = start(&one_per_cent, 0, 0);
    um_hint_t back;
    unsigned who;

    p.bytes = 0;
    grow(&p, 10 * MS, 10 * MS, 20);
    p.kind = UM_HINT_READ_MOSTLY;
    p.bytes = MIB;
    for (int i = 20; i < 200; i++) {
        p.with_ns = 10 * MS + (uint64_t)i * MS / 10;
        step(&p);
        p.bytes = 0;
        p.kind = UM_HINT_PREFETCH;
        cr_assert_not(um_guard_take_back(p.guard, &back, &who), "step %d", i);
    }
    um_guard_free(p.guard);
}

/* ---- what is kept for another run ---- */

static um_ev_learned_t kept[8];
static char words[8][2][16];
static unsigned n_kept;

static void keep(void *ctx, const um_event_t *event)
{
    (void)ctx;
    cr_assert_lt(n_kept, 8);
    kept[n_kept] = event->u.learned;
    strcpy(words[n_kept][0], event->u.learned.who);
    strcpy(words[n_kept][1], event->u.learned.what);
    kept[n_kept].who = words[n_kept][0];
    kept[n_kept].what = words[n_kept][1];
    n_kept++;
}

/* ---- all of it is taken back ---- */

/* Its rounds take longer and longer. */
static void make_it_lose(program_t *p)
{
    p->with_ns = 20 * MS;
    p->kind = UM_HINT_PREFETCH;
    for (int i = 0; i < 8; i++)
        step(p);
}

static void advise(program_t *p, uint64_t addr)
{
    um_hint_t hint = {.kind = UM_HINT_READ_MOSTLY, .addr = addr, .bytes = MIB};

    cr_assert(um_guard_takes(p->guard, 0, &hint));
    um_guard_admitted(p->guard, 0, &hint);
}

static program_t with_advice(uint32_t ranges)
{
    program_t p = start(&one_per_cent, 2 * MS, 2 * MS);

    p.bytes = 0;
    for (int i = 0; i < 10; i++)
        step(&p);
    cr_assert(launch(&p, 1));
    for (uint32_t i = 0; i < ranges; i++)
        advise(&p, (uint64_t)i << 30);
    wait_for_it(&p, 20 * MS);
    return p;
}

static uint32_t taken_back(program_t *p, uint64_t *lowest)
{
    um_hint_t back;
    uint32_t n = 0;
    unsigned who;

    *lowest = UINT64_MAX;
    for (; um_guard_take_back(p->guard, &back, &who); n++) {
        cr_assert_eq(back.kind, UM_HINT_UNSET_READ_MOSTLY);
        cr_assert_eq(back.bytes, MIB);
        *lowest = back.addr < *lowest ? back.addr : *lowest;
    }
    return n;
}

Test(guard, every_range_of_advice_that_loses_is_taken_back)
{
    program_t p = with_advice(1000);
    uint64_t lowest;

    make_it_lose(&p);
    cr_assert_eq(taken_back(&p, &lowest), 1000);
    um_guard_free(p.guard);
}

Test(guard, advice_that_could_not_be_taken_back_is_not_given)
{
    program_t p = with_advice(0);
    um_hint_t hint = {.kind = UM_HINT_ACCESSED_BY, .bytes = MIB};
    uint32_t ranges = 0;

    cr_assert(launch(&p, 1));
    for (; ranges < 1u << 20 && um_guard_takes(p.guard, 0, &hint); hint.addr += MIB, ranges++)
        um_guard_admitted(p.guard, 0, &hint);
    cr_assert(ranges >= 4096 && ranges < 1u << 20, "%u", ranges);
    hint.addr = 0;
    cr_assert(um_guard_takes(p.guard, 0, &hint)); /* it is in force as it is */
    hint = (um_hint_t){.kind = UM_HINT_PREFETCH, .addr = (uint64_t)1 << 40, .bytes = MIB};
    cr_assert(um_guard_takes(p.guard, 0, &hint));
    um_guard_free(p.guard);
}

Test(guard, what_is_freed_is_not_taken_back)
{
    program_t p = with_advice(20);
    um_event_t event = {.type = UM_EV_REGION_ALLOC};
    uint64_t lowest;

    event.u.region_alloc = (um_ev_region_alloc_t){.region = 9,
                                                  .family = UM_FAMILY_MANAGED,
                                                  .addr = 0,
                                                  .bytes = (uint64_t)5 << 30};
    see(&p, &event);
    event = (um_event_t){.type = UM_EV_REGION_FREE};
    event.u.region_free = (um_ev_region_free_t){.region = 9, .addr = 0};
    see(&p, &event);
    make_it_lose(&p);
    cr_assert_eq(taken_back(&p, &lowest), 15);
    cr_assert_eq(lowest, (uint64_t)5 << 30);
    um_guard_free(p.guard);
}

/* ---- several threads ---- */

#define MANY 8u

typedef struct thread {
    uint64_t due_ns; /* its wait ends */
    uint64_t rounds, withheld;
    bool hinted, waiting;
} thread_t;

/* Threads that launch the same kernel, each in a loop of its own, and wait for it. */
static void run_side_by_side(program_t *p, thread_t *thread, uint32_t n, uint64_t ns)
{
    uint64_t until = p->now_ns + ns;

    while (p->now_ns < until) {
        um_event_t event = {.type = UM_EV_SYNC};
        uint32_t next = 0;

        for (uint32_t t = 1; t < n; t++)
            if (thread[t].due_ns < thread[next].due_ns)
                next = t;
        p->tid = 100 + next;
        if (thread[next].due_ns > p->now_ns)
            p->now_ns = thread[next].due_ns;
        event.u.sync.kind = UM_SYNC_STREAM;
        if (thread[next].waiting) {
            event.u.sync.exit = 1;
            see(p, &event);
        }
        thread[next].hinted = launch(p, 1);
        thread[next].rounds++;
        thread[next].withheld += !thread[next].hinted;
        event.u.sync.exit = 0;
        see(p, &event);
        thread[next].waiting = true;
        /* Each has its own pace. */
        thread[next].due_ns = p->now_ns + noise(p) +
                              (thread[next].hinted ? p->with_ns : p->without_ns) * (8 + next) / 8;
    }
}

Test(guard, of_threads_that_launch_side_by_side_it_does_not_say_what_they_save)
{
    program_t p = start(&one_per_cent, 2 * MS, 10 * MS);
    thread_t thread[MANY] = {0};
    um_guard_stats_t stats;

    p.noise_ns = MS / 10;
    run_side_by_side(&p, thread, MANY, 4000ull * MS);
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.at_once, MANY);
    cr_assert_not(stats.measured);
    cr_assert_eq(stats.saved_ns, 0);
    cr_assert_eq(stats.lost, 0);
    cr_assert(stats.won >= 1);
    um_guard_free(p.guard);
}

Test(guard, what_loses_is_given_up_by_all_threads_that_launch_side_by_side)
{
    program_t p = start(&one_per_cent, 12 * MS / 10, MS);
    thread_t thread[MANY] = {0};
    um_guard_stats_t stats;

    p.noise_ns = MS / 100;
    p.bytes = MIB;
    run_side_by_side(&p, thread, MANY, 1000ull * MS);
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.lost, stats.groups);
    memset(thread, 0, sizeof(thread));
    run_side_by_side(&p, thread, MANY, 1000ull * MS);
    for (uint32_t t = 0; t < MANY; t++)
        cr_assert(thread[t].withheld > thread[t].rounds * 8 / 10, "thread %u: %lu of %lu", t,
                  thread[t].withheld, thread[t].rounds);
    um_guard_free(p.guard);
}

Test(guard, a_thread_that_comes_later_does_not_try_again_what_others_have_given_up)
{
    program_t p = start(&one_per_cent, 12 * MS / 10, MS);
    thread_t thread[MANY] = {0};

    p.bytes = MIB;
    run_side_by_side(&p, thread, MANY - 1, 1000ull * MS);
    thread[MANY - 1].due_ns = p.now_ns;
    run_side_by_side(&p, thread, MANY, 1000ull * MS);
    cr_assert(thread[MANY - 1].withheld > thread[MANY - 1].rounds * 8 / 10);
    um_guard_free(p.guard);
}

Test(guard, one_verdict_for_a_profile_whatever_number_of_threads_come_to_it)
{
    program_t p = start(&one_per_cent, 2 * MS, MS);
    thread_t thread[MANY] = {0};

    p.bytes = MIB;
    run_side_by_side(&p, thread, MANY, 1000ull * MS);
    n_kept = 0;
    um_guard_learned(p.guard, keep, NULL);
    cr_assert_eq(n_kept, 1);
    um_guard_free(p.guard);
}

/* One launches and goes to sleep, the other launches and wakes it, and it waits. */
Test(guard, threads_that_take_turns_are_one_program)
{
    program_t p = start(&one_per_cent, 2 * MS, 10 * MS);
    um_guard_stats_t stats;
    uint64_t hinted = 0;

    for (uint64_t until = p.now_ns + 16000ull * MS; p.now_ns < until;) {
        bool first, second;

        p.tid = 1;
        first = launch(&p, 1);
        p.now_ns += MS / 10;
        p.tid = 2;
        second = launch(&p, 2);
        p.now_ns += MS / 10;
        p.tid = 1;
        wait_for_it(&p, (first ? 2 * MS : 10 * MS) + (second ? 2 * MS : 10 * MS));
        hinted += first + second;
    }
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.at_once, 0);
    cr_assert(stats.measured && stats.won == 2 && stats.lost == 0);
    cr_assert((double)stats.saved_ns > 0.9 * 8 * MS * (double)hinted);
    cr_assert((double)stats.saved_ns < 1.1 * 8 * MS * (double)hinted);
    um_guard_free(p.guard);
}

Test(guard, another_thread_may_do_the_waiting)
{
    program_t p = start(&one_per_cent, 2 * MS, 10 * MS);
    um_guard_stats_t stats;

    for (uint64_t until = p.now_ns + 4000ull * MS; p.now_ns < until; p.steps++) {
        bool hinted;

        p.tid = 1;
        hinted = launch(&p, 1);
        p.withheld += !hinted;
        p.tid = 2;
        wait_for_it(&p, hinted ? 2 * MS : 10 * MS);
    }
    um_guard_stats(p.guard, &stats);
    cr_assert_eq(stats.at_once, 0);
    cr_assert(stats.measured && stats.won == 1);
    cr_assert((double)stats.saved_ns > 0.95 * 8 * MS * (double)(p.steps - p.withheld));
    um_guard_free(p.guard);
}

/* ---- another run ---- */

Test(guard, what_an_earlier_run_found_to_lose_is_not_tried_again)
{
    program_t p = start(&one_per_cent, 2 * MS, MS);
    um_event_t event = {.type = UM_EV_LEARNED};
    uint64_t until;

    p.bytes = MIB;
    run_for(&p, 1000ull * MS);
    um_guard_learned(p.guard, keep, NULL);
    um_guard_free(p.guard);
    cr_assert_eq(n_kept, 1);

    p = start(&one_per_cent, 2 * MS, MS);
    p.bytes = MIB;
    event.u.learned = kept[0];
    see(&p, &event);
    event.u.learned.what = "nobody"; /* an advisor that is not asked in this run */
    see(&p, &event);
    for (until = 0; until < 60; until++)
        step(&p);
    cr_assert_eq(p.withheld, 60);
    um_guard_free(p.guard);
}

/* As a run tells it in which rounds are twice as long with hints. */
static um_event_t lost_verdict(void)
{
    program_t p = start(&one_per_cent, 2 * MS, MS);
    um_event_t event = {.type = UM_EV_LEARNED};

    n_kept = 0;
    run_for(&p, 1000ull * MS);
    um_guard_learned(p.guard, keep, NULL);
    um_guard_free(p.guard);
    cr_assert_eq(n_kept, 1);
    event.u.learned = kept[0];
    return event;
}

/* So that one that was wrong is not handed on from run to run for ever. */
Test(guard, a_verdict_is_handed_on_only_by_a_run_that_came_to_it)
{
    um_event_t event = lost_verdict();
    program_t p = start(&one_per_cent, 2 * MS, MS);

    see(&p, &event);
    for (int i = 0; i < 10; i++) /* too few to come to it */
        step(&p);
    cr_assert_eq(p.withheld, 10);
    n_kept = 0;
    um_guard_learned(p.guard, keep, NULL);
    cr_assert_eq(n_kept, 0);
    um_guard_free(p.guard);

    p = start(&one_per_cent, 2 * MS, MS);
    event.u.learned.age = 4; /* none of the last ones came to it */
    see(&p, &event);
    cr_assert(launch(&p, 1));
    um_guard_free(p.guard);
}

/* Its second look shows nothing: it goes on, and nobody hears of it. */
Test(guard, a_verdict_is_not_handed_on_by_a_run_that_could_not_tell)
{
    um_event_t event = lost_verdict();
    program_t p = start(&one_per_cent, 10 * MS, 10 * MS);

    p.noise_ns = 10 * MS;
    see(&p, &event);
    while (p.withheld == p.steps && p.steps < 100)
        step(&p);
    cr_assert_lt(p.withheld, 100); /* this was it, */
    cr_assert(launch(&p, 1));      /* and it goes on */
    n_kept = 0;
    um_guard_learned(p.guard, keep, NULL);
    cr_assert_eq(n_kept, 0);
    um_guard_free(p.guard);
}

Test(guard, hints_are_allowed_where_nothing_is_known)
{
    program_t p = start(&one_per_cent, MS, MS);

    cr_assert(launch(&p, 1));
    cr_assert(launch(&p, 2));
    um_guard_free(p.guard);
}
