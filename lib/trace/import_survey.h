/*
 * import_survey.h - the first reading of an nvprof log: which processes and devices it has, what nvprof
 * itself says about it, where the program put its arrays, and whether it ends where it should.
 */
#ifndef UM_IMPORT_SURVEY_H
#define UM_IMPORT_SURVEY_H

#include "trace/import_arrays.h"
#include "trace/import_log.h"
#include "trace/import_sink.h"

enum {
    UM_SURVEY_PROCESSES = 64,
    UM_SURVEY_DEVICES = 63,
    UM_SURVEY_LOSSES = 8,
    UM_SURVEY_NAME = 128
};

typedef struct um_survey_process {
    uint32_t pid;
    uint64_t rows, unified_rows, bad_rows;
    uint64_t first_ns;
    bool table, unified_columns;
    bool nothing; /* "No kernels were profiled" */
    bool summary; /* a table, but of totals */
    char command[1024];
    char unsupported[256]; /* nvprof's own words */
} um_survey_process_t;

typedef struct um_survey {
    size_t n_processes;
    um_survey_process_t process[UM_SURVEY_PROCESSES];
    const um_survey_process_t
        *chosen; /* the one to import: most unified-memory rows, then most rows */
    size_t n_devices;
    char device[UM_SURVEY_DEVICES][UM_SURVEY_NAME];
    um_arrays_t arrays;
    size_t n_losses;
    struct {
        uint64_t count;
        char reason[256];
    } loss[UM_SURVEY_LOSSES];
    bool cut; /* the last line is cut off */
    uint64_t cut_offset;
} um_survey_t; /* zero-initialise */

/* process: the one to choose, 0 = the best. */
um_status_t um_survey_read(um_survey_t *survey, um_log_t *log, uint32_t process);
void um_survey_free(um_survey_t *survey);

/* UM_OK when there is something to import, else the line about it. */
um_status_t um_survey_check(const um_survey_t *survey, um_import_t *im);
/* FACT, OPTION, DEVICE and LOSS events, at the time of the first row. */
void um_survey_emit(const um_survey_t *survey, um_import_t *im);

/* Ordinal of the device a cell names, UM_DEVICE_NONE when it names none or one of several. Ordinals are
 * the order in which the log names devices, unless it prints them: "Tesla K20 (1)". */
int32_t um_survey_device(const um_survey_t *survey, const char *cell);
/* "CPU, Tesla V100" as um_ev_thrash_t wants it. */
uint64_t um_survey_processors(const um_survey_t *survey, const char *cell);

#endif
