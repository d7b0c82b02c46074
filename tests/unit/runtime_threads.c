/* Many threads start, use and end the one runtime at once; another forks. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/runtime.h"

static _Atomic unsigned attached;

static um_status_t attach(um_runtime_t *runtime, char *reason, size_t bytes)
{
    (void)runtime;
    (void)reason;
    (void)bytes;
    attached++;
    return UM_OK;
}

static const um_backend_t backend = {.name = "test", .attach = attach};

static void *use(void *arg)
{
    um_config_t config = {.size = sizeof(config), .mode = UM_MODE_OBSERVE};
    um_runtime_info_t info;
    um_runtime_stats_t stats;

    if ((uintptr_t)arg % 2)
        InitializeInjection();
    um_runtime_init(&config);
    for (int i = 0; i < 200; i++) {
        um_phase_begin("x");
        um_runtime_info(&info);
        um_runtime_stats(&stats);
        um_phase_end();
    }
    if ((uintptr_t)arg == 3)
        um_runtime_shutdown();
    return NULL;
}

Test(runtime_threads, share_one_runtime)
{
    pthread_t thread[8];
    um_runtime_info_t info;

    setenv("UMRT_MODE", "observe", 1);
    setenv("UMRT_SUMMARY", "off", 1);
    um_runtime_use_backend(&backend);
    for (uintptr_t i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, use, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
    cr_assert_eq(attached, 1);
    um_runtime_shutdown();
    um_runtime_info(&info);
    cr_assert_eq(info.state, UM_RUNTIME_INERT);
}
