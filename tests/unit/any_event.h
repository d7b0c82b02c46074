/*
 * any_event.h - events that no driver would write: any type, any field, and the texts of a stranger who
 * means harm. Drawn by lot from a seed; used by tests that a report, or the whole command, stands that.
 */
#ifndef ANY_EVENT_H
#define ANY_EVENT_H

#include "um_event.h"

#define ANY_MIB  (UINT64_C(1) << 20)
#define ANY_BASE UINT64_C(0x7f0000000000)

static uint64_t any_state;

static inline uint64_t any_roll(void)
{
    any_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = any_state;

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Mostly near the others, sometimes at the edges of what fits. */
static inline uint64_t any_address(void)
{
    switch (any_roll() % 16) {
    case 0:
        return any_roll();
    case 1:
        return UINT64_MAX - any_roll() % (4 * ANY_MIB);
    case 2:
        return any_roll() % ANY_MIB;
    default:
        return ANY_BASE + any_roll() % (64 * ANY_MIB);
    }
}

static inline uint64_t any_length(void)
{
    switch (any_roll() % 16) {
    case 0:
        return any_roll();
    case 1:
        return 0;
    case 2:
        return UINT64_MAX;
    default:
        return 1 + any_roll() % (4 * ANY_MIB);
    }
}

/* Ends a script, escapes a terminal, begins a formula, is no UTF-8, turns the line round, is a format. */
static inline const char *any_text(void)
{
    static const char *const text[] = {
        "",
        "a",
        "halo",
        "\xff\xfe",
        "_Z4stepPf",
        "x\ny",
        "off",
        "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
        "\x1b[31mred\x1b]0;title\x07",
        "\r\x9b\x9d\x7f\x01",
        "\"quote' \\ `tick` $(id) ${x}",
        "=cmd|' /C calc'!A0",
        "+1,2;3\t4",
        "%s%n%n%99999d",
        "\xe2\x80\xae"
        "right to left",
        "\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf",
        "<!--]]>&amp;\xe2\x80\xa8",
        "a very long name, of which there is no end in sight, a very long name, of which there is "
        "no end "
        "in sight, a very long name, of which there is no end in sight, a very long name, of which "
        "there "
        "is no end in sight, a very long name, of which there is no end in sight, a very long "
        "name, of "
        "which there is no end in sight, a very long name, of which there is no end in sight",
        "_ZN1aIXadL_Z1bEEE1cEv",
        "/etc/passwd:1",
        "umrt",
        "app",
    };

    return text[any_roll() % (sizeof(text) / sizeof(text[0]))];
}

static inline um_event_t any_event(uint64_t time_ns)
{
    static um_arg_t args[4];
    static um_scalar_t scalars[4];
    static um_param_t params[4];
    const char *word = any_text(), *other = any_text();
    uint32_t small = (uint32_t)(any_roll() % 8), id = (uint32_t)(any_roll() % 32);
    int32_t device = (int32_t)(any_roll() % 5) - 2;
    um_event_t e = {.time_ns = time_ns, .type = 1 + any_roll() % (UM_EV_TYPE_COUNT - 1)};

    static const char *const keys[] = {"um.tracing",          "process.command", "host.name",
                                       "host.memory_bytes",   "rank.id",         "import.kind",
                                       "cuda.driver_version", "process.exe"};

    switch (e.type) {
    case UM_EV_FACT:
        e.u.fact = (um_ev_fact_t){keys[any_roll() % (sizeof(keys) / sizeof(keys[0]))], word};
        break;
    case UM_EV_DEVICE:
        e.u.device = (um_ev_device_t){.device = device,
                                      .memory_bytes = any_length(),
                                      .name = word,
                                      .uuid = other,
                                      .pci = word};
        break;
    case UM_EV_OPTION:
        e.u.option = (um_ev_option_t){"unified-memory", word, other};
        break;
    case UM_EV_LOSS:
        e.u.loss = (um_ev_loss_t){.what = id,
                                  .count = any_length(),
                                  .bytes = any_length(),
                                  .reason = word};
        break;
    case UM_EV_CALL_SITE:
        e.u.call_site = (um_ev_call_site_t){small, word};
        break;
    case UM_EV_MODULE:
        e.u.module = (um_ev_module_t){.addr = any_roll() % 2 ? 0 : any_address(),
                                      .bytes = any_length(),
                                      .load_bias = any_address(),
                                      .name = word,
                                      .path = other,
                                      .build_id = word};
        break;
    case UM_EV_REGION_ALLOC:
        e.u.region_alloc = (um_ev_region_alloc_t){.region = id,
                                                  .family = (uint32_t)(any_roll() % 12),
                                                  .addr = any_address(),
                                                  .bytes = any_length(),
                                                  .call_site = small};
        break;
    case UM_EV_REGION_FREE:
        e.u.region_free = (um_ev_region_free_t){.region = id, .addr = any_address()};
        break;
    case UM_EV_REGION_LABEL:
        e.u.region_label = (um_ev_region_label_t){id, word};
        break;
    case UM_EV_KERNEL:
        for (uint32_t i = 0; i < 4; i++)
            params[i] = (um_param_t){8 * i, 8, small};
        e.u.kernel = (um_ev_kernel_t){.kernel = small,
                                      .name = word,
                                      .n_params = (uint32_t)(any_roll() % 5),
                                      .layout_known = 1,
                                      .params = params};
        break;
    case UM_EV_LAUNCH:
        for (int i = 0; i < 4; i++) {
            args[i].region = (uint32_t)(any_roll() % 32);
            scalars[i] = (um_scalar_t){(uint32_t)(any_roll() % 6), small, any_length()};
        }
        e.u.launch = (um_ev_launch_t){.correlation = id,
                                      .kernel = small,
                                      .device = device,
                                      .flags = small,
                                      .n_args = (uint32_t)(any_roll() % 5),
                                      .n_scalars = (uint32_t)(any_roll() % 5),
                                      .args = args,
                                      .scalars = scalars};
        break;
    case UM_EV_KERNEL_EXEC:
        e.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = id,
                                                .kernel = small,
                                                .duration_ns = any_length(),
                                                .device = device,
                                                .stream_id = (uint32_t)any_roll()};
        break;
    case UM_EV_GPU_FAULT:
        e.u.gpu_fault = (um_ev_gpu_fault_t){.addr = any_address(),
                                            .duration_ns = any_length(),
                                            .groups = any_roll() % 8 ? id : UINT32_MAX,
                                            .access = small,
                                            .device = device,
                                            .region = small};
        break;
    case UM_EV_CPU_FAULT:
        e.u.cpu_fault =
            (um_ev_cpu_fault_t){.addr = any_address(), .pc = any_roll(), .region = small};
        break;
    case UM_EV_MIGRATE:
        e.u.migrate = (um_ev_migrate_t){.addr = any_address(),
                                        .bytes = any_length(),
                                        .duration_ns = any_length(),
                                        .src = (int32_t)(any_roll() % 4) - 2,
                                        .dst = (int32_t)(any_roll() % 4) - 2,
                                        .cause = (uint32_t)(any_roll() % 9)};
        break;
    case UM_EV_THRASH:
        e.u.thrash = (um_ev_thrash_t){.addr = any_address(), .bytes = any_length()};
        break;
    case UM_EV_THROTTLE:
        e.u.throttle = (um_ev_throttle_t){.addr = any_address(),
                                          .duration_ns = any_length(),
                                          .device = device};
        break;
    case UM_EV_REMOTE_MAP:
        e.u.remote_map =
            (um_ev_remote_map_t){.addr = any_address(), .bytes = any_length(), .dst = device};
        break;
    case UM_EV_COPY:
        e.u.copy = (um_ev_copy_t){.bytes = any_roll() % 4 ? 1 : any_length(),
                                  .duration_ns = any_length(),
                                  .src_memory = small,
                                  .dst_memory = (uint32_t)(any_roll() % 8),
                                  .flags = (uint32_t)(any_roll() % 8)};
        break;
    case UM_EV_SET:
        e.u.set =
            (um_ev_set_t){.bytes = any_length(), .duration_ns = any_length(), .memory = small};
        break;
    case UM_EV_SYNC:
        e.u.sync = (um_ev_sync_t){.sync = id, .kind = small, .exit = (uint32_t)(any_roll() % 2)};
        break;
    case UM_EV_HINT:
        e.u.hint = (um_ev_hint_t){.kind = small,
                                  .result = (uint32_t)(any_roll() % 14),
                                  .addr = any_address(),
                                  .bytes = any_length(),
                                  .duration_ns = any_length(),
                                  .region = id,
                                  .device = device,
                                  .call_site = small,
                                  .who = word,
                                  .why = other};
        break;
    case UM_EV_MARK:
        e.tid = small;
        e.u.mark = (um_ev_mark_t){.kind = small, .id = id, .domain = other, .name = word};
        break;
    case UM_EV_RESIDENCY:
        e.u.residency = (um_ev_residency_t){.addr = any_address(),
                                            .bytes = any_length(),
                                            .present_bytes = any_length()};
        break;
    case UM_EV_ACCESS:
        e.u.access = (um_ev_access_t){.addr = any_address(),
                                      .bytes = any_length(),
                                      .device = device,
                                      .kind = small,
                                      .correlation = id,
                                      .region = id};
        break;
    case UM_EV_LEARNED:
        e.u.learned = (um_ev_learned_t){.who = word, .what = other, .kernel = word, .slot = small};
        break;
    default:
        break;
    }
    return e;
}

#endif
