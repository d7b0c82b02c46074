/* The nvprof log reader on arbitrary bytes. */
#include <stdio.h>

#include "import_check.h"
#include "trace/import_sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[256];
    um_check_t check = {0};
    um_import_t im;
    FILE *in;

    if (size == 0 || (in = fmemopen((void *)data, size, "rb")) == NULL)
        return 0;
    if (um_import_is_nvprof_text(in) == UM_OK) {
        rewind(in);
        um_import_begin(&im, "dir/x.log", um_check_event, &check, error, sizeof error);
        um_check_status(um_import_nvprof_text(&im, in), error);
        um_import_end(&im);
    }
    fclose(in);
    return 0;
}
