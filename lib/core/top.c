#include "top.h"

#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bus.h"
#include "log.h"

#define GAP_NS      100000000u /* at least between two times that the page is written */
#define MAX_REGIONS 65536u     /* more are counted in the totals alone */
#define MAX_SITES   4096u
#define MAX_MODULES 512u
#define FIRST_FD    200 /* out of the way of programs that count on small numbers */

typedef struct region {
    uint32_t id; /* first: the tree's key */
    um_top_region_t row;
    struct region *previous, *next; /* of all */
} region_t;

typedef struct site {
    uint64_t call_site; /* first: the tree's key */
    char frames[sizeof(((um_top_region_t *)0)->frames)];
} site_t;

typedef struct module {
    um_top_module_t row;
    struct module *next;
} module_t;

struct um_top {
    um_top_source_t source;
    void *regions, *sites; /* tsearch trees */
    region_t *first;
    region_t *last_found; /* records of one region come together; NULL = look it up */
    module_t *modules;
    uint32_t n_regions, n_sites, n_modules;
    um_top_page_t *page; /* NULL = no managed memory so far, or there can be no page */
    bool tried;
    int fd;
    struct stat file;
    uint32_t seen; /* the last number asked with that was answered */
    uint64_t written_ns;
    um_top_figures_t figures; /* what is written next; the counts of events are kept here */
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the page ---- */

/* Of a fixed size, which nobody can take back, and under a number that is in nobody's way. */
static int make_file(void)
{
    int low = memfd_create(UM_TOP_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, FIRST_FD);

    if (low < 0)
        return -1;
    if (fd < 0)
        fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(low);
    if (fd < 0)
        return -1;
    if (fchmod(fd, S_IRUSR | S_IWUSR) == 0 && ftruncate(fd, sizeof(um_top_page_t)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

/* What is before it comes before what is after it. An exchange, not a fence, which ThreadSanitizer does not
 * understand. */
static void order(um_top_page_t *page)
{
    atomic_fetch_add_explicit(&page->sequence, 0, memory_order_acq_rel);
}

static void make_page(um_top_t *top)
{
    um_top_page_t *page;
    int fd;

    top->tried = true;
    if ((fd = make_file()) < 0)
        goto fail;
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        goto fail;
    /* The child of a fork has nothing to say. */
    if (madvise(page, sizeof(*page), MADV_DONTFORK) || fstat(fd, &top->file)) {
        munmap(page, sizeof(*page));
        goto fail;
    }
    page->version = UM_TOP_VERSION;
    page->bytes = sizeof(*page);
    page->pid = getpid();
    order(page);
    memcpy(page->magic, UM_TOP_MAGIC, sizeof(page->magic));
    top->figures.start_ns = now_ns();
    top->fd = fd;
    top->page = page;
    return;
fail:
    if (fd >= 0)
        close(fd);
    um_log(UM_LOG_INFO, "umrt top cannot look at this process: there can be no memory file");
}

static void write_page(um_top_t *top)
{
    um_top_page_t *page = top->page;

    /* Exchanged, not stored: nothing that follows may come before it. */
    atomic_fetch_add_explicit(&page->sequence, 1, memory_order_acq_rel);
    page->figures = top->figures;
    atomic_fetch_add_explicit(&page->sequence, 1, memory_order_release);
}

/* ---- regions ---- */

static int compare_ids(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int compare_sites(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static region_t *find_region(um_top_t *top, uint32_t id)
{
    void *found;

    if (!top->last_found || top->last_found->id != id) {
        found = tfind(&id, &top->regions, compare_ids);
        top->last_found = found ? *(region_t **)found : NULL;
    }
    return top->last_found;
}

static void drop_region(um_top_t *top, region_t *region)
{
    if (region->row.family == UM_FAMILY_MANAGED)
        top->figures.managed_bytes -= region->row.bytes;
    tdelete(&region->id, &top->regions, compare_ids);
    if (region->previous)
        region->previous->next = region->next;
    else
        top->first = region->next;
    if (region->next)
        region->next->previous = region->previous;
    top->last_found = NULL;
    top->n_regions--;
    free(region);
}

static void add_region(um_top_t *top, const um_ev_region_alloc_t *alloc)
{
    region_t *region;

    if (alloc->family == UM_FAMILY_MANAGED && !top->tried)
        make_page(top);
    if (top->n_regions == MAX_REGIONS || find_region(top, alloc->region) ||
        !(region = calloc(1, sizeof(*region))))
        return;
    region->id = alloc->region;
    region->row = (um_top_region_t){.id = alloc->region,
                                    .family = alloc->family,
                                    .addr = alloc->addr,
                                    .bytes = alloc->bytes,
                                    .call_site = alloc->call_site,
                                    .device = alloc->device};
    if (!tsearch(&region->id, &top->regions, compare_ids)) {
        free(region);
        return;
    }
    region->next = top->first;
    if (top->first)
        top->first->previous = region;
    top->first = region;
    top->n_regions++;
    if (alloc->family == UM_FAMILY_MANAGED)
        top->figures.managed_bytes += alloc->bytes;
}

/* The innermost frames, whole ones. */
static void add_site(um_top_t *top, const um_ev_call_site_t *event)
{
    site_t *site;
    size_t length = strlen(event->frames);

    if (top->n_sites == MAX_SITES || tfind(&event->call_site, &top->sites, compare_sites) ||
        !(site = calloc(1, sizeof(*site))))
        return;
    site->call_site = event->call_site;
    if (length >= sizeof(site->frames)) {
        length = sizeof(site->frames) - 1;
        while (length && event->frames[length] != ';')
            length--;
    }
    memcpy(site->frames, event->frames, length);
    if (tsearch(&site->call_site, &top->sites, compare_sites))
        top->n_sites++;
    else
        free(site);
}

static bool fits(char *out, size_t bytes, const char *text)
{
    size_t length = strlen(text);

    if (length >= bytes)
        return false;
    memcpy(out, text, length + 1);
    return true;
}

static void add_module(um_top_t *top, const um_ev_module_t *event)
{
    module_t *module = top->n_modules < MAX_MODULES ? calloc(1, sizeof(*module)) : NULL;

    if (!module)
        return;
    module->row.file_bytes = event->file_bytes;
    module->row.modified_ns = event->modified_ns;
    if (!fits(module->row.name, sizeof(module->row.name), event->name) ||
        !fits(module->row.path, sizeof(module->row.path), event->path) ||
        !fits(module->row.build_id, sizeof(module->row.build_id), event->build_id)) {
        free(module);
        return;
    }
    module->next = top->modules;
    top->modules = module;
    top->n_modules++;
}

/* ---- events ---- */

static void on_migrate(um_top_t *top, const um_ev_migrate_t *migrate)
{
    region_t *region = find_region(top, migrate->region);

    top->figures.migrations++;
    if (migrate->dst >= 0) {
        top->figures.to_gpu_bytes += migrate->bytes;
        if (region)
            region->row.to_gpu_bytes += migrate->bytes;
    } else if (migrate->dst == UM_DEVICE_HOST) {
        top->figures.to_host_bytes += migrate->bytes;
        if (region)
            region->row.to_host_bytes += migrate->bytes;
    }
}

static void on_event(void *ctx, const um_event_t *event)
{
    um_top_t *top = ctx;
    region_t *region;

    switch (event->type) {
    case UM_EV_REGION_ALLOC:
        add_region(top, &event->u.region_alloc);
        break;
    case UM_EV_REGION_FREE:
        if ((region = find_region(top, event->u.region_free.region)))
            drop_region(top, region);
        break;
    case UM_EV_REGION_LABEL:
        if ((region = find_region(top, event->u.region_label.region)))
            strncpy(region->row.label, event->u.region_label.label, sizeof(region->row.label) - 1);
        break;
    case UM_EV_CALL_SITE:
        add_site(top, &event->u.call_site);
        break;
    case UM_EV_MODULE:
        add_module(top, &event->u.module);
        break;
    case UM_EV_GPU_FAULT:
        top->figures.gpu_faults += event->u.gpu_fault.groups;
        if ((region = find_region(top, event->u.gpu_fault.region)))
            region->row.gpu_faults += event->u.gpu_fault.groups;
        break;
    case UM_EV_CPU_FAULT:
        top->figures.cpu_faults++;
        if ((region = find_region(top, event->u.cpu_fault.region)))
            region->row.cpu_faults++;
        break;
    case UM_EV_MIGRATE:
        on_migrate(top, &event->u.migrate);
        break;
    default:
        break;
    }
}

/* ---- what is asked for ---- */

/* Managed before others, then the larger. */
static int compare_regions(const void *a, const void *b)
{
    const um_top_region_t *x = &(*(region_t *const *)a)->row, *y = &(*(region_t *const *)b)->row;
    int managed = (y->family == UM_FAMILY_MANAGED) - (x->family == UM_FAMILY_MANAGED);

    if (managed)
        return managed;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : (x->id > y->id) - (x->id < y->id);
}

static void where_by_migrations(um_top_region_t *row)
{
    uint64_t stayed =
        row->to_gpu_bytes > row->to_host_bytes ? row->to_gpu_bytes - row->to_host_bytes : 0;

    memset(row->where_bytes, 0, sizeof(row->where_bytes));
    row->where_bytes[UM_WHERE_DEVICE] = stayed < row->bytes ? stayed : row->bytes;
    row->where_bytes[UM_WHERE_UNKNOWN] = row->bytes - row->where_bytes[UM_WHERE_DEVICE];
    row->where_known = UM_TOP_BY_MIGRATIONS;
}

static void fill_row(um_top_t *top, const region_t *region, um_top_region_t *row)
{
    void *site = tfind(&region->row.call_site, &top->sites, compare_sites);

    *row = region->row;
    if (site)
        memcpy(row->frames, (*(site_t **)site)->frames, sizeof(row->frames));
    if (row->family != UM_FAMILY_MANAGED)
        return;
    if (top->source.where && top->source.where(top->source.ctx, row->id, row->where_bytes))
        row->where_known = UM_TOP_BY_MODEL;
    else if (top->figures.recorded)
        where_by_migrations(row);
}

static void fill_regions(um_top_t *top)
{
    region_t **all = malloc((top->n_regions + 1) * sizeof(*all));
    uint32_t n = 0;

    top->figures.n_regions = 0;
    if (!all)
        return;
    for (region_t *region = top->first; region; region = region->next)
        all[n++] = region;
    qsort(all, n, sizeof(*all), compare_regions);
    for (uint32_t i = 0; i < n && i < UM_TOP_REGIONS; i++)
        fill_row(top, all[i], &top->figures.region[top->figures.n_regions++]);
    free(all);
}

static void fill_module(um_top_t *top, const char *name, size_t length)
{
    um_top_figures_t *figures = &top->figures;

    if (!length || length >= sizeof(figures->module->name) || figures->n_modules == UM_TOP_MODULES)
        return;
    for (uint32_t i = 0; i < figures->n_modules; i++)
        if (strncmp(figures->module[i].name, name, length) == 0 && !figures->module[i].name[length])
            return;
    for (const module_t *module = top->modules; module; module = module->next)
        if (strncmp(module->row.name, name, length) == 0 && !module->row.name[length]) {
            figures->module[figures->n_modules++] = module->row;
            return;
        }
}

/* What the frames that are shown name: "app+0x1234;libx.so+0x10". */
static void fill_modules(um_top_t *top)
{
    top->figures.n_modules = 0;
    for (uint32_t i = 0; i < top->figures.n_regions; i++)
        for (const char *frame = top->figures.region[i].frames; *frame;) {
            fill_module(top, frame, strcspn(frame, "+;"));
            frame += strcspn(frame, ";");
            frame += *frame == ';';
        }
}

/* Counts of our own stay. */
static void fill(um_top_t *top, uint64_t at_ns, bool last)
{
    um_top_figures_t *figures = &top->figures;

    figures->n_advisors = 0;
    memset(figures->advisor, 0, sizeof(figures->advisor));
    memset(figures->reason, 0, sizeof(figures->reason));
    figures->time_ns = at_ns;
    figures->ended = last;
    top->source.figures(top->source.ctx, figures);
    fill_regions(top);
    fill_modules(top);
}

static void on_idle(void *ctx)
{
    um_top_t *top = ctx;
    uint32_t asked;
    uint64_t now;

    if (!top->page)
        return;
    asked = atomic_load_explicit(&top->page->asked, memory_order_relaxed);
    if (asked == top->seen || (now = now_ns()) - top->written_ns < GAP_NS)
        return;
    top->seen = asked;
    top->written_ns = now;
    fill(top, now, false);
    write_page(top);
}

/* ---- life ---- */

um_status_t um_top_new(const um_top_source_t *source, um_top_t **out)
{
    um_top_t *top = calloc(1, sizeof(*top));

    if (!top)
        return UM_ERR_NO_MEMORY;
    top->source = *source;
    top->fd = -1;
    *out = top;
    return UM_OK;
}

void um_top_sink(um_top_t *top, um_sink_t *out)
{
    *out = (um_sink_t){.ctx = top, .event = on_event, .idle = on_idle};
}

void um_top_end(um_top_t *top)
{
    if (!top->page)
        return;
    fill(top, now_ns(), true);
    write_page(top);
}

/* A program that closes whatever is open may have given the number to a file of its own. */
static void close_file(um_top_t *top)
{
    struct stat now;

    if (top->fd >= 0 && fstat(top->fd, &now) == 0 && now.st_dev == top->file.st_dev &&
        now.st_ino == top->file.st_ino)
        close(top->fd);
    top->fd = -1;
}

void um_top_abandon(um_top_t *top)
{
    close_file(top);
    top->page = NULL;
}

void um_top_free(um_top_t *top)
{
    if (!top)
        return;
    while (top->first)
        drop_region(top, top->first);
    tdestroy(top->sites, free);
    for (module_t *module = top->modules, *next; module; module = next) {
        next = module->next;
        free(module);
    }
    if (top->page)
        munmap(top->page, sizeof(*top->page));
    close_file(top);
    free(top);
}

int um_top_fd(const um_top_t *top)
{
    return top->fd;
}
