#include "host_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Both versions, in their own words. The folder of a group is ROOT MOUNT GROUP. */
typedef struct version {
    const char *mount;
    const char *limit[2]; /* NULL = there is no second */
    const char *usage, *reclaimable;
} version_t;

static const version_t versions[] = {
    {"/sys/fs/cgroup", {"memory.max", "memory.high"}, "memory.current", "inactive_file"},
    {"/sys/fs/cgroup/memory",
     {"memory.limit_in_bytes", NULL},
     "memory.usage_in_bytes",
     "total_inactive_file"},
};

/* The number after `key` and blanks in the file's first line that begins so; key "" = its first. */
static bool read_number(const char *path, const char *key, uint64_t *out)
{
    FILE *file = fopen(path, "re");
    size_t length = strlen(key);
    char line[256];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file))
        found = strncmp(line, key, length) == 0 && sscanf(line + length, " %" SCNu64, out) == 1;
    if (file)
        fclose(file);
    return found;
}

static bool read_in(const char *folder, const char *name, const char *key, uint64_t *out)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);

    return length < (int)sizeof(path) && read_number(path, key, out);
}

static uint64_t available(const char *root)
{
    uint64_t kib;

    return read_in(root, "proc/meminfo", "MemAvailable:", &kib) ? kib << 10 : UINT64_MAX;
}

/* What a group leaves; UINT64_MAX = it has no limit, or there is no such folder. */
static uint64_t left_by(const version_t *version, const char *folder)
{
    uint64_t usage, reclaimable = 0, limit, left = UINT64_MAX;

    if (!read_in(folder, version->usage, "", &usage))
        return left;
    read_in(folder, "memory.stat", version->reclaimable, &reclaimable);
    usage -= reclaimable < usage ? reclaimable : usage;
    for (size_t i = 0; i < 2 && version->limit[i]; i++) {
        if (!read_in(folder, version->limit[i], "", &limit)) /* "max" */
            continue;
        limit = limit > usage ? limit - usage : 0;
        left = limit < left ? limit : left;
    }
    return left;
}

/* Of the group and all above it. A container may see its own group as the root: its path, which is the
 * host's, is not there then, and the walk ends at what is. */
static uint64_t left_by_groups(const char *root, const version_t *version, char *group)
{
    uint64_t left = UINT64_MAX;

    for (;;) {
        char folder[PATH_MAX];
        char *slash = strrchr(group, '/');
        uint64_t here;

        snprintf(folder, sizeof(folder), "%s%s%s", root, version->mount, group);
        here = left_by(version, folder);
        left = here < left ? here : left;
        if (!slash)
            return left;
        *slash = '\0';
    }
}

/* "0::/user/job" is version 2, "4:memory:/user/job" version 1. */
static const version_t *version_of(const char *line, const char **group)
{
    const char *controllers = strchr(line, ':');
    const char *path = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!path)
        return NULL;
    *group = path + 1;
    if (path == controllers + 1)
        return &versions[0];
    for (const char *at = controllers + 1; at < path; at += strcspn(at, ",:") + 1)
        if (strcspn(at, ",:") == strlen("memory") && strncmp(at, "memory", strlen("memory")) == 0)
            return &versions[1];
    return NULL;
}

uint64_t um_host_memory_bytes(const char *root)
{
    uint64_t left = available(root);
    char path[PATH_MAX], line[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        const char *group;
        const version_t *version = version_of(line, &group);
        uint64_t here;

        if (!version)
            continue;
        line[strcspn(line, "\n")] = '\0';
        here = left_by_groups(root, version, line + (group - line));
        left = here < left ? here : left;
    }
    if (file)
        fclose(file);
    return left;
}
