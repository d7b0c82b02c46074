/* The life of the runtime, with a backend made for the test: no driver, no GPU. */
#include <criterion/criterion.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/note.h"
#include "core/runtime.h"
#include "exec/executor.h"
#include "hints_fake.h"
#include "um_trace.h"

/* ---- the backend ---- */

static um_runtime_t *runtime;
static unsigned attached, detached, abandoned;
static um_status_t attach_status;
static uint32_t gpu_attributes = FAKE_GOOD_GPU;

static um_status_t attach(um_runtime_t *r, char *reason, size_t bytes)
{
    um_event_t gpu = event_device(gpu_attributes);

    runtime = r;
    attached++;
    /* cuInit inside attach: the driver calls the injection entry on the same thread */
    cr_assert_eq(InitializeInjection(), 1);
    cr_assert_eq(um_runtime_init(NULL), UM_OK);
    if (attach_status != UM_OK)
        snprintf(reason, bytes, "the test says no");
    else
        um_bus_post(r->bus, &gpu, false);
    return attach_status;
}

static void detach(void)
{
    detached++;
}

static void abandon(void)
{
    abandoned++;
}

static um_status_t probe(um_event_fn fn, void *ctx)
{
    um_event_t event = {.type = UM_EV_FACT};

    event.u.fact = (um_ev_fact_t){.key = "can.hint", .value = "no: a test"};
    fn(ctx, &event);
    return UM_OK;
}

static um_status_t executor(um_runtime_t *r, um_executor_t **out)
{
    (void)r;
    return um_executor_null_new(4096 * MIB, out);
}

static const um_backend_t backend = {.name = "test",
                                     .attach = attach,
                                     .detach = detach,
                                     .abandon = abandon,
                                     .probe = probe,
                                     .executor = executor};
static const um_backend_t handless = {.name = "test", .attach = attach};

/* ---- what a test needs ---- */

static char dir[64], trace[128], notes[128], said[4][512];
static unsigned n_said;

static void hear(void *ctx, int level, const char *line)
{
    (void)ctx;
    (void)level;
    snprintf(said[n_said++ % 4], sizeof(said[0]), "%s", line);
}

static um_config_t setup(um_mode_t mode)
{
    snprintf(dir, sizeof(dir), "/tmp/um-runtime-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    snprintf(trace, sizeof(trace), "%s/t.umt", dir);
    snprintf(notes, sizeof(notes), "%s/notes", dir);
    fclose(fopen(notes, "w"));
    setenv(UM_NOTE_ENV, notes, 1);
    unsetenv("UMRT_MODE");
    um_runtime_use_backend(&backend);
    return (
        um_config_t){.size = sizeof(um_config_t), .mode = mode, .trace_path = trace, .log = hear};
}

static void cleanup(void)
{
    unlink(trace);
    unlink(notes);
    cr_assert_eq(rmdir(dir), 0, "something was left in %s", dir);
}

static um_runtime_info_t info(void)
{
    um_runtime_info_t out;

    um_runtime_info(&out);
    return out;
}

/* The n-th note, from 0. */
static bool note(unsigned n, um_note_t *out)
{
    static char line[8192];
    FILE *file = fopen(notes, "r");
    bool found = false;

    for (unsigned i = 0; !found && fgets(line, sizeof(line), file); i++)
        found = i == n && um_note_parse(line, out);
    fclose(file);
    return found;
}

static unsigned count_in_trace(um_event_type_t type, const char *text)
{
    um_trace_reader_t *reader;
    const um_event_t *event;
    char error[256] = "";
    unsigned n = 0;

    cr_assert_eq(um_trace_reader_open(trace, UM_TRACE_FILE_ORDER, &reader, error, sizeof(error)),
                 UM_OK, "%s", error);
    cr_assert(um_trace_reader_info(reader)->finished);
    while (um_trace_reader_next(reader, &event) == UM_OK) {
        if (event->type != type)
            continue;
        n += !text || (type == UM_EV_MARK && strcmp(event->u.mark.name, text) == 0) ||
             (type == UM_EV_REGION_LABEL && strcmp(event->u.region_label.label, text) == 0);
    }
    um_trace_reader_close(reader);
    return n;
}

static void add_region(uint32_t id, uint64_t bytes)
{
    um_region_t region = {.id = id, .family = UM_FAMILY_MANAGED, .addr = FAKE_BASE, .bytes = bytes};
    um_event_t event = event_alloc(1, id, FAKE_BASE, bytes);

    cr_assert_eq(um_regions_add(runtime->regions, &region, NULL, 0, NULL), UM_OK);
    um_bus_post(runtime->bus, &event, false);
}

/* LeakSanitizer asks: in a forked child it would wait for threads that only the parent has. */
static bool forked;
UM_API int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return forked;
}

/* ---- tests ---- */

Test(runtime, before_init_there_is_nothing)
{
    um_runtime_stats_t stats;

    cr_assert_eq(info().state, UM_RUNTIME_NONE);
    cr_assert_eq(um_runtime_stats(&stats), UM_ERR_STATE);
    cr_assert_eq(um_phase_begin("x"), UM_ERR_STATE);
    cr_assert_eq(um_phase_end(), UM_ERR_STATE);
    cr_assert_eq(um_region_label(&stats, "x"), UM_ERR_STATE);
    um_runtime_shutdown();
    cr_assert_eq(info().state, UM_RUNTIME_NONE);
}

Test(runtime, a_config_of_another_size_is_refused)
{
    um_config_t config = setup(UM_MODE_OBSERVE);

    config.size--;
    cr_assert_eq(um_runtime_init(&config), UM_ERR_INVALID);
    cr_assert_eq(info().state, UM_RUNTIME_NONE);
    cleanup();
}

Test(runtime, comes_up_once)
{
    um_config_t config = setup(UM_MODE_OBSERVE), other = config;

    other.mode = UM_MODE_OFF;
    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_eq(um_runtime_init(&other), UM_OK);
    cr_assert_eq(InitializeInjection(), 1);
    cr_assert_eq(attached, 1);
    cr_assert_eq(info().state, UM_RUNTIME_OBSERVE);
    cr_assert_str_eq(info().reason, "");
    um_runtime_shutdown();
    um_runtime_shutdown();
    cr_assert_eq(detached, 1);
    cr_assert_eq(info().state, UM_RUNTIME_INERT);
    cr_assert_str_eq(info().reason, "shut down");
    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_eq(attached, 1);
    cr_assert_eq(um_phase_begin("late"), UM_OK);
    cleanup();
}

Test(runtime, off_does_nothing)
{
    um_config_t config = setup(UM_MODE_OFF);
    um_runtime_stats_t stats;

    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_eq(attached, 0);
    cr_assert_eq(info().state, UM_RUNTIME_INERT);
    cr_assert_str_eq(info().reason, "");
    cr_assert_eq(um_runtime_stats(&stats), UM_OK);
    cr_assert_eq(stats.launches, 0);
    cr_assert_eq(um_region_label(&stats, "x"), UM_OK);
    cr_assert_eq(n_said, 0);
    um_runtime_shutdown();
    cleanup();
}

Test(runtime, the_mode_comes_from_the_environment_when_the_program_leaves_it_open)
{
    static const struct {
        const char *text;
        um_runtime_state_t state;
    } cases[] = {{"observe", UM_RUNTIME_OBSERVE}, {"0", UM_RUNTIME_INERT}, {"no", UM_RUNTIME_INERT},
                 {"record", UM_RUNTIME_RECORD},   {"on", UM_RUNTIME_HINT}, {NULL, UM_RUNTIME_HINT}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        um_config_t config = setup(UM_MODE_DEFAULT);
        int status;

        if (fork() == 0) {
            if (cases[i].text)
                setenv("UMRT_MODE", cases[i].text, 1);
            um_runtime_init(&config);
            _exit(info().state == cases[i].state ? 0 : 1);
        }
        wait(&status);
        cr_assert_eq(status, 0, "%s", cases[i].text);
        cleanup();
    }
}

Test(runtime, a_mode_that_is_none_is_told_and_counts_as_not_given)
{
    static const unsigned modes[] = {UM_MODE_TRIAL + 1, 77, 1u << 31, UINT_MAX};

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        um_config_t config = setup((um_mode_t)modes[i]);
        char told[64];
        int status;

        snprintf(told, sizeof(told), "um_runtime_init: %u is no mode", modes[i]);
        if (fork() == 0) {
            setenv("UMRT_MODE", "observe", 1);
            _exit(um_runtime_init(&config) != UM_OK       ? 1
                  : info().state != UM_RUNTIME_OBSERVE    ? 2
                  : n_said != 1 || !strstr(said[0], told) ? 3
                                                          : 0);
        }
        wait(&status);
        cr_assert_eq(status, 0, "%u: %d", modes[i], WEXITSTATUS(status));
        cleanup();
    }
}

Test(runtime, a_backend_that_cannot_leaves_the_program_alone)
{
    um_config_t config = setup(UM_MODE_RECORD);
    um_note_t left;

    attach_status = UM_ERR_BUSY;
    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_eq(info().state, UM_RUNTIME_INERT);
    cr_assert_str_eq(info().reason, "the test says no");
    cr_assert_not_null(strstr(said[0], "the test says no"));
    cr_assert_eq(um_phase_begin("x"), UM_OK);
    um_runtime_shutdown();
    cr_assert_eq(detached, 0);
    cr_assert(note(0, &left));
    cr_assert_eq(left.state, UM_RUNTIME_INERT);
    cr_assert_str_eq(left.text, "the test says no");
    cr_assert_str_eq(left.trace_path, "");
    cleanup(); /* no empty trace is left */
}

Test(runtime, a_trace_that_cannot_be_written_is_said_and_the_program_goes_on)
{
    um_config_t config = setup(UM_MODE_RECORD);

    config.trace_path = "/no/such/dir/t.umt";
    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_eq(info().state, UM_RUNTIME_INERT);
    cr_assert_not_null(strstr(info().reason, "/no/such/dir/t.umt"));
    cr_assert_not_null(strstr(info().reason, strerror(ENOENT)));
    cr_assert_eq(attached, 0);
    um_runtime_shutdown();
    cleanup();
}

Test(runtime, without_hands_it_does_not_hint)
{
    um_config_t config = setup(UM_MODE_HINT);

    um_runtime_use_backend(&handless);
    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_eq(info().state, UM_RUNTIME_INERT);
    cr_assert_not_null(strstr(info().reason, "cannot prefetch"));
    cleanup();
}

Test(runtime, records_what_the_backend_and_the_program_say)
{
    um_config_t config = setup(UM_MODE_RECORD);
    um_runtime_stats_t stats;
    um_note_t left;
    char long_label[200];

    memset(long_label, 'l', sizeof(long_label) - 1);
    long_label[199] = '\0';
    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_eq(info().state, UM_RUNTIME_RECORD);
    add_region(1, MIB);
    cr_assert_eq(um_phase_begin("warm-up"), UM_OK);
    cr_assert_eq(um_phase_begin(NULL), UM_ERR_INVALID);
    cr_assert_eq(um_phase_end(), UM_OK);
    cr_assert_eq(um_phase_end(), UM_ERR_STATE);
    cr_assert_eq(um_region_label((void *)(FAKE_BASE + 17), "weights"), UM_OK);
    cr_assert_eq(um_region_label((void *)FAKE_BASE, long_label), UM_OK);
    cr_assert_eq(um_region_label((void *)(FAKE_BASE + MIB), "x"), UM_ERR_NOT_FOUND);
    cr_assert_eq(um_region_label((void *)FAKE_BASE, NULL), UM_ERR_INVALID);
    um_runtime_shutdown();

    long_label[127] = '\0';
    cr_assert_eq(count_in_trace(UM_EV_DEVICE, NULL), 1);
    cr_assert_eq(count_in_trace(UM_EV_MARK, "warm-up"), 1);
    cr_assert_eq(count_in_trace(UM_EV_MARK, ""), 1);
    cr_assert_eq(count_in_trace(UM_EV_REGION_LABEL, "weights"), 1);
    cr_assert_eq(count_in_trace(UM_EV_REGION_LABEL, long_label), 1);
    cr_assert_gt(count_in_trace(UM_EV_OPTION, NULL), 10);
    cr_assert_eq(um_runtime_stats(&stats), UM_OK);
    cr_assert_gt(stats.events, 15);
    cr_assert_eq(stats.events_lost, 0);
    cr_assert_eq(stats.regions_managed_live, 1);
    cr_assert_gt(stats.trace_bytes, 0);

    cr_assert(note(0, &left));
    cr_assert_eq(left.kind, UM_NOTE_START);
    cr_assert_eq(left.state, UM_RUNTIME_RECORD);
    cr_assert_str_eq(left.trace_path, trace);
    cr_assert(note(1, &left));
    cr_assert_eq(left.kind, UM_NOTE_END);
    cr_assert_not_null(strstr(left.text, "recorded"));
    cr_assert_not_null(strstr(left.text, "0 lost"));
    cr_assert_not(note(2, &left));
    cleanup();
}

Test(runtime, hints_through_the_whole_loop)
{
    um_config_t config = setup(UM_MODE_HINT);
    um_arg_t arg = {.region = 1};
    um_event_t event = event_launch(2, 9, &arg, 1);
    um_runtime_stats_t stats;
    um_note_t left;

    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_eq(info().state, UM_RUNTIME_HINT);
    cr_assert(runtime->hinting);
    add_region(1, 64 * MIB);
    runtime->launches = runtime->launches_managed = 1;
    um_bus_post(runtime->bus, &event, true);
    um_bus_sync(runtime->bus);
    um_bus_sync(runtime->bus); /* the outcomes come behind */
    cr_assert_eq(um_runtime_stats(&stats), UM_OK);
    cr_assert_eq(stats.hints_admitted, 2);
    cr_assert_eq(stats.hints_applied, 2);
    cr_assert_eq(stats.prefetched_bytes, 64 * MIB);
    cr_assert_eq(runtime->hints_pending, 0);
    um_runtime_region_going(runtime, FAKE_BASE);
    um_runtime_context_going(runtime, 1);
    um_runtime_shutdown();
    um_runtime_region_going(runtime, FAKE_BASE);
    cr_assert(note(1, &left));
    cr_assert_str_eq(left.text,
                     "prefetched 64.0 MiB in 2 pieces ahead of 1 of 1 launch; too short a run to "
                     "measure what that saved");
    cleanup();
}

Test(runtime, a_gpu_that_takes_no_hints_makes_it_an_observer_with_a_reason)
{
    um_config_t config = setup(UM_MODE_HINT);
    um_note_t left;

    gpu_attributes = UM_DEVICE_MANAGED;
    cr_assert_eq(um_runtime_init(&config), UM_OK);
    um_bus_sync(runtime->bus);
    cr_assert_eq(info().state, UM_RUNTIME_OBSERVE);
    cr_assert_not_null(strstr(info().reason, "concurrentManagedAccess"));
    cr_assert_not(runtime->hinting);
    um_runtime_shutdown();
    cr_assert(note(1, &left));
    cr_assert_not_null(strstr(left.text, "observed only: concurrentManagedAccess"));
    cleanup();
}

Test(runtime, ends_by_itself_at_exit)
{
    um_config_t config = setup(UM_MODE_RECORD);
    um_note_t left;
    int status;

    fflush(NULL);
    if (fork() == 0) {
        forked = true;
        um_runtime_init(&config);
        um_phase_begin("only");
        exit(7);
    }
    wait(&status);
    cr_assert_eq(WEXITSTATUS(status), 7);
    cr_assert_eq(count_in_trace(UM_EV_MARK, "only"), 1);
    cr_assert(note(1, &left));
    cr_assert_eq(left.kind, UM_NOTE_END);
    cleanup();
}

Test(runtime, ends_well_when_nobody_reads_stderr_any_more)
{
    um_config_t config = setup(UM_MODE_OBSERVE);
    int status, fd[2];

    unsetenv(UM_NOTE_ENV); /* the last line goes to stderr */
    fflush(NULL);
    cr_assert_eq(pipe(fd), 0);
    if (fork() == 0) {
        forked = true;
        signal(SIGPIPE, SIG_DFL);
        dup2(fd[1], STDERR_FILENO);
        close(fd[0]);
        close(fd[1]);
        um_runtime_init(&config);
        exit(7);
    }
    wait(&status);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 7);
    cleanup();
}

Test(runtime, a_forked_child_is_inert_and_harms_nothing)
{
    um_config_t config = setup(UM_MODE_RECORD);
    um_note_t left;
    int status;

    cr_assert_eq(um_runtime_init(&config), UM_OK);
    um_phase_begin("parent");
    if (fork() == 0) {
        bool fine = info().state == UM_RUNTIME_INERT &&
                    strcmp(info().reason, "child of a fork") == 0 && abandoned == 1 &&
                    um_phase_begin("child") == UM_OK && um_runtime_init(&config) == UM_OK &&
                    attached == 1 && InitializeInjection() == 1;

        for (int i = 0; i < 1000; i++)
            um_phase_begin("child");
        um_runtime_shutdown();
        um_runtime_region_going(runtime, FAKE_BASE);
        _exit(fine ? 0 : 1);
    }
    wait(&status);
    cr_assert_eq(status, 0);
    um_phase_begin("parent");
    um_runtime_shutdown();
    cr_assert_eq(count_in_trace(UM_EV_MARK, "parent"), 2);
    cr_assert_eq(count_in_trace(UM_EV_MARK, "child"), 0);
    cr_assert(note(1, &left));
    cr_assert_eq(left.pid, getpid());
    cr_assert_not(note(2, &left));
    cleanup();
}

static void collect(void *ctx, const um_event_t *event)
{
    if (event->type == UM_EV_FACT && strncmp(event->u.fact.key, "can.", 4) == 0)
        (*(unsigned *)ctx)++;
}

Test(runtime, the_machine_can_be_probed_without_init)
{
    unsigned facts = 0;

    um_runtime_use_backend(&backend);
    cr_assert_eq(um_machine_probe(collect, &facts), UM_OK);
    cr_assert_eq(facts, 2); /* can.hint of the backend, can.read of ours */
    cr_assert_eq(info().state, UM_RUNTIME_NONE);
}
