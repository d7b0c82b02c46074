/*
 * impossible KIND FILE - writes a trace that no program can have left: no-launches, free-twice,
 * dead-argument, zeroth-region, overlap. For replay_bad_input.sh. And three that can be: `unaligned`,
 * whose regions begin inside a page, `far-kernels`, whose kernels have the greatest ids, and `tuned`, whose header has parameters of the driver, one of them
 * nonsense. For replay.sh.
 */
#include <stdio.h>
#include <string.h>

#include "um_trace.h"

#define ADDR UINT64_C(0x7f0000000000)
#define SIZE ((uint64_t)4 << 20)

static um_trace_writer_t *writer;
static uint64_t now;

static void put(um_event_t event)
{
    event.time_ns = now += 1000;
    event.tid = 1;
    if (um_trace_writer_put(writer, &event) != UM_OK)
        fputs("impossible: put failed\n", stderr);
}

static void allocate(uint32_t region, uint64_t addr)
{
    put((um_event_t){.type = UM_EV_REGION_ALLOC,
                     .u.region_alloc = {.region = region,
                                        .family = UM_FAMILY_MANAGED,
                                        .addr = addr,
                                        .bytes = SIZE,
                                        .device = UM_DEVICE_NONE}});
}

static void release(uint32_t region)
{
    put((um_event_t){.type = UM_EV_REGION_FREE, .u.region_free = {.region = region, .addr = ADDR}});
}

static void launch(uint32_t region)
{
    const um_arg_t arg = {.region = region};

    put((um_event_t){.type = UM_EV_KERNEL, .u.kernel = {.kernel = 1, .name = "k"}});
    put((um_event_t){
        .type = UM_EV_LAUNCH,
        .u.launch = {.correlation = 1, .kernel = 1, .context = 1, .n_args = 1, .args = &arg}});
    put((um_event_t){.type = UM_EV_KERNEL_EXEC,
                     .u.kernel_exec = {.correlation = 1, .kernel = 1, .duration_ns = 500}});
}

static void define(uint32_t kernel)
{
    static const um_param_t param = {.size_bytes = 8, .flags = UM_PARAM_CONST_POINTER};

    put((um_event_t){.type = UM_EV_KERNEL,
                     .u.kernel = {.kernel = kernel,
                                  .name = "far",
                                  .n_params = 1,
                                  .layout_known = 1,
                                  .params = &param}});
}

int main(int argc, char **argv)
{
    static const um_ev_fact_t tuned[] = {{"uvm.uvm_perf_prefetch_threshold", "1"},
                                         {"uvm.uvm_perf_thrashing_pin", "100"},
                                         {"uvm.uvm_perf_fault_batch_count", "0"}};
    bool is_tuned = argc == 3 && strcmp(argv[1], "tuned") == 0;

    if (argc != 3 ||
        um_trace_writer_open(argv[2], tuned, is_tuned ? 3 : 0, NULL, &writer) != UM_OK) {
        fputs("usage: impossible KIND FILE\n", stderr);
        return 2;
    }
    allocate(strcmp(argv[1], "zeroth-region") == 0 ? 0 : 1, ADDR);
    if (is_tuned) {
        launch(1);
        put((um_event_t){.type = UM_EV_MIGRATE,
                         .u.migrate = {.addr = ADDR,
                                       .bytes = SIZE,
                                       .src = UM_DEVICE_HOST,
                                       .dst = 0,
                                       .region = 1}});
    } else if (strcmp(argv[1], "free-twice") == 0) {
        launch(1);
        release(1);
        release(1);
    } else if (strcmp(argv[1], "dead-argument") == 0) {
        release(1);
        launch(1);
    } else if (strcmp(argv[1], "zeroth-region") == 0) { /* refused before there is any step */
        for (int i = 0; i < 2; i++)
            put((um_event_t){.type = UM_EV_ACCESS,
                             .u.access = {.addr = ADDR,
                                          .bytes = 4096,
                                          .device = UM_DEVICE_HOST,
                                          .kind = UM_ACCESS_READ}});
    } else if (strcmp(argv[1], "unaligned") == 0) {
        allocate(2, ADDR + SIZE + 8);
        allocate(3, ADDR + 2 * SIZE + 16);
        launch(2);
        launch(3);
    } else if (strcmp(argv[1], "far-kernels") == 0) {
        define(UINT32_MAX);
        define(UINT32_MAX / 2);
        define(2);
        launch(1);
    } else if (strcmp(argv[1], "overlap") == 0) {
        allocate(2, ADDR + SIZE / 2);
        launch(2);
    }
    return um_trace_writer_close(writer) != UM_OK;
}
