/*
 * make bench-report: does the report's first finding name the fault? Printed for the programs that the
 * rules were written with, and for those that they were not (planted.h): precision and recall of the first
 * finding by estimate and by replay, each kind with what was said instead, each miss by name. Exit status 1
 * when one of the held-out figures is below 0.95.
 *
 *   report_accuracy [fitted|0|1|2|3 [PROGRAM]]   that set alone; that program's reports
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planted.h"

#define ENOUGH 0.95
#define KINDS  64u

/* The draw whose figure counts: those before it have been looked at, and rules mended by them. */
static const uint32_t fresh = 2;

/* What was said of the programs of one kind. */
typedef struct row {
    const char *kind; /* "" = healthy */
    uint32_t planted, right;
    char instead[300];
} row_t;

typedef struct judged {
    row_t rows[KINDS];
    size_t n;
    um_accuracy_t accuracy;
} judged_t;

static void count(judged_t *judged, const um_planted_case_t *of, const char *first)
{
    const char *kind = of->program->kind ? of->program->kind : "";
    row_t *row = judged->rows;

    um_accuracy_add(&judged->accuracy, of->program, first);
    while (row < judged->rows + judged->n && strcmp(row->kind, kind) != 0)
        row++;
    if (row == judged->rows + judged->n)
        judged->rows[judged->n++].kind = kind;
    row->planted++;
    if (!strcmp(kind, first)) {
        row->right++;
        return;
    }
    snprintf(row->instead + strlen(row->instead), sizeof(row->instead) - strlen(row->instead),
             "%s%s", *row->instead ? ", " : "", *first ? first : "nothing");
}

static void miss(const um_planted_case_t *of, const um_first_t *first)
{
    const char *kind = of->program->kind ? of->program->kind : "";

    if (!strcmp(first->estimate, kind) && !strcmp(first->replay, kind))
        return;
    printf(
        "  miss: %-16s %3llu MiB, %2u rounds, %-13s planted %-19s by estimate %-19s by replay %s\n",
        of->program->name, (unsigned long long)(of->options.bytes >> 20), of->options.iterations,
        um_recording_name[of->recording], *kind ? kind : "nothing",
        *first->estimate ? first->estimate : "nothing", *first->replay ? first->replay : "nothing");
}

static void print(const char *how, const judged_t *judged)
{
    const um_accuracy_t *a = &judged->accuracy;

    printf("  %s: %u programs with a fault, %u healthy; precision %.3f, recall %.3f\n", how,
           a->planted, a->healthy, um_accuracy_precision(a), um_accuracy_recall(a));
    for (size_t i = 0; i < judged->n; i++) {
        const row_t *row = &judged->rows[i];

        printf("    %-20s %3u of %3u%s%s\n", *row->kind ? row->kind : "healthy", row->right,
               row->planted, *row->instead ? "; else " : "", row->instead);
    }
}

static bool enough(const judged_t *judged)
{
    return um_accuracy_precision(&judged->accuracy) >= ENOUGH &&
           um_accuracy_recall(&judged->accuracy) >= ENOUGH;
}

static bool fitted(uint32_t draw, size_t i, um_planted_case_t *of)
{
    (void)draw;
    return um_planted_fitted(i, of);
}

static bool judge(const char *title, bool (*set)(uint32_t, size_t, um_planted_case_t *),
                  uint32_t draw, const char *program)
{
    judged_t estimate = {0}, replay = {0};
    um_planted_case_t of;

    printf("%s\n", title);
    for (size_t i = 0; set(draw, i, &of); i++) {
        um_first_t first;

        if (program && strcmp(program, of.program->name) != 0)
            continue;
        if (!um_planted_first(&of, program ? stdout : NULL, &first))
            exit(2);
        miss(&of, &first);
        fflush(stdout);
        count(&estimate, &of, first.estimate);
        count(&replay, &of, first.replay);
    }
    print("by estimate", &estimate);
    print("by replay", &replay);
    return enough(&estimate) && enough(&replay);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "", *program = argc > 2 ? argv[2] : NULL;
    bool ok = true;

    if (!*only || !strcmp(only, "fitted"))
        judge("fitted: the rules were written with these programs", fitted, 0, program);
    for (uint32_t draw = 0; draw < UM_PLANTED_DRAWS; draw++) {
        char title[200];
        bool good;

        if (*only ? strtoul(only, NULL, 10) != draw || *only == 'f' : draw > fresh)
            continue;
        snprintf(title, sizeof(title), "held out, draw %u: %s", draw,
                 draw < fresh ? "looked at since, rules were mended by it"
                              : "no rule was mended by it: this is the figure");
        good = judge(title, um_planted_held_out, draw, program);
        ok = ok && (good || draw < fresh);
    }
    return ok ? 0 : 1;
}
