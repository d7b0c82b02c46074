/*
 * replay.h - what a sweep came to, for people and for programs (SCHEMA.md).
 */
#ifndef UM_REPLAY_H
#define UM_REPLAY_H

#include "error_bar.h"
#include "report/emitter.h"
#include "sweep.h"

typedef struct um_replay_file {
    const char *path;
    const um_workload_t *workload;
    bool whole;             /* false: damaged or unfinished, used as far as it goes */
    um_uvm_params_t params; /* of the driver that is simulated */
} um_replay_file_t;

typedef struct um_replay {
    const um_replay_file_t *files;
    size_t n_files;
    const um_sweep_t *sweep; /* groups in the order of the files */
} um_replay_t;

/* Text or JSON (umrt.replay/1), as the emitter is. */
void um_replay_print(const um_replay_t *replay, um_emitter_t *e);

/* One page that needs nothing else. UM_ERR_IO. */
um_status_t um_replay_html(const um_replay_t *replay, FILE *out);

/* The figures of one result: what text, JSON and HTML all show. */
#define UM_REPLAY_COLUMNS 18
extern const um_column_t um_replay_columns[UM_REPLAY_COLUMNS];
void um_replay_row(const um_replay_t *replay, size_t group, size_t policy,
                   um_value_t row[UM_REPLAY_COLUMNS]);

/* "h200-pcie5, 512 MiB on the GPU (50% of the peak)" */
void um_replay_title(const um_sweep_group_t *group, char *out, size_t bytes);
/* What the times are worth, in one sentence. */
void um_replay_trust(const um_sweep_group_t *group, char *out, size_t bytes);
const um_error_bar_t *um_error_bar_find(const um_machine_t *machine); /* NULL = there is none */

#endif
