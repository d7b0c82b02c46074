#include "totals.h"

#include <stdlib.h>
#include <string.h>

#include "um_tools.h"

um_status_t um_totals_new(um_totals_t *out)
{
    *out = (um_totals_t){0};
    return um_regions_new(&out->live);
}

void um_totals_free(um_totals_t *totals)
{
    for (size_t i = 0; i < totals->n_regions; i++)
        free(totals->regions[i].label);
    free(totals->regions);
    for (size_t i = 0; i < totals->n_facts; i++) {
        free((char *)totals->facts[i].key);
        free((char *)totals->facts[i].value);
    }
    free(totals->facts);
    for (size_t i = 0; i < totals->n_devices; i++) {
        free((char *)totals->devices[i].name);
        free((char *)totals->devices[i].uuid);
        free((char *)totals->devices[i].pci);
    }
    free(totals->devices);
    if (totals->live != NULL)
        um_regions_free(totals->live);
}

/* Ids are given in order of allocation, so the list is sorted by them. */
static um_total_region_t *by_id(const um_totals_t *totals, uint32_t id)
{
    size_t low = 0, high = totals->n_regions;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (totals->regions[middle].region.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < totals->n_regions && totals->regions[low].region.id == id)
        return &totals->regions[low];
    return NULL;
}

static um_status_t region_alloc(um_totals_t *totals, const um_event_t *event)
{
    const um_ev_region_alloc_t *e = &event->u.region_alloc;
    um_region_t live = um_region_of(e, event->time_ns);
    um_total_region_t *more, added = {.region = live};

    if (e->family != UM_FAMILY_MANAGED && e->family != UM_FAMILY_SYSTEM)
        return UM_OK;
    if (totals->n_regions > 0 && totals->regions[totals->n_regions - 1].region.id >= e->region)
        return UM_OK; /* not a trace of ours: such a region has no row */
    if ((totals->n_regions & (totals->n_regions + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
        more = realloc(totals->regions, (2 * totals->n_regions + 1) * sizeof *more);
        if (more == NULL)
            return UM_ERR_NO_MEMORY;
        totals->regions = more;
    }
    totals->regions[totals->n_regions++] = added;
    um_regions_add(totals->live, &live, NULL, 0, NULL);
    return UM_OK;
}

static void moved_add(um_moved_t *moved, const um_ev_migrate_t *e)
{
    if (e->dst == UM_DEVICE_HOST)
        moved->to_host_bytes += e->bytes;
    else if (e->src == UM_DEVICE_HOST || e->src == UM_DEVICE_NONE)
        moved->to_gpu_bytes += e->bytes;
    else
        moved->between_gpus_bytes += e->bytes;
}

static void migrate(um_totals_t *totals, const um_ev_migrate_t *e)
{
    um_total_region_t *into = e->region != 0 ? by_id(totals, e->region) : NULL;
    um_region_t found;

    if (into == NULL && um_regions_find(totals->live, e->addr, &found))
        into = by_id(totals, found.id);
    moved_add(&totals->moved, e);
    moved_add(into != NULL ? &into->moved : &totals->moved_nowhere, e);
}

/* Real traces have tens. */
enum { FACTS_MAX = 10000, DEVICES_MAX = 1000 };

static um_status_t fact_add(um_totals_t *totals, const um_ev_fact_t *fact)
{
    um_ev_fact_t copy, *facts;

    if (totals->n_facts == FACTS_MAX)
        return UM_OK;
    facts = realloc(totals->facts, (totals->n_facts + 1) * sizeof *facts);
    if (facts == NULL)
        return UM_ERR_NO_MEMORY;
    totals->facts = facts;
    copy = (um_ev_fact_t){.key = strdup(fact->key), .value = strdup(fact->value)};
    facts[totals->n_facts++] = copy;
    return copy.key != NULL && copy.value != NULL ? UM_OK : UM_ERR_NO_MEMORY;
}

static um_status_t device_add(um_totals_t *totals, const um_ev_device_t *device)
{
    um_ev_device_t copy = *device, *devices;

    if (totals->n_devices == DEVICES_MAX)
        return UM_OK;
    devices = realloc(totals->devices, (totals->n_devices + 1) * sizeof *devices);
    if (devices == NULL)
        return UM_ERR_NO_MEMORY;
    totals->devices = devices;
    copy.name = strdup(device->name);
    copy.uuid = strdup(device->uuid);
    copy.pci = strdup(device->pci);
    devices[totals->n_devices++] = copy;
    return copy.name != NULL && copy.uuid != NULL && copy.pci != NULL ? UM_OK : UM_ERR_NO_MEMORY;
}

um_status_t um_totals_add(um_totals_t *totals, const um_event_t *event)
{
    um_total_region_t *region;

    totals->events++;
    if (event->type < UM_EV_TYPE_COUNT)
        totals->by_type[event->type]++;
    switch (event->type) {
    case UM_EV_FACT:
        return fact_add(totals, &event->u.fact);
    case UM_EV_DEVICE:
        return device_add(totals, &event->u.device);
    case UM_EV_LOSS:
        totals->lost += event->u.loss.count;
        totals->lost_uncounted |= event->u.loss.count == 0;
        return UM_OK;
    case UM_EV_REGION_ALLOC:
        return region_alloc(totals, event);
    case UM_EV_REGION_FREE:
        um_regions_remove(totals->live, event->u.region_free.addr, NULL);
        return UM_OK;
    case UM_EV_REGION_LABEL:
        region = by_id(totals, event->u.region_label.region);
        if (region != NULL) {
            free(region->label);
            region->label = strdup(event->u.region_label.label);
        }
        return UM_OK;
    case UM_EV_MIGRATE:
        migrate(totals, &event->u.migrate);
        return UM_OK;
    default:
        return UM_OK;
    }
}

um_status_t um_totals_read(const char *path, um_totals_t *out, um_trace_info_t *info, char *error,
                           size_t error_bytes)
{
    um_trace_reader_t *reader = NULL;
    const um_event_t *event;
    um_status_t status = um_totals_new(out);

    if (status != UM_OK) {
        snprintf(error, error_bytes, "%s: %s", path, um_status_string(status));
        return status;
    }
    status = um_input_check(path, error, error_bytes);
    if (status == UM_OK)
        status = um_trace_reader_open(path, UM_TRACE_TIME_ORDER, &reader, error, error_bytes);
    if (status != UM_OK)
        return status;
    if (info != NULL) {
        *info = *um_trace_reader_info(reader);
        info->facts = NULL, info->n_facts = 0;
    }
    for (size_t i = 0; status == UM_OK && i < um_trace_reader_info(reader)->n_facts; i++)
        status = fact_add(out, &um_trace_reader_info(reader)->facts[i]);
    while (status == UM_OK && (status = um_trace_reader_next(reader, &event)) == UM_OK)
        status = um_totals_add(out, event);
    if (status == UM_ERR_NOT_FOUND) /* the clean end */
        status = UM_OK;
    else
        snprintf(error, error_bytes, "%s",
                 um_trace_reader_error(reader)[0] != '\0' ? um_trace_reader_error(reader)
                                                          : um_status_string(status));
    um_trace_reader_close(reader);
    return status;
}

static uint64_t moved_all(const um_moved_t *moved)
{
    return moved->to_gpu_bytes + moved->to_host_bytes + moved->between_gpus_bytes;
}

size_t um_totals_top(const um_totals_t *totals, size_t max, size_t *index)
{
    size_t n = 0;

    for (size_t i = 0; i < totals->n_regions; i++) {
        uint64_t bytes = moved_all(&totals->regions[i].moved);
        size_t at = n;

        if (bytes == 0)
            continue;
        while (at > 0 && moved_all(&totals->regions[index[at - 1]].moved) < bytes)
            at--;
        if (at == max)
            continue;
        if (n < max)
            n++;
        memmove(&index[at + 1], &index[at], (n - at - 1) * sizeof *index);
        index[at] = i;
    }
    return n;
}
