/*
 * False sharing: a CPU fault on one region took bytes of another with it, because both lie in one
 * page: of 4 KiB, which never can be in two places, or of 64 KiB, to which the driver grows faults.
 */
#include "finding.h"

static bool groups_known(const um_shared_page_t *page, const um_report_t *r)
{
    for (uint32_t i = 0; i < page->n; i++) {
        if (page->sharer[i].group >= r->regions.n_groups)
            return false;
    }
    return true;
}

static void names(const um_report_t *r, const um_shared_page_t *page, uint64_t addr, uint64_t bytes,
                  uint64_t *n, char *out, size_t size)
{
    *out = 0;
    *n = 0;
    for (uint32_t i = 0; i < page->n; i++) {
        const struct um_sharer *sharer = &page->sharer[i];
        char name[96];

        if (sharer->addr >= addr + bytes || sharer->addr + sharer->bytes <= addr)
            continue;
        um_group_name(&r->regions.groups[sharer->group], name, sizeof(name));
        um_finding_say(out, size, "%s%s (%s)", (*n)++ ? ", " : "", name,
                       um_h(um_bytes(sharer->bytes)));
    }
}

UM_DETECTOR(um_detect_false_sharing)
{
    for (size_t s = 0; s < report->regions.n_shared; s++) {
        const um_shared_page_t *page = &report->regions.shared[s];
        um_finding_t f = {.kind = kind, .confidence = page->small_addr ? 90 : 75};
        uint64_t dragged = 0, faults = 0, victims = 0, n, n_small = 0;
        char all[300], small[300] = "", faulted[96] = "";
        um_status_t status;

        for (uint32_t i = 0; i < page->n; i++) {
            dragged += page->sharer[i].dragged_bytes;
            victims += page->sharer[i].dragged_bytes > 0;
        }
        faults = page->dragging_faults;
        if (!dragged || !groups_known(page, report))
            continue;
        names(report, page, page->addr, UM_BIG_PAGE_BYTES, &n, all, sizeof(all));
        if (page->small_addr)
            names(report, page, page->small_addr, UM_PAGE_BYTES, &n_small, small, sizeof(small));
        if (page->faulted < page->n)
            um_group_name(&report->regions.groups[page->sharer[page->faulted].group], faulted,
                          sizeof(faulted));
        um_say_in(f.title, "False sharing of a page");
        um_say_in(f.where, "64 KiB page %s: %s", um_h(um_addr(page->addr)), all);
        if (page->small_addr)
            um_say_in(f.where, "; in the 4 KiB page %s: %s", um_h(um_addr(page->small_addr)),
                      small);
        if (page->pc)
            um_say_in(f.where, "; CPU at pc %s", um_h(um_addr(page->pc)));
        um_say_in(
            f.seen,
            "%s CPU page fault%s on this page took %s of %s other region%s to the CPU as well",
            um_h(um_count(faults)), faults == 1 ? "" : "s", um_h(um_bytes(dragged)),
            um_h(um_count(victims)), victims == 1 ? "" : "s");
        if (*faulted)
            um_say_in(f.seen, " (the last at %s+%s)", faulted,
                      um_h(um_count(page->faulted_offset)));
        um_say_in(f.seen, "; in all %s went to the GPU and %s came back, %s change%s of direction",
                  um_h(um_bytes(page->in_bytes)), um_h(um_bytes(page->out_bytes)),
                  um_h(um_count(page->turns)), page->turns == 1 ? "" : "s");
        um_say_in(f.todo, "give each buffer pages of its own: round sizes up to 64 KiB, or pass "
                          "small ones by value or in pinned memory");
        um_say_in(f.code12,
                  "cudaMallocManaged(&p, (n + 65535) / 65536 * 65536, cudaMemAttachGlobal);");
        f.win_ns = (uint64_t)((double)page->wait_ns * (double)dragged /
                              (double)(page->out_bytes ? page->out_bytes : 1));
        um_say_in(f.basis, "the dragged bytes' share of the %s that the CPU waited for this page",
                  um_h(um_ns(page->wait_ns)));
        um_finding_evidence(&f, "page", um_addr(page->addr));
        um_finding_evidence(&f, "page_4k",
                            page->small_addr ? um_addr(page->small_addr) : um_none());
        um_finding_evidence(&f, "regions_in_64k", um_count(n));
        um_finding_evidence(&f, "regions_in_4k", um_count(n_small));
        um_finding_evidence(&f, "cpu_faults", um_count(faults));
        um_finding_evidence(&f, "dragged_bytes", um_bytes(dragged));
        um_finding_evidence(&f, "dragged_regions", um_count(victims));
        um_finding_evidence(&f, "to_device_bytes", um_bytes(page->in_bytes));
        um_finding_evidence(&f, "to_host_bytes", um_bytes(page->out_bytes));
        um_finding_evidence(&f, "turns", um_count(page->turns));
        um_finding_evidence(&f, "cpu_wait_ns", um_ns(page->wait_ns));
        for (uint32_t i = 0; i < page->n; i++)
            um_finding_place(&f, report, page->sharer[i].group,
                             (um_place_t){.bytes = page->sharer[i].dragged_bytes,
                                          .faults = page->sharer[i].cpu_faults +
                                                    page->sharer[i].gpu_faults});
        status = um_findings_add(out, &f);
        if (status)
            return status;
    }
    return UM_OK;
}
