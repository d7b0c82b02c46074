#include "top_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES   100 /* to find the figures whole */
#define STEP_MS 2

static void nap_ms(int ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&pause, NULL);
}

/* ---- finding it ---- */

/* The number of the page among the open files of a process, -1 with errno. */
static int find_fd(pid_t pid, struct stat *file)
{
    char path[64], name[PATH_MAX > 512 ? 512 : PATH_MAX];
    struct dirent *entry;
    int found = -1;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    if ((dir = opendir(path)) == NULL)
        return -1;
    while (found < 0 && (entry = readdir(dir)) != NULL) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, name, sizeof name - 1);

        if (n <= 0)
            continue;
        name[n] = '\0';
        if (strcmp(name, "/memfd:" UM_TOP_FILE " (deleted)") == 0 &&
            fstatat(dirfd(dir), entry->d_name, file, 0) == 0)
            found = atoi(entry->d_name);
    }
    closedir(dir);
    errno = ENOENT;
    return found;
}

/* Whether a line of /proc/PID/NAME has `word`. */
static bool mentions(pid_t pid, const char *name, const char *word, int separator)
{
    char path[64], *line = NULL;
    size_t size = 0;
    bool found = false;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    if ((file = fopen(path, "re")) == NULL)
        return false;
    while (!found && getdelim(&line, &size, separator, file) > 0)
        found = strstr(line, word) != NULL;
    free(line);
    fclose(file);
    return found;
}

static um_status_t no_page(pid_t pid, char *error, size_t bytes)
{
    if (!mentions(pid, "maps", "/libumrt.so", '\n'))
        snprintf(error, bytes,
                 "process %d runs without umrt; start it by 'umrt run PROGRAM' or 'umrt top -- "
                 "PROGRAM'",
                 (int)pid);
    else
        snprintf(error, bytes,
                 "process %d has umrt, but shows no figures: it has had no managed memory so far, "
                 "UMRT_TOP or UMRT_MODE is off, or it is the child of a fork",
                 (int)pid);
    return UM_ERR_NOT_FOUND;
}

/* The number that the process itself has: in a container another one than here. */
static int own_pid(pid_t pid)
{
    char path[64], *line = NULL, *last;
    size_t size = 0;
    int own = (int)pid;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if ((file = fopen(path, "re")) == NULL)
        return own;
    while (getline(&line, &size, file) > 0)
        if (strncmp(line, "NSpid:", 6) == 0 && (last = strrchr(line, '\t')) != NULL)
            own = atoi(last + 1);
    free(line);
    fclose(file);
    return own;
}

um_status_t um_top_open(pid_t pid, um_top_reader_t *out, char *error, size_t bytes)
{
    um_top_reader_t reader = {.pid = pid, .fd = -1};
    struct {
        char magic[8];
        uint32_t version, bytes;
        int32_t pid;
    } head;
    struct stat process;
    char path[32];
    int number;

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &process) != 0) {
        snprintf(error, bytes, "there is no process %d", (int)pid);
        return UM_ERR_NOT_FOUND;
    }
    if ((geteuid() != 0 && process.st_uid != geteuid()) ||
        ((number = find_fd(pid, &reader.file)) < 0 && errno != ENOENT)) {
        snprintf(error, bytes, "process %d is another user's, or does not let itself be looked at",
                 (int)pid);
        return UM_ERR_IO;
    }
    if (number < 0)
        return no_page(pid, error, bytes);
    snprintf(reader.link, sizeof reader.link, "/proc/%d/fd/%d", (int)pid, number);
    reader.fd = open(reader.link, O_RDWR | O_CLOEXEC);
    if (reader.fd < 0 || pread(reader.fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.magic, UM_TOP_MAGIC, sizeof head.magic) != 0 || head.pid != own_pid(pid)) {
        um_top_close(&reader);
        return no_page(pid, error, bytes);
    }
    if (head.version != UM_TOP_VERSION || head.bytes != sizeof(um_top_page_t)) {
        um_top_close(&reader);
        snprintf(error, bytes,
                 "process %d runs with another umrt: its page of figures is of version %u, this "
                 "command reads version %u",
                 (int)pid, head.version, UM_TOP_VERSION);
        return UM_ERR_VERSION;
    }
    *out = reader;
    return UM_OK;
}

void um_top_close(um_top_reader_t *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
}

/* ---- reading it ---- */

static bool sequence_of(const um_top_reader_t *reader, uint32_t *out)
{
    return pread(reader->fd, out, sizeof *out, offsetof(um_top_page_t, sequence)) ==
           (ssize_t)sizeof *out;
}

void um_top_ask(const um_top_reader_t *reader, int wait_ms)
{
    struct timespec now;
    uint32_t before, after, number;

    /* Readers do not know of each other: a number that none has used just now. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    number = (uint32_t)now.tv_nsec ^ (uint32_t)now.tv_sec << 20 ^ (uint32_t)getpid() << 8;
    if (!sequence_of(reader, &before) ||
        pwrite(reader->fd, &number, sizeof number, offsetof(um_top_page_t, asked)) < 0)
        return;
    for (int ms = 0; ms < wait_ms && um_top_alive(reader); ms += STEP_MS) {
        nap_ms(STEP_MS);
        if (!sequence_of(reader, &after) || (after != before && after % 2 == 0))
            return;
    }
}

#define END(string) ((string)[sizeof(string) - 1] = '\0')

static void check(um_top_figures_t *figures)
{
    if (figures->n_advisors > UM_TOP_ADVISORS)
        figures->n_advisors = UM_TOP_ADVISORS;
    if (figures->n_regions > UM_TOP_REGIONS)
        figures->n_regions = UM_TOP_REGIONS;
    if (figures->n_modules > UM_TOP_MODULES)
        figures->n_modules = UM_TOP_MODULES;
    END(figures->reason);
    for (uint32_t i = 0; i < figures->n_advisors; i++)
        END(figures->advisor[i].who);
    for (uint32_t i = 0; i < figures->n_regions; i++) {
        END(figures->region[i].label);
        END(figures->region[i].frames);
    }
    for (uint32_t i = 0; i < figures->n_modules; i++) {
        END(figures->module[i].name);
        END(figures->module[i].path);
        END(figures->module[i].build_id);
    }
}

bool um_top_read(const um_top_reader_t *reader, um_top_figures_t *out)
{
    um_top_figures_t *figures = malloc(sizeof *figures);
    bool whole = false;

    for (int i = 0; figures != NULL && i < TRIES && !whole; i++) {
        uint32_t before, after;

        if (i > 0)
            nap_ms(1);
        whole = sequence_of(reader, &before) && before % 2 == 0 && before != 0 &&
                pread(reader->fd, figures, sizeof *figures, offsetof(um_top_page_t, figures)) ==
                    (ssize_t)sizeof *figures &&
                sequence_of(reader, &after) && after == before;
        if (!whole && !um_top_alive(reader))
            break;
    }
    if (whole) {
        check(figures);
        *out = *figures;
    }
    free(figures);
    return whole;
}

bool um_top_alive(const um_top_reader_t *reader)
{
    struct stat now;

    return stat(reader->link, &now) == 0 && now.st_dev == reader->file.st_dev &&
           now.st_ino == reader->file.st_ino;
}

/* ---- the processes of a program ---- */

static pid_t parent_of(pid_t pid)
{
    char path[32], text[512], *end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    /* "12 (a name, with anything) S 1 ..." */
    return (end = strrchr(text, ')')) != NULL && strlen(end) > 4 ? atoi(end + 4) : 0;
}

static bool is_below(pid_t pid, pid_t root)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++, pid = parent_of(pid))
        if (pid == root)
            return true;
    return false;
}

pid_t um_top_find(pid_t root)
{
    um_top_reader_t reader;
    struct dirent *entry;
    char error[256];
    pid_t found = 0;
    DIR *dir;

    if (um_top_open(root, &reader, error, sizeof error) == UM_OK) {
        um_top_close(&reader);
        return root;
    }
    if ((dir = opendir("/proc")) == NULL)
        return 0;
    while (!found && (entry = readdir(dir)) != NULL) {
        pid_t pid = atoi(entry->d_name);

        if (pid <= 1 || pid == root || !is_below(pid, root) ||
            um_top_open(pid, &reader, error, sizeof error) != UM_OK)
            continue;
        um_top_close(&reader);
        found = pid;
    }
    closedir(dir);
    return found;
}
