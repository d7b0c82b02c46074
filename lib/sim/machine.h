/*
 * machine.h - what a machine costs: figures with their sources, read from a JSON file.
 *
 *   {"schema": "umrt.machine/1", "name": "h200-pcie5", "gpu": "NVIDIA H200", "date": "2026-11-30",
 *    "figures": {"link_to_device": {"value": [[4096, 1.1], [65536, 8.0], ...], "source": "..."},
 *                "fault_batch_ns": {"value": 21000, "source": "estimate"}, ...}}
 *
 * Which figures there are, with unit and range, is one table (machine.c); a file must give all of
 * them and no others. Machines that come with umrt are in machines/.
 */
#ifndef UM_MACHINE_H
#define UM_MACHINE_H

#include "um_event.h"

/* A rate that depends on the size of the transfer: between points linear in log(bytes), outside
 * them the nearest point's. */
#define UM_CURVE_POINTS 16
typedef struct um_curve {
    uint32_t n;
    struct {
        uint64_t bytes;
        double gb_per_s; /* 10^9 bytes a second */
    } point[UM_CURVE_POINTS];
} um_curve_t;

uint64_t um_curve_ns(const um_curve_t *curve, uint64_t bytes); /* time of one transfer */

/* machine.c's table documents each. Times in ns. */
typedef struct um_machine {
    char name[64];
    char gpu[64]; /* as cuDeviceGetName says */
    char path[256];
    uint32_t estimates; /* figures whose source is "estimate" */

    uint64_t memory_bytes;     /* of one GPU, usable by managed memory */
    double kernel_time_scale;  /* kernel time here over kernel time on an H200 */
    bool coherent;             /* GPU and CPU see each other's memory in hardware (C2C) */
    um_curve_t link_to_device; /* one DMA transfer, host memory pinned by the driver */
    um_curve_t link_to_host;
    um_curve_t link_peer;        /* GPU to GPU; n == 0 = through the host */
    double remote_read_gb_per_s; /* a kernel reading host memory through a mapping */
    double remote_write_gb_per_s;
    double remote_write_wait;

    /* The engine's own figures: machine.c's table says what each is. Per 2 MiB block or per MiB. */
    double fault_batch_ns, fault_block_ns, fault_page_ns, fault_transfer_ns;
    uint64_t fault_window_bytes;
    double cpu_fault_ns, cpu_write_fault_ns;
    double unmap_host_ns_per_mib, unmap_device_ns_per_mib;
    double populate_device_ns_per_mib, populate_host_ns_per_mib, host_alloc_ns_per_mib;
    double map_remote_ns_per_mib;
    double evict_block_ns, duplicate_block_ns, collapse_page_ns;
    double prefetch_call_ns, prefetch_block_ns, prefetch_start_ns;
    double advise_call_ns, preferred_location_ns_per_mib, read_mostly_ns_per_mib;
    double alloc_call_ns, free_call_ns, free_ns_per_mib;
    double launch_call_ns, kernel_start_ns, sync_call_ns, copy_call_ns;
    double pageable_copy_gb_per_s, device_gb_per_s;
    double hint_delay_ns, record_delay_ns;
} um_machine_t;

/* Loads by name ("h200-pcie5": $UMRT_MACHINES, then the installed directory, then the source tree's)
 * or by path (anything with a '/' or ending in .json). error: one line with file and reason.
 * UM_ERR_NOT_FOUND: error lists the names there are. UM_ERR_FORMAT: a figure is missing, unknown or
 * outside its range. */
um_status_t um_machine_load(const char *name, um_machine_t *out, char *error, size_t error_bytes);

/* Writes one; sources: one text a figure in table order (NULL = "estimate"). */
um_status_t um_machine_save(const um_machine_t *machine, const char *const *sources,
                            const char *date, const char *path);

/* The figures there are. */
typedef struct um_machine_figure {
    const char *name;
    const char *doc; /* unit and what it is */
    size_t offset;
    uint32_t type; /* 0 double, 1 curve, 2 bytes (uint64_t), 3 bool */
    double min, max;
} um_machine_figure_t;
extern const um_machine_figure_t um_machine_figures[]; /* ends with name == NULL */

/* The machine whose "gpu" is `gpu`, for traces that name theirs; NOT_FOUND without an error line. */
um_status_t um_machine_for_gpu(const char *gpu, um_machine_t *out);

#endif
