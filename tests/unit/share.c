/* What is a process's part of a GPU: by the user's word, by its launcher, and by who else is there. */
#include "exec/share.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIB ((uint64_t)1 << 30)

static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_LOCAL_SIZE",
                                        "PMI_LOCAL_SIZE",
                                        "JSM_NAMESPACE_LOCAL_SIZE",
                                        "LOCAL_WORLD_SIZE",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_NTASKS_PER_NODE",
                                        "SLURM_NODEID"};

static char folder[32];

static void nobody_says(void)
{
    snprintf(folder, sizeof(folder), "/tmp/umrt-share-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
}

static const char *file_of(const char *name)
{
    static char path[64];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void tidy(void)
{
    unlink(file_of("GPU-0"));
    unlink(file_of("GPU-1"));
    unlink(file_of("link"));
    rmdir(file_of("made"));
    rmdir(folder);
}

TestSuite(share, .init = nobody_says, .fini = tidy);

static um_share_t *share_in(const char *where, const char *budget, uint32_t ranks, uint32_t gpus)
{
    um_share_config_t config = {.local_ranks = ranks, .folder = where, .gpus = "/nowhere"};
    um_share_t *share;

    cr_assert(um_budget_parse(budget, &config.budget), "%s", budget);
    cr_assert_eq(um_share_new(&config, &share), UM_OK);
    for (uint32_t d = 0; d < gpus; d++) {
        char uuid[48];
        um_ev_device_t device = {.device = (int32_t)d, .uuid = uuid};

        snprintf(uuid, sizeof(uuid), "GPU-%u", d);
        um_share_device(share, &device);
    }
    return share;
}

static um_share_t *share_of(const char *budget, uint32_t ranks, uint32_t gpus)
{
    return share_in(folder, budget, ranks, gpus);
}

Test(share, budgets_are_read_as_they_are_written)
{
    static const struct {
        const char *text;
        um_budget_kind_t kind;
        uint64_t value;
    } good[] = {{"auto", UM_BUDGET_AUTO, 0},        {"ALL", UM_BUDGET_ALL, 0},
                {"20G", UM_BUDGET_BYTES, 20 * GIB}, {"1073741824", UM_BUDGET_BYTES, GIB},
                {"25%", UM_BUDGET_PERCENT, 25},     {"100%", UM_BUDGET_PERCENT, 100}};
    static const char *const bad[] = {"",  "0",   "0%",   "101%", "-5%",
                                      "%", "5%%", "half", "12x",  "1.5G"};
    um_budget_t budget;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cr_assert(um_budget_parse(good[i].text, &budget), "%s", good[i].text);
        cr_assert_eq(budget.kind, good[i].kind, "%s", good[i].text);
        cr_assert_eq(budget.value, good[i].value, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_not(um_budget_parse(bad[i], &budget), "%s", bad[i]);
}

Test(share, launchers_say_how_many_ranks_a_machine_has)
{
    static const char *const bad[] = {"many", "", "0", "-1", "4294967295", "99999999999999999999"};

    cr_assert_eq(um_local_ranks(), 1);
    for (size_t i = 0; i < 6; i++) {
        setenv(variables[i], "4", 1);
        cr_assert_eq(um_local_ranks(), 4, "%s", variables[i]);
        for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
            setenv(variables[i], bad[k], 1);
            cr_assert_eq(um_local_ranks(), 1, "%s=%s", variables[i], bad[k]);
        }
        unsetenv(variables[i]);
    }
}

Test(share, slurm_says_it_for_each_node)
{
    setenv("SLURM_NTASKS_PER_NODE", "8", 1); /* a job's script has that, too: one process */
    cr_assert_eq(um_local_ranks(), 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2),3", 1);
    cr_assert_eq(um_local_ranks(), 4);
    setenv("SLURM_NODEID", "1", 1);
    cr_assert_eq(um_local_ranks(), 4);
    setenv("SLURM_NODEID", "2", 1);
    cr_assert_eq(um_local_ranks(), 3);
    setenv("SLURM_NODEID", "9", 1);
    cr_assert_eq(um_local_ranks(), 1);
}

Test(share, alone_there_is_no_limit)
{
    um_share_t *share = share_of("auto", 1, 1);

    cr_assert_eq(um_share_processes(share, 0, 1), 1);
    cr_assert_eq(um_share_bytes(share, 0, 80 * GIB, GIB, 1), UINT64_MAX);
    um_share_free(share);
}

Test(share, ranks_of_one_gpu_have_even_parts_of_all_but_the_headroom)
{
    um_share_t *share = share_of("auto", 4, 1);

    cr_assert_eq(um_share_processes(share, 0, 1), 4);
    cr_assert_eq(um_share_bytes(share, 0, 81 * GIB, GIB, 1), 20 * GIB);
    cr_assert_eq(um_share_bytes(share, 0, GIB / 2, GIB, 1), 0);
    um_share_free(share);
}

Test(share, ranks_with_a_gpu_each_have_all_of_it)
{
    um_share_t *share = share_of("auto", 4, 4);

    cr_assert_eq(um_share_bytes(share, 3, 80 * GIB, GIB, 1), UINT64_MAX);
    um_share_free(share);
    share = share_of("auto", 5, 4);
    cr_assert_eq(um_share_bytes(share, 3, 81 * GIB, GIB, 1), 40 * GIB);
    um_share_free(share);
}

/* Launchers that show each rank its own GPU alone: the machine has more. */
Test(share, the_machines_gpus_count_and_not_those_that_are_shown)
{
    char gpus[] = "/tmp/umrt-gpus-XXXXXX", path[64];
    um_share_config_t config = {.local_ranks = 2, .folder = folder, .gpus = gpus};
    um_share_t *share;

    cr_assert_not_null(mkdtemp(gpus));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/0000:0%d:00.0", gpus, i);
        fclose(fopen(path, "w"));
    }
    cr_assert_eq(um_share_new(&config, &share), UM_OK);
    um_share_device(share, &(um_ev_device_t){.device = 0, .uuid = "GPU-0"});
    cr_assert_eq(um_share_processes(share, 0, 1), 1);
    um_share_free(share);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/0000:0%d:00.0", gpus, i);
        unlink(path);
    }
    rmdir(gpus);
}

Test(share, the_users_word_is_what_counts)
{
    um_share_t *share = share_of("all", 4, 1);

    cr_assert_eq(um_share_bytes(share, 0, 80 * GIB, GIB, 1), UINT64_MAX);
    um_share_free(share);
    share = share_of("20G", 4, 1);
    cr_assert_eq(um_share_bytes(share, 0, 80 * GIB, GIB, 1), 20 * GIB);
    um_share_free(share);
    share = share_of("25%", 1, 1);
    cr_assert_eq(um_share_bytes(share, 0, 80 * GIB, GIB, 1), 20 * GIB);
    um_share_free(share);
}

/* Another process that hints for the GPU, until its pipe is closed. */
static pid_t another(um_share_t *share, int *leave)
{
    int ready[2], left[2];
    char byte;
    pid_t pid;

    cr_assert(pipe(ready) == 0 && pipe(left) == 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(left[1]);
        um_share_processes(share, 0, 1);
        if (write(ready[1], "", 1) == 1 && read(left[0], &byte, 1) == 0)
            _exit(0);
        _exit(1);
    }
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    close(left[0]);
    *leave = left[1];
    return pid;
}

Test(share, processes_on_the_same_gpu_see_each_other_while_they_live)
{
    um_share_t *share = share_of("auto", 1, 2);
    uint64_t now_ns = 1;
    int leave[3], status;
    pid_t pid[3];

    for (int i = 0; i < 3; i++)
        pid[i] = another(share, &leave[i]);
    cr_assert_eq(um_share_processes(share, 0, now_ns), 4);
    cr_assert_eq(um_share_bytes(share, 0, 81 * GIB, GIB, now_ns), 20 * GIB);
    cr_assert_eq(um_share_processes(share, 1, now_ns), 1); /* there is nobody else there */
    for (int i = 3; i-- > 0;) { /* the later ones have the earlier ones' pipes, too */
        if (i)
            kill(pid[i], SIGKILL);
        close(leave[i]);
        waitpid(pid[i], &status, 0);
    }
    cr_assert_eq(um_share_processes(share, 0, now_ns + 1), 4); /* it does not ask all the time */
    now_ns += 2000000000u;
    cr_assert_eq(um_share_processes(share, 0, now_ns), 1);
    um_share_free(share);
}

/* Locks are of open files, not of processes: whose place is taken anew comes last in the kernel's list. */
Test(share, whoever_comes_in_the_place_of_one_that_has_gone_is_counted)
{
    um_share_t *share[4];
    uint64_t now_ns = 1;

    for (int i = 0; i < 4; i++) {
        share[i] = share_of("auto", 1, 1);
        um_share_processes(share[i], 0, now_ns);
    }
    for (int i = 0; i < 4; i++) {
        um_share_free(share[i]);
        share[i] = share_of("auto", 1, 1);
        cr_assert_eq(um_share_processes(share[i], 0, now_ns), 4, "after %d", i);
        now_ns += 2000000000u;
        for (int k = 0; k < 4; k++)
            cr_assert_eq(um_share_processes(share[k], 0, now_ns), 4, "%d after %d", k, i);
    }
    for (int i = 0; i < 4; i++)
        um_share_free(share[i]);
}

/* A child that has a copy of ours, and is not hinting, is nobody. */
Test(share, what_a_forked_child_has_abandoned_is_gone_with_its_parent)
{
    um_share_t *share = share_of("auto", 1, 1), *other = share_of("auto", 1, 1);
    int ready[2], left[2], status;
    char byte;
    pid_t pid;

    cr_assert_eq(um_share_processes(share, 0, 1), 1);
    cr_assert(pipe(ready) == 0 && pipe(left) == 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(left[1]);
        um_share_abandon(share);
        if (write(ready[1], "", 1) == 1 && read(left[0], &byte, 1) == 0)
            _exit(0);
        _exit(1);
    }
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    cr_assert_eq(um_share_processes(other, 0, 1), 2);
    um_share_free(share);
    cr_assert_eq(um_share_processes(other, 0, 3000000000u), 1);
    close(left[1]);
    waitpid(pid, &status, 0);
    um_share_free(other);
}

Test(share, a_file_of_the_programs_under_our_number_stays_open)
{
    um_share_t *share = share_of("auto", 1, 1);
    int fd = 200, file[2];

    cr_assert_eq(um_share_processes(share, 0, 1), 1);
    cr_assert_eq(pipe(file), 0);
    cr_assert_eq(dup2(file[0], fd), fd); /* as programs do that close all they do not know */
    um_share_free(share);
    cr_assert_neq(fcntl(fd, F_GETFD), -1);
}

/* Processes that see each other: of two. */
static void both_see(uint32_t n, const char *one, const char *two)
{
    um_share_t *first = share_in(one, "auto", 1, 1), *second = share_in(two, "auto", 1, 1);

    cr_assert_eq(um_share_processes(first, 0, 1), 1, "%s", one);
    cr_assert_eq(um_share_processes(second, 0, 1), n, "%s and %s", one, two);
    cr_assert_eq(um_share_processes(first, 0, 2000000000u), n, "%s and %s", one, two);
    um_share_free(first);
    um_share_free(second);
}

Test(share, folders_are_worlds_of_their_own)
{
    both_see(2, folder, folder);
    both_see(2, file_of("made"), file_of("made"));
    both_see(1, folder, file_of("made"));
    unlink(file_of("made/GPU-0"));
}

Test(share, a_folder_that_others_may_write_to_says_nothing)
{
    static const mode_t bad[] = {0777, 01777, 0770, 0720, 0702};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_assert_eq(chmod(folder, bad[i]), 0);
        both_see(1, folder, folder);
        cr_assert_eq(access(file_of("GPU-0"), F_OK), -1);
    }
    cr_assert_eq(chmod(folder, 0755), 0);
    both_see(2, folder, folder);
}

Test(share, the_folder_of_another_user_says_nothing)
{
    if (geteuid() != 0) {
        both_see(1, "/", "/");
        return;
    }
    cr_assert_eq(chown(folder, 12345, 12345), 0);
    both_see(1, folder, folder);
    cr_assert_eq(access(file_of("GPU-0"), F_OK), -1);
}

Test(share, a_link_to_a_folder_says_nothing)
{
    cr_assert_eq(symlink(folder, file_of("link")), 0);
    both_see(1, file_of("link"), file_of("link"));
    cr_assert_eq(access(file_of("GPU-0"), F_OK), -1);
}

Test(share, where_there_can_be_no_folder_a_process_counts_itself_alone)
{
    both_see(1, "/nowhere/at/all", "/nowhere/at/all");
    both_see(1, "/proc/self/umrt", "/proc/self/umrt");
    both_see(1, "/dev/null", "/dev/null");
}

/* Whose lock is in a file that is no more: clean-up at log-out, a program that closes what it does not know. */
Test(share, who_was_lost_is_seen_again)
{
    um_share_t *share = share_of("auto", 1, 1), *other = share_of("auto", 1, 1);
    uint64_t now_ns = 1;

    cr_assert_eq(um_share_processes(share, 0, now_ns), 1);
    cr_assert_eq(unlink(file_of("GPU-0")), 0);
    cr_assert_eq(um_share_processes(other, 0, now_ns += 2000000000u), 1);
    cr_assert_eq(um_share_processes(share, 0, now_ns += 2000000000u), 2);
    cr_assert_eq(um_share_processes(other, 0, now_ns += 2000000000u), 2);
    for (int fd = 200; fd < 210; fd++)
        close(fd);
    cr_assert_eq(um_share_processes(share, 0, now_ns += 2000000000u), 1);
    cr_assert_eq(um_share_processes(other, 0, now_ns += 2000000000u), 2);
    um_share_free(share);
    um_share_free(other);
}

Test(share, a_uuid_is_no_path)
{
    um_share_config_t config = {.local_ranks = 1, .folder = folder, .gpus = "/nowhere"};
    um_share_t *share;

    cr_assert_eq(um_share_new(&config, &share), UM_OK);
    um_share_device(share, &(um_ev_device_t){.device = 0, .uuid = "../umrt-test-escaped"});
    um_share_device(share, &(um_ev_device_t){.device = 1, .uuid = ".."});
    cr_assert_eq(um_share_processes(share, 0, 1), 1);
    cr_assert_eq(um_share_processes(share, 1, 1), 1);
    cr_assert_eq(access(file_of("../umrt-test-escaped"), F_OK), -1);
    um_share_free(share);
}

Test(share, of_a_gpu_that_nobody_described_there_is_no_limit)
{
    um_share_t *share = share_of("auto", 1, 0);

    cr_assert_eq(um_share_processes(share, 0, 1), 1);
    cr_assert_eq(um_share_processes(share, -1, 1), 1);
    cr_assert_eq(um_share_processes(share, 99, 1), 1);
    um_share_free(share);
}
