/* The workload of arbitrary .umt bytes: whole and inside its regions, or one line. */
#include <stdlib.h>

#include "sim/workload_load.h"
#include "trace/reader.h"
#include "trace_mend.h"

static void check(const um_workload_t *w)
{
    uint64_t touches = 0;
    uint32_t launches = 0;

    for (uint64_t i = 0; i < w->n_steps; i++) {
        const um_step_t *s = &w->steps[i];

        if (s->first_touch != touches)
            abort();
        touches += s->n_touches;
        if (s->event && s->event->type == UM_EV_LAUNCH && s->launch != launches++)
            abort();
        for (uint32_t k = 0; k < s->n_touches; k++) {
            const um_touch_t *t = &w->touches[s->first_touch + k];

            if (!t->bytes || !t->region || t->addr + t->bytes < t->addr || (k == 0 && t->beside) ||
                t->kind < UM_ACCESS_READ || t->kind > UM_ACCESS_ATOMIC)
                abort();
        }
    }
    if (touches != w->n_touches || launches != w->n_launches || launches == 0 || w->n_gpus < 1 ||
        w->n_gpus > 8)
        abort();
}

static void load(const uint8_t *data, size_t size, bool forgive)
{
    um_trace_reader_t *reader;
    um_workload_t *workload = NULL;
    char line[512] = "";
    um_trace_whole_t whole;

    if (um_trace_reader_open_memory(data, size, "fuzz", UM_TRACE_TIME_ORDER, &reader, line,
                                    sizeof line) != UM_OK)
        return;
    if (um_workload_read(reader, "fuzz", forgive, &workload, &whole, line, sizeof line) == UM_OK)
        check(workload);
    else if (strncmp(line, "fuzz: ", 6) != 0 || strchr(line, '\n'))
        abort();
    um_workload_free(workload);
    um_trace_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    load(data, size, false);
    load(data, size, true);
    return 0;
}
