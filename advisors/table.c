/* Every advisor there is. A table, because a static archive drops objects nobody names. */
#include "um_advisor.h"

extern const um_advisor_ops_t um_advisor_calm, um_advisor_evict, um_advisor_placement,
    um_advisor_read_mostly, um_advisor_first_touch, um_advisor_ahead, um_advisor_readback,
    um_advisor_lookahead;

/* Those that hold a range or free room before those that fill it. */
const um_advisor_ops_t *const um_advisor_table[] = {
    &um_advisor_calm,     &um_advisor_placement,   &um_advisor_read_mostly,
    &um_advisor_evict,    &um_advisor_first_touch, &um_advisor_ahead,
    &um_advisor_readback, &um_advisor_lookahead,   NULL,
};
