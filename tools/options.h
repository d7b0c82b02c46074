/*
 * options.h - the settings table (core/config.h) as flags of `umrt run` and `umrt record`.
 *
 * Every setting UMRT_PIECE_BYTES is a flag --piece-bytes=VALUE without a line of code here: it is
 * checked against the table and handed to the program in its environment.
 */
#ifndef UM_OPTIONS_H
#define UM_OPTIONS_H

#include <getopt.h>

#include "core/config.h"

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

/* "0 to 3", "64K to 1G", "on or off": what a setting accepts. */
void um_option_range(const um_option_t *option, char *buffer, size_t bytes);

/* A value as a person would write it: "33554432" of a size becomes "32M". */
void um_option_value(const um_option_t *option, const char *value, char *buffer, size_t size);

#endif
