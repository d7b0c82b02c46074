/* Notes from a program to the umrt command: what is left is what is read. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/note.h"

static char *notes_file(void)
{
    static char path[64];

    snprintf(path, sizeof path, "/tmp/um-note-test-XXXXXX");
    close(mkstemp(path));
    setenv(UM_NOTE_ENV, path, 1);
    return path;
}

Test(note, comes_back_as_it_was_left)
{
    char *path = notes_file(), line[8192];
    um_note_t got, left = {.pid = 42,
                           .kind = UM_NOTE_END,
                           .state = UM_RUNTIME_RECORD,
                           .text = "3 launches\n1 region\there",
                           .trace_path = "/tmp/a b.umt"};
    FILE *file;

    cr_assert(um_note_leave(&left));
    file = fopen(path, "r");
    cr_assert_not_null(fgets(line, sizeof line, file));
    cr_assert(um_note_parse(line, &got));
    cr_assert_eq(got.pid, 42);
    cr_assert_eq(got.kind, UM_NOTE_END);
    cr_assert_eq(got.state, UM_RUNTIME_RECORD);
    cr_assert_str_eq(got.text, "3 launches 1 region here");
    cr_assert_str_eq(got.trace_path, "/tmp/a b.umt");
    cr_assert_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(path);
}

Test(note, of_many_processes_do_not_mix)
{
    enum { WRITERS = 8, NOTES = 200 };
    char *path = notes_file(), line[8192], text[512];
    int seen = 0;
    FILE *file;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) {
            um_note_t note = {.pid = getpid(), .kind = UM_NOTE_START, .text = text};

            for (int k = 0; k < NOTES; k++)
                um_note_leave(&note);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    file = fopen(path, "r");
    while (fgets(line, sizeof line, file) != NULL) {
        um_note_t note;

        cr_assert(um_note_parse(line, &note), "line %d", seen);
        cr_assert_str_eq(note.text, text);
        seen++;
    }
    cr_assert_eq(seen, WRITERS * NOTES);
    fclose(file);
    unlink(path);
}

Test(note, is_refused_where_nobody_reads)
{
    um_note_t note = {.pid = 1, .kind = UM_NOTE_START, .state = UM_RUNTIME_HINT, .text = ""};

    unsetenv(UM_NOTE_ENV);
    cr_assert_not(um_note_leave(&note));
    setenv(UM_NOTE_ENV, "/tmp/um-note-test-that-is-gone", 1);
    cr_assert_not(um_note_leave(&note));
    cr_assert_neq(access("/tmp/um-note-test-that-is-gone", F_OK), 0);
}

Test(note, other_lines_are_not_notes)
{
    static const char *const lines[] = {
        "",
        "\n",
        "1\tstart\thint\ttext",
        "1\tstart\thint\ttext\tpath\tmore",
        "x\tend\thint\t\t",
        "0\tend\thint\t\t",
        "1\tbegin\thint\t\t",
        "1\tend\tfast\t\t",
        "99999999999999999999\tend\thint\t\t",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[128];
        um_note_t note;

        snprintf(line, sizeof line, "%s", lines[i]);
        cr_assert_not(um_note_parse(line, &note), "line %zu", i);
    }
}
