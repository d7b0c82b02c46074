#include "schema.h"

/* One line a field, in column order: sizes come before the addresses that chain on them. */
#define FIELD(t, field, coding)                                                                    \
    {                                                                                              \
        .name = #field, .kind = coding, .bytes = sizeof(((um_ev_##t##_t *)0)->field),              \
        .offset = offsetof(um_ev_##t##_t, field)                                                   \
    }
#define U(t, field) FIELD(t, field, UM_FIELD_UINT)
#define I(t, field) FIELD(t, field, UM_FIELD_SINT)
#define D(t, field) FIELD(t, field, UM_FIELD_DELTA)
#define S(t, field) FIELD(t, field, UM_FIELD_STRING)
/* Address of a range whose size is field 0. */
#define C(t, field)  FIELD(t, field, UM_FIELD_CHAIN)
#define U3(t, field) U(t, field[0]), U(t, field[1]), U(t, field[2])
#define ARRAY(t, count, field, n)                                                                  \
    {                                                                                              \
        .name = #field, .kind = UM_FIELD_ARRAY, .bytes = sizeof(((um_ev_##t##_t *)0)->count),      \
        .elements = n, .offset = offsetof(um_ev_##t##_t, count),                                   \
        .array_offset = offsetof(um_ev_##t##_t, field),                                            \
        .element_bytes = sizeof(*((um_ev_##t##_t *)0)->field)                                      \
    }
#define ELEMENT(type, field, coding)                                                               \
    {                                                                                              \
        .name = #field, .kind = coding, .bytes = sizeof(((type *)0)->field),                       \
        .offset = offsetof(type, field)                                                            \
    }

static const um_field_t fact[] = {S(fact, key), S(fact, value)};

static const um_field_t device[] = {I(device, device),       U(device, cc_major),
                                    U(device, cc_minor),     U(device, sm_count),
                                    U(device, memory_bytes), U(device, attributes),
                                    S(device, name),         S(device, uuid),
                                    S(device, pci)};

static const um_field_t option[] = {S(option, name), S(option, value), S(option, source)};

static const um_field_t loss[] = {U(loss, what), U(loss, count), U(loss, bytes), S(loss, reason)};

static const um_field_t context[] = {U(context, context), I(context, device), U(context, change)};

static const um_field_t call_site[] = {U(call_site, call_site), S(call_site, frames)};

static const um_field_t region_alloc[] = {U(region_alloc, bytes),     C(region_alloc, addr),
                                          D(region_alloc, region),    U(region_alloc, family),
                                          C(region_alloc, host_addr), I(region_alloc, device),
                                          U(region_alloc, flags),     U(region_alloc, call_site),
                                          U(region_alloc, stream)};

static const um_field_t region_free[] = {D(region_free, region), D(region_free, addr),
                                         U(region_free, call_site), U(region_free, stream)};

static const um_field_t region_label[] = {D(region_label, region), S(region_label, label)};

static const um_field_t kernel[] = {D(kernel, kernel),
                                    U(kernel, module_hash),
                                    S(kernel, name),
                                    U(kernel, layout_known),
                                    ARRAY(kernel, n_params, params, 3),
                                    ELEMENT(um_param_t, offset_bytes, UM_FIELD_DELTA),
                                    ELEMENT(um_param_t, size_bytes, UM_FIELD_UINT),
                                    ELEMENT(um_param_t, flags, UM_FIELD_UINT)};

static const um_field_t launch[] = {D(launch, correlation),
                                    U(launch, kernel),
                                    U(launch, stream),
                                    U(launch, context),
                                    I(launch, device),
                                    U3(launch, grid),
                                    U3(launch, block),
                                    U(launch, shared_bytes),
                                    U(launch, flags),
                                    U(launch, graph),
                                    U(launch, call_site),
                                    ARRAY(launch, n_args, args, 4),
                                    ELEMENT(um_arg_t, slot, UM_FIELD_UINT),
                                    ELEMENT(um_arg_t, offset_bytes, UM_FIELD_UINT),
                                    ELEMENT(um_arg_t, region, UM_FIELD_UINT),
                                    ELEMENT(um_arg_t, region_offset_bytes, UM_FIELD_UINT),
                                    ARRAY(launch, n_scalars, scalars, 3),
                                    ELEMENT(um_scalar_t, slot, UM_FIELD_UINT),
                                    ELEMENT(um_scalar_t, size_bytes, UM_FIELD_UINT),
                                    ELEMENT(um_scalar_t, value, UM_FIELD_UINT)};

static const um_field_t kernel_exec[] = {D(kernel_exec, correlation), U(kernel_exec, kernel),
                                         U(kernel_exec, duration_ns), I(kernel_exec, device),
                                         U(kernel_exec, context),     U(kernel_exec, stream_id),
                                         U3(kernel_exec, grid),       U3(kernel_exec, block)};

static const um_field_t gpu_fault[] = {D(gpu_fault, addr),   U(gpu_fault, duration_ns),
                                       U(gpu_fault, groups), U(gpu_fault, access),
                                       I(gpu_fault, device), U(gpu_fault, region)};

static const um_field_t cpu_fault[] = {D(cpu_fault, addr), U(cpu_fault, pc), U(cpu_fault, access),
                                       U(cpu_fault, region)};

static const um_field_t migrate[] = {U(migrate, bytes), C(migrate, addr), U(migrate, duration_ns),
                                     I(migrate, src),   I(migrate, dst),  U(migrate, cause),
                                     U(migrate, region)};

static const um_field_t thrash[] = {U(thrash, bytes), C(thrash, addr), U(thrash, processors),
                                    U(thrash, region)};

static const um_field_t throttle[] = {D(throttle, addr), U(throttle, duration_ns),
                                      I(throttle, device), U(throttle, region)};

static const um_field_t remote_map[] = {U(remote_map, bytes), C(remote_map, addr),
                                        I(remote_map, src),   I(remote_map, dst),
                                        U(remote_map, cause), U(remote_map, region)};

static const um_field_t copy[] = {U(copy, bytes),       C(copy, dst_addr),   C(copy, src_addr),
                                  U(copy, duration_ns), U(copy, dst_memory), U(copy, src_memory),
                                  U(copy, dst_region),  U(copy, src_region), I(copy, device),
                                  D(copy, correlation), U(copy, stream),     U(copy, flags)};

static const um_field_t set[] = {U(set, bytes),       C(set, addr),   U(set, duration_ns),
                                 U(set, value),       U(set, memory), U(set, region),
                                 D(set, correlation), I(set, device), U(set, stream),
                                 U(set, flags)};

static const um_field_t sync[] = {D(sync, sync), U(sync, kind), U(sync, exit), U(sync, context),
                                  U(sync, stream)};

static const um_field_t hint[] = {U(hint, bytes),       C(hint, addr),      U(hint, kind),
                                  U(hint, result),      I(hint, device),    U(hint, region),
                                  D(hint, correlation), I(hint, error),     U(hint, duration_ns),
                                  U(hint, stream),      U(hint, call_site), S(hint, who),
                                  S(hint, why)};

static const um_field_t mark[] = {U(mark, kind), U(mark, id), S(mark, domain), S(mark, name)};

static const um_field_t residency[] = {U(residency, bytes), C(residency, addr),
                                       U(residency, present_bytes), U(residency, region),
                                       D(residency, sync)};

static const um_field_t access_[] = {U(access, bytes), C(access, addr),        I(access, device),
                                     U(access, kind),  D(access, correlation), U(access, region)};

static const um_field_t module[] = {U(module, bytes),       D(module, addr),
                                    D(module, load_bias),   U(module, file_bytes),
                                    U(module, modified_ns), S(module, name),
                                    S(module, path),        S(module, build_id)};
static const um_field_t learned[] = {
    S(learned, who),      S(learned, what),     S(learned, kernel),   U(learned, module_hash),
    U(learned, shape),    U(learned, role),     U(learned, slot),     U(learned, age),
    U(learned, count),    U(learned, value[0]), U(learned, value[1]), U(learned, value[2]),
    U(learned, value[3]), U(learned, value[4]), U(learned, value[5])};

static const um_field_t region_hint[] = {D(region_hint, region), U(region_hint, flags)};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TYPE(id, t, list, has_pointers)                                                            \
    [id] = {#t, list, COUNT(list), has_pointers, sizeof(um_ev_##t##_t)}

const um_schema_t um_schema_table[UM_EV_TYPE_COUNT] = {
    TYPE(UM_EV_FACT, fact, fact, true),
    TYPE(UM_EV_DEVICE, device, device, true),
    TYPE(UM_EV_OPTION, option, option, true),
    TYPE(UM_EV_LOSS, loss, loss, true),
    TYPE(UM_EV_CONTEXT, context, context, false),
    TYPE(UM_EV_CALL_SITE, call_site, call_site, true),
    TYPE(UM_EV_REGION_ALLOC, region_alloc, region_alloc, false),
    TYPE(UM_EV_REGION_FREE, region_free, region_free, false),
    TYPE(UM_EV_REGION_LABEL, region_label, region_label, true),
    TYPE(UM_EV_KERNEL, kernel, kernel, true),
    TYPE(UM_EV_LAUNCH, launch, launch, true),
    TYPE(UM_EV_KERNEL_EXEC, kernel_exec, kernel_exec, false),
    TYPE(UM_EV_GPU_FAULT, gpu_fault, gpu_fault, false),
    TYPE(UM_EV_CPU_FAULT, cpu_fault, cpu_fault, false),
    TYPE(UM_EV_MIGRATE, migrate, migrate, false),
    TYPE(UM_EV_THRASH, thrash, thrash, false),
    TYPE(UM_EV_THROTTLE, throttle, throttle, false),
    TYPE(UM_EV_REMOTE_MAP, remote_map, remote_map, false),
    TYPE(UM_EV_COPY, copy, copy, false),
    TYPE(UM_EV_SET, set, set, false),
    TYPE(UM_EV_SYNC, sync, sync, false),
    TYPE(UM_EV_HINT, hint, hint, true),
    TYPE(UM_EV_MARK, mark, mark, true),
    TYPE(UM_EV_RESIDENCY, residency, residency, false),
    TYPE(UM_EV_ACCESS, access, access_, false),
    TYPE(UM_EV_MODULE, module, module, true),
    TYPE(UM_EV_LEARNED, learned, learned, true),
    TYPE(UM_EV_REGION_HINT, region_hint, region_hint, false),
};
