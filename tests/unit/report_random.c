/*
 * Streams that no driver would write: any type, any field, times in order. The report must stay valid
 * JSON and text, bounded in memory, and the same twice. Seeds are fixed.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report_stream.h"

static uint64_t state;

static uint64_t roll(void)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = state;

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Mostly near the others, sometimes at the edges of what fits. */
static uint64_t address(void)
{
    switch (roll() % 16) {
    case 0:
        return roll();
    case 1:
        return UINT64_MAX - roll() % (4 * MIB);
    case 2:
        return roll() % MIB;
    default:
        return BASE + roll() % (64 * MIB);
    }
}

static uint64_t length(void)
{
    switch (roll() % 16) {
    case 0:
        return roll();
    case 1:
        return 0;
    case 2:
        return UINT64_MAX;
    default:
        return 1 + roll() % (4 * MIB);
    }
}

static um_event_t any(uint64_t time_ns)
{
    static const char *const text[] = {"", "a", "halo", "\xff\xfe", "_Z4stepPf", "x\ny", "off"};
    static um_arg_t args[4];
    const char *word = text[roll() % (sizeof(text) / sizeof(text[0]))];
    uint32_t small = (uint32_t)(roll() % 8), id = (uint32_t)(roll() % 32);
    int32_t device = (int32_t)(roll() % 5) - 2;
    um_event_t e = {.time_ns = time_ns, .type = 1 + roll() % (UM_EV_TYPE_COUNT - 1)};

    switch (e.type) {
    case UM_EV_FACT:
        e.u.fact = (um_ev_fact_t){roll() % 2 ? "um.tracing" : "process.command", word};
        break;
    case UM_EV_DEVICE:
        e.u.device = (um_ev_device_t){.device = device, .name = word, .uuid = word, .pci = word};
        break;
    case UM_EV_OPTION:
        e.u.option = (um_ev_option_t){"unified-memory", word, word};
        break;
    case UM_EV_LOSS:
        e.u.loss = (um_ev_loss_t){.count = length(), .bytes = length(), .reason = word};
        break;
    case UM_EV_CALL_SITE:
        e.u.call_site = (um_ev_call_site_t){small, word};
        break;
    case UM_EV_MODULE:
        e.u.module = (um_ev_module_t){.addr = roll() % 2 ? 0 : address(),
                                      .bytes = length(),
                                      .load_bias = address(),
                                      .name = word,
                                      .path = word,
                                      .build_id = word};
        break;
    case UM_EV_REGION_ALLOC:
        e.u.region_alloc = (um_ev_region_alloc_t){.region = id,
                                                  .family = (uint32_t)(roll() % 12),
                                                  .addr = address(),
                                                  .bytes = length(),
                                                  .call_site = small};
        break;
    case UM_EV_REGION_FREE:
        e.u.region_free = (um_ev_region_free_t){.region = id, .addr = address()};
        break;
    case UM_EV_REGION_LABEL:
        e.u.region_label = (um_ev_region_label_t){id, word};
        break;
    case UM_EV_KERNEL:
        e.u.kernel = (um_ev_kernel_t){.kernel = small, .name = word};
        break;
    case UM_EV_LAUNCH:
        for (int i = 0; i < 4; i++)
            args[i].region = (uint32_t)(roll() % 32);
        e.u.launch = (um_ev_launch_t){.correlation = id,
                                      .kernel = small,
                                      .device = device,
                                      .flags = small,
                                      .n_args = (uint32_t)(roll() % 5),
                                      .args = args};
        break;
    case UM_EV_KERNEL_EXEC:
        e.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = id,
                                                .kernel = small,
                                                .duration_ns = length(),
                                                .device = device};
        break;
    case UM_EV_GPU_FAULT:
        e.u.gpu_fault = (um_ev_gpu_fault_t){.addr = address(),
                                            .duration_ns = length(),
                                            .groups = id,
                                            .device = device,
                                            .region = small};
        break;
    case UM_EV_CPU_FAULT:
        e.u.cpu_fault = (um_ev_cpu_fault_t){.addr = address(), .pc = roll(), .region = small};
        break;
    case UM_EV_MIGRATE:
        e.u.migrate = (um_ev_migrate_t){.addr = address(),
                                        .bytes = length(),
                                        .duration_ns = length(),
                                        .src = (int32_t)(roll() % 4) - 2,
                                        .dst = (int32_t)(roll() % 4) - 2,
                                        .cause = (uint32_t)(roll() % 9)};
        break;
    case UM_EV_THRASH:
        e.u.thrash = (um_ev_thrash_t){.addr = address(), .bytes = length()};
        break;
    case UM_EV_THROTTLE:
        e.u.throttle =
            (um_ev_throttle_t){.addr = address(), .duration_ns = length(), .device = device};
        break;
    case UM_EV_REMOTE_MAP:
        e.u.remote_map = (um_ev_remote_map_t){.addr = address(), .bytes = length(), .dst = device};
        break;
    case UM_EV_COPY:
        e.u.copy = (um_ev_copy_t){.bytes = roll() % 4 ? 1 : length(),
                                  .duration_ns = length(),
                                  .src_memory = small,
                                  .dst_memory = (uint32_t)(roll() % 8),
                                  .flags = (uint32_t)(roll() % 8)};
        break;
    case UM_EV_SET:
        e.u.set = (um_ev_set_t){.bytes = length(), .duration_ns = length(), .memory = small};
        break;
    case UM_EV_SYNC:
        e.u.sync = (um_ev_sync_t){.sync = id, .kind = small, .exit = (uint32_t)(roll() % 2)};
        break;
    case UM_EV_HINT:
        e.u.hint = (um_ev_hint_t){.kind = small,
                                  .result = (uint32_t)(roll() % 14),
                                  .region = id,
                                  .device = device,
                                  .who = word,
                                  .why = word};
        break;
    case UM_EV_MARK:
        e.tid = small;
        e.u.mark = (um_ev_mark_t){.kind = small, .id = id, .domain = "", .name = word};
        break;
    case UM_EV_RESIDENCY:
        e.u.residency =
            (um_ev_residency_t){.addr = address(), .bytes = length(), .present_bytes = length()};
        break;
    default:
        break;
    }
    return e;
}

static um_report_t *scramble(uint64_t seed, uint32_t events)
{
    um_report_t *r = stream_new("random.umt");
    uint64_t time_ns = 0;

    state = seed;
    for (uint32_t i = 0; i < events; i++) {
        um_event_t event;

        time_ns += roll() % 3 ? roll() % 100000 : 0;
        event = any(time_ns);
        cr_assert_eq(um_report_event(r, &event), UM_OK, "seed %llu, event %u",
                     (unsigned long long)seed, i);
        if (i == events / 2)
            cr_assert_eq(um_report_begin(r, "second.umt", NULL, 0), UM_OK);
    }
    return r;
}

Test(random_streams, give_valid_reports)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        um_report_t *r = scramble(seed, 3000);
        json_t *json = stream_json(r);
        char *text = stream_text(r, UM_REPORT_TEXT, 60 + (uint32_t)seed * 8);

        cr_assert_gt(strlen(text), 100u);
        cr_assert_str_eq(json_string_value(json_object_get(json, "schema")), "umrt.report/1");
        json_decref(json);
        free(text);
        um_report_free(r);
    }
}

Test(random_streams, give_the_same_report_twice)
{
    um_report_t *a = scramble(77, 20000), *b = scramble(77, 20000);
    char *x = stream_text(a, UM_REPORT_JSON, 100), *y = stream_text(b, UM_REPORT_JSON, 100);

    cr_assert_str_eq(x, y);
    free(x);
    free(y);
    um_report_free(a);
    um_report_free(b);
}

Test(random_streams, at_the_end_of_time_do_not_wrap)
{
    um_report_t *r = stream_new("late.umt");
    json_t *json;

    stream_alloc(r, 1, 1, BASE, MIB, "late");
    for (uint64_t i = 0; i < 100; i++) {
        um_event_t event = any(UINT64_MAX - 100 + i);

        cr_assert_eq(um_report_event(r, &event), UM_OK);
    }
    json = stream_json(r);
    json_decref(json);
    um_report_free(r);
}
