#include "share.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config.h"
#include "core/log.h"

#define MAX_DEVICES   32
#define MAX_RANKS     65536u /* on a machine; more, or less than none, is nonsense */
#define ASK_PERIOD_NS 1000000000u
#define FIRST_FD      200 /* out of the way of programs that count on small numbers */
#define DRIVERS_GPUS  "/proc/driver/nvidia/gpus"

typedef struct gpu {
    bool known;
    char uuid[48];     /* "" = not told: who else is there cannot be seen */
    uint64_t asked_ns; /* 0 = never */
    uint32_t processes;
} gpu_t;

/* Our lock on the GPU's file. */
typedef struct held {
    int fd; /* -1 = none */
    dev_t dev;
    ino_t ino;
} held_t;

struct um_share {
    um_share_config_t config; /* not its strings */
    uint32_t machine_gpus;    /* 0 = not known */
    uint32_t n;               /* GPUs that were described */
    gpu_t gpu[MAX_DEVICES];
    held_t held[MAX_DEVICES];
    char *folder; /* NULL = the usual ones */
};

/* ---- what is said ---- */

bool um_budget_parse(const char *text, um_budget_t *out)
{
    char *end;
    unsigned long percent;

    *out = (um_budget_t){UM_BUDGET_AUTO, 0};
    if (strcasecmp(text, "auto") == 0)
        return true;
    if (strcasecmp(text, "all") == 0) {
        out->kind = UM_BUDGET_ALL;
        return true;
    }
    if (isdigit((unsigned char)*text) && text[strlen(text) - 1] == '%') {
        percent = strtoul(text, &end, 10);
        *out = (um_budget_t){UM_BUDGET_PERCENT, percent};
        return end[0] == '%' && !end[1] && percent >= 1 && percent <= 100;
    }
    out->kind = UM_BUDGET_BYTES;
    return um_parse_bytes(text, &out->value) && out->value > 0;
}

/* Slurm's list, "4(x2),3": tasks of the first node, of the second ... */
static uint32_t of_node(const char *list, unsigned long node)
{
    while (*list) {
        char *end;
        unsigned long tasks = strtoul(list, &end, 10), times = 1;

        if (end == list)
            return 0;
        if (strncmp(end, "(x", 2) == 0)
            times = strtoul(end + 2, &end, 10);
        if (node < times)
            return tasks <= MAX_RANKS ? (uint32_t)tasks : 0;
        node -= times;
        list = end + strspn(end, "),");
    }
    return 0;
}

uint32_t um_local_ranks(void)
{
    /* Not Slurm's SLURM_TASKS_PER_NODE: a job's script, where one process runs, has that too. */
    static const char *const variable[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                           "MV2_COMM_WORLD_LOCAL_SIZE",  "PMI_LOCAL_SIZE",
                                           "JSM_NAMESPACE_LOCAL_SIZE",   "LOCAL_WORLD_SIZE",
                                           "SLURM_STEP_TASKS_PER_NODE"};
    const char *node = getenv("SLURM_NODEID");

    for (size_t i = 0; i < sizeof(variable) / sizeof(variable[0]); i++) {
        const char *value = getenv(variable[i]);
        bool list = strncmp(variable[i], "SLURM", 5) == 0;
        uint32_t ranks = value ? of_node(value, list && node ? strtoul(node, NULL, 10) : 0) : 0;

        if (ranks)
            return ranks;
    }
    return 1;
}

/* ---- who else is there ---- */

static uint32_t entries(const char *folder)
{
    DIR *dir = opendir(folder);
    uint32_t n = 0;

    if (!dir)
        return 0;
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* The user's own folder, or -1: what is in one that others may write to says nothing. */
static int open_folder(const char *path)
{
    int fd;
    struct stat file;

    mkdir(path, 0700);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        um_log_once(UM_LOG_INFO, "%s: %s: other processes on the GPU are not seen there", path,
                    strerror(errno));
        return -1;
    }
    if (fstat(fd, &file) == 0 && file.st_uid == geteuid() && !(file.st_mode & 022))
        return fd;
    um_log_once(UM_LOG_WARN,
                "%s is not this user's alone: other processes on the GPU are not seen there", path);
    close(fd);
    return -1;
}

static int open_any_folder(const um_share_t *share)
{
    /* The first is anybody's to make. The second is not, but comes and goes with logins. */
    static const char *const usual[] = {"/dev/shm/umrt-%u", "/run/user/%u/umrt"};
    char path[64];
    int fd = -1;

    if (share->folder)
        return open_folder(share->folder);
    for (size_t i = 0; fd < 0 && i < sizeof(usual) / sizeof(usual[0]); i++) {
        snprintf(path, sizeof(path), usual[i], (unsigned)geteuid());
        fd = open_folder(path);
    }
    return fd;
}

static bool is_file(const held_t *held, struct stat *file)
{
    return held->fd >= 0 && fstat(held->fd, file) == 0 && file->st_dev == held->dev &&
           file->st_ino == held->ino;
}

/* The program may have closed ours, and have another file under its number. */
static void let_go(held_t *held)
{
    struct stat file;

    if (is_file(held, &file))
        close(held->fd);
    held->fd = -1;
}

static struct flock place(uint32_t first, uint32_t n)
{
    return (struct flock){.l_type = F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)first,
                          .l_len = (off_t)n};
}

/* Opens the GPU's file, and locks the first byte that nobody has. */
static void hold(const um_share_t *share, const gpu_t *gpu, held_t *held)
{
    int folder = open_any_folder(share), low, fd;
    struct stat file;

    if (folder < 0)
        return;
    low = openat(folder, gpu->uuid, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    close(folder);
    if (low < 0)
        return;
    if ((fd = fcntl(low, F_DUPFD_CLOEXEC, FIRST_FD)) >= 0)
        close(low);
    else
        fd = low;
    if (fstat(fd, &file) != 0) {
        close(fd);
        return;
    }
    *held = (held_t){fd, file.st_dev, file.st_ino};
    for (uint32_t slot = 0; slot < UM_SHARE_PROCESSES; slot++) {
        struct flock lock = place(slot, 1);

        if (fcntl(fd, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES))
            break;
    }
}

/* Byte by byte: of several that are in the way the kernel tells any, not the first. */
static uint32_t locked_by_others(int fd)
{
    uint32_t n = 0;

    for (uint32_t slot = 0; slot < UM_SHARE_PROCESSES; slot++) {
        struct flock lock = place(slot, 1);

        n += fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    }
    return n;
}

static uint32_t processes_there(const um_share_t *share, const gpu_t *gpu, held_t *held)
{
    struct stat file;

    if (!gpu->uuid[0])
        return 1;
    if (!is_file(held, &file) || file.st_nlink == 0) { /* removed: later ones have another */
        let_go(held);
        hold(share, gpu, held);
    }
    return held->fd < 0 ? 1 : 1 + locked_by_others(held->fd);
}

/* Ranks go over the machine's GPUs evenly. */
static uint32_t ranks_of_one(const um_share_t *share)
{
    uint32_t gpus = share->machine_gpus > share->n ? share->machine_gpus : share->n;

    return gpus ? (share->config.local_ranks + gpus - 1) / gpus : 1;
}

uint32_t um_share_processes(um_share_t *share, int32_t device, uint64_t now_ns)
{
    uint32_t ranks = ranks_of_one(share), there;
    gpu_t *gpu;

    if (device < 0 || device >= MAX_DEVICES || !share->gpu[device].known)
        return 1;
    gpu = &share->gpu[device];
    if (gpu->asked_ns && now_ns - gpu->asked_ns < ASK_PERIOD_NS)
        return gpu->processes;
    there = processes_there(share, gpu, &share->held[device]);
    if (there < ranks)
        there = ranks;
    if (there > 1 && there != gpu->processes)
        um_log(UM_LOG_INFO, "%u processes share gpu %d", (unsigned)there, device);
    gpu->processes = there;
    gpu->asked_ns = now_ns ? now_ns : 1;
    return gpu->processes;
}

uint64_t um_share_bytes(um_share_t *share, int32_t device, uint64_t total_bytes,
                        uint64_t headroom_bytes, uint64_t now_ns)
{
    uint32_t processes = um_share_processes(share, device, now_ns);

    switch (share->config.budget.kind) {
    case UM_BUDGET_BYTES:
        return share->config.budget.value;
    case UM_BUDGET_PERCENT:
        return total_bytes * share->config.budget.value / 100;
    case UM_BUDGET_AUTO:
        if (processes > 1)
            return total_bytes > headroom_bytes ? (total_bytes - headroom_bytes) / processes : 0;
        break;
    case UM_BUDGET_ALL:
        break;
    }
    return UINT64_MAX;
}

/* ---- life ---- */

void um_share_device(um_share_t *share, const um_ev_device_t *device)
{
    gpu_t *gpu;

    if (device->device < 0 || device->device >= MAX_DEVICES)
        return;
    gpu = &share->gpu[device->device];
    share->n += !gpu->known;
    gpu->known = true;
    if (!strchr(device->uuid, '/')) /* it names a file */
        snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", device->uuid);
}

um_status_t um_share_new(const um_share_config_t *config, um_share_t **out)
{
    um_share_t *share = calloc(1, sizeof(*share));

    if (!share)
        return UM_ERR_NO_MEMORY;
    if (config->folder && *config->folder && !(share->folder = strdup(config->folder))) {
        free(share);
        return UM_ERR_NO_MEMORY;
    }
    share->config = *config;
    share->machine_gpus = entries(config->gpus ? config->gpus : DRIVERS_GPUS);
    for (int d = 0; d < MAX_DEVICES; d++)
        share->held[d].fd = -1;
    *out = share;
    return UM_OK;
}

void um_share_abandon(um_share_t *share)
{
    for (int d = 0; d < MAX_DEVICES; d++)
        let_go(&share->held[d]);
}

void um_share_free(um_share_t *share)
{
    if (!share)
        return;
    um_share_abandon(share);
    free(share->folder);
    free(share);
}
