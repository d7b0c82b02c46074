/*
 * options.h - every setting as a flag of `umrt run` and `umrt record`.
 *
 * A setting UMRT_PIECE_BYTES is a flag --piece-bytes=VALUE without a line of code here: it is checked
 * against its table (core/config.h, or the advisor's own) and handed to the program in its
 * environment.
 */
#ifndef UM_OPTIONS_H
#define UM_OPTIONS_H

#include <getopt.h>

#include "core/config.h"

/* One setting, of the runtime or of an advisor, as people see it. */
typedef struct um_setting {
    char name[64];     /* "piece-bytes", "ahead-dense-limit" */
    char variable[96]; /* "UMRT_PIECE_BYTES" */
    char fallback[64]; /* "32M" */
    char range[96];    /* "64K to 1G", "on or off" */
    const char *doc;
    bool (*valid)(const struct um_setting *setting, const char *value);
    bool is_bytes;
    uint64_t min, max; /* of an advisor's */
} um_setting_t;

/* All of them, the runtime's first; static, built on the first call. */
const um_setting_t *um_setting_table(size_t *n);

/* A value as a person would write it: "33554432" of a size becomes "32M". */
void um_setting_text(const um_setting_t *setting, const char *value, char *buffer, size_t size);

/* What a command adds to the settings. */
typedef struct um_flags {
    const char *command;             /* "record" */
    const char *usage;               /* help text that comes before the settings */
    const char *letters;             /* getopt string of the own flags, without the leading "+:" */
    const struct option *own;        /* own long flags, vals below 256; ends with a zero entry */
    const char *const *own_settings; /* settings that are no flags here; ends with NULL */
    /* Takes an own flag; UM_EXIT_OK or the status to leave with, having said why. */
    int (*take)(void *ctx, int val, const char *value);
    void *ctx;
} um_flags_t;

/* Parses up to the program's name ("--" before it is optional); -h and --help print the help. Sets
 * *first to its index in argv and returns UM_EXIT_OK; *first = 0 means that all is done; otherwise
 * returns the status to leave with, having said why. */
int um_flags_parse(const um_flags_t *flags, int argc, char **argv, int *first);

#endif
