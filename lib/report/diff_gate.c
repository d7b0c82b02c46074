/* --fail-on: conditions on a diff, for continuous integration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_parts.h"
#include "findings/finding.h"

bool um_diff_is_new(const um_diff_t *diff, const um_diff_item_t *finding)
{
    return finding->worth[1] && finding->there[1] * 2 > diff->side[1].n &&
           finding->there[0] * 2 < diff->side[0].n;
}

static const char *total_name(size_t i)
{
    return um_diff_total(i);
}

static um_status_t bad(char *error, size_t bytes, const char *condition)
{
    size_t n = (size_t)snprintf(error, bytes,
                                "'%s' is no condition: TOTAL>N%%, new-finding or new-finding=KIND, "
                                "with TOTAL one of",
                                condition);

    for (size_t i = 0; total_name(i) && n < bytes; i++)
        n += (size_t)snprintf(error + n, bytes - n, "%s %s", i ? "," : "", total_name(i));
    return UM_ERR_INVALID;
}

/* "faults>10%" */
static um_status_t judge_total(const um_diff_t *diff, um_diff_judged_t *judged, char *error,
                               size_t bytes)
{
    const char *condition = judged->condition, *than = strchr(condition, '>');
    const um_diff_change_t *change;
    char said[200], *end;
    double percent;
    size_t i = 0;

    while (than && total_name(i) &&
           (strlen(total_name(i)) != (size_t)(than - condition) ||
            strncmp(total_name(i), condition, (size_t)(than - condition)) != 0))
        i++;
    if (!than || !total_name(i) || strspn(than + 1, "0123456789.") + 1 != strlen(than + 1))
        return bad(error, bytes, condition);
    percent = strtod(than + 1, &end);
    if (strcmp(end, "%") != 0 || end == than + 1)
        return bad(error, bytes, condition);
    change = &diff->table[UM_DIFF_TOTALS].items[i].change[um_diff_totals[i].metric];
    if (change->verdict == UM_DIFF_UNKNOWN) {
        snprintf(error, bytes, "'%s' cannot be judged: not recorded in %s", condition,
                 diff->side[isnan(change->a) ? 0 : 1].paths[0]);
        return UM_ERR_UNSUPPORTED;
    }
    um_diff_say(change, um_diff_totals[i].metric, true, said, sizeof(said));
    judged->fired = change->surely && change->b > change->a * (1 + percent / 100);
    snprintf(judged->why, sizeof(judged->why), "%s%s", said,
             change->surely || change->b <= change->a * (1 + percent / 100)
                 ? ""
                 : ", which may be chance");
    return UM_OK;
}

static um_status_t judge_new(const um_diff_t *diff, um_diff_judged_t *judged, const char *kind,
                             char *error, size_t bytes)
{
    const um_diff_table_t *table = &diff->table[UM_DIFF_FINDINGS];
    const um_diff_item_t *first = NULL;
    const um_finding_kind_t *known = um_finding_table;
    size_t n = 0;

    while (kind && known->name && strcmp(known->name, kind) != 0)
        known++;
    if (!known->name) {
        snprintf(error, bytes, "'%s': there is no such kind of finding", judged->condition);
        return UM_ERR_INVALID;
    }
    for (size_t i = 0; i < table->n; i++) {
        const um_diff_item_t *item = &table->items[i];

        if ((kind && strcmp(item->kind, kind) != 0) || !um_diff_is_new(diff, item))
            continue;
        if (item->cut[0]) {
            snprintf(error, bytes,
                     "'%s' cannot be judged: %s and others lack findings; make them with a larger "
                     "--top",
                     judged->condition, diff->side[0].paths[0]);
            return UM_ERR_UNSUPPORTED;
        }
        first = first ? first : item;
        n++;
    }
    judged->fired = n > 0;
    if (!first)
        snprintf(judged->why, sizeof(judged->why), "none");
    else if (n == 1)
        snprintf(judged->why, sizeof(judged->why), "%s: %s", first->kind, first->name);
    else
        snprintf(judged->why, sizeof(judged->why), "%zu, first %s: %s", n, first->kind,
                 first->name);
    return UM_OK;
}

static um_status_t judge(um_diff_t *diff, const char *condition, bool *fired, char *error,
                         size_t bytes)
{
    static const char new_finding[] = "new-finding";
    size_t n = sizeof(new_finding) - 1;
    um_diff_judged_t *list = realloc(diff->judged, (diff->n_judged + 1) * sizeof(*list));
    um_diff_judged_t *judged;
    um_status_t status;

    if (!list)
        return UM_ERR_NO_MEMORY;
    diff->judged = list;
    judged = &list[diff->n_judged];
    *judged = (um_diff_judged_t){.condition = strdup(condition)};
    if (!judged->condition)
        return UM_ERR_NO_MEMORY;
    diff->n_judged++;
    if (strncmp(condition, new_finding, n) != 0)
        status = judge_total(diff, judged, error, bytes);
    else if (!condition[n])
        status = judge_new(diff, judged, NULL, error, bytes);
    else if (condition[n] == '=')
        status = judge_new(diff, judged, condition + n + 1, error, bytes);
    else
        status = bad(error, bytes, condition);
    *fired |= !status && judged->fired;
    return status;
}

um_status_t um_diff_fail_on(um_diff_t *diff, const char *conditions, bool *fired, char *error,
                            size_t error_bytes)
{
    um_status_t status = UM_OK;
    char *copy, *rest, *condition;

    if (!diff->compared)
        return UM_ERR_STATE;
    copy = rest = strdup(conditions);
    if (!copy)
        return UM_ERR_NO_MEMORY;
    snprintf(error, error_bytes, "out of memory");
    while (!status && (condition = strsep(&rest, ",")))
        status = judge(diff, condition, fired, error, error_bytes);
    free(copy);
    return status;
}
