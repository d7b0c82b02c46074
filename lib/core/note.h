/*
 * note.h - what a process tells the umrt command that started it.
 *
 * `umrt run` and `umrt record` name a file in UMRT_SUMMARY_TO and read it when the program has ended.
 * Every process in which the runtime comes up appends a START note (once more when something changes:
 * a later note of a process replaces an earlier one) and, when it shuts down in order, an END note. A
 * process without END was killed or left by _exit; one without START made no CUDA call. So the
 * program's own stderr stays its own.
 *
 * One note is one line, written with one write() to a file opened for appending, so notes of many
 * processes do not mix: PID, kind, state, text and trace path, with tabs between.
 */
#ifndef UM_NOTE_H
#define UM_NOTE_H

#include "um_runtime.h"

#define UM_NOTE_ENV "UMRT_SUMMARY_TO"

typedef enum um_note_kind { UM_NOTE_START = 1, UM_NOTE_END = 2 } um_note_kind_t;

typedef struct um_note {
    int32_t pid;
    uint32_t kind;          /* um_note_kind_t */
    uint32_t state;         /* um_runtime_state_t: what the runtime is (START) or was (END) */
    const char *text;       /* START: why it is not what was asked for, "" when it is;
                         END: the summary line, without "umrt: " */
    const char *trace_path; /* absolute, of the trace this process writes; "" or NULL without one */
} um_note_t;

/* Appends the note. false when nobody asked for notes or they cannot be written: then the caller says
 * it on stderr as it would without the command. Allocates nothing, any thread; leaves errno alone. */
bool um_note_leave(const um_note_t *note);

/* Takes one line apart in place (a newline at its end is fine); strings point into it. false when it
 * is not a whole note. */
bool um_note_parse(char *line, um_note_t *out);

#endif
