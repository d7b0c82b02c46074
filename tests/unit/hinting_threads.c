/* The whole hint loop at work - bus, advisors, guard, workers, a profile - while other threads of the program ask,
 * tell, free, fork and end it. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/runtime.h"
#include "exec/workers.h"

#define LAUNCHERS 4
#define ASKERS    2
#define ROUNDS    400u
#define MIB       ((uint64_t)1 << 20)
#define BASE      ((uint64_t)0x7e0000000000) /* one GiB for each thread */

static um_runtime_t *live; /* as the backend was given it */
static _Atomic unsigned rounds;
static _Atomic bool over;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void post(um_event_t event, bool wake)
{
    event.time_ns = now_ns();
    um_bus_post(live->bus, &event, wake);
}

/* ---- a driver that does as it is told, mostly ---- */

static int32_t apply(void *ctx, unsigned worker, uint32_t context, const um_hint_t *hint)
{
    (void)ctx;
    (void)worker;
    (void)context;
    return hint->addr / UM_BLOCK_BYTES % 13 ? 0 : 2;
}

static bool free_bytes(void *ctx, uint32_t context, uint64_t *free, uint64_t *total)
{
    (void)ctx;
    (void)context;
    *free = *total = 8192 * MIB;
    return true;
}

static um_status_t executor(um_runtime_t *runtime, um_executor_t **out)
{
    um_workers_calls_t calls = {.name = "test", .apply = apply, .free_bytes = free_bytes};

    (void)runtime;
    return um_workers_new(&calls, 2, out);
}

static um_status_t attach(um_runtime_t *runtime, char *reason, size_t bytes)
{
    um_event_t event = {.type = UM_EV_DEVICE};

    (void)reason;
    (void)bytes;
    live = runtime;
    event.u.device =
        (um_ev_device_t){.attributes = UM_DEVICE_MANAGED | UM_DEVICE_CONCURRENT_MANAGED,
                         .name = "test",
                         .uuid = "",
                         .pci = ""};
    post(event, false);
    event = (um_event_t){.type = UM_EV_KERNEL};
    event.u.kernel = (um_ev_kernel_t){.kernel = 1, .module_hash = 1, .name = "k"};
    post(event, false);
    return UM_OK;
}

static const um_backend_t backend = {.name = "test", .attach = attach, .executor = executor};

/* ---- a thread that launches ---- */

static uint32_t allocate(uint64_t addr, uint64_t bytes)
{
    um_region_t region = {.family = UM_FAMILY_MANAGED, .addr = addr, .bytes = bytes, .device = -1};
    um_event_t event = {.type = UM_EV_REGION_ALLOC};

    cr_assert_eq(um_regions_add(live->regions, &region, NULL, 0, NULL), UM_OK);
    event.u.region_alloc = (um_ev_region_alloc_t){.region = region.id,
                                                  .family = region.family,
                                                  .addr = addr,
                                                  .bytes = bytes,
                                                  .device = UM_DEVICE_NONE};
    post(event, false);
    return region.id;
}

static void release(uint64_t addr, uint32_t id)
{
    um_event_t event = {.type = UM_EV_REGION_FREE};

    um_runtime_region_going(live, addr);
    um_regions_remove(live->regions, addr, NULL);
    event.u.region_free = (um_ev_region_free_t){.region = id, .addr = addr};
    post(event, false);
}

static void synchronise(uint32_t context, uint32_t number)
{
    for (uint32_t exit = 0; exit < 2; exit++) {
        um_event_t event = {.type = UM_EV_SYNC};

        event.u.sync = (um_ev_sync_t){.kind = UM_SYNC_DEVICE,
                                      .sync = number,
                                      .context = context,
                                      .exit = exit};
        post(event, true);
        if (!exit)
            um_bus_sync(live->bus); /* it takes a while */
    }
}

static void *launch_and_free(void *arg)
{
    uint64_t base = BASE + (uintptr_t)arg * 1024 * MIB;
    uint32_t context = 1 + (uint32_t)(uintptr_t)arg;
    uint32_t kept = allocate(base, 16 * MIB);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t addr = base + (1 + i % 8) * 64 * MIB;
        uint32_t id = allocate(addr, 8 * MIB);
        um_arg_t args[] = {{.slot = 0, .region = kept}, {.slot = 1, .region = id}};
        um_event_t event = {.type = UM_EV_LAUNCH};

        event.u.launch = (um_ev_launch_t){.correlation = context << 20 | i,
                                          .context = context,
                                          .kernel = 1,
                                          .grid = {64, 1, 1},
                                          .block = {256, 1, 1},
                                          .n_args = 2,
                                          .args = args};
        post(event, true);
        if (i % 4 == 3)
            synchronise(context, context << 20 | i);
        if (i == ROUNDS / 2)
            um_runtime_context_going(live, context);
        release(addr, id);
        rounds++;
    }
    release(base, kept);
    return NULL;
}

/* ---- one that asks and tells ---- */

static void ask(uintptr_t n)
{
    const void *addr = (const void *)(uintptr_t)(BASE + n * 1024 * MIB);
    um_runtime_stats_t stats;
    um_runtime_info_t info;

    um_runtime_stats(&stats);
    um_runtime_info(&info);
    um_region_hint(addr, n % 2 ? UM_REGION_HINT_OFF : 0);
    um_region_label(addr, "kept");
    um_phase_begin("asking");
    um_phase_end();
    um_sync_profile();
}

static void *ask_much(void *arg)
{
    while (!over)
        ask((uintptr_t)arg);
    return NULL;
}

/* ---- the tests ---- */

static pthread_t launcher[LAUNCHERS], asker[ASKERS];
static char profile[64];

static void begin(void)
{
    um_config_t config = {.size = sizeof(config), .mode = UM_MODE_HINT, .profile_path = profile};

    snprintf(profile, sizeof(profile), "/tmp/hinting_threads.%d.ump", (int)getpid());
    setenv("UMRT_SUMMARY", "off", 1);
    setenv("UMRT_ADVISORS", "all", 1);
    setenv("UMRT_LOG_LEVEL", "0", 1);
    um_runtime_use_backend(&backend);
    cr_assert_eq(um_runtime_init(&config), UM_OK);
    cr_assert_not_null(live);
    for (uintptr_t i = 0; i < LAUNCHERS; i++)
        pthread_create(&launcher[i], NULL, launch_and_free, (void *)i);
    for (uintptr_t i = 0; i < ASKERS; i++)
        pthread_create(&asker[i], NULL, ask_much, (void *)i);
}

static void end(void)
{
    char lock[80];

    over = true;
    for (int i = 0; i < LAUNCHERS; i++)
        pthread_join(launcher[i], NULL);
    for (int i = 0; i < ASKERS; i++)
        pthread_join(asker[i], NULL);
    um_runtime_shutdown();
    snprintf(lock, sizeof(lock), "%s.lock", profile);
    unlink(lock);
    unlink(profile);
}

Test(hinting_threads, asking_telling_and_saving_while_others_launch_and_free, .timeout = 300)
{
    um_runtime_stats_t stats;

    begin();
    for (int i = 0; i < LAUNCHERS; i++)
        pthread_join(launcher[i], NULL);
    for (uintptr_t i = 0; i < LAUNCHERS; i++)
        pthread_create(&launcher[i], NULL, launch_and_free, (void *)i);
    end();
    cr_assert_eq(um_runtime_stats(&stats), UM_OK);
    cr_assert_gt(stats.hints_admitted, 0);
    cr_assert_eq(stats.hints_admitted,
                 stats.hints_applied + stats.hints_failed + stats.hints_cancelled,
                 "every hint comes to an end");
    cr_assert_eq(stats.events_lost, 0);
}

/* Whatever the others were in the middle of. */
Test(hinting_threads, a_forked_child_may_call_everything_and_ends, .timeout = 300)
{
    begin();
    for (int i = 0; i < 20; i++) {
        int status = 0;
        pid_t child = fork();

        if (child == 0) {
            ask(0);
            um_runtime_init(NULL);
            um_runtime_region_going(live, BASE);
            um_runtime_context_going(live, 1);
            um_runtime_shutdown();
            _exit(7);
        }
        waitpid(child, &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "child %d: status %d", i, status);
    }
    end();
}

Test(hinting_threads, an_end_in_the_middle_leaves_everyone_running, .timeout = 300)
{
    um_runtime_info_t info;

    begin();
    while (rounds < LAUNCHERS * ROUNDS / 4)
        sched_yield();
    um_runtime_shutdown();
    um_runtime_info(&info);
    cr_assert_str_eq(info.reason, "shut down");
    end();
}
