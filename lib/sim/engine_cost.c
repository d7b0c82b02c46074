/* What the driver had to do, as time: each cost of MODEL.md is one line here. */
#include "engine.h"

#include <stdlib.h>

#include "core/grow.h"

#define MIB ((double)(1u << 20))

void um_cost_init(um_engine_t *engine)
{
    const um_machine_t *machine = engine->machine;
    const um_curve_t *curve[3] = {&machine->link_to_device, &machine->link_to_host,
                                  &machine->link_peer};

    for (int c = 0; c < 3; c++)
        for (int i = 0; i < UM_UVM_SIZES; i++)
            engine->size_ns[c][i] = (double)um_curve_ns(curve[c], (uint64_t)UM_PAGE_BYTES << i);
}

/* ---- the links ---- */

/* Time on the link of transfers of these sizes and bytes together: a class is charged by its mean. */
static uint64_t link_ns(const double size_ns[UM_UVM_SIZES], const uint32_t n[UM_UVM_SIZES],
                        uint64_t bytes, uint32_t *transfers)
{
    double full = 0, ns = 0;

    for (int i = 0; i < UM_UVM_SIZES; i++) {
        ns += n[i] * size_ns[i];
        full += (double)n[i] * (double)((uint64_t)UM_PAGE_BYTES << i);
        *transfers += n[i];
    }
    return full > 0 ? (uint64_t)(ns * ((double)bytes / full)) : 0;
}

/* Waits for its turn and keeps the resource for ns; when that is over. */
static uint64_t take(uint64_t *busy_ns, uint64_t at_ns, uint64_t ns)
{
    if (!ns)
        return at_ns;
    if (*busy_ns > at_ns)
        at_ns = *busy_ns;
    *busy_ns = at_ns + ns;
    return *busy_ns;
}

/* The same for work that asked at asked_ns and needs the resource bit by bit, the last bit at the
 * earliest ns after ready_ns: others have their turns between. */
static uint64_t share(uint64_t *busy_ns, uint64_t asked_ns, uint64_t ready_ns, uint64_t ns)
{
    uint64_t end = take(busy_ns, asked_ns, ns);

    return ns && end > ready_ns + ns ? end : ready_ns + ns;
}

uint64_t um_cost_copy(um_engine_t *engine, int32_t device, bool to_device, uint64_t at_ns,
                      uint64_t bytes)
{
    um_link_t *link = &engine->gpu[device].link;

    return take(to_device ? &link->to_device_ns : &link->to_host_ns, at_ns,
                um_curve_ns(to_device ? &engine->machine->link_to_device
                                      : &engine->machine->link_to_host,
                            bytes));
}

static uint64_t at_rate(uint64_t bytes, double gb_per_s)
{
    return (uint64_t)((double)bytes / gb_per_s);
}

uint64_t um_cost_remote(um_engine_t *engine, int32_t device, uint64_t at_ns,
                        const um_uvm_work_t *work)
{
    const um_machine_t *machine = engine->machine;
    um_link_t *link = &engine->gpu[device < 0 ? 0 : device].link;
    uint64_t read = take(&link->to_device_ns, at_ns,
                         at_rate(work->remote_read_bytes, machine->remote_read_gb_per_s));
    uint64_t write_ns = at_rate(work->remote_written_bytes, machine->remote_write_gb_per_s);
    uint64_t written = at_ns + (uint64_t)((double)write_ns * machine->remote_write_wait);

    take(&link->to_host_ns, at_ns, write_ns);
    engine->result.bytes_remote += work->remote_read_bytes + work->remote_written_bytes;
    return (read > written ? read : written) - at_ns;
}

/* ---- what the processor that runs the driver has to do ---- */

static double cpu_ns(const um_machine_t *machine, um_cost_kind_t kind, const um_uvm_work_t *work,
                     uint32_t transfers)
{
    double fault = kind == UM_COST_FAULT;
    double collapsed = (double)work->collapsed_bytes / UM_PAGE_BYTES;
    /* What a page's collapse costs includes the fault that asked for it. */
    double cpu_faults = work->cpu_faults > collapsed ? work->cpu_faults - collapsed : 0;

    return fault * (work->batches_blocks * machine->fault_block_ns +
                    work->gpu_faults * machine->fault_page_ns + cpu_faults * machine->cpu_fault_ns +
                    transfers * machine->fault_transfer_ns) +
           (double)work->unmapped_host_bytes / MIB * machine->unmap_host_ns_per_mib +
           (double)work->unmapped_device_bytes / MIB * machine->unmap_device_ns_per_mib +
           (double)work->mapped_remote_bytes / MIB * machine->map_remote_ns_per_mib +
           work->evicted_blocks * machine->evict_block_ns +
           work->duplicated_blocks * machine->duplicate_block_ns +
           collapsed * machine->collapse_page_ns;
}

void um_cost_count(um_sim_result_t *sum, const um_uvm_work_t *work)
{
    sum->bytes_to_device += work->bytes_to_device;
    sum->bytes_to_host += work->bytes_to_host;
    sum->bytes_peer += work->bytes_peer;
    sum->populated_bytes += work->populated_device_bytes + work->populated_host_bytes;
    sum->gpu_faults += work->gpu_faults;
    sum->cpu_faults += work->cpu_faults;
    sum->evicted_blocks += work->evicted_blocks;
    sum->evicted_bytes += work->evicted_bytes;
    sum->wasted_bytes += work->wasted_bytes;
    sum->thrash_throttles += work->throttles;
    sum->thrash_pins += work->pins;
}

/* The events of the work under way get their times: one after the other, by their bytes. */
static void tell(um_engine_t *engine, uint64_t at_ns, uint64_t end_ns)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < engine->n_heard; i++)
        if (engine->heard[i].type == UM_EV_MIGRATE)
            bytes += engine->heard[i].u.migrate.bytes;
    for (size_t i = 0; i < engine->n_heard; i++) {
        um_event_t *event = &engine->heard[i];

        event->time_ns = at_ns;
        if (event->type == UM_EV_MIGRATE) {
            double part = (double)event->u.migrate.bytes / (double)(bytes ? bytes : 1);

            event->u.migrate.duration_ns = (uint64_t)((double)(end_ns - at_ns) * part);
        } else if (event->type == UM_EV_GPU_FAULT) {
            event->u.gpu_fault.duration_ns = end_ns - at_ns;
        }
        um_engine_tell(engine, event, true);
    }
    engine->n_heard = 0;
}

uint64_t um_cost_charge(um_engine_t *engine, um_cost_kind_t kind, uint64_t at_ns, uint64_t fixed_ns,
                        const um_uvm_work_t *work)
{
    const um_machine_t *machine = engine->machine;
    um_link_t *link = &engine->gpu[engine->moved_device].link;
    uint32_t transfers = 0;
    uint64_t to_device =
        link_ns(engine->size_ns[0], work->transfers_to_device, work->bytes_to_device, &transfers);
    uint64_t to_host =
        link_ns(engine->size_ns[1], work->transfers_to_host, work->bytes_to_host, &transfers);
    uint64_t peer = link_ns(engine->size_ns[2], work->transfers_peer, work->bytes_peer, &transfers);
    double host_ns = (double)work->bytes_to_host / MIB * machine->host_alloc_ns_per_mib +
                     (double)work->populated_host_bytes / MIB * machine->populate_host_ns_per_mib;
    uint64_t end = at_ns + fixed_ns + (uint64_t)cpu_ns(machine, kind, work, transfers);

    /* A GPU zeroes pages for one at a time; data comes to the host no faster by several threads. */
    end = share(&engine->gpu[engine->moved_device].populate_ns, at_ns, end,
                (uint64_t)((double)work->populated_device_bytes / MIB *
                           machine->populate_device_ns_per_mib));
    end = share(&engine->host_alloc_ns, at_ns, end, (uint64_t)host_ns + to_host);
    share(&link->to_host_ns, at_ns, end, to_host);
    end = share(&link->peer_ns, at_ns, end, peer);
    end = share(&link->to_device_ns, at_ns, end, to_device);
    um_cost_count(&engine->result, work);
    tell(engine, at_ns, end);
    return end;
}

/* ---- what the driver's rules say while they work ---- */

static int32_t device_of(const um_event_t *event)
{
    switch (event->type) {
    case UM_EV_MIGRATE:
        return event->u.migrate.dst >= 0 ? event->u.migrate.dst : event->u.migrate.src;
    case UM_EV_GPU_FAULT:
        return event->u.gpu_fault.device;
    default:
        return UM_DEVICE_NONE;
    }
}

void um_cost_heard(void *ctx, const um_event_t *event)
{
    um_engine_t *engine = ctx;
    int32_t device = device_of(event);

    if (device >= 0)
        engine->moved_device = device;
    if (!engine->listening)
        return;
    if (!um_grow(&engine->heard, &engine->heard_room, engine->n_heard + 1,
                 sizeof(*engine->heard))) {
        um_engine_fail(engine, UM_ERR_NO_MEMORY);
        return;
    }
    engine->heard[engine->n_heard++] = *event;
}
