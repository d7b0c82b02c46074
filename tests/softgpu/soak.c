/*
 * soak SECONDS [leave|fork] - eight threads that allocate, write, launch, wait, read and free, each in its own way, on
 * two contexts and many streams. Data are checked as they are read; one line says whether all were right.
 *
 * It watches itself: a thread that stands still for WATCH_S ends the program with status 3. With SOAK_FIGURES=FILE
 * it adds a line a second, "SECONDS ROUNDS OURS OWN", both in KiB: of the heap what libumrt holds; and of the process's
 * own memory what is no other's heap. Managed memory is in neither on the software GPU. `leave`: the program ends
 * while the threads are at work. `fork`: it forks meanwhile, and the children end.
 */
/* exit() would take the driver down under the other threads, which crash before the message is out. */
#define CHECK_ENDS() (fflush(stdout), _Exit(1))
#include "examples/driver_api/driver_api.h"

#include "counted.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define WATCH_S 120
#define MOST    ((uint64_t)1 << 20) /* floats of the largest array */
#define KEPT    ((uint64_t)1 << 18)

typedef struct place {
    CUcontext context;
    CUfunction add_one, axpy;
} place_t;

typedef struct worker {
    pthread_t thread;
    unsigned index;
    uint32_t seed;
    place_t place;
    _Atomic uint64_t rounds, launches, wrong;
} worker_t;

static worker_t worker[THREADS];
static char *text;
static _Atomic bool over;

/* To write: a stream is being captured. To read: a call that ends the captures of other threads too, whatever their
 * mode. An H200 answers cuCtxSynchronize() with 900 then, and the capture with 901. Code that is loaded or unloaded may
 * wait for the context alike, and of streams that come and go nothing is documented. Freeing, and waiting for streams
 * and events, end global captures alone. */
static pthread_rwlock_t capture = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static uint32_t random_of(worker_t *self)
{
    self->seed ^= self->seed << 13;
    self->seed ^= self->seed >> 17;
    self->seed ^= self->seed << 5;
    return self->seed;
}

static CUdeviceptr allocate(uint64_t n)
{
    CUdeviceptr data;

    CHECK(cuMemAllocManaged(&data, n * sizeof(float), CU_MEM_ATTACH_GLOBAL));
    return data;
}

static void fill(CUdeviceptr data, uint64_t n, float value)
{
    for (uint64_t i = 0; i < n; i++)
        floats(data)[i] = value;
}

/* Reads here and there, and the last one. */
static void expect(worker_t *self, CUdeviceptr data, uint64_t n, float value)
{
    bool right = floats(data)[n - 1] == value;

    for (uint64_t i = 0; i < n; i += 1000)
        right &= floats(data)[i] == value;
    self->wrong += !right;
}

static void go(worker_t *self, CUfunction f, CUstream stream, void **params)
{
    launch(f, stream, params);
    self->launches++;
}

static void wait_for(worker_t *self, CUstream stream)
{
    CUevent event;

    switch (random_of(self) % 4) {
    case 0:
        pthread_rwlock_rdlock(&capture);
        CHECK(cuCtxSynchronize());
        pthread_rwlock_unlock(&capture);
        break;
    case 1:
        CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CHECK(cuEventRecord(event, stream));
        CHECK(cuEventSynchronize(event));
        CHECK(cuEventDestroy(event));
        break;
    default:
        CHECK(cuStreamSynchronize(stream));
    }
}

/* ---- what the threads do ---- */

/* Allocated, written, used and freed again. */
static void churn(worker_t *self, CUstream stream)
{
    uint64_t n = 1 + random_of(self) % MOST;
    unsigned launches = 1 + random_of(self) % 4;
    CUdeviceptr data = allocate(n);

    fill(data, n, 1);
    for (unsigned i = 0; i < launches; i++)
        go(self, self->place.add_one, stream, (void *[]){&data, &n});
    wait_for(self, stream);
    expect(self, data, n, 1 + (float)launches);
    CHECK(cuMemFree(data));
}

/* Nobody but the GPU and a short read. */
static void first_touch(worker_t *self, CUstream stream)
{
    uint64_t n = MOST / 4;
    CUdeviceptr data = allocate(n);

    CHECK(cuMemsetD32Async(data, 0, n, stream));
    go(self, self->place.add_one, stream, (void *[]){&data, &n});
    wait_for(self, stream);
    expect(self, data, 1, 1);
    CHECK(cuMemFree(data));
}

/* To and fro, and a table that both only read. */
static void ping_pong(worker_t *self, CUstream stream, CUdeviceptr ball, CUdeviceptr table)
{
    uint64_t n = KEPT;
    float a = 2;

    fill(ball, n, 3);
    go(self, self->place.axpy, stream, (void *[]){&ball, &table, &n, &a});
    wait_for(self, stream);
    expect(self, ball, n, 5);
    expect(self, table, n, 1);
}

/* Many small ones at once. */
static void crumbs(worker_t *self, CUstream stream)
{
    CUdeviceptr crumb[16];
    uint64_t n = 64;

    for (int i = 0; i < 16; i++) {
        crumb[i] = allocate(n);
        fill(crumb[i], n, (float)i);
        go(self, self->place.add_one, stream, (void *[]){&crumb[i], &n});
    }
    wait_for(self, stream);
    for (int i = 0; i < 16; i++) {
        expect(self, crumb[i], n, (float)i + 1);
        CHECK(cuMemFree(crumb[i]));
    }
}

/* A graph of two kernels, made, launched and destroyed. */
static void graph(worker_t *self, CUstream stream, CUdeviceptr data)
{
    uint64_t n = KEPT;
    CUgraph captured;
    CUgraphExec exec;

    fill(data, n, 1);
    pthread_rwlock_wrlock(&capture);
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    go(self, self->place.add_one, stream, (void *[]){&data, &n});
    go(self, self->place.add_one, stream, (void *[]){&data, &n});
    CHECK(cuStreamEndCapture(stream, &captured));
    pthread_rwlock_unlock(&capture);
    CHECK(cuGraphInstantiateWithFlags(&exec, captured, 0));
    CHECK(cuGraphLaunch(exec, stream));
    self->launches++;
    CHECK(cuStreamSynchronize(stream));
    expect(self, data, n, 3);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(captured));
    fill(data, n, 1);
}

/* The same kernels from a module of its own. */
static void module(worker_t *self, CUstream stream)
{
    uint64_t n = 1024;
    CUdeviceptr data = allocate(n);
    CUfunction add_one;
    CUmodule loaded;

    pthread_rwlock_rdlock(&capture);
    CHECK(cuModuleLoadData(&loaded, text));
    CHECK(cuModuleGetFunction(&add_one, loaded, "_Z7add_onePfm"));
    fill(data, n, 0);
    go(self, add_one, stream, (void *[]){&data, &n});
    CHECK(cuStreamSynchronize(stream));
    expect(self, data, n, 1);
    CHECK(cuMemFree(data));
    CHECK(cuModuleUnload(loaded));
    pthread_rwlock_unlock(&capture);
}

static void *work(void *arg)
{
    worker_t *self = arg;
    CUdeviceptr ball, table;
    CUstream stream;

    CHECK(cuCtxSetCurrent(self->place.context));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ball = allocate(KEPT);
    table = allocate(KEPT);
    fill(table, KEPT, 1);
    while (!over) {
        switch (self->index % 4 ? random_of(self) % 16 : 15) {
        case 0:
            pthread_rwlock_rdlock(&capture);
            CHECK(cuStreamDestroy(stream));
            CHECK(cuStreamCreate(&stream, self->rounds % 2 ? CU_STREAM_NON_BLOCKING : 0));
            pthread_rwlock_unlock(&capture);
            break;
        case 1:
            module(self, stream);
            break;
        case 2:
            graph(self, stream, table);
            break;
        case 3:
        case 4:
            crumbs(self, stream);
            break;
        case 5:
        case 6:
            first_touch(self, stream);
            break;
        case 7:
        case 8:
        case 9:
        case 10:
            churn(self, stream);
            break;
        default:
            ping_pong(self, stream, ball, table);
        }
        self->rounds++;
    }
    CHECK(cuMemFree(ball));
    CHECK(cuMemFree(table));
    CHECK(cuStreamDestroy(stream));
    return NULL;
}

/* ---- watching ---- */

static uint64_t total(uint64_t *launches, uint64_t *wrong)
{
    uint64_t rounds = 0;

    *launches = *wrong = 0;
    for (int i = 0; i < THREADS; i++) {
        rounds += worker[i].rounds;
        *launches += worker[i].launches;
        *wrong += worker[i].wrong;
    }
    return rounds;
}

static unsigned long own_kib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long kib = 0;
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "RssAnon: %lu", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static void note(FILE *figures, unsigned second)
{
    struct mallinfo2 heap = mallinfo2();
    long others = (long)((heap.uordblks + heap.hblkhd - counted_bytes()) / 1024);
    uint64_t launches, wrong, rounds = total(&launches, &wrong);

    fprintf(figures, "%u %llu %zu %ld\n", second, (unsigned long long)rounds,
            counted_bytes() / 1024, (long)own_kib() - others);
    fflush(figures);
}

/* Says which thread stands still. */
static void watch(void)
{
    static uint64_t seen[THREADS];
    static unsigned still[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        still[i] = worker[i].rounds == seen[i] ? still[i] + 1 : 0;
        seen[i] = worker[i].rounds;
        if (still[i] < WATCH_S)
            continue;
        fprintf(stderr, "thread %u stands still\n", i);
        _exit(3);
    }
}

static void end_a_child(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        exit(5);
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5) {
        printf("a child ended with %d\n", status);
        CHECK_ENDS();
    }
}

static place_t place_of(CUcontext context, CUmodule loaded)
{
    place_t place = {.context = context};

    CHECK(cuModuleGetFunction(&place.add_one, loaded, "_Z7add_onePfm"));
    CHECK(cuModuleGetFunction(&place.axpy, loaded, "_Z4axpyPfPKfmf"));
#if CUDA_VERSION >= 12040
    /* Otherwise their first launches would. */
    CHECK(cuFuncLoad(place.add_one));
    CHECK(cuFuncLoad(place.axpy));
#endif
    return place;
}

static void begin(const char *program)
{
    place_t place[2];
    CUcontext context;
    CUmodule loaded = start(program, 0);

    counted_library("libumrt");
    text = read_kernels(program);
    CHECK(cuCtxGetCurrent(&context));
    place[0] = place_of(context, loaded);
#if CUDA_VERSION >= 13000
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
#else
    CHECK(cuCtxCreate(&context, 0, 0));
#endif
    CHECK(cuModuleLoadData(&loaded, text));
    place[1] = place_of(context, loaded);
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i].index = i;
        worker[i].seed = 2463534242u + 7919 * i;
        worker[i].place = place[i / 2 % 2];
        pthread_create(&worker[i].thread, NULL, work, &worker[i]);
    }
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;
    bool leave = argc > 2 && strcmp(argv[2], "leave") == 0;
    bool forks = argc > 2 && strcmp(argv[2], "fork") == 0;
    const char *path = getenv("SOAK_FIGURES");
    FILE *figures = path ? fopen(path, "ae") : NULL;
    uint64_t launches, wrong;
    struct timespec t;

    begin(argv[0]);
    clock_gettime(CLOCK_MONOTONIC, &t);
    for (unsigned s = 1; s <= seconds; s++) {
        t.tv_sec++;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
            ;
        watch();
        if (figures)
            note(figures, s);
        if (forks)
            end_a_child();
    }
    if (leave) {
        puts("left");
        exit(4);
    }
    over = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(worker[i].thread, NULL);
    total(&launches, &wrong);
    if (figures) {
        fprintf(figures, "launches %llu\n", (unsigned long long)launches);
        fclose(figures);
    }
    printf("%llu sums were wrong\n", (unsigned long long)wrong);
    free(text);
    return wrong ? 1 : 0;
}
