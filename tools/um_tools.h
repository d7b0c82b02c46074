/*
 * um_tools.h - what the subcommands of umrt share.
 *
 * A subcommand is one file tools/NAME.c with one function um_cmd_NAME, and one line in the table of
 * tools/umrt.c. Its results go to stdout, everything else to stderr, every line of which starts
 * "umrt: ". One thread.
 */
#ifndef UM_TOOLS_H
#define UM_TOOLS_H

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "um_event.h"

/* Exit statuses of umrt itself; `umrt run` and `umrt record` exit with the program's. */
enum {
    UM_EXIT_OK = 0,
    UM_EXIT_FAILED = 1,  /* understood, but could not be done (no memory, output not writable) */
    UM_EXIT_USAGE = 2,   /* a wrong command line, or an input file that cannot be read as what it
                           should be */
    UM_EXIT_REFUSED = 3, /* understood, and nothing of it is certain enough to be done */
    UM_EXIT_CANNOT_EXECUTE = 126, /* as shells: the program is there but cannot be executed */
    UM_EXIT_NOT_FOUND = 127,      /* as shells: there is no such program */
    UM_EXIT_SIGNAL = 128          /* as shells: plus the number of the signal that ended it */
};

/* argv[0] is the subcommand's name; returns the exit status. */
int um_cmd_calibrate(int argc, char **argv);
int um_cmd_diff(int argc, char **argv);
int um_cmd_dump(int argc, char **argv);
int um_cmd_explain(int argc, char **argv);
int um_cmd_export(int argc, char **argv);
int um_cmd_gen(int argc, char **argv);
int um_cmd_import(int argc, char **argv);
int um_cmd_info(int argc, char **argv);
int um_cmd_profile(int argc, char **argv);
int um_cmd_record(int argc, char **argv);
int um_cmd_replay(int argc, char **argv);
int um_cmd_report(int argc, char **argv);
int um_cmd_run(int argc, char **argv);
int um_cmd_top(int argc, char **argv);

/* ---- say.c: lines for people, numbers for and from them ------------------------------------------------------- */

/* File names, labels and command lines come from anywhere: in what these three print, bytes that a
 * terminal would act on (and newlines) are '?', invalid UTF-8 is U+FFFD. */

/* On stdout, part of a line: the newline is the caller's putchar. */
void um_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line "umrt: ..." on stderr; the format has no newline. */
void um_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong command line, with where to look: "umrt: report: no file given; see 'umrt
 * report --help'". Returns UM_EXIT_USAGE. */
int um_say_usage(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For the '?' and ':' of getopt_long (called with opterr 0 and an option string that begins with ':'
 * after any '+'): names the option that was unknown or lacks its value, and the nearest of `options`.
 * Returns UM_EXIT_USAGE. */
int um_say_bad_option(const char *command, const struct option *options, int result, char **argv);

/* Flushes stdout and closes it; UM_EXIT_FAILED with a line when what was printed could not be written,
 * else `status`. For the end of every command that prints results. */
int um_say_end(int status);

/* "62,345" and "1,024.0 MiB" (bytes below 10 KiB are exact: "384 bytes"). buffer holds UM_SAY_BYTES. */
#define UM_SAY_BYTES 32
const char *um_say_count(char *buffer, uint64_t count);
const char *um_say_bytes(char *buffer, uint64_t bytes);

/* The candidate nearest to `word` by edit distance, whatever the case, or that begins with it; NULL when none is
 * near enough to suggest.
 * name(ctx, i) gives the i-th candidate, NULL after the last. */
const char *um_nearest(const char *word, const char *(*name)(const void *ctx, size_t i),
                       const void *ctx);

/* A whole decimal number from `least` to `most`; false otherwise, and *out is as it was. */
bool um_number(const char *text, uint64_t least, uint64_t most, uint64_t *out);
bool um_number_32(const char *text, uint32_t least, uint32_t most, uint32_t *out);

/* ---- input.c ----------------------------------------------------------------------------------- */

/* Whether `path` can be opened as an input file: a regular file that is there and readable. Anything
 * else (a directory, a FIFO that would block for ever, a device) gives UM_ERR_IO or UM_ERR_FORMAT and
 * the line "FILE: reason" in `error`. Call it before a reader; emptiness is the reader's to judge. */
um_status_t um_input_check(const char *path, char *error, size_t error_bytes);

/* The same for what is to be read as a trace: a profile, which is one by its format alone, is refused with the
 * command that reads it. */
um_status_t um_input_check_trace(const char *path, char *error, size_t error_bytes);
/* And as a profile: neither an empty file, nor a trace, nor anything else. */
um_status_t um_input_check_profile(const char *path, char *error, size_t error_bytes);

/* Whether an output file may be put in place of what is at `path`: nothing, an empty file, or one of the same kind.
 * Else says so, "x is not a trace; it is not overwritten": nothing else is ours to overwrite. */
bool um_output_check_trace(const char *path);
bool um_output_check_profile(const char *path);
/* Of a kind that begins with `start` (NULL = a trace), and is called `what`: "a page". */
bool um_output_check_as(const char *path, const char *start, const char *what);

/* ---- events.c: any trace as events -------------------------------------------------------------- */

/* Takes one event; anything but UM_OK ends what can be ended, and is what the read returns. */
typedef um_status_t (*um_events_fn)(void *ctx, const um_event_t *event);

/*
 * Hands over the events of `path`, a .umt in time order or anything that is imported; the facts of a
 * .umt's header come first, as FACT events. UM_OK also where a .umt is damaged or was not closed: all
 * that is whole has come, and `damage` has the line about it, else "". On an error `error` has the line,
 * but for what fn returned, which is the caller's to say.
 * Both hold `bytes`.
 */
um_status_t um_events_read(const char *path, um_events_fn fn, void *ctx, char *damage, char *error,
                           size_t bytes);

/* ---- output.c: a result's way into a file --------------------------------------------------------- */

/* Beside the file until it is whole, then in its place; stdout where no file is named. */
typedef struct um_output {
    FILE *file;
    const char *path; /* NULL = stdout */
    char *temporary;
} um_output_t;

/* Returns UM_EXIT_OK, or the status to leave with, having said why: what is at `path` does not begin
 * with `start`, so it is not a `what` ("a SARIF log"), or the file cannot be made. */
int um_output_open(um_output_t *output, const char *path, const char *start, const char *what);
/* Puts the file in place where `status` is UM_EXIT_OK and all of it could be written, else removes it.
 * Returns `status`, or UM_EXIT_FAILED with a line. */
int um_output_close(um_output_t *output, int status);
/* The temporary name of an output "PATH.PID.part", malloc'ed; NULL: no memory. */
char *um_output_temporary(const char *path);

/* ---- what_if.c --------------------------------------------------------------------------------- */

/* A replay of these traces beside the caller's own work, for at most so many seconds; 0 = none. */
typedef struct um_what_if {
    uint32_t seconds;
    pid_t pid;
    FILE *out, *err;
} um_what_if_t;
void um_what_if_start(char **paths, int n, uint32_t seconds, um_what_if_t *what_if);
/* Waits for it. umrt.replay/1, or {"absent": why}; the caller frees. NULL: no memory. */
char *um_what_if_end(um_what_if_t *what_if);
void um_what_if_drop(um_what_if_t *what_if); /* gives it up */

/* ---- locate.c ---------------------------------------------------------------------------------- */

/* Where libumrt.so is: UMRT_LIBRARY, else beside this executable (installed or in the build tree), else
 * the configured libdir. An absolute path in `out`; UM_ERR_NOT_FOUND with a phrase in `error`. */
um_status_t um_locate_library(char *out, size_t out_bytes, char *error, size_t error_bytes);

#endif
