/*
 * error_bar.h - how far the model's times may be from the machine's: what `umrt replay --backtest`
 * said of the measured runs that nothing was fitted to: the judging half of backtest.json and both files
 * that were held out (tests/data/h200). A test compares it with what the back-test says now.
 */
#ifndef UM_ERROR_BAR_H
#define UM_ERROR_BAR_H

#include <stdint.h>

typedef struct um_error_bar {
    const char *machine;     /* name of the description */
    uint32_t runs;           /* measured, and only judged */
    uint32_t median_percent; /* half of the runs are nearer than this, rounded up */
    uint32_t worst_percent;  /* all are */
    /* Of what a change takes away and what it brings, added up: half of the savings measured between the
     * variants of one run are nearer than this (predict.h). */
    uint32_t saving_percent;
} um_error_bar_t;

/* Ends with machine == NULL. A machine that is not here was never compared with a real one. */
static const um_error_bar_t um_error_bars[] = {
    {"h200-pcie5", 232, 11, 55, 13},
    {0},
};

#endif
