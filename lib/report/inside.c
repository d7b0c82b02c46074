/*
 * inside.c - cudart looks all that it calls in the driver up by name, at its start, and so has the names in it,
 * stripped or not. What it has of prefetches and advice is what its version offers the program. Read from the
 * runtimes of 11.8, 12.0, 12.4, 12.8, 13.0 and 13.5; the linked one has the same names as the library.
 */
#include "inside.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (1u << 20)
#define WORD_BYTES  64u                 /* more than any of the words has, with both its ends */
#define MOST_BYTES  ((uint64_t)4 << 30) /* what a linker makes a program of */

static const struct {
    const char *word[2];
    uint32_t cuda;
    bool minor;
} marks[] = {
    /* Its own words for errors: what else knows the driver's names does not say these. */
    {{"cudaErrorMissingConfiguration", "cudaErrorInsufficientDriver"}, 0, false},
    {{"cuMemPrefetchBatchAsync", "cuMemDiscardBatchAsync"}, 13000, false},
    {{"cuMemPrefetchAsync_v2", "cuMemAdvise_v2"}, 12020, true},
    {{"cuGetProcAddress_v2", "cuLibraryLoadData"}, 12000, false},
    {{"cuGetProcAddress", "cuMemPrefetchAsync"}, 11000, false},
};

#define MARKS (sizeof(marks) / sizeof(marks[0]))

/* A word of its own, as a string constant is. */
static bool holds(const char *piece, size_t bytes, const char *word)
{
    char whole[WORD_BYTES] = "";
    size_t n = strlen(word);

    memcpy(whole + 1, word, n);
    return memmem(piece, bytes, whole, n + 2) != NULL;
}

static void look(const char *piece, size_t bytes, bool (*found)[2])
{
    for (size_t i = 0; i < MARKS; i++)
        for (int k = 0; k < 2; k++)
            found[i][k] = found[i][k] || holds(piece, bytes, marks[i].word[k]);
}

/* Read, not mapped: a file that is cut meanwhile would take us with it. */
static bool read_version(int fd, um_target_t *out)
{
    bool found[MARKS][2] = {{false}};
    char *piece = malloc(WORD_BYTES + PIECE_BYTES);
    size_t kept = 0; /* of the piece before: words lie across, too */
    ssize_t got;

    for (uint64_t all = 0; piece && all < MOST_BYTES; all += (uint64_t)got) {
        size_t bytes;

        if ((got = read(fd, piece + kept, PIECE_BYTES)) <= 0)
            break;
        bytes = kept + (size_t)got;
        look(piece, bytes, found);
        kept = bytes < WORD_BYTES ? bytes : WORD_BYTES;
        memmove(piece, piece + bytes - kept, kept);
    }
    free(piece);
    for (size_t i = 1; i < MARKS && found[0][0] && found[0][1]; i++) {
        if (!found[i][0] || !found[i][1])
            continue;
        out->cuda = marks[i].cuda;
        out->minor = marks[i].minor;
        return true;
    }
    return false;
}

bool um_target_inside(const um_ev_module_t *module, um_target_t *out)
{
    int fd = *module->path ? open(module->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    um_target_t target = {0};
    struct stat file;
    bool found;

    if (fd < 0)
        return false;
    found = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
            (uint64_t)file.st_size == module->file_bytes &&
            (uint64_t)file.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)file.st_mtim.tv_nsec ==
                module->modified_ns &&
            read_version(fd, &target);
    close(fd);
    if (!found)
        return false;
    snprintf(target.cuda_why, sizeof(target.cuda_why), "the runtime in %.170s", module->name);
    *out = target;
    return true;
}
