/* summary.h - the one line that says at exit what umrt did. A pure function of the figures. */
#ifndef UM_SUMMARY_H
#define UM_SUMMARY_H

#include "exec/guard.h"
#include "um_runtime.h"

typedef struct um_summary {
    um_runtime_state_t state;
    const char *reason;       /* why it did not do what was asked for, "" = it did */
    const char *trace_path;   /* RECORD; else NULL */
    uint64_t hinted_launches; /* launches that something was prefetched for */
    uint64_t declined;        /* arguments left alone because nothing was known about their use */
    um_guard_stats_t guard;   /* what it was worth; all zero = nobody measured */
    uint32_t processes;       /* the most that shared a GPU, this one among them; 0 = not counted */
    um_runtime_stats_t stats;
} um_summary_t;

/* Without "umrt: " and newline; always terminated. Returns the length it wanted (snprintf). */
int um_summary_line(const um_summary_t *summary, char *out, size_t bytes);

/* "3.0 GiB", "512 KiB", "17 bytes". */
void um_summary_bytes(uint64_t bytes, char out[32]);
/* "1.25 s", "3.4 ms", "17 us". */
void um_summary_ns(uint64_t ns, char out[32]);

#endif
