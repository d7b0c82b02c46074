#include "um_event.h"

const char *um_status_string(um_status_t status)
{
    static const char *const text[UM_STATUS_COUNT] = {
        [0] = "ok",
        [-UM_ERR_INVALID] = "invalid argument",
        [-UM_ERR_NO_MEMORY] = "out of memory",
        [-UM_ERR_IO] = "input/output error",
        [-UM_ERR_FORMAT] = "unrecognised or damaged input",
        [-UM_ERR_TRUNCATED] = "truncated input",
        [-UM_ERR_VERSION] = "needs a newer reader",
        [-UM_ERR_UNSUPPORTED] = "not supported here",
        [-UM_ERR_BUSY] = "in use by somebody else",
        [-UM_ERR_NOT_FOUND] = "not found",
        [-UM_ERR_FULL] = "capacity used up",
        [-UM_ERR_STATE] = "called at the wrong time",
    };

    if (status > 0 || status <= -UM_STATUS_COUNT)
        return "unknown status";
    return text[-status];
}
