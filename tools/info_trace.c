/* umrt info FILE: what a trace is, what it holds, whether it is whole. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "totals.h"
#include "um_tools.h"

#define REGIONS_SHOWN 20

static json_t *count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *moved(const um_moved_t *m)
{
    json_t *o = json_object();

    json_object_set_new(o, "to_gpu_bytes", count(m->to_gpu_bytes));
    json_object_set_new(o, "to_host_bytes", count(m->to_host_bytes));
    json_object_set_new(o, "between_gpus_bytes", count(m->between_gpus_bytes));
    return o;
}

static json_t *regions(const um_totals_t *totals)
{
    json_t *list = json_array();

    for (size_t i = 0; i < totals->n_regions; i++) {
        const um_total_region_t *r = &totals->regions[i];
        json_t *o = moved(&r->moved);
        char addr[32];

        snprintf(addr, sizeof addr, "0x%" PRIx64, r->region.addr);
        json_object_set_new(o, "region", count(r->region.id));
        json_object_set_new(o, "label", um_info_text(r->label != NULL ? r->label : ""));
        json_object_set_new(o, "family", json_string(um_family_name(r->region.family)));
        json_object_set_new(o, "addr", json_string(addr));
        json_object_set_new(o, "bytes", count(r->region.bytes));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *document(const char *path, const um_trace_info_t *info, const um_totals_t *totals,
                        const char *damage)
{
    json_t *root = json_pack("{s:s, s:i, s:o}", "schema", "umrt-trace-info", "schema_version", 1,
                             "file", um_info_text(path));
    json_t *types = json_object(), *facts = json_object(), *gpus = json_array();

    for (size_t i = 0; i < totals->n_facts; i++)
        json_object_set_new(facts, totals->facts[i].key, um_info_text(totals->facts[i].value));
    for (size_t i = 0; i < totals->n_devices; i++)
        json_array_append_new(gpus, um_info_device(&totals->devices[i]));
    for (uint32_t t = 1; t < UM_EV_TYPE_COUNT; t++)
        if (totals->by_type[t] != 0)
            json_object_set_new(types, um_event_type_name(t), count(totals->by_type[t]));
    json_object_set_new(root, "format_version", count(info->version));
    json_object_set_new(root, "file_bytes", count(info->file_bytes));
    json_object_set_new(root, "blocks", count(info->blocks));
    json_object_set_new(root, "span_ns", count(info->last_ns - info->first_ns));
    json_object_set_new(root, "finished", json_boolean(info->finished));
    json_object_set_new(root, "damage", um_info_text(damage));
    json_object_set_new(root, "facts", facts);
    json_object_set_new(root, "gpus", gpus);
    json_object_set_new(root, "events", count(totals->events));
    json_object_set_new(root, "events_by_type", types);
    json_object_set_new(root, "lost", count(totals->lost));
    json_object_set_new(root, "lost_is_lower_bound", json_boolean(totals->lost_uncounted));
    json_object_set_new(root, "moved", moved(&totals->moved));
    json_object_set_new(root, "moved_outside_regions", moved(&totals->moved_nowhere));
    json_object_set_new(root, "managed_regions", regions(totals));
    return root;
}

/* ---- text, from the document ------------------------------------------------------------------- */

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void bytes_cell(const json_t *object, const char *key)
{
    char text[UM_SAY_BYTES];

    printf("  %14s", um_say_bytes(text, number(object, key)));
}

static void moved_row(const json_t *object, const char *name)
{
    um_print("  %-24.24s", name);
    if (json_object_get(object, "bytes") != NULL)
        bytes_cell(object, "bytes");
    else
        printf("  %14s", "");
    bytes_cell(object, "to_gpu_bytes");
    bytes_cell(object, "to_host_bytes");
    bytes_cell(object, "between_gpus_bytes");
    putchar('\n');
}

static void regions_text(const json_t *root)
{
    const json_t *list = json_object_get(root, "managed_regions"), *r,
                 *outside = json_object_get(root, "moved_outside_regions");
    size_t i;

    printf("\n  %-24s  %14s  %14s  %14s  %14s\n", "managed region", "size", "to the GPU", "back",
           "between GPUs");
    json_array_foreach(list, i, r)
    {
        char name[256];

        if (i == REGIONS_SHOWN) {
            printf("  ... %zu more (--json has all)\n", json_array_size(list) - i);
            break;
        }
        snprintf(name, sizeof name, "%" PRIu64 " %s", number(r, "region"),
                 json_string_value(json_object_get(r, "label")));
        moved_row(r, name);
    }
    if (number(outside, "to_gpu_bytes") + number(outside, "to_host_bytes") +
            number(outside, "between_gpus_bytes") !=
        0)
        moved_row(outside, "outside of all");
    moved_row(json_object_get(root, "moved"), "all");
}

static void text(const json_t *root)
{
    char a[UM_SAY_BYTES], b[UM_SAY_BYTES], c[UM_SAY_BYTES];
    const char *type;
    json_t *n;

    um_print("%s", json_string_value(json_object_get(root, "file")));
    printf(": %s in %s block%s, the last event %.6f s after the first, %s\n",
           um_say_bytes(a, number(root, "file_bytes")), um_say_count(b, number(root, "blocks")),
           number(root, "blocks") == 1 ? "" : "s", (double)number(root, "span_ns") / 1e9,
           json_is_true(json_object_get(root, "finished"))
               ? "finished"
               : "not closed (killed, or still written)");
    printf("\nfacts\n");
    um_info_rows(json_object_get(root, "facts"));
    um_info_gpus(json_object_get(root, "gpus"));
    printf("\n%s events, %s lost%s\n", um_say_count(a, number(root, "events")),
           um_say_count(c, number(root, "lost")),
           json_is_true(json_object_get(root, "lost_is_lower_bound")) ? ", more may be missing"
                                                                      : "");
    json_object_foreach(json_object_get(root, "events_by_type"), type, n)
        printf("  %-14s  %12s\n", type, um_say_count(a, (uint64_t)json_integer_value(n)));
    regions_text(root);
}

int um_info_trace(const char *path, bool as_json)
{
    char error[PATH_MAX + 256] = "";
    um_trace_info_t info = {0};
    um_totals_t totals;
    um_status_t status;
    int exit_status = UM_EXIT_USAGE;

    status = um_totals_read(path, &totals, &info, error, sizeof error);
    if (info.version != 0)
        exit_status = um_info_print(document(path, &info, &totals, error), as_json, text);
    um_totals_free(&totals);
    if (status != UM_OK) {
        um_say("%s", error);
        return UM_EXIT_USAGE;
    }
    return exit_status;
}
