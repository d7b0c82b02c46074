/*
 * False sharing: a CPU fault on one region took bytes of another with it, because both lie in one
 * page: of 4 KiB, which never can be in two places, or of 64 KiB, to which the driver grows faults.
 */
#include "finding.h"

#include <stdlib.h>

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
        um_finding_say(out, size, "%s%s", (*n)++ ? ", " : "", name);
        if (r->regions.groups[sharer->group].label) /* else the name has it */
            um_finding_say(out, size, " (%s)", um_h(um_bytes(sharer->bytes)));
    }
}

/* Pages of the same groups in the same way are one finding: ranks, and buffers made again. */
static uint64_t key_of(const um_shared_page_t *page)
{
    uint32_t groups[UM_SHARERS_MAX + 1] = {0};

    for (uint32_t i = 0; i < page->n; i++)
        groups[i] = page->sharer[i].group + 1;
    groups[UM_SHARERS_MAX] = page->small_addr != 0;
    return um_map_hash(groups, sizeof(groups), 0);
}

typedef struct um_sharing {
    const um_shared_page_t *page; /* the first of them */
    uint64_t pages, faults, dragged, in_bytes, out_bytes, wait_ns, win_ns, turns;
    uint64_t dragged_of[UM_SHARERS_MAX], faults_of[UM_SHARERS_MAX];
} um_sharing_t;

static void add(um_sharing_t *to, const um_shared_page_t *page)
{
    uint64_t dragged = 0;

    for (uint32_t i = 0; i < page->n; i++) {
        dragged += page->sharer[i].dragged_bytes;
        to->dragged_of[i] += page->sharer[i].dragged_bytes;
        to->faults_of[i] += page->sharer[i].cpu_faults + page->sharer[i].gpu_faults;
    }
    to->pages++;
    to->faults += page->dragging_faults;
    to->dragged += dragged;
    to->in_bytes += page->in_bytes;
    to->out_bytes += page->out_bytes;
    to->wait_ns += page->wait_ns;
    to->turns = page->turns > to->turns ? page->turns : to->turns;
    to->win_ns += (uint64_t)((double)page->wait_ns * (double)dragged /
                             (double)(page->out_bytes ? page->out_bytes : 1));
}

static um_status_t tell(const um_report_t *r, const um_finding_kind_t *kind, const um_sharing_t *of,
                        um_findings_t *out)
{
    const um_shared_page_t *page = of->page;
    um_finding_t f = {.kind = kind, .confidence = page->small_addr ? 90 : 75};
    uint64_t victims = 0, n, n_small = 0;
    char all[300], small[300] = "", faulted[96] = "";

    for (uint32_t i = 0; i < page->n; i++)
        victims += of->dragged_of[i] > 0;
    names(r, page, page->addr, UM_BIG_PAGE_BYTES, &n, all, sizeof(all));
    if (page->small_addr)
        names(r, page, page->small_addr, UM_PAGE_BYTES, &n_small, small, sizeof(small));
    if (page->faulted < page->n)
        um_group_name(&r->regions.groups[page->sharer[page->faulted].group], faulted,
                      sizeof(faulted));
    um_say_in(f.title, "False sharing of a page");
    um_say_in(f.where, "64 KiB page %s: %s", um_h(um_addr(page->addr)), all);
    if (page->small_addr)
        um_say_in(f.where, "; in the 4 KiB page %s: %s", um_h(um_addr(page->small_addr)), small);
    if (of->pages > 1)
        um_say_in(f.where, "; and %s more like it", um_h(um_count(of->pages - 1)));
    if (page->pc)
        um_finding_pc(f.where, sizeof(f.where), r, page->pc);
    um_say_in(f.seen, "%s CPU page fault%s took %s of %s other region%s to the CPU as well",
              um_h(um_count(of->faults)), of->faults == 1 ? "" : "s", um_h(um_bytes(of->dragged)),
              um_h(um_count(victims)), victims == 1 ? "" : "s");
    if (*faulted)
        um_say_in(f.seen, " (the last at %s+%s)", faulted, um_h(um_count(page->faulted_offset)));
    um_say_in(f.seen, "; in all %s went to the GPU and %s came back, %s change%s of direction",
              um_h(um_bytes(of->in_bytes)), um_h(um_bytes(of->out_bytes)),
              um_h(um_count(of->turns)), of->turns == 1 ? "" : "s");
    um_say_in(f.advice,
              "give each buffer pages of its own: round sizes up to 64 KiB, or pass small "
              "ones by value or in pinned memory");
    f.asks = UM_CHANGE_PAGES;
    f.win_ns = of->win_ns;
    um_say_in(f.basis, "the dragged bytes' share of the %s that the CPU waited for this page",
              um_h(um_ns(of->wait_ns)));
    um_finding_evidence(&f, "page", um_addr(page->addr));
    um_finding_evidence(&f, "page_4k", page->small_addr ? um_addr(page->small_addr) : um_none());
    um_finding_evidence(&f, "pages", um_count(of->pages));
    um_finding_evidence(&f, "regions_in_64k", um_count(n));
    um_finding_evidence(&f, "regions_in_4k", um_count(n_small));
    um_finding_evidence(&f, "cpu_faults", um_count(of->faults));
    um_finding_evidence(&f, "dragged_bytes", um_bytes(of->dragged));
    um_finding_evidence(&f, "dragged_regions", um_count(victims));
    um_finding_evidence(&f, "to_device_bytes", um_bytes(of->in_bytes));
    um_finding_evidence(&f, "to_host_bytes", um_bytes(of->out_bytes));
    um_finding_evidence(&f, "turns", um_count(of->turns));
    um_finding_evidence(&f, "cpu_wait_ns", um_ns(of->wait_ns));
    for (uint32_t i = 0; i < page->n; i++)
        um_finding_place(&f, r, page->sharer[i].group,
                         (um_place_t){.bytes = of->dragged_of[i], .faults = of->faults_of[i]});
    return um_findings_add(out, &f);
}

UM_DETECTOR(um_detect_false_sharing)
{
    size_t pages = report->regions.n_shared, n = 0;
    um_sharing_t *list = pages ? calloc(pages, sizeof(*list)) : NULL;
    um_status_t status = pages && !list ? UM_ERR_NO_MEMORY : UM_OK;
    um_map_t by_key = {0};

    for (size_t s = 0; s < pages && !status; s++) {
        const um_shared_page_t *page = &report->regions.shared[s];
        uint32_t at;

        if (!page->dragging_faults || !groups_known(page, report))
            continue;
        at = um_map_find(&by_key, key_of(page));
        if (at == UM_MAP_NONE) {
            at = (uint32_t)n++;
            list[at].page = page;
            status = um_map_put(&by_key, key_of(page), at);
        }
        add(&list[at], page);
    }
    for (size_t i = 0; i < n && !status; i++)
        status = tell(report, kind, &list[i], out);
    um_map_free(&by_key);
    free(list);
    return status;
}
