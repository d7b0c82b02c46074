/* um_mangled_param_flags on any text. */
#include "core/kernels.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *name = malloc(bytes + 3);
    uint32_t flags[16];

    if (name == NULL)
        return 0;
    memcpy(name, "_Z", 2);
    memcpy(name + 2, data, bytes);
    name[bytes + 2] = '\0';
    um_mangled_param_flags(name, flags, 16);
    free(name);
    return 0;
}
