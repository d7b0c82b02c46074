/* The tables of `umrt replay` as one page: that of the report, with this part alone. */
#include <stdlib.h>

#include "replay.h"
#include "report/html.h"

um_status_t um_replay_html(const um_replay_t *replay, FILE *out)
{
    const um_report_options_t options = {.format = UM_REPORT_JSON, .top = 1, .width = 100};
    char *json = NULL;
    size_t bytes;
    um_emitter_t *e;
    FILE *text = open_memstream(&json, &bytes);
    um_status_t status = text ? um_emitter_open(&options, text, &e) : UM_ERR_NO_MEMORY;

    if (!status) {
        um_replay_print(replay, e);
        status = um_emitter_close(e);
    }
    if (text && fclose(text) && !status)
        status = UM_ERR_NO_MEMORY;
    if (!status)
        status = um_html_write(out, &(um_html_part_t){"replay", json}, 1);
    free(json);
    return status;
}
