#include "share.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/config.h"
#include "core/log.h"

#define MAX_DEVICES   32
#define ASK_PERIOD_NS 1000000000u
#define FIRST_FD      200 /* out of the way of programs that count on small numbers */
#define DRIVERS_GPUS  "/proc/driver/nvidia/gpus"

typedef struct gpu {
    bool known;
    char uuid[48];     /* "" = not told: who else is there cannot be seen */
    uint64_t asked_ns; /* 0 = never */
    uint32_t processes;
} gpu_t;

struct um_share {
    um_share_config_t config;
    uint32_t machine_gpus; /* 0 = not known */
    uint32_t n;            /* GPUs that were described */
    gpu_t gpu[MAX_DEVICES];
    struct {
        int fd; /* -1 = none */
        ino_t file;
    } name[MAX_DEVICES]; /* ours */
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
            return (uint32_t)tasks;
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

static socklen_t name_of(const gpu_t *gpu, uint32_t slot, struct sockaddr_un *out)
{
    int length;

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    length = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "umrt/%u/%s/%u",
                      (unsigned)getuid(), gpu->uuid, (unsigned)slot);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Binds the first name that is free. -1 = none. */
static int bind_name(const gpu_t *gpu)
{
    int low = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;
    struct sockaddr_un name;

    if (low < 0)
        return -1;
    fd = fcntl(low, F_DUPFD_CLOEXEC, FIRST_FD);
    if (fd >= 0)
        close(low);
    else
        fd = low;
    for (uint32_t slot = 0; slot < UM_SHARE_PROCESSES; slot++) {
        socklen_t length = name_of(gpu, slot, &name);

        if (bind(fd, (struct sockaddr *)&name, length) == 0)
            return fd;
        if (errno != EADDRINUSE)
            break;
    }
    close(fd);
    return -1;
}

static void take_name(um_share_t *share, int32_t device)
{
    struct stat file;
    int fd = bind_name(&share->gpu[device]);

    if (fd < 0 || fstat(fd, &file) != 0)
        return;
    share->name[device].fd = fd;
    share->name[device].file = file.st_ino;
}

static uint32_t taken_names(const gpu_t *gpu)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un name;
    uint32_t n = 0;

    for (uint32_t slot = 0; fd >= 0 && slot < UM_SHARE_PROCESSES; slot++) {
        socklen_t length = name_of(gpu, slot, &name);

        n += connect(fd, (struct sockaddr *)&name, length) == 0;
    }
    if (fd >= 0)
        close(fd);
    return n;
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
    if (gpu->uuid[0] && share->name[device].fd < 0)
        take_name(share, device);
    there = gpu->uuid[0] ? taken_names(gpu) : 1;
    if (there < ranks)
        there = ranks;
    if (there > 1 && there != gpu->processes)
        um_log(UM_LOG_INFO, "%u processes share gpu %d", (unsigned)there, device);
    gpu->processes = there ? there : 1;
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
    snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", device->uuid);
}

um_status_t um_share_new(const um_share_config_t *config, um_share_t **out)
{
    um_share_t *share = calloc(1, sizeof(*share));

    if (!share)
        return UM_ERR_NO_MEMORY;
    share->config = *config;
    share->machine_gpus = entries(config->gpus ? config->gpus : DRIVERS_GPUS);
    for (int d = 0; d < MAX_DEVICES; d++)
        share->name[d].fd = -1;
    *out = share;
    return UM_OK;
}

/* The program may have closed ours, and have another file under its number. */
void um_share_abandon(um_share_t *share)
{
    for (int d = 0; d < MAX_DEVICES; d++) {
        int fd = share->name[d].fd;
        struct stat file;

        if (fd >= 0 && fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode) &&
            file.st_ino == share->name[d].file)
            close(fd);
    }
}

void um_share_free(um_share_t *share)
{
    if (!share)
        return;
    um_share_abandon(share);
    free(share);
}
