/* The line at exit, word for word. */
#include <criterion/criterion.h>

#include "core/summary.h"

static um_summary_t hint(void)
{
    return (um_summary_t){.state = UM_RUNTIME_HINT, .reason = ""};
}

static void expect(const um_summary_t *summary, const char *line)
{
    char out[512];

    um_summary_line(summary, out, sizeof(out));
    cr_assert_str_eq(out, line);
}

Test(summary, says_what_was_prefetched)
{
    um_summary_t s = hint();

    s.hinted_launches = 12;
    s.stats.launches = 5000;
    s.stats.hints_applied = 96;
    s.stats.prefetched_bytes = (uint64_t)3 << 30;
    expect(&s, "prefetched 3.0 GiB in 96 pieces ahead of 12 of 5000 launches");
    s.stats.hints_refused[UM_HINT_REFUSED_CAPACITY] = 3;
    s.stats.hints_refused[UM_HINT_REFUSED_DUPLICATE] = 2;
    s.stats.hints_failed = 1;
    s.stats.hints_cancelled = 4;
    s.declined = 1;
    expect(&s, "prefetched 3.0 GiB in 96 pieces ahead of 12 of 5000 launches; refused 3 capacity, "
               "2 duplicate; 1 failed; 4 cancelled; 1 argument too large to guess");
    s = hint();
    s.hinted_launches = s.stats.launches = s.stats.hints_applied = 1;
    s.stats.prefetched_bytes = 65536;
    expect(&s, "prefetched 64.0 KiB in 1 piece ahead of 1 of 1 launch");
}

Test(summary, says_what_that_was_worth)
{
    um_summary_t s = hint();

    s.hinted_launches = 12;
    s.stats.launches = 5000;
    s.stats.hints_applied = 96;
    s.stats.prefetched_bytes = (uint64_t)3 << 30;
    s.guard.groups = 3;
    expect(&s, "prefetched 3.0 GiB in 96 pieces ahead of 12 of 5000 launches; too short a run to "
               "measure what that saved");
    s.guard.measured = true;
    s.guard.saved_ns = 1234567890;
    s.guard.error_ns = 3400000;
    s.guard.withheld = 7;
    expect(&s, "prefetched 3.0 GiB in 96 pieces ahead of 12 of 5000 launches; saved 1.23 s +- 3.4 "
               "ms, by 7 rounds without hints");
    s.guard.saved_ns = -17000;
    s.guard.withheld = s.guard.lost = 1;
    expect(&s, "prefetched 3.0 GiB in 96 pieces ahead of 12 of 5000 launches; lost 17 us +- 3.4 "
               "ms, by 1 round without hints; given up in 1 of 3 places");
    s.guard.measured = false;
    s.guard.at_once = 8;
    expect(&s, "prefetched 3.0 GiB in 96 pieces ahead of 12 of 5000 launches; what that saved is "
               "not measured: 8 threads launch at once; given up in 1 of 3 places");
}

Test(summary, says_that_others_are_on_the_gpu)
{
    um_summary_t s = hint();

    s.stats.launches = s.stats.launches_managed = 10;
    s.stats.hints_refused[UM_HINT_REFUSED_CAPACITY] = 3;
    s.processes = 1;
    expect(&s, "nothing prefetched; refused 3 capacity");
    s.processes = 4;
    expect(&s, "nothing prefetched; refused 3 capacity; a gpu is shared by 4 processes");
}

Test(summary, says_why_there_was_nothing_to_do)
{
    um_summary_t s = hint();

    expect(&s, "nothing to do: no kernel was launched with managed memory");
    s.stats.launches = 10;
    s.stats.launches_managed = 7;
    expect(&s, "nothing to do: what 7 launches needed was there already");
    s.stats.hints_refused[UM_HINT_REFUSED_CAPACITY] = 3;
    expect(&s, "nothing prefetched; refused 3 capacity");
    s.reason = "concurrentManagedAccess is 0";
    expect(&s, "observed only: concurrentManagedAccess is 0");
}

Test(summary, says_what_was_recorded_or_seen)
{
    um_summary_t s = {.state = UM_RUNTIME_RECORD, .reason = "", .trace_path = "t.umt"};

    s.stats.events = 123;
    expect(&s, "recorded 123 events to t.umt, 0 lost");
    s.state = UM_RUNTIME_OBSERVE;
    expect(&s, "observed nothing: no kernel was launched with managed memory");
    s.stats.launches = 2;
    s.stats.launches_managed = 1;
    expect(&s, "observed 2 launches, 1 of them with managed memory");
    s.state = UM_RUNTIME_INERT;
    expect(&s, "not active: switched off");
    s.reason = "no driver";
    expect(&s, "not active: no driver");
}

Test(summary, fits_where_it_is_put)
{
    um_summary_t s = hint();
    char out[16];

    for (int r = 0; r < UM_HINT_RESULT_COUNT; r++)
        s.stats.hints_refused[r] = UINT64_MAX;
    cr_assert_gt(um_summary_line(&s, out, sizeof(out)), 16);
    cr_assert_eq(strlen(out), 15);
}

Test(summary, sizes_have_their_unit)
{
    char out[32];

    um_summary_bytes(1023, out);
    cr_assert_str_eq(out, "1023 bytes");
    um_summary_bytes((uint64_t)3 << 19, out);
    cr_assert_str_eq(out, "1.5 MiB");
    um_summary_bytes(UINT64_MAX, out);
    cr_assert_str_eq(out, "16777216.0 TiB");
}
