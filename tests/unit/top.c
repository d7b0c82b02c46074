/* The page of figures that `umrt top` reads: what is written is what is read, whatever becomes of the process. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/bus.h"
#include "tools/top_page.h"

static unsigned figures_asked;

static void figures(void *ctx, um_top_figures_t *out)
{
    (void)ctx;
    figures_asked++;
    out->mode = UM_MODE_RECORD;
    out->recorded = 1;
    out->stats.launches = 41 + figures_asked;
    out->n_advisors = 1;
    snprintf(out->advisor[0].who, sizeof out->advisor[0].who, "ahead");
    out->advisor[0].applied = 7;
}

static bool where(void *ctx, uint32_t region, uint64_t bytes[UM_TOP_WHERES])
{
    (void)ctx;
    bytes[UM_WHERE_DEVICE] = region * 100;
    return region == 2;
}

static um_sink_t sink;

static um_top_t *new_top(void)
{
    const um_top_source_t source = {.figures = figures, .where = where};
    um_top_t *top;

    figures_asked = 0;
    cr_assert_eq(um_top_new(&source, &top), UM_OK);
    um_top_sink(top, &sink);
    return top;
}

static void allocate(uint32_t id, um_family_t family, uint64_t bytes)
{
    um_event_t event = {.type = UM_EV_REGION_ALLOC};

    event.u.region_alloc = (um_ev_region_alloc_t){.region = id,
                                                  .family = family,
                                                  .addr = (uint64_t)id << 32,
                                                  .bytes = bytes,
                                                  .call_site = 0x1000 + id};
    sink.event(sink.ctx, &event);
}

static um_top_t *top_with_memory(void)
{
    um_top_t *top = new_top();

    allocate(1, UM_FAMILY_MANAGED, 1 << 20);
    return top;
}

static um_top_reader_t open_own(void)
{
    char error[512] = "";
    um_top_reader_t reader;

    cr_assert_eq(um_top_open(getpid(), &reader, error, sizeof error), UM_OK, "%s", error);
    return reader;
}

/* ---- writing ---- */

Test(top, has_no_page_before_there_is_managed_memory)
{
    um_top_t *top = new_top();
    um_top_reader_t reader;
    char error[512];

    allocate(1, UM_FAMILY_DEVICE, 4096);
    cr_assert_eq(um_top_fd(top), -1);
    cr_assert_eq(um_top_open(getpid(), &reader, error, sizeof error), UM_ERR_NOT_FOUND);
    allocate(2, UM_FAMILY_MANAGED, 4096);
    cr_assert_gt(um_top_fd(top), STDERR_FILENO);
    reader = open_own();
    um_top_close(&reader);
    um_top_free(top);
}

Test(top, writes_nothing_unless_asked)
{
    um_top_t *top = top_with_memory();
    um_top_reader_t reader = open_own();
    um_top_figures_t got;

    for (int i = 0; i < 100; i++)
        sink.idle(sink.ctx);
    cr_assert_eq(figures_asked, 0);
    cr_assert_not(um_top_read(&reader, &got));
    um_top_ask(&reader, 0);
    for (int i = 0; i < 100; i++)
        sink.idle(sink.ctx);
    cr_assert_eq(figures_asked, 1);
    cr_assert(um_top_read(&reader, &got));
    cr_assert_eq(got.stats.launches, 42);
    cr_assert_not(got.ended);
    um_top_close(&reader);
    um_top_free(top);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

Test(top, writes_ten_times_a_second_at_most)
{
    um_top_t *top = top_with_memory();
    um_top_reader_t reader = open_own();
    uint64_t start = now_ns();

    for (int i = 0; i < 20000; i++) {
        um_top_ask(&reader, 0);
        sink.idle(sink.ctx);
    }
    cr_assert_geq(figures_asked, 1);
    cr_assert_leq(figures_asked, 1 + (now_ns() - start) / 100000000);
    um_top_close(&reader);
    um_top_free(top);
}

Test(top, tells_all_that_came_by)
{
    um_top_t *top = top_with_memory();
    um_top_reader_t reader;
    um_top_figures_t got;
    um_event_t label = {.type = UM_EV_REGION_LABEL}, site = {.type = UM_EV_CALL_SITE},
               gpu = {.type = UM_EV_GPU_FAULT}, cpu = {.type = UM_EV_CPU_FAULT},
               to = {.type = UM_EV_MIGRATE}, back = to, gone = {.type = UM_EV_REGION_FREE};
    char frames[1024] = "app+0x1;";

    allocate(2, UM_FAMILY_MANAGED, 2 << 20);
    allocate(3, UM_FAMILY_DEVICE, 8 << 20);
    allocate(4, UM_FAMILY_MANAGED, 64 << 20);
    gone.u.region_free.region = 4;
    sink.event(sink.ctx, &gone);
    label.u.region_label = (um_ev_region_label_t){.region = 1, .label = "grid"};
    sink.event(sink.ctx, &label);
    memset(frames + 8, 'x', 600);
    site.u.call_site = (um_ev_call_site_t){.call_site = 0x1002, .frames = frames};
    sink.event(sink.ctx, &site);
    gpu.u.gpu_fault = (um_ev_gpu_fault_t){.region = 1, .groups = 3};
    cpu.u.cpu_fault = (um_ev_cpu_fault_t){.region = 1};
    to.u.migrate = (um_ev_migrate_t){.region = 1, .bytes = 100, .src = -1, .dst = 0};
    back.u.migrate = (um_ev_migrate_t){.region = 1, .bytes = 10, .src = 0, .dst = -1};
    for (int i = 0; i < 2; i++) {
        sink.event(sink.ctx, &gpu);
        sink.event(sink.ctx, &cpu);
        sink.event(sink.ctx, &to);
        sink.event(sink.ctx, &back);
    }
    um_top_end(top);
    reader = open_own();
    cr_assert(um_top_read(&reader, &got));
    cr_assert(got.ended);
    cr_assert_eq(got.managed_bytes, 3 << 20);
    cr_assert_eq(got.gpu_faults, 6);
    cr_assert_eq(got.cpu_faults, 2);
    cr_assert_eq(got.migrations, 4);
    cr_assert_eq(got.to_gpu_bytes, 200);
    cr_assert_eq(got.to_host_bytes, 20);
    cr_assert_str_eq(got.advisor[0].who, "ahead");
    cr_assert_eq(got.n_regions, 3);
    /* managed ones first, the larger before */
    cr_assert_eq(got.region[0].id, 2);
    cr_assert_str_eq(got.region[0].frames, "app+0x1");
    cr_assert_eq(got.region[0].where_known, UM_TOP_BY_MODEL);
    cr_assert_eq(got.region[0].where_bytes[UM_WHERE_DEVICE], 200);
    cr_assert_eq(got.region[1].id, 1);
    cr_assert_str_eq(got.region[1].label, "grid");
    cr_assert_eq(got.region[1].where_known, UM_TOP_BY_MIGRATIONS);
    cr_assert_eq(got.region[1].where_bytes[UM_WHERE_DEVICE], 180);
    cr_assert_eq(got.region[1].where_bytes[UM_WHERE_UNKNOWN], (1 << 20) - 180);
    cr_assert_eq(got.region[1].gpu_faults, 6);
    cr_assert_eq(got.region[1].to_host_bytes, 20);
    cr_assert_eq(got.region[2].id, 3);
    cr_assert_eq(got.region[2].where_known, UM_TOP_UNKNOWN);
    um_top_close(&reader);
    um_top_free(top);
}

Test(top, shows_the_largest_of_many_regions)
{
    um_top_t *top = top_with_memory();
    um_top_reader_t reader = open_own();
    um_top_figures_t got;

    for (uint32_t id = 2; id < 1000; id++)
        allocate(id, id % 2 ? UM_FAMILY_MANAGED : UM_FAMILY_DEVICE, id);
    um_top_end(top);
    cr_assert(um_top_read(&reader, &got));
    cr_assert_eq(got.n_regions, UM_TOP_REGIONS);
    cr_assert_eq(got.region[0].id, 1); /* 1 MiB */
    cr_assert_eq(got.region[1].id, 999);
    cr_assert_eq(got.region[127].id, 999 - 126 * 2);
    um_top_close(&reader);
    um_top_free(top);
}

/* ---- what can become of it ---- */

Test(top, cannot_be_taken_away)
{
    um_top_t *top = top_with_memory();

    cr_assert_neq(ftruncate(um_top_fd(top), 0), 0);
    cr_assert_neq(ftruncate(um_top_fd(top), 1 << 30), 0);
    um_top_end(top);
    um_top_free(top);
}

Test(top, closes_no_file_of_the_program)
{
    um_top_t *top = top_with_memory();
    int fd = um_top_fd(top), other = open("/dev/null", O_RDONLY);

    cr_assert_eq(dup2(other, fd), fd); /* as programs do that close whatever is open */
    um_top_end(top);
    um_top_free(top);
    cr_assert_neq(fcntl(fd, F_GETFD), -1);
}

/* The child of a fork that waits until the pipe is closed. */
static pid_t fork_child(void (*run)(void), int *hold)
{
    int to[2], from[2];
    char byte;
    pid_t pid;

    cr_assert_eq(pipe(to), 0);
    cr_assert_eq(pipe(from), 0);
    pid = fork();
    if (pid == 0) {
        close(to[1]);
        if (run != NULL)
            run();
        if (write(from[1], "", 1) == 1 && read(to[0], &byte, 1) == 0)
            _exit(0);
        _exit(1);
    }
    close(to[0]);
    close(from[1]);
    cr_assert_eq(read(from[0], &byte, 1), 1);
    close(from[0]);
    *hold = to[1];
    return pid;
}

Test(top, the_child_of_a_fork_has_none)
{
    um_top_t *top = top_with_memory();
    um_top_reader_t reader;
    char error[512];
    int hold, status;
    pid_t pid = fork_child(NULL, &hold); /* the open file is there, but not its own */

    cr_assert_eq(um_top_open(pid, &reader, error, sizeof error), UM_ERR_NOT_FOUND);
    close(hold);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    um_top_abandon(top);
    cr_assert_eq(um_top_open(getpid(), &reader, error, sizeof error), UM_ERR_NOT_FOUND);
    um_top_free(top);
}

static void make_and_end(void)
{
    um_top_end(top_with_memory());
}

Test(top, can_be_read_when_the_process_is_killed)
{
    um_top_figures_t got;
    um_top_reader_t reader;
    char error[512] = "";
    int hold, status;
    pid_t pid = fork_child(make_and_end, &hold);

    cr_assert_eq(um_top_open(pid, &reader, error, sizeof error), UM_OK, "%s", error);
    cr_assert(um_top_alive(&reader));
    cr_assert_eq(um_top_find(getpid()), pid);
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_not(um_top_alive(&reader));
    um_top_ask(&reader, 1000000); /* does not wait for the dead */
    cr_assert(um_top_read(&reader, &got));
    cr_assert_eq(got.stats.launches, 42);
    um_top_close(&reader);
    close(hold);
}

/* ---- who may be looked at ---- */

Test(top, says_why_there_is_nothing_to_see)
{
    um_top_reader_t reader;
    char error[512];
    int hold;
    pid_t pid = fork_child(NULL, &hold);

    cr_assert_eq(um_top_open(pid, &reader, error, sizeof error), UM_ERR_NOT_FOUND);
    cr_assert_not_null(strstr(error, "umrt run"), "%s", error);
    close(hold);
    waitpid(pid, NULL, 0);
    cr_assert_eq(um_top_open(pid, &reader, error, sizeof error), UM_ERR_NOT_FOUND);
    cr_assert_not_null(strstr(error, "no process"), "%s", error);
}

static void be_nobody(void)
{
    make_and_end();
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(1);
}

static void look_as_nobody(pid_t pid)
{
    um_top_reader_t reader;
    char error[512];

    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(1);
    _exit(um_top_open(pid, &reader, error, sizeof error) != UM_ERR_IO ||
          strstr(error, "another user") == NULL);
}

Test(top, is_for_its_user_alone)
{
    int hold, status;
    pid_t pid, looker;

    if (geteuid() != 0)
        cr_skip_test("only root can be somebody else");
    pid = fork_child(make_and_end, &hold);
    if ((looker = fork()) == 0)
        look_as_nobody(pid);
    waitpid(looker, &status, 0);
    cr_assert_eq(status, 0);
    close(hold);
    waitpid(pid, NULL, 0);
    /* Nor is a process of one's own that does not let itself be looked at. */
    pid = fork_child(be_nobody, &hold);
    if ((looker = fork()) == 0)
        look_as_nobody(pid);
    waitpid(looker, &status, 0);
    cr_assert_eq(status, 0);
    close(hold);
    waitpid(pid, NULL, 0);
}

/* ---- pages of others ---- */

static um_top_page_t page;

static um_status_t open_made_up(um_top_reader_t *reader, char *error, size_t bytes)
{
    int fd = memfd_create(UM_TOP_FILE, MFD_CLOEXEC);

    cr_assert_eq(write(fd, &page, sizeof page), (ssize_t)sizeof page);
    return um_top_open(getpid(), reader, error, bytes);
}

static void make_up(void)
{
    memcpy(page.magic, UM_TOP_MAGIC, sizeof page.magic);
    page.version = UM_TOP_VERSION;
    page.bytes = sizeof page;
    page.pid = getpid();
    page.sequence = 2;
}

Test(top, refuses_another_version)
{
    um_top_reader_t reader;
    char error[512];

    make_up();
    page.version++;
    cr_assert_eq(open_made_up(&reader, error, sizeof error), UM_ERR_VERSION);
    cr_assert_not_null(strstr(error, "version 2"), "%s", error);
    cr_assert_null(strchr(error, '\n'));
}

Test(top, refuses_another_size)
{
    um_top_reader_t reader;
    char error[512];

    make_up();
    page.bytes -= 8;
    cr_assert_eq(open_made_up(&reader, error, sizeof error), UM_ERR_VERSION);
}

Test(top, refuses_another_magic)
{
    um_top_reader_t reader;
    char error[512];

    make_up();
    page.magic[0] = 'U';
    cr_assert_eq(open_made_up(&reader, error, sizeof error), UM_ERR_NOT_FOUND);
}

Test(top, reads_nothing_that_is_torn)
{
    um_top_reader_t reader;
    um_top_figures_t got = {.mode = 99};
    char error[512];

    make_up();
    page.sequence = 3;
    cr_assert_eq(open_made_up(&reader, error, sizeof error), UM_OK);
    cr_assert_not(um_top_read(&reader, &got));
    cr_assert_eq(got.mode, 99);
}

Test(top, believes_no_count_and_no_string)
{
    um_top_reader_t reader;
    um_top_figures_t got;
    char error[512];

    make_up();
    memset(&page.figures, 0xff, sizeof page.figures);
    cr_assert_eq(open_made_up(&reader, error, sizeof error), UM_OK);
    cr_assert(um_top_read(&reader, &got));
    cr_assert_eq(got.n_regions, UM_TOP_REGIONS);
    cr_assert_eq(got.n_advisors, UM_TOP_ADVISORS);
    cr_assert_lt(strnlen(got.reason, sizeof got.reason), sizeof got.reason);
    for (int i = 0; i < (int)UM_TOP_REGIONS; i++) {
        cr_assert_lt(strnlen(got.region[i].label, sizeof got.region[i].label),
                     sizeof got.region[i].label);
        cr_assert_lt(strnlen(got.region[i].frames, sizeof got.region[i].frames),
                     sizeof got.region[i].frames);
    }
}

/* What every version of the page begins with, and the size of this one: when it changes, so does the version. */
Test(top, keeps_its_layout)
{
    cr_assert_eq(UM_TOP_VERSION, 2);
    cr_assert_eq(offsetof(um_top_page_t, version), 8);
    cr_assert_eq(offsetof(um_top_page_t, bytes), 12);
    cr_assert_eq(offsetof(um_top_page_t, pid), 16);
    cr_assert_eq(offsetof(um_top_page_t, asked), 20);
    cr_assert_eq(offsetof(um_top_page_t, sequence), 24);
    cr_assert_eq(offsetof(um_top_page_t, figures), 32);
    cr_assert_eq(sizeof(um_top_page_t), 63904);
}
