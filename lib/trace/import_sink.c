#include "config.h"
#include "trace/import_sink.h"

#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct kernel_node {
    uint32_t id;
    char name[];
} kernel_node_t;

typedef struct region_node {
    uint64_t first,
        last; /* inclusive, so that the top of the address space needs no special case */
    uint32_t id;
} region_node_t;

static int kernel_compare(const void *a, const void *b)
{
    return strcmp(((const kernel_node_t *)a)->name, ((const kernel_node_t *)b)->name);
}

/* Ranges that overlap are equal: tfind with a one-byte range finds the region around it. */
static int region_compare(const void *a, const void *b)
{
    const region_node_t *x = a, *y = b;

    if (x->last < y->first)
        return -1;
    return x->first > y->last;
}

static int call_site_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

void um_import_begin(um_import_t *im, const char *path, um_event_fn fn, void *ctx, char *error,
                     size_t error_bytes)
{
    *im = (um_import_t){
        .path = path, .fn = fn, .ctx = ctx, .error = error, .error_bytes = error_bytes};
    if (error_bytes > 0)
        error[0] = '\0';
}

void um_import_end(um_import_t *im)
{
    tdestroy(im->kernels, free);
    tdestroy(im->regions, free);
    tdestroy(im->call_sites, free);
    im->kernels = im->regions = im->call_sites = NULL;
}

um_status_t um_import_fail(um_import_t *im, um_status_t status, const char *format, ...)
{
    va_list args;
    int n;

    if (im->error_bytes == 0)
        return status;
    n = snprintf(im->error, im->error_bytes, "%s: ", im->path);
    if (n >= 0 && (size_t)n < im->error_bytes) {
        va_start(args, format);
        vsnprintf(im->error + n, im->error_bytes - (size_t)n, format, args);
        va_end(args);
    }
    /* Part of it may come out of the file: it stays one line. */
    for (char *c = im->error; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return status;
}

void um_import_emit(um_import_t *im, um_event_type_t type, uint64_t time_ns, um_event_t *event)
{
    if (time_ns > im->now_ns)
        im->now_ns = time_ns;
    event->type = type;
    event->time_ns = im->now_ns;
    im->fn(im->ctx, event);
}

void um_import_fact(um_import_t *im, const char *key, const char *value)
{
    um_event_t event = {.u.fact = {.key = key, .value = value}};

    if (value != NULL && value[0] != '\0')
        um_import_emit(im, UM_EV_FACT, im->now_ns, &event);
}

void um_import_fact_number(um_import_t *im, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    um_import_fact(im, key, text);
}

void um_import_option(um_import_t *im, const char *name, const char *value, const char *source)
{
    um_event_t event = {.u.option = {.name = name, .value = value, .source = source}};

    um_import_emit(im, UM_EV_OPTION, im->now_ns, &event);
}

void um_import_loss(um_import_t *im, uint64_t count, const char *reason)
{
    um_event_t event = {.u.loss = {.what = UM_EV_NONE, .count = count, .reason = reason}};

    um_import_emit(im, UM_EV_LOSS, im->now_ns, &event);
}

void um_import_header(um_import_t *im, um_import_kind_t kind)
{
    const char *slash = strrchr(im->path, '/');

    um_import_fact(im, "umrt.version", PACKAGE_VERSION);
    um_import_fact(im, "import.kind", um_import_kind_name(kind));
    um_import_fact(im, "import.file", slash != NULL ? slash + 1 : im->path);
}

uint32_t um_import_kernel(um_import_t *im, uint64_t time_ns, const char *name)
{
    size_t n = strlen(name) + 1;
    kernel_node_t *node = malloc(sizeof *node + n);
    kernel_node_t **found = NULL;

    if (node != NULL) {
        memcpy(node->name, name, n);
        node->id = im->n_kernels + 1;
        found = tsearch(node, &im->kernels, kernel_compare);
    }
    if (found == NULL) {
        free(node);
        im->status = UM_ERR_NO_MEMORY;
        return 0;
    }
    if (*found != node) {
        free(node);
    } else {
        um_event_t event = {.u.kernel = {.kernel = node->id, .name = node->name}};

        im->n_kernels++;
        um_import_emit(im, UM_EV_KERNEL, time_ns, &event);
    }
    return (*found)->id;
}

static void region_forget(um_import_t *im, region_node_t *node)
{
    tdelete(node, &im->regions, region_compare);
    free(node);
}

uint32_t um_import_region_alloc(um_import_t *im, uint64_t time_ns,
                                const um_ev_region_alloc_t *alloc)
{
    um_event_t event = {.u.region_alloc = *alloc};
    bool mapped = alloc->bytes > 0 && alloc->addr <= UINT64_MAX - (alloc->bytes - 1);
    region_node_t *node = malloc(sizeof *node);
    region_node_t **found;

    if (node == NULL) {
        im->status = UM_ERR_NO_MEMORY;
        return 0;
    }
    *node = (region_node_t){.first = alloc->addr,
                            .last = alloc->addr + alloc->bytes - 1,
                            .id = im->n_regions + 1};
    /* A free that the trace does not show. */
    while (mapped && (found = tfind(node, &im->regions, region_compare)) != NULL)
        um_import_region_free(im, time_ns, (*found)->first);
    if (!mapped) {
        free(node);
    } else if (tsearch(node, &im->regions, region_compare) == NULL) {
        free(node);
        im->status = UM_ERR_NO_MEMORY;
        return 0;
    }
    event.u.region_alloc.region = ++im->n_regions;
    um_import_emit(im, UM_EV_REGION_ALLOC, time_ns, &event);
    return im->n_regions;
}

void um_import_region_label(um_import_t *im, uint64_t time_ns, uint32_t region, const char *label)
{
    um_event_t event = {.u.region_label = {.region = region, .label = label}};

    if (region != 0 && label != NULL && label[0] != '\0')
        um_import_emit(im, UM_EV_REGION_LABEL, time_ns, &event);
}

static region_node_t *region_find(const um_import_t *im, uint64_t addr)
{
    region_node_t key = {.first = addr, .last = addr};
    region_node_t **found = tfind(&key, (void *const *)&im->regions, region_compare);

    return found != NULL ? *found : NULL;
}

void um_import_region_free(um_import_t *im, uint64_t time_ns, uint64_t addr)
{
    region_node_t *node = region_find(im, addr);
    um_event_t event = {.u.region_free = {.region = node != NULL ? node->id : 0, .addr = addr}};

    um_import_emit(im, UM_EV_REGION_FREE, time_ns, &event);
    if (node != NULL)
        region_forget(im, node);
}

uint32_t um_import_region_at(const um_import_t *im, uint64_t addr)
{
    const region_node_t *node = addr != 0 ? region_find(im, addr) : NULL;

    return node != NULL ? node->id : 0;
}

bool um_import_call_site_new(um_import_t *im, uint64_t call_site)
{
    uint64_t *id = malloc(sizeof *id);
    uint64_t **found = NULL;
    bool fresh;

    if (id != NULL) {
        *id = call_site;
        found = tsearch(id, &im->call_sites, call_site_compare);
    }
    if (found == NULL)
        im->status = UM_ERR_NO_MEMORY;
    fresh = found != NULL && *found == id;
    if (!fresh)
        free(id);
    return fresh;
}
