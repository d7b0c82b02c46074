/*
 * busy FILE [STEPS] - writes a trace with something of everything that a page shows: steps of a program
 * that names its phases, faults and moves over regions of all sizes, and names that would be markup if a
 * page let them. Some 1,000 events a step; 100,000 steps are about a gigabyte.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "um_trace.h"

#define MIB       (UINT64_C(1) << 20)
#define BASE      UINT64_C(0x7f0000000000)
#define SMALL     200u /* regions without a label */
#define LABELLED  3u
#define FAULTS    250u /* a step, and as many moves each way */
#define FAULT_NS  40000u
#define DELAY_MAX 30000u

static um_trace_writer_t *writer;
static uint64_t now = 1000000, lot = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    lot ^= lot << 13;
    lot ^= lot >> 7;
    lot ^= lot << 17;
    return lot % below;
}

static void put_at(uint64_t time_ns, um_event_t event)
{
    event.time_ns = time_ns;
    if (um_trace_writer_put(writer, &event) != UM_OK)
        exit(1);
}

static void put(um_event_t event)
{
    put_at(now, event);
}

static uint64_t address(uint32_t region)
{
    return BASE + region * 8192 * MIB;
}

static uint64_t size(uint32_t region)
{
    static const uint64_t labelled[] = {4096 * MIB, MIB / 4, 64 * MIB};

    return region < LABELLED ? labelled[region] : (region % 16 + 1) * MIB;
}

static void begin(void)
{
    static const char *const label[] = {"grid", "halo",
                                        "</script><img src=x onerror=alert(1)>&amp;\"'"};
    static const char *const kernel[] = {"_Z7stencilPKfPfi", "_Z6reducePKfPfi",
                                         "</script><script>alert(2)</script>"};

    for (uint32_t i = 0; i < LABELLED + SMALL; i++) {
        put((um_event_t){.type = UM_EV_REGION_ALLOC,
                         .u.region_alloc = {.region = i + 1,
                                            .family = UM_FAMILY_MANAGED,
                                            .addr = address(i),
                                            .bytes = size(i),
                                            .device = UM_DEVICE_NONE}});
        if (i < LABELLED)
            put((um_event_t){.type = UM_EV_REGION_LABEL, .u.region_label = {i + 1, label[i]}});
    }
    for (uint32_t i = 0; i < 3; i++)
        put((um_event_t){.type = UM_EV_KERNEL, .u.kernel = {.kernel = i + 1, .name = kernel[i]}});
}

static void move(uint64_t addr, bool in)
{
    put((um_event_t){.type = UM_EV_MIGRATE,
                     .u.migrate = {.addr = addr,
                                   .bytes = UM_BIG_PAGE_BYTES,
                                   .duration_ns = 3000 + draw(2000),
                                   .src = in ? UM_DEVICE_HOST : 0,
                                   .dst = in ? 0 : UM_DEVICE_HOST,
                                   .cause = UM_CAUSE_COHERENCE}});
    now += 5000;
}

static void step(uint64_t number)
{
    uint32_t correlation = (uint32_t)number + 1, kernel = (uint32_t)(number % 3) + 1;
    uint64_t start = now, over, at[FAULTS];

    put((um_event_t){.type = UM_EV_MARK,
                     .u.mark = {.kind = UM_MARK_PUSH, .name = number % 8 ? "step" : "<b>output"}});
    put((um_event_t){.type = UM_EV_LAUNCH,
                     .u.launch = {.correlation = correlation, .kernel = kernel}});
    for (uint32_t i = 0; i < FAULTS; i++) {
        uint32_t region = i % 3 ? 0 : (uint32_t)draw(LABELLED + SMALL);
        uint64_t sweep = (number * FAULTS + i) * UM_BIG_PAGE_BYTES;

        at[i] = address(region) + (region ? draw(size(region)) : sweep % size(0)) /
                                      UM_BIG_PAGE_BYTES * UM_BIG_PAGE_BYTES;
        put((um_event_t){.type = UM_EV_GPU_FAULT,
                         .u.gpu_fault = {.addr = at[i],
                                         .groups = 1 + (uint32_t)draw(30),
                                         .duration_ns = FAULT_NS + draw(FAULT_NS)}});
        now += draw(DELAY_MAX);
        move(at[i], true);
    }
    over = now += 2 * FAULT_NS;
    put((um_event_t){.type = UM_EV_MARK, .u.mark = {.kind = UM_MARK_POP}});
    put((um_event_t){.type = UM_EV_SYNC, .u.sync = {.kind = UM_SYNC_DEVICE, .exit = 1}});
    now += 1000;
    for (uint32_t i = 0; i < FAULTS; i++) {
        put((um_event_t){.type = UM_EV_CPU_FAULT, .u.cpu_fault = {.addr = at[i], .pc = 0x401000}});
        now += 1000 + draw(2000);
        move(at[i], false);
    }
    /* Its record comes when it is over. */
    put_at(start + 2000, (um_event_t){.type = UM_EV_KERNEL_EXEC,
                                      .u.kernel_exec = {.correlation = correlation,
                                                        .kernel = kernel,
                                                        .duration_ns = over - start - 3000}});
}

int main(int argc, char **argv)
{
    static const um_ev_fact_t facts[] = {{"process.command", "./solver --steps '</script>'"},
                                         {"driver.version", "580.159"}};
    uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 20;

    if (argc < 2 || um_trace_writer_open(argv[1], facts, 2, NULL, &writer) != UM_OK)
        return 1;
    begin();
    for (uint64_t number = 0; number < steps; number++)
        step(number);
    return um_trace_writer_close(writer) != UM_OK;
}
