/* Records of each version, built byte by byte: no GPU and no CUPTI is needed. */
#include <criterion/criterion.h>
#include <string.h>

#include "cupti/decode.h"

#define KIND_COUNTER 25 /* CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER */
#define KIND_KERNEL  10 /* CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL */

typedef struct bytes {
    unsigned char at[256];
    size_t n;
} bytes_t;

static void u32(bytes_t *b, uint32_t value)
{
    memcpy(b->at + b->n, &value, 4);
    b->n += 4;
}

static void u64(bytes_t *b, uint64_t value)
{
    memcpy(b->at + b->n, &value, 8);
    b->n += 8;
}

/* A Counter2; Counter3 adds five words. */
static bytes_t counter(um_counter_layout_t layout, uint32_t kind, uint64_t value, uint32_t src,
                       uint32_t dst, uint32_t flags)
{
    bytes_t b = {0};

    u32(&b, KIND_COUNTER);
    u32(&b, kind);
    u64(&b, value);
    u64(&b, 1000);           /* start */
    u64(&b, 1250);           /* end */
    u64(&b, 0x7f0000200000); /* address */
    u32(&b, src);
    u32(&b, dst);
    u32(&b, 99); /* stream: never valid */
    u32(&b, 4711);
    u32(&b, flags);
    u32(&b, 0);
    for (int i = 0; layout == UM_COUNTER_3 && i < 5; i++)
        u64(&b, i == 0 ? 0x5 : 0);
    return b;
}

static um_event_t decoded(um_counter_layout_t layout, const bytes_t *b)
{
    um_event_t event;

    cr_assert_eq(um_decode_counter(layout, b->at, b->n, &event), UM_DECODE_EVENT);
    cr_assert_eq(event.time_ns, 1000);
    return event;
}

Test(decode, layout_follows_the_version_of_cupti)
{
    cr_assert_eq(um_counter_layout(18), UM_COUNTER_2);     /* 11.8, 12.0 */
    cr_assert_eq(um_counter_layout(22), UM_COUNTER_2);     /* 12.4 */
    cr_assert_eq(um_counter_layout(24), UM_COUNTER_2);     /* 12.6 */
    cr_assert_eq(um_counter_layout(26), UM_COUNTER_3);     /* 12.8 */
    cr_assert_eq(um_counter_layout(130000), UM_COUNTER_3); /* 13.0 */
    cr_assert_eq(um_counter_layout(5), UM_COUNTER_1);
    cr_assert_eq(um_counter_bytes(UM_COUNTER_1), 40);
    cr_assert_eq(um_counter_bytes(UM_COUNTER_2), 64);
    cr_assert_eq(um_counter_bytes(UM_COUNTER_3), 104);
    cr_assert_eq(um_counter_bytes((um_counter_layout_t)7), 0);
}

Test(decode, migrations_in_all_directions_with_their_cause)
{
    for (int l = UM_COUNTER_2; l <= UM_COUNTER_3; l++) {
        um_counter_layout_t layout = (um_counter_layout_t)l;
        bytes_t up = counter(layout, 1, 65536, UINT32_MAX, 0, 2);
        bytes_t down = counter(layout, 2, 4096, 1, UINT32_MAX, 4);
        bytes_t across = counter(layout, 8, 8192, 0, 1, 1);
        um_event_t event = decoded(layout, &up);

        cr_assert_eq(event.type, UM_EV_MIGRATE);
        cr_assert_eq(event.u.migrate.addr, 0x7f0000200000);
        cr_assert_eq(event.u.migrate.bytes, 65536);
        cr_assert_eq(event.u.migrate.duration_ns, 250);
        cr_assert_eq(event.u.migrate.src, UM_DEVICE_HOST);
        cr_assert_eq(event.u.migrate.dst, 0);
        cr_assert_eq(event.u.migrate.cause, UM_CAUSE_COHERENCE);
        event = decoded(layout, &down);
        cr_assert_eq(event.u.migrate.src, 1);
        cr_assert_eq(event.u.migrate.dst, UM_DEVICE_HOST);
        cr_assert_eq(event.u.migrate.cause, UM_CAUSE_EVICTION);
        event = decoded(layout, &across);
        cr_assert_eq(event.u.migrate.src, 0);
        cr_assert_eq(event.u.migrate.dst, 1);
        cr_assert_eq(event.u.migrate.cause, UM_CAUSE_USER);
    }
}

Test(decode, a_cause_from_the_future_is_unknown)
{
    bytes_t b = counter(UM_COUNTER_3, 1, 65536, UINT32_MAX, 0, 17);

    cr_assert_eq(decoded(UM_COUNTER_3, &b).u.migrate.cause, UM_CAUSE_UNKNOWN);
}

Test(decode, a_cpu_fault_carries_the_pc_and_ignores_its_end)
{
    bytes_t b = counter(UM_COUNTER_3, 3, 0x400abc, UINT32_MAX, 0, 2);

    memset(b.at + 24, 0, 8); /* end = 0: before the start */
    um_event_t event = decoded(UM_COUNTER_3, &b);
    cr_assert_eq(event.type, UM_EV_CPU_FAULT);
    cr_assert_eq(event.u.cpu_fault.pc, 0x400abc);
    cr_assert_eq(event.u.cpu_fault.access, UM_ACCESS_WRITE);
    cr_assert_eq(event.u.cpu_fault.addr, 0x7f0000200000);
}

Test(decode, a_gpu_fault_counts_groups)
{
    bytes_t b = counter(UM_COUNTER_2, 4, 12, 0, 0, 1);
    um_event_t event = decoded(UM_COUNTER_2, &b);

    cr_assert_eq(event.type, UM_EV_GPU_FAULT);
    cr_assert_eq(event.u.gpu_fault.groups, 12);
    cr_assert_eq(event.u.gpu_fault.access, UM_ACCESS_READ);
    cr_assert_eq(event.u.gpu_fault.duration_ns, 250);
    cr_assert_eq(event.u.gpu_fault.device, 0);
}

Test(decode, thrashing_takes_processors_from_where_the_version_has_them)
{
    bytes_t two = counter(UM_COUNTER_2, 5, 65536, 0x3, 0, 0);
    bytes_t three = counter(UM_COUNTER_3, 5, 65536, 0x3, 0, 0);

    cr_assert_eq(decoded(UM_COUNTER_2, &two).u.thrash.processors, 0x3);
    cr_assert_eq(decoded(UM_COUNTER_3, &three).u.thrash.processors, 0x5);
    cr_assert_eq(decoded(UM_COUNTER_3, &three).u.thrash.bytes, 65536);
}

Test(decode, throttles_and_remote_maps)
{
    bytes_t throttle = counter(UM_COUNTER_3, 6, 0, UINT32_MAX, 0, 0);
    bytes_t map = counter(UM_COUNTER_3, 7, 2097152, UINT32_MAX, 0, 3);
    um_event_t event = decoded(UM_COUNTER_3, &throttle);

    cr_assert_eq(event.type, UM_EV_THROTTLE);
    cr_assert_eq(event.u.throttle.device, UM_DEVICE_HOST);
    cr_assert_eq(event.u.throttle.duration_ns, 250);
    event = decoded(UM_COUNTER_3, &map);
    cr_assert_eq(event.type, UM_EV_REMOTE_MAP);
    cr_assert_eq(event.u.remote_map.cause, UM_REMOTE_POLICY);
    cr_assert_eq(event.u.remote_map.bytes, 2097152);
    cr_assert_eq(event.u.remote_map.dst, 0);
}

Test(decode, zero_and_backward_times_are_refused)
{
    um_event_t event;
    const char *name = NULL;
    bytes_t zero = counter(UM_COUNTER_3, 1, 4096, UINT32_MAX, 0, 2);
    bytes_t backward = counter(UM_COUNTER_3, 4, 1, 0, 0, 1);
    uint64_t before = 999;

    memset(zero.at + 16, 0, 8);
    cr_assert_eq(um_decode_counter(UM_COUNTER_3, zero.at, zero.n, &event), UM_DECODE_BAD_TIME);
    memcpy(backward.at + 24, &before, 8);
    cr_assert_eq(um_decode_counter(UM_COUNTER_3, backward.at, backward.n, &event),
                 UM_DECODE_BAD_TIME);
    bytes_t kernel = {.n = 144};
    kernel.at[0] = KIND_KERNEL;
    cr_assert_eq(um_decode_kernel(kernel.at, kernel.n, &event, &name), UM_DECODE_BAD_TIME);
}

Test(decode, short_and_foreign_records_are_left_alone)
{
    um_event_t event;
    const char *name = NULL;
    bytes_t b = counter(UM_COUNTER_3, 1, 4096, UINT32_MAX, 0, 2);

    for (size_t n = 0; n < 104; n++)
        cr_assert_eq(um_decode_counter(UM_COUNTER_3, b.at, n, &event), UM_DECODE_SHORT);
    b.at[0] = KIND_KERNEL;
    cr_assert_eq(um_decode_counter(UM_COUNTER_3, b.at, b.n, &event), UM_DECODE_IGNORED);
    b.at[0] = KIND_COUNTER;
    b.at[4] = 99; /* a counter kind of a later CUPTI */
    cr_assert_eq(um_decode_counter(UM_COUNTER_3, b.at, b.n, &event), UM_DECODE_IGNORED);
    cr_assert_eq(um_decode_kernel(b.at, 100, &event, &name), UM_DECODE_SHORT);
    cr_assert_eq(um_decode_kernel(b.at, 144, &event, &name), UM_DECODE_IGNORED);
}

Test(decode, the_first_layout_has_totals_without_addresses)
{
    bytes_t b = {0};
    um_event_t event;

    u32(&b, KIND_COUNTER);
    u32(&b, 2); /* DtoH */
    u32(&b, 1);
    u32(&b, 3); /* device */
    u64(&b, 123456);
    u64(&b, 1000);
    u32(&b, 4711);
    u32(&b, 0);
    cr_assert_eq(um_decode_counter(UM_COUNTER_1, b.at, b.n, &event), UM_DECODE_EVENT);
    cr_assert_eq(event.u.migrate.bytes, 123456);
    cr_assert_eq(event.u.migrate.src, 3);
    cr_assert_eq(event.u.migrate.dst, UM_DEVICE_HOST);
    cr_assert_eq(event.u.migrate.addr, 0);
}

/* Kernel records grew from 144 to 216 bytes and more; what is read stayed in place. */
Test(decode, kernel_records_of_every_version_begin_alike)
{
    static const size_t size[] = {144, 160, 168, 176, 200, 208, 216, 248};
    static const char mangled[] = "_Z5touchPfm";

    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
        bytes_t b = {0};
        um_event_t event;
        const char *name = NULL;

        memset(b.at, 0xee, sizeof(b.at));
        u32(&b, KIND_KERNEL);
        b.n = 16;
        u64(&b, 5000);
        u64(&b, 5700);
        u64(&b, 0); /* completed */
        u32(&b, 0); /* device */
        u32(&b, 1); /* context */
        u32(&b, 7); /* stream */
        for (uint32_t k = 1; k <= 6; k++)
            u32(&b, k * 10);
        b.n = 92;
        u32(&b, 321); /* correlation */
        b.n = 104;
        u64(&b, (uint64_t)(uintptr_t)mangled);
        cr_assert_eq(um_decode_kernel(b.at, size[i], &event, &name), UM_DECODE_EVENT);
        cr_assert_eq(event.time_ns, 5000);
        cr_assert_eq(event.u.kernel_exec.duration_ns, 700);
        cr_assert_eq(event.u.kernel_exec.correlation, 321);
        cr_assert_eq(event.u.kernel_exec.stream_id, 7);
        cr_assert_eq(event.u.kernel_exec.grid[2], 30);
        cr_assert_eq(event.u.kernel_exec.block[0], 40);
        cr_assert_str_eq(name, "_Z5touchPfm");
    }
}
