/*
 * trace_stat.h - what is known of one input file: what it says of itself, when it was, what it counts.
 */
#ifndef UM_TRACE_STAT_H
#define UM_TRACE_STAT_H

#include "um_event.h"

typedef enum um_direction {
    UM_TO_DEVICE = 0,
    UM_TO_HOST = 1,
    UM_DEVICE_TO_DEVICE = 2,
    UM_DIRECTIONS = 3
} um_direction_t;

typedef struct um_moves {
    uint64_t records, bytes, ns;
} um_moves_t;

/* Was unified memory recorded? Says what the absence of a record is worth. */
typedef enum um_tracing {
    UM_TRACING_UNKNOWN = 0, /* the source does not say, and no record was seen */
    UM_TRACING_ON = 1,
    UM_TRACING_OFF = 2,
    UM_TRACING_UNSUPPORTED = 3
} um_tracing_t;

/* One input file: a process, often an MPI rank. */
typedef struct um_trace_stat {
    char *path;
    char *exe, *command, *host, *kernel, *rank, *driver, *cuda, *tool, *tracing_text,
        *tracing_evidence;
    char *accesses;      /* the fact workload.accesses: "exact", "deep", NULL */
    char *device, *uuid; /* of the first GPU */
    uint32_t devices;
    uint64_t recorded_ns;       /* when it was begun, since 1970; 0 = not said */
    uint64_t gpu_memory_bytes;  /* of the first GPU, 0 = not known */
    uint64_t host_memory_bytes; /* what the host has, or its control group allows; 0 likewise */
    uint32_t tracing;           /* um_tracing_t */
    /* 1 << um_event_type_t: what the source did not record; what it recorded, or there was none */
    uint32_t off, unsure;
    uint64_t events, first_ns, last_ns;
    uint64_t counts[UM_EV_TYPE_COUNT];
    um_moves_t moves[UM_DIRECTIONS];
    uint64_t gpu_ns, wait_ns, throttle_ns;     /* charged once */
    uint64_t losses, lost_records, lost_bytes; /* LOSS events; what they say, 0 = not said */
    char *loss_reason;
    char *note;
} um_trace_stat_t;

/* Copies a text to where there is none yet, unless it is empty. UM_ERR_NO_MEMORY, as of the others. */
um_status_t um_trace_stat_text(char **to, const char *value);
/* In the file's header or among its events: the same. */
um_status_t um_trace_stat_fact(um_trace_stat_t *trace, const char *key, const char *value);
/* Counts it; takes up its time, and what facts, options, devices and losses say. Moves are the report's. */
um_status_t um_trace_stat_event(um_trace_stat_t *trace, const um_event_t *event);
/* Facts and definitions carry the time of the recorder's start or none: not part of the span. */
bool um_trace_stat_in_span(const um_event_t *event);
void um_trace_stat_free(um_trace_stat_t *trace);

#endif
