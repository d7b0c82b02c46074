/*
 * inside.c - cudart looks all that it calls in the driver up by name, at its start, and so has the names in it,
 * stripped or not. What it has of prefetches and advice is what its version offers the program. Read from the
 * runtimes of 11.8, 12.0, 12.4, 12.8, 13.0 and 13.5; the linked one has the same names as the library.
 */
#include "inside.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A word of its own, as a string constant is. */
static bool holds(const char *file, size_t bytes, const char *word)
{
    size_t n = strlen(word) + 1; /* with its end */

    for (const char *at = file; (at = memmem(at, bytes - (size_t)(at - file), word, n)); at++) {
        if (at > file && !at[-1])
            return true;
    }
    return false;
}

static bool read_version(const char *file, size_t bytes, um_target_t *out)
{
    static const struct {
        const char *word[2];
        uint32_t cuda;
        bool minor;
    } since[] = {
        {{"cuMemPrefetchBatchAsync", "cuMemDiscardBatchAsync"}, 13000, false},
        {{"cuMemPrefetchAsync_v2", "cuMemAdvise_v2"}, 12020, true},
        {{"cuGetProcAddress_v2", "cuLibraryLoadData"}, 12000, false},
        {{"cuGetProcAddress", "cuMemPrefetchAsync"}, 11000, false},
    };

    /* Its own words for errors: what else knows the driver's names does not say these. */
    if (!holds(file, bytes, "cudaErrorMissingConfiguration") ||
        !holds(file, bytes, "cudaErrorInsufficientDriver"))
        return false;
    for (size_t i = 0; i < sizeof(since) / sizeof(since[0]); i++) {
        if (!holds(file, bytes, since[i].word[0]) || !holds(file, bytes, since[i].word[1]))
            continue;
        out->cuda = since[i].cuda;
        out->minor = since[i].minor;
        return true;
    }
    return false;
}

bool um_target_inside(const um_ev_module_t *module, um_target_t *out)
{
    int fd = *module->path ? open(module->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    um_target_t target = {0};
    struct stat file;
    bool found = false;
    void *map;

    if (fd < 0)
        return false;
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0 &&
        (uint64_t)file.st_size == module->file_bytes &&
        (uint64_t)file.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)file.st_mtim.tv_nsec ==
            module->modified_ns &&
        (map = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) != MAP_FAILED) {
        found = read_version(map, (size_t)file.st_size, &target);
        munmap(map, (size_t)file.st_size);
    }
    close(fd);
    if (!found)
        return false;
    snprintf(target.cuda_why, sizeof(target.cuda_why), "the runtime in %.170s", module->name);
    *out = target;
    return true;
}
