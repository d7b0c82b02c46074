/*
 * How often the report's first finding is the fault that was planted may not fall unseen: the programs that
 * the rules were written with, and those of make bench-report that they were not (bench/planted.h).
 */
#include <criterion/criterion.h>

#include <string.h>

#include "bench/planted.h"
#include "report/findings/finding.h"

#define FRESH 2u /* the draw that no rule was mended by */

typedef bool (*set_t)(uint32_t draw, size_t i, um_planted_case_t *out);

static bool fitted(uint32_t draw, size_t i, um_planted_case_t *out)
{
    (void)draw;
    return um_planted_fitted(i, out);
}

static void judge(set_t set, uint32_t draw, um_accuracy_t *estimate, um_accuracy_t *replay)
{
    um_planted_case_t of;

    for (size_t i = 0; set(draw, i, &of); i++) {
        um_first_t first;

        cr_assert(um_planted_first(&of, NULL, &first), "%s", of.program->name);
        um_accuracy_add(estimate, of.program, first.estimate);
        um_accuracy_add(replay, of.program, first.replay);
    }
}

static void enough(set_t set, uint32_t draw)
{
    um_accuracy_t estimate = {0}, replay = {0};

    judge(set, draw, &estimate, &replay);
    cr_assert_geq(estimate.planted, 40u);
    cr_assert_geq(estimate.healthy, 40u);
    cr_expect_geq(um_accuracy_precision(&estimate), 0.95, "%g", um_accuracy_precision(&estimate));
    cr_expect_geq(um_accuracy_recall(&estimate), 0.95, "%g", um_accuracy_recall(&estimate));
    cr_expect_geq(um_accuracy_precision(&replay), 0.95, "%g", um_accuracy_precision(&replay));
    cr_expect_geq(um_accuracy_recall(&replay), 0.95, "%g", um_accuracy_recall(&replay));
}

Test(accuracy, of_the_first_finding_on_programs_that_the_rules_were_written_with)
{
    enough(fitted, 0);
}

Test(accuracy, of_the_first_finding_on_programs_that_they_were_not)
{
    enough(um_planted_held_out, FRESH);
}

Test(accuracy, every_kind_of_finding_is_planted_in_both_sets)
{
    for (const um_finding_kind_t *kind = um_finding_table; kind->name; kind++) {
        um_planted_case_t of;
        uint32_t n[2] = {0, 0};

        for (size_t i = 0; um_planted_fitted(i, &of); i++)
            n[0] += of.program->kind && !strcmp(of.program->kind, kind->name);
        for (size_t i = 0; um_planted_held_out(FRESH, i, &of); i++)
            n[1] += of.program->kind && !strcmp(of.program->kind, kind->name);
        cr_expect_geq(n[0], 2u, "%s", kind->name);
        cr_expect_geq(n[1], 3u, "%s", kind->name);
    }
}

/* The same programs again, to the same findings: nothing in it goes by a clock. */
Test(accuracy, is_the_same_each_time)
{
    for (size_t i = 0; i < 130; i += 13) {
        um_planted_case_t of, again;
        um_first_t a, b;

        cr_assert(um_planted_held_out(FRESH, i, &of) && um_planted_held_out(FRESH, i, &again));
        cr_assert(um_planted_first(&of, NULL, &a) && um_planted_first(&again, NULL, &b));
        cr_expect_str_eq(a.estimate, b.estimate);
        cr_expect_str_eq(a.replay, b.replay);
    }
}
