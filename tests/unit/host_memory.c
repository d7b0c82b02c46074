/* What the machine and its control groups leave, out of made-up files. */
#include "exec/host_memory.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIB ((uint64_t)1 << 20)

static char root[32];

static void make_root(void)
{
    strcpy(root, "/tmp/umrt-host-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static int drop(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void drop_root(void)
{
    nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(host_memory, .init = make_root, .fini = drop_root);

static void file(const char *name, const char *text)
{
    char path[256];
    FILE *out;

    snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    out = fopen(path, "w");
    cr_assert_not_null(out, "%s", path);
    fputs(text, out);
    fclose(out);
}

static void available_mib(unsigned mib)
{
    char text[128];

    snprintf(text, sizeof(text), "MemTotal: 99999999 kB\nMemFree: 17 kB\nMemAvailable:   %u kB\n",
             mib << 10);
    file("/proc/meminfo", text);
}

static void number(const char *name, uint64_t mib)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64 "\n", mib * MIB);
    file(name, text);
}

Test(host_memory, where_nothing_says_there_is_no_limit)
{
    cr_assert_eq(um_host_memory_bytes(root), UINT64_MAX);
}

Test(host_memory, no_more_than_the_machine_has_available)
{
    available_mib(700);
    cr_assert_eq(um_host_memory_bytes(root), 700 * MIB);
}

#define V2 "/sys/fs/cgroup"

static void in_version_2(const char *path)
{
    char text[128];

    available_mib(100000);
    snprintf(text, sizeof(text), "0::%s\n", path);
    file("/proc/self/cgroup", text);
}

Test(host_memory, a_group_of_version_2_leaves_its_limit_less_what_is_used)
{
    in_version_2("/job");
    number(V2 "/job/memory.current", 300);
    file(V2 "/job/memory.max", "max\n");
    file(V2 "/job/memory.high", "max\n");
    cr_assert_eq(um_host_memory_bytes(root), 100000 * MIB);
    number(V2 "/job/memory.max", 1000);
    cr_assert_eq(um_host_memory_bytes(root), 700 * MIB);
    number(V2 "/job/memory.high", 800); /* above it the kernel slows the program down */
    cr_assert_eq(um_host_memory_bytes(root), 500 * MIB);
}

Test(host_memory, files_that_can_be_dropped_are_not_used_memory)
{
    in_version_2("/job");
    number(V2 "/job/memory.current", 900);
    number(V2 "/job/memory.max", 1000);
    file(V2 "/job/memory.stat", "anon 1\nactive_file 2\ninactive_file 419430400\n"); /* 400 MiB */
    cr_assert_eq(um_host_memory_bytes(root), 500 * MIB);
}

Test(host_memory, the_groups_above_count_too)
{
    in_version_2("/slice/user/job");
    number(V2 "/slice/user/job/memory.current", 10);
    number(V2 "/slice/user/job/memory.max", 5000);
    number(V2 "/slice/memory.current", 900);
    number(V2 "/slice/memory.max", 1000);
    cr_assert_eq(um_host_memory_bytes(root), 100 * MIB);
}

Test(host_memory, a_full_group_leaves_nothing)
{
    in_version_2("/job");
    number(V2 "/job/memory.current", 1200);
    number(V2 "/job/memory.max", 1000);
    cr_assert_eq(um_host_memory_bytes(root), 0);
}

/* The path is the host's, the files are the container's. */
Test(host_memory, a_container_finds_its_own_limit)
{
    in_version_2("/docker/0123456789abcdef");
    number(V2 "/memory.current", 100);
    number(V2 "/memory.max", 400);
    cr_assert_eq(um_host_memory_bytes(root), 300 * MIB);
}

Test(host_memory, version_1_is_understood)
{
    available_mib(100000);
    file("/proc/self/cgroup", "9:name=systemd:/\n7:cpu,memory,pids:/job/step\n5:devices:/\n0::/\n");
    number("/sys/fs/cgroup/memory/job/step/memory.usage_in_bytes", 100);
    file("/sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "9223372036854771712\n");
    file("/sys/fs/cgroup/memory/job/step/memory.stat",
         "inactive_file 7\ntotal_inactive_file 52428800\n"); /* 50 MiB */
    cr_assert_eq(um_host_memory_bytes(root), 100000 * MIB);
    number("/sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", 200);
    cr_assert_eq(um_host_memory_bytes(root), 150 * MIB);
    number("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", 190);
    number("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", 200);
    cr_assert_eq(um_host_memory_bytes(root), 10 * MIB);
}

Test(host_memory, files_of_other_contents_say_nothing)
{
    file("/proc/meminfo", "MemAvailable: much\n");
    file("/proc/self/cgroup", "\n:\nx\n0::/job\n1:memory\n");
    file(V2 "/job/memory.current", "some\n");
    file(V2 "/job/memory.max", "-1\n");
    cr_assert_eq(um_host_memory_bytes(root), UINT64_MAX);
}

Test(host_memory, of_this_machine_it_finds_something)
{
    uint64_t bytes = um_host_memory_bytes("");

    cr_assert(bytes > 0 && bytes < UINT64_MAX);
}
