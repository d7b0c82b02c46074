/*
 * interface MODE - one program for each way to use um_runtime.h, linked with -lumrt alone. What it prints must not
 * depend on what umrt does; what umrt says of itself goes to stderr, in lines that begin "state" or "stats".
 */
#include "examples/driver_api/driver_api.h"

#include <pthread.h>
#include <stddef.h>

#include <um_runtime.h>

#define BYTES  ((uint64_t)8 << 20)
#define N      (BYTES / sizeof(float))
#define ROUNDS 8

static const char *program;
static uint64_t n = N;

static void tell_state(void)
{
    um_runtime_info_t info;

    um_runtime_info(&info);
    fprintf(stderr, "state %d '%s'\n", (int)info.state, info.reason);
}

static void tell_stats(void)
{
    um_runtime_stats_t stats = {0};

    if (um_runtime_stats(&stats) == UM_OK)
        fprintf(stderr, "stats applied %llu launches %llu\n",
                (unsigned long long)stats.hints_applied,
                (unsigned long long)stats.launches_managed);
}

static CUfunction add_one(CUmodule module)
{
    CUfunction f;

    CHECK(cuModuleGetFunction(&f, module, "_Z7add_onePfm"));
    return f;
}

static CUdeviceptr allocate(void)
{
    CUdeviceptr data;

    CHECK(cuMemAllocManaged(&data, BYTES, CU_MEM_ATTACH_GLOBAL));
    return data;
}

/* The CPU writes, the GPU adds, the CPU reads. */
static double rounds(CUfunction f, CUdeviceptr data)
{
    double sum = 0;

    for (int r = 0; r < ROUNDS; r++) {
        for (uint64_t i = 0; i < N; i++)
            floats(data)[i] = (float)r;
        launch(f, NULL, (void *[]){&data, &n});
        CHECK(cuCtxSynchronize());
        for (uint64_t i = 0; i < N; i += 64)
            sum += (double)floats(data)[i];
    }
    return sum;
}

static void init(void)
{
    um_config_t config = {.size = sizeof(config)};

    if (um_runtime_init(&config) != UM_OK)
        printf("init failed\n");
    tell_state();
}

static void before(void)
{
    init();
    CUfunction f = add_one(start(program, 0));
    printf("%.0f\n", rounds(f, allocate()));
}

static void after(void)
{
    CUfunction f = add_one(start(program, 0));
    init();
    printf("%.0f\n", rounds(f, allocate()));
}

/* Memory, and kernels that used it, are older than umrt. */
static void late(void)
{
    CUfunction f = add_one(start(program, 0));
    CUdeviceptr data = allocate();
    double first = rounds(f, data);

    init();
    if (getenv("LABEL"))
        fprintf(stderr, "label: %s\n", um_status_string(um_region_label(floats(data) + 3, "old")));
    printf("%.0f\n", first + rounds(f, data));
}

static void twice(void)
{
    init();
    init();
    CUfunction f = add_one(start(program, 0));
    um_runtime_init(NULL);
    printf("%.0f\n", rounds(f, allocate()));
    um_runtime_shutdown();
    um_runtime_shutdown();
    tell_state();
    if (um_runtime_init(NULL) != UM_OK)
        printf("init after the end failed\n");
}

static void *in_thread(void *ctx)
{
    um_runtime_stats_t stats;

    if (um_runtime_init(NULL) != UM_OK)
        printf("init in a thread failed\n");
    um_phase_begin("a thread");
    for (int i = 0; i < 100; i++) {
        um_region_label(ctx, "shared");
        um_region_hint(ctx, i % 2 ? UM_REGION_HINT_CPU_FIRST : 0);
        um_runtime_stats(&stats);
        if (i % 25 == 0)
            um_sync_profile();
    }
    um_phase_end();
    return NULL;
}

static void threads(void)
{
    CUfunction f = add_one(start(program, 0));
    CUdeviceptr data = allocate();
    pthread_t thread[8];

    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, in_thread, floats(data));
    printf("%.0f\n", rounds(f, data));
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
    tell_state();
}

/* The user's word. */
static void off(void)
{
    init();
    CUfunction f = add_one(start(program, 0));
    CUdeviceptr data = allocate();
    um_region_hint(floats(data), UM_REGION_HINT_OFF);
    printf("%.0f\n", rounds(f, data));
}

static void off_and_on(void)
{
    init();
    CUfunction f = add_one(start(program, 0));
    CUdeviceptr data = allocate();
    um_region_hint(floats(data), UM_REGION_HINT_OFF);
    double sum = rounds(f, data);
    um_region_hint(floats(data), 0);
    printf("%.0f\n", sum + rounds(f, data));
}

/* Kernels get it before anybody has written it, and do not touch it; they take long enough for a hint to come
 * while one runs, on a busy machine too. */
static void first_use(uint32_t word)
{
    static const char text[] = "//softgpu kernel _Z4idlePf ptr:data\n"
                               "//softgpu   wait 300000000\n";
    CUmodule module;
    CUfunction f;

    init();
    start(program, 0);
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&f, module, "_Z4idlePf"));
    CUdeviceptr data = allocate();
    um_region_hint(floats(data), word);
    launch(f, NULL, (void *[]){&data});
    CHECK(cuCtxSynchronize());
    printf("%.0f\n", (double)floats(data)[5]);
}

static void gpu_first(void)
{
    first_use(0);
}

static void cpu_first(void)
{
    first_use(UM_REGION_HINT_CPU_FIRST);
}

/* What is asked wrongly, or too early. */
static void wrong(void)
{
    um_config_t config = {.size = 3};
    um_runtime_stats_t stats;
    int here = 0;

    printf("%d %d %d %d %d\n", um_runtime_stats(&stats) == UM_ERR_STATE,
           um_region_label(&here, "x") == UM_ERR_STATE, um_region_hint(&here, 0) == UM_ERR_STATE,
           um_sync_profile() == UM_ERR_STATE, um_phase_end() == UM_ERR_STATE);
    printf("%d\n", um_runtime_init(&config) == UM_ERR_INVALID);
    tell_state();
    config.size =
        offsetof(um_config_t, profile_path); /* as programs of the first version have it */
    printf("%d\n", um_runtime_init(&config) == UM_OK);
    CUfunction f = add_one(start(program, 0));
    CUdeviceptr data = allocate();
    printf("%d %d %d\n", um_region_label(&here, "x"), um_region_hint(&here, 0),
           um_region_hint(floats(data), 1u << 30));
    printf("%.0f\n", rounds(f, data));
    printf("%d\n", um_sync_profile());
}

/* Saves on request; then dies without a word. */
static void sync_and_die(void)
{
    init();
    CUfunction f = add_one(start(program, 0));
    printf("%.0f\n", rounds(f, allocate()));
    fflush(stdout);
    um_sync_profile();
    um_sync_profile();
    _Exit(0);
}

static void paths(void)
{
    um_config_t config = {.size = sizeof(config),
                          .mode = UM_MODE_HINT,
                          .trace_path = "own.umt",
                          .profile_path = "own.ump",
                          .report_path = "own.json"};

    um_runtime_init(&config);
    tell_state();
    CUfunction f = add_one(start(program, 0));
    printf("%.0f\n", rounds(f, allocate()));
}

static void with_budget(const char *budget)
{
    um_config_t config = {.size = sizeof(config), .mode = UM_MODE_HINT, .budget = budget};

    um_runtime_init(&config);
    tell_state();
    CUfunction f = add_one(start(program, 0));
    printf("%.0f\n", rounds(f, allocate()));
}

static void budget(void)
{
    with_budget("1M");
}

static void bad_budget(void)
{
    with_budget("half");
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {{"before", before},         {"after", after},          {"late", late},
             {"twice", twice},           {"threads", threads},      {"off", off},
             {"off-and-on", off_and_on}, {"gpu-first", gpu_first},  {"cpu-first", cpu_first},
             {"wrong", wrong},           {"sync", sync_and_die},    {"paths", paths},
             {"budget", budget},         {"bad-budget", bad_budget}};

int main(int argc, char **argv)
{
    program = argv[0];
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc < 2)
            puts(modes[i].name);
        else if (strcmp(argv[1], modes[i].name) == 0)
            modes[i].run();
    }
    tell_stats();
    return 0;
}
