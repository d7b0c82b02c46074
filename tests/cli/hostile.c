/*
 * hostile FILE SEED EVENTS - a trace of events that no driver would write, with the texts of a stranger who
 * means harm (tests/unit/any_event.h), times in order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/any_event.h"
#include "um_trace.h"

int main(int argc, char **argv)
{
    um_ev_fact_t facts[3];
    um_trace_writer_t *writer;
    uint64_t now = 1000, n;

    if (argc != 4)
        return 2;
    any_state = strtoull(argv[2], NULL, 10);
    n = strtoull(argv[3], NULL, 10);
    facts[0] = (um_ev_fact_t){"process.command", any_text()};
    facts[1] = (um_ev_fact_t){"host.name", any_text()};
    facts[2] = (um_ev_fact_t){any_text(), any_text()};
    if (um_trace_writer_open(argv[1], facts, 3, NULL, &writer) != UM_OK)
        return 1;
    for (uint64_t i = 0; i < n; i++) {
        um_event_t event;

        now += any_roll() % 3 ? any_roll() % 100000 : 0;
        event = any_event(now);
        if (um_trace_writer_put(writer, &event) != UM_OK)
            return 1;
    }
    return um_trace_writer_close(writer) == UM_OK ? 0 : 1;
}
