#include "um_trace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define UVM_PARAMETERS "/sys/module/nvidia_uvm/parameters"
#define VALUE_BYTES    4096

typedef struct um_fact_sink {
    uint64_t now_ns;
    um_event_fn fn;
    void *ctx;
    char buffer[VALUE_BYTES];
} um_fact_sink_t;

static void say(um_fact_sink_t *sink, const char *key, const char *value)
{
    um_event_t event = {.time_ns = sink->now_ns, .type = UM_EV_FACT};
    event.u.fact.key = key;
    event.u.fact.value = value;
    sink->fn(sink->ctx, &event);
}

static void say_number(um_fact_sink_t *sink, const char *key, long long value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", value);
    say(sink, key, text);
}

/* The start of a small file in sink->buffer: its bytes, 0 when there is none. */
static size_t read_file(um_fact_sink_t *sink, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return 0;
    size_t n = 0;
    ssize_t got;
    while (n < VALUE_BYTES - 1 && (got = read(fd, sink->buffer + n, VALUE_BYTES - 1 - n)) > 0)
        n += (size_t)got;
    close(fd);
    sink->buffer[n] = 0;
    return n;
}

/* The first line of a file as a fact; nothing when there is no such file. */
static void say_line(um_fact_sink_t *sink, const char *key, const char *path)
{
    if (!read_file(sink, path))
        return;
    sink->buffer[strcspn(sink->buffer, "\n")] = 0;
    say(sink, key, sink->buffer);
}

/* ---- host --------------------------------------------------------------------------------- */

/* The memory limit of our control group: what a container really has. Of the groups' second version or the first;
 * in a container the group's path may be the host's, and what is mounted is the group itself. */
static void say_memory_limit(um_fact_sink_t *sink)
{
    static const struct {
        const char *line, *mount, *file;
    } version[] = {{"0::/", "/sys/fs/cgroup", "memory.max"},
                   {":memory:/", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"}};
    char path[VALUE_BYTES + 64];

    for (size_t i = 0; i < sizeof(version) / sizeof(*version); i++) {
        if (!read_file(sink, "/proc/self/cgroup"))
            return;
        char *group = strstr(sink->buffer, version[i].line);
        if (!group)
            continue;
        group += strlen(version[i].line);
        group[strcspn(group, "\n")] = 0;
        snprintf(path, sizeof(path), "%s/%s/%s", version[i].mount, group, version[i].file);
        if (access(path, R_OK) != 0)
            snprintf(path, sizeof(path), "%s/%s", version[i].mount, version[i].file);
        if (!read_file(sink, path))
            continue;
        sink->buffer[strcspn(sink->buffer, "\n")] = 0;
        bool none =
            strtoull(sink->buffer, NULL, 10) > INT64_MAX / 2; /* the first version's word for it */
        say(sink, "host.cgroup_memory_max", none ? "max" : sink->buffer);
        return;
    }
}

static void say_host(um_fact_sink_t *sink)
{
    struct utsname name;
    if (uname(&name) == 0) {
        say(sink, "host.name", name.nodename);
        say(sink, "host.kernel", name.release);
        say(sink, "host.machine", name.machine);
    }
    say_number(sink, "host.cpus", sysconf(_SC_NPROCESSORS_ONLN));
    say_number(sink, "host.page_bytes", sysconf(_SC_PAGESIZE));
    say_number(sink, "host.memory_bytes",
               (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    say_memory_limit(sink);
    say_line(sink, "host.boot_id", "/proc/sys/kernel/random/boot_id");
}

/* ---- process ------------------------------------------------------------------------------ */

static void say_link(um_fact_sink_t *sink, const char *key, const char *path)
{
    ssize_t n = readlink(path, sink->buffer, VALUE_BYTES - 1);
    if (n <= 0)
        return;
    sink->buffer[n] = 0;
    say(sink, key, sink->buffer);
}

/* Everything else in a trace is on a clock that starts at boot. */
static void say_date(um_fact_sink_t *sink)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc))
        say(sink, "process.recorded_at", text);
}

static void say_process(um_fact_sink_t *sink)
{
    say_date(sink);
    say_number(sink, "process.pid", getpid());
    say_number(sink, "process.ppid", getppid());
    say_link(sink, "process.exe", "/proc/self/exe");
    say_link(sink, "process.directory", "/proc/self/cwd");
    size_t n = read_file(sink, "/proc/self/cmdline");
    if (!n)
        return;
    while (n > 0 && !sink->buffer[n - 1])
        n--;
    for (size_t i = 0; i < n; i++)
        if (!sink->buffer[i])
            sink->buffer[i] = ' ';
    say(sink, "process.command", sink->buffer);
}

/* ---- environment -------------------------------------------------------------------------- */

static const struct {
    const char *variable, *key;
} environment[] = {
    {"CUDA_VISIBLE_DEVICES", "env.CUDA_VISIBLE_DEVICES"},
    {"CUDA_DEVICE_ORDER", "env.CUDA_DEVICE_ORDER"},
    {"CUDA_LAUNCH_BLOCKING", "env.CUDA_LAUNCH_BLOCKING"},
    {"CUDA_MODULE_LOADING", "env.CUDA_MODULE_LOADING"},
    {"CUDA_MANAGED_FORCE_DEVICE_ALLOC", "env.CUDA_MANAGED_FORCE_DEVICE_ALLOC"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "env.CUDA_DEVICE_MAX_CONNECTIONS"},
    {"CUDA_MPS_PIPE_DIRECTORY", "env.CUDA_MPS_PIPE_DIRECTORY"},
    {"NVIDIA_VISIBLE_DEVICES", "env.NVIDIA_VISIBLE_DEVICES"},
    {"SLURM_JOB_ID", "job.id"},
};

/* One launcher a line: the first whose rank variable is set is the one. */
static const struct {
    const char *launcher, *rank, *size, *local_rank, *local_size;
} launchers[] = {
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"pmix", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
};

static void say_variable(um_fact_sink_t *sink, const char *key, const char *variable)
{
    const char *value = getenv(variable);
    if (value)
        say(sink, key, value);
}

static void say_environment(um_fact_sink_t *sink)
{
    for (size_t i = 0; i < sizeof(environment) / sizeof(environment[0]); i++)
        say_variable(sink, environment[i].key, environment[i].variable);
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        if (!getenv(launchers[i].rank))
            continue;
        say(sink, "rank.launcher", launchers[i].launcher);
        say_variable(sink, "rank.world", launchers[i].rank);
        say_variable(sink, "rank.world_size", launchers[i].size);
        say_variable(sink, "rank.local", launchers[i].local_rank);
        say_variable(sink, "rank.local_size", launchers[i].local_size);
        break;
    }
}

/* ---- driver ------------------------------------------------------------------------------- */

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void say_driver(um_fact_sink_t *sink)
{
    say_line(sink, "driver.version", "/sys/module/nvidia/version");
    say_line(sink, "driver.module", "/proc/driver/nvidia/version");

    struct dirent **entries;
    int n = scandir(UVM_PARAMETERS, &entries, visible, alphasort);
    for (int i = 0; i < n; i++) {
        char key[sizeof(entries[i]->d_name) + 8], path[sizeof(key) + sizeof(UVM_PARAMETERS)];
        snprintf(key, sizeof(key), "uvm.%s", entries[i]->d_name);
        snprintf(path, sizeof(path), UVM_PARAMETERS "/%s", entries[i]->d_name);
        say_line(sink, key, path);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

um_status_t um_trace_host_facts(uint64_t now_ns, um_event_fn fn, void *ctx)
{
    um_fact_sink_t sink = {.now_ns = now_ns, .fn = fn, .ctx = ctx};
    say(&sink, "umrt.version", UM_VERSION);
    say_host(&sink);
    say_process(&sink);
    say_environment(&sink);
    say_driver(&sink);
    return UM_OK;
}
