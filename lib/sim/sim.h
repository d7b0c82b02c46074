/*
 * sim.h - one workload on one machine under one policy: how long, and what moved.
 *
 * A discrete-event simulation. The program's threads, the GPUs' streams, the workers that carry out
 * hints, the link in each direction and the driver's fault handler each have a clock; the driver's
 * rules (uvm.h) say what happens, the machine (machine.h) what it costs. Advisors sit in the same hint
 * loop as in a live process (exec/hinter.h) and see the same events; ACCESS events are never shown
 * to them. Pure: the same arguments give the same result to the byte. See MODEL.md.
 *
 * Threads: any number of simulations side by side; they share only what is const.
 */
#ifndef UM_SIM_H
#define UM_SIM_H

#include "machine.h"
#include "policy.h"
#include "uvm.h"
#include "workload.h"

typedef struct um_sim_config {
    const um_workload_t *workload;
    const um_machine_t *machine;
    const um_policy_t *policy;
    uint64_t gpu_bytes;            /* capacity of each GPU for managed memory; 0 = the machine's */
    const um_uvm_params_t *params; /* NULL = defaults; the policy may switch the prefetcher off */
    double kernel_time_scale;      /* 0 = from the machine and the workload's source GPU */
    /* Every event of the run, as it happens; may be NULL. In the order of time but for KERNEL_EXEC,
     * which comes when the kernel has ended and carries its start. */
    um_event_fn event;
    void *event_ctx;
    /* What the hint loop is told before it starts, and what it has learned at the end, as LEARNED
     * events: a profile's way in and out. May be NULL. */
    const um_event_t *known;
    size_t n_known;
    um_event_fn learned;
    void *learned_ctx;
} um_sim_config_t;

typedef struct um_sim_result {
    uint64_t total_ns;      /* from the first step to the end of all work */
    uint64_t compute_ns;    /* GPU time the launches would need with all data there */
    uint64_t stall_ns;      /* GPU time spent waiting for data */
    uint64_t host_stall_ns; /* program threads inside CPU faults and blocking hint calls */
    uint64_t bytes_to_device, bytes_to_host, bytes_peer, bytes_remote;
    uint64_t populated_bytes;
    uint64_t gpu_faults, cpu_faults, fault_batches;
    uint64_t evicted_blocks, evicted_bytes;
    uint64_t thrash_throttles, thrash_pins;
    uint64_t hints, hints_refused;
    uint64_t hinted_bytes; /* moved by hints */
    uint64_t wasted_bytes; /* moved by a prefetch (hint or tree) and not touched before it left */
    uint64_t late_bytes;   /* hinted, but the touch came first or waited for it */
    uint64_t touches;      /* page accesses simulated */
} um_sim_result_t;

/* Errors: UM_ERR_INVALID (capacity below one block; one line in error), UM_ERR_NO_MEMORY. */
um_status_t um_sim_run(const um_sim_config_t *config, um_sim_result_t *out, char *error,
                       size_t error_bytes);

/* Kernel time on `machine` over kernel time where the workload's was measured; an unknown GPU counts as
 * an H200. What stands for a kernel_time_scale of 0. */
double um_sim_time_scale(const um_workload_t *workload, const um_machine_t *machine);

/* The two bounds that bracket every table (bounds.c); what they count is in MODEL.md, "Bounds". */
typedef struct um_bounds {
    uint64_t least_bytes;     /* over the links, remote accesses included: Belady's MIN with this
                                 capacity; the sum of the two that follow */
    uint64_t least_to_device; /* from the host or a peer */
    uint64_t least_to_host;   /* what the CPU reads, and what has to make room and is read again */
    uint64_t least_ns;        /* compute against link, perfectly overlapped, populate included */
} um_bounds_t;
um_status_t um_bounds_find(const um_workload_t *workload, const um_machine_t *machine,
                           uint64_t gpu_bytes, double kernel_time_scale, um_bounds_t *out);

#endif
