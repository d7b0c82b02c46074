/* replay.h - what the parts of `umrt replay` share: replay.c (the sweep), replay_args.c (the command
 * line), replay_backtest.c. */
#ifndef UM_REPLAY_TOOL_H
#define UM_REPLAY_TOOL_H

#include "report/report.h"
#include "sim/sweep.h"

typedef struct um_replay_args {
    char **paths;
    size_t n_paths;
    const um_policy_t **policies; /* as given; without any the default */
    size_t n_policies;
    um_policy_t **joined; /* of these, what was put together here; owned */
    size_t n_joined;
    um_machine_t *machines; /* none = each workload's own */
    size_t n_machines;
    um_capacity_t *capacities;
    size_t n_capacities;
    uint32_t *streams;
    size_t n_streams;
    um_uvm_params_t params; /* the driver's; what was not asked for is as recorded */
    uint32_t params_set;    /* bit i: um_uvm_param_table[i] was asked for */
    uint32_t threads;
    um_report_options_t report;
    const char *html; /* NULL = none */
    bool open, backtest, top_given;
    bool no_terminal; /* whatever it looks like: mpirun gives its ranks one of their own */
    bool silent;      /* another rank says what is wrong with the command line */
} um_replay_args_t;

/* UM_EXIT_OK, or the status to leave with, having said why. *done: all was said, leave with OK. */
int um_replay_args_parse(int argc, char **argv, um_replay_args_t *args, bool *done);
void um_replay_args_free(um_replay_args_t *args);

/* Predicted against measured; path NULL = the data that comes with umrt. Exit status: 1 when the
 * model is further off than demanded. */
int um_replay_backtest(const um_replay_args_t *args, const char *path);

/* The hints that advisors would have given for the recorded events. */
int um_replay_open(const um_replay_args_t *args);

#endif
