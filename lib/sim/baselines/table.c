/* The baselines. A table, because a static archive drops objects nobody names. */
#include "sim/policy.h"

extern const um_advisor_ops_t um_baseline_static, um_baseline_deepum;

const um_advisor_ops_t *const um_baseline_table[] = {
    &um_baseline_static,
    &um_baseline_deepum,
    NULL,
};
