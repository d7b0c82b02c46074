/* Every advisor there is. A table, because a static archive drops objects nobody names. */
#include "um_advisor.h"

extern const um_advisor_ops_t um_advisor_first_touch, um_advisor_ahead, um_advisor_readback;

const um_advisor_ops_t *const um_advisor_table[] = {
    &um_advisor_first_touch,
    &um_advisor_ahead,
    &um_advisor_readback,
    NULL,
};
