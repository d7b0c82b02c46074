/*
 * Host-read tail: pages that the CPU faulted back and that no GPU wanted again. What goes to and fro
 * is ping-pong's.
 */
#include "finding.h"

UM_DETECTOR(um_detect_host_read_tail)
{
    um_finding_t f = {.kind = kind, .confidence = 90};
    uint64_t bytes = 0, copies = 0, faults = 0, wait = 0, pc = 0, pages = 0;

    for (uint32_t g = 0; g < report->regions.n_groups; g++) {
        const um_page_set_t *tail = &report->regions.groups[g].tail;

        if (!tail->pages)
            continue;
        bytes += tail->out_bytes;
        copies += tail->out_copies;
        faults += tail->cpu_faults;
        wait += tail->wait_ns;
        pages += tail->pages;
        pc = tail->cpu_faults && tail->pc ? tail->pc : pc;
        um_finding_place(&f, report, g,
                         (um_place_t){.bytes = tail->out_bytes,
                                      .copies = tail->out_copies,
                                      .faults = tail->cpu_faults,
                                      .ns = tail->wait_ns});
    }
    if (!faults || !bytes)
        return UM_OK;
    um_say_in(f.title, "Host-read tail");
    for (uint32_t i = 0; i < f.n_places && i < 4; i++)
        um_say_in(f.where, "%s%s", i ? ", " : "", f.places[i].region);
    if (f.n_places + f.places_left > 4)
        um_say_in(f.where, " and %s more", um_h(um_count(f.n_places + f.places_left - 4)));
    if (pc)
        um_finding_pc(f.where, sizeof(f.where), report, pc);
    um_say_in(f.seen,
              "%s came back to the CPU by %s page fault%s in %s cop%s, and no GPU wanted it again; "
              "the CPU waited %s",
              um_h(um_bytes(bytes)), um_h(um_count(faults)), faults == 1 ? "" : "s",
              um_h(um_count(copies)), copies == 1 ? "y" : "ies", um_h(um_ns(wait)));
    um_say_in(f.advice,
              "prefetch the results to the host on the stream that makes them, so that they "
              "arrive by the end of the wait");
    f.change = UM_CHANGE_PREFETCH_BACK;
    um_finding_win(&f, report, "from CPU faults to the end of the copies that answered them", wait,
                   UM_TO_HOST, bytes);
    um_finding_evidence(&f, "cpu_faults", um_count(faults));
    um_finding_evidence(&f, "to_host_copies", um_count(copies));
    um_finding_evidence(&f, "to_host_bytes", um_bytes(bytes));
    um_finding_evidence(&f, "to_host_copies_in_trace", um_count(report->regions.out_copies));
    um_finding_evidence(&f, "pages_64k", um_count(pages));
    um_finding_evidence(&f, "cpu_wait_ns", um_ns(wait));
    um_finding_evidence(&f, "cpu_pc", um_addr(pc));
    return um_findings_add(out, &f);
}
