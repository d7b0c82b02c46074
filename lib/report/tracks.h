/*
 * tracks.h - writes the Trace Event Format (JSON): processes and their tracks, and slices in them.
 *
 * Each trace has a process for its CPU threads, one for its memory, one for hints and one for each GPU; it is
 * named where something is first put there. What overlaps in one track goes to further lanes of it. The first
 * failure stays in `status`. One thread.
 */
#ifndef UM_TRACKS_H
#define UM_TRACKS_H

#include <stdio.h>

#include "map.h"
#include "um_event.h"

/* The processes of one trace. */
enum {
    UM_PART_CPU = 1,
    UM_PART_MEMORY = 2,
    UM_PART_HINTS = 3,
    UM_PART_GPU = 10,
    UM_PART_GPUS = 990
};

static inline uint32_t um_part_of_gpu(int32_t device)
{
    return UM_PART_GPU + (device < 0               ? 0
                          : device >= UM_PART_GPUS ? UM_PART_GPUS - 1
                                                   : (uint32_t)device);
}

typedef struct um_track_lanes um_track_lanes_t;

typedef struct um_tracks {
    FILE *out;
    um_status_t status;
    uint32_t traces; /* this one's number, from 1 */
    char *path;      /* its name; malloc */
    bool comma;
    um_map_t known; /* processes and threads that have been named; over traces */
    um_map_t lane_of;
    um_track_lanes_t *lanes;
    size_t n_lanes, lanes_size;
} um_tracks_t;

/* The process number of this trace's part; the thread's number, named when it is new. */
uint32_t um_tracks_process(um_tracks_t *to, uint32_t part);
uint32_t um_tracks_thread(um_tracks_t *to, uint32_t pid, uint32_t tid, const char *name);

/* {"ph":"X","pid":1,"tid":2,"ts":3.000,"name":"..." without the end. */
void um_tracks_head(um_tracks_t *to, char phase, uint32_t pid, uint32_t tid, uint64_t ns,
                    const char *name);
/* A slice in a thread, in a lane of a track: the caller adds its arguments by um_tracks_args, the first without
 * the quote it begins with, and calls um_tracks_end. lasts_ns 0 = an instant. */
void um_tracks_begin(um_tracks_t *to, uint32_t pid, uint32_t tid, uint64_t ns, uint64_t lasts_ns,
                     const char *name);
void um_tracks_slice(um_tracks_t *to, uint32_t part, uint32_t track, const char *track_name,
                     uint64_t ns, uint64_t lasts_ns, const char *name);
#define um_tracks_args(to, ...) fprintf((to)->out, __VA_ARGS__)
void um_tracks_text(um_tracks_t *to, const char *text); /* as a JSON string */
void um_tracks_end(um_tracks_t *to);

void um_tracks_free(um_tracks_t *to); /* not itself */

#endif
