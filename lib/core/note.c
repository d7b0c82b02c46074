#include "note.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kind_names[] = {[UM_NOTE_START] = "start", [UM_NOTE_END] = "end"};
static const char *const state_names[] = {
    [UM_RUNTIME_NONE] = "none",     [UM_RUNTIME_INERT] = "inert", [UM_RUNTIME_OBSERVE] = "observe",
    [UM_RUNTIME_RECORD] = "record", [UM_RUNTIME_HINT] = "hint",
};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Whatever would end a field or a line becomes a space. */
static void flatten(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\t' || *text == '\n' || *text == '\r')
            *text = ' ';
}

bool um_note_leave(const um_note_t *note)
{
    const char *to = getenv(UM_NOTE_ENV);
    char text[1024], path[4096], line[sizeof text + sizeof path + 64];
    int saved = errno, fd, n;
    bool written;

    if (to == NULL || to[0] == '\0' || note->kind == 0 || note->kind >= COUNT(kind_names) ||
        note->state >= COUNT(state_names))
        return false;
    snprintf(text, sizeof text, "%s", note->text != NULL ? note->text : "");
    snprintf(path, sizeof path, "%s", note->trace_path != NULL ? note->trace_path : "");
    flatten(text);
    flatten(path);
    n = snprintf(line, sizeof line, "%d\t%s\t%s\t%s\t%s\n", (int)note->pid, kind_names[note->kind],
                 state_names[note->state], text, path);

    /* Never created here: when the command is gone, so is the wish for notes. */
    fd = open(to, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    written = fd >= 0 && write(fd, line, (size_t)n) == n;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return written;
}

static uint32_t index_of(const char *name, const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (names[i] != NULL && strcmp(names[i], name) == 0)
            return i;
    return count;
}

bool um_note_parse(char *line, um_note_t *out)
{
    enum { PID, KIND, STATE, TEXT, PATH, FIELDS };
    char *field[FIELDS], *end;
    um_note_t note;
    long pid;

    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < FIELDS; i++) {
        field[i] = strsep(&line, "\t");
        if (field[i] == NULL)
            return false;
    }
    errno = 0;
    pid = strtol(field[PID], &end, 10);
    note = (um_note_t){
        .pid = (int32_t)pid,
        .kind = index_of(field[KIND], kind_names, COUNT(kind_names)),
        .state = index_of(field[STATE], state_names, COUNT(state_names)),
        .text = field[TEXT],
        .trace_path = field[PATH],
    };
    if (line != NULL || errno != 0 || *end != '\0' || pid <= 0 || pid > INT32_MAX ||
        note.kind == COUNT(kind_names) || note.state == COUNT(state_names))
        return false;
    *out = note;
    return true;
}
