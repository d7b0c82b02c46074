#include "trace/export_shape.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ENUM_CUDA_MEM_KIND of um_memory_kind_t */
#define KIND(field) "CASE WHEN " field " BETWEEN 1 AND 5 THEN " field " - 1 ELSE 7 END"
/* umrtType */
#define ALLOC   "7"
#define MIGRATE "15"

typedef struct um_export_pair {
    const char *from, *to;
} um_export_pair_t;

#define PAIRS_MAX 9

typedef struct um_export_shape {
    const char *table; /* Nsight's; NULL = UMRT_<TYPE> */
    bool shared;
    um_export_pair_t renamed[PAIRS_MAX];  /* field, column; duration_ns to end: the time plus it */
    um_export_pair_t computed[PAIRS_MAX]; /* column, expression; of a shared table once */
} um_export_shape_t;

static const um_export_shape_t shapes[UM_EV_TYPE_COUNT] = {
    [UM_EV_FACT] = {"META_DATA_CAPTURE", false, {{"key", "name"}}, {{NULL, NULL}}},
    [UM_EV_DEVICE] = {"TARGET_INFO_GPU",
                      false,
                      {{"device", "cuDevice"},
                       {"cc_major", "computeMajor"},
                       {"cc_minor", "computeMinor"},
                       {"sm_count", "smCount"},
                       {"memory_bytes", "totalMemory"},
                       {"pci", "busLocation"}},
                      {{"id", "cuDevice"}}},
    [UM_EV_REGION_ALLOC] =
        {"CUDA_GPU_MEMORY_USAGE_EVENTS",
         true,
         {{"addr", "address"}, {"stream", "streamId"}},
         {/* ENUM_CUDA_MEM_KIND of um_family_t; um_region_flag_t 4 is a __managed__ variable */
          {"memKind",
           "CASE family WHEN 1 THEN 2 WHEN 2 THEN 1 WHEN 3 THEN 1 WHEN 4 THEN 1 WHEN 5 THEN "
           "CASE WHEN flags & 4 THEN 6 ELSE 4 END WHEN 6 THEN 2 WHEN 7 THEN 2 WHEN 8 THEN 0 "
           "ELSE 7 END"},
          {"memoryOperationType", "CASE umrtType WHEN " ALLOC " THEN 0 ELSE 1 END"},
          {"deviceId", "CASE WHEN device >= 0 THEN device ELSE 0 END"},
          {"contextId", "0"},
          {"pc", "0"}}},
    [UM_EV_REGION_FREE] = {"CUDA_GPU_MEMORY_USAGE_EVENTS",
                           true,
                           {{"addr", "address"}, {"stream", "streamId"}},
                           {{NULL, NULL}}},
    [UM_EV_KERNEL_EXEC] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                           false,
                           {{"correlation", "correlationId"},
                            {"duration_ns", "end"},
                            {"device", "deviceId"},
                            {"context", "contextId"},
                            {"stream_id", "streamId"}},
                           {/* StringIds that the KERNEL event makes */
                            {"mangledName", "kernel * 4 + 1"},
                            {"demangledName", "kernel * 4 + 2"},
                            {"shortName", "kernel * 4 + 3"}}},
    [UM_EV_GPU_FAULT] = {"CUDA_UM_GPU_PAGE_FAULT_EVENTS",
                         false,
                         {{"addr", "address"},
                          {"duration_ns", "end"},
                          {"groups", "numberOfPageFaults"},
                          {"access", "faultAccessType"},
                          {"device", "deviceId"}},
                         {{NULL, NULL}}},
    [UM_EV_CPU_FAULT] = {"CUDA_UM_CPU_PAGE_FAULT_EVENTS",
                         false,
                         {{"addr", "address"}, {"pc", "originalFaultPc"}},
                         {{"CpuInstruction", "-originalFaultPc"},
                          {"module", "0"},
                          {"unresolvedFaultPc", "1"}}},
    [UM_EV_MIGRATE] =
        {"CUPTI_ACTIVITY_KIND_MEMCPY",
         true,
         {{"addr", "virtualAddress"}, {"duration_ns", "end"}, {"cause", "migrationCause"}},
         {/* ENUM_CUDA_MEMCPY_OPER: 11 to 13 are migrations; copies are 1, 2, 8, 9 by their ends */
          {"copyKind",
           "CASE WHEN umrtType = " MIGRATE
           " THEN CASE WHEN dst < 0 THEN 12 WHEN src < 0 THEN 11 ELSE 13 END "
           "WHEN src_memory IN (1, 2) THEN CASE WHEN dst_memory IN (1, 2) THEN 9 ELSE 1 END "
           "WHEN dst_memory IN (1, 2) THEN 2 ELSE 8 END"},
          {"srcKind", "CASE WHEN umrtType = " MIGRATE " THEN 4 ELSE " KIND("src_memory") " END"},
          {"dstKind", "CASE WHEN umrtType = " MIGRATE " THEN 4 ELSE " KIND("dst_memory") " END"},
          {"deviceId",
           "CASE WHEN umrtType = " MIGRATE " THEN max(src, dst, 0) ELSE max(device, 0) END"},
          {"srcDeviceId", "CASE WHEN src >= 0 THEN src END"},
          {"dstDeviceId", "CASE WHEN dst >= 0 THEN dst END"},
          {"contextId", "0"}}},
    [UM_EV_COPY] = {"CUPTI_ACTIVITY_KIND_MEMCPY",
                    true,
                    {{"duration_ns", "end"},
                     {"correlation", "correlationId"},
                     {"stream", "streamId"}},
                    {{NULL, NULL}}},
    [UM_EV_SET] = {"CUPTI_ACTIVITY_KIND_MEMSET",
                   false,
                   {{"addr", "address"},
                    {"duration_ns", "end"},
                    {"correlation", "correlationId"},
                    {"device", "deviceId"},
                    {"stream", "streamId"}},
                   {{"memKind", KIND("memory")}, {"contextId", "0"}}},
};

void um_export_table(um_event_type_t type, char table[UM_EXPORT_NAME_BYTES], bool *shared)
{
    snprintf(table, UM_EXPORT_NAME_BYTES, "UMRT_%s", um_schema_table[type].name);
    for (char *c = table; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    if (shapes[type].table)
        snprintf(table, UM_EXPORT_NAME_BYTES, "%s", shapes[type].table);
    *shared = shapes[type].shared;
}

void um_export_column(um_event_type_t type, const um_field_t *field,
                      char column[UM_EXPORT_NAME_BYTES], bool *from_start)
{
    const char *name = field->name, *bracket = strchr(name, '[');

    for (size_t i = 0; i < PAIRS_MAX && shapes[type].renamed[i].from; i++) {
        if (!strcmp(shapes[type].renamed[i].from, name))
            name = shapes[type].renamed[i].to;
    }
    if (bracket) /* grid[0] */
        snprintf(column, UM_EXPORT_NAME_BYTES, "%.*s%c", (int)(bracket - name), name,
                 'X' + (bracket[1] - '0'));
    else
        snprintf(column, UM_EXPORT_NAME_BYTES, "%s", name);
    *from_start = !strcmp(name, "end");
}

void um_export_elements(um_event_type_t type, const um_field_t *array,
                        char table[UM_EXPORT_NAME_BYTES])
{
    snprintf(table, UM_EXPORT_NAME_BYTES, "UMRT_%s_%s", um_schema_table[type].name, array->name);
    for (char *c = table; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

const char *um_export_computed(um_event_type_t type, size_t i, const char **as)
{
    static const um_export_pair_t process[] = {{"globalPid", "PROCESS"},
                                               {"globalTid", "PROCESS + (tid & 16777215)"}};
    const um_export_shape_t *shape = &shapes[type];

    if (!shape->table)
        return NULL;
    for (uint32_t other = 1; !shape->computed[0].from && other < UM_EV_TYPE_COUNT; other++) {
        if (shapes[other].table && !strcmp(shapes[other].table, shapes[type].table) &&
            shapes[other].computed[0].from)
            shape = &shapes[other];
    }
    if (i < 2) {
        *as = process[i].to;
        return process[i].from;
    }
    *as = i - 2 < PAIRS_MAX ? shape->computed[i - 2].to : NULL;
    return *as ? shape->computed[i - 2].from : NULL;
}

int64_t um_export_load(const um_field_t *field, const void *base)
{
    const char *at = (const char *)base + field->offset;
    uint64_t wide;
    uint32_t narrow;

    if (field->bytes == 8) {
        memcpy(&wide, at, sizeof(wide));
        return (int64_t)wide;
    }
    memcpy(&narrow, at, sizeof(narrow));
    return field->kind == UM_FIELD_SINT ? (int32_t)narrow : (int64_t)narrow;
}

void um_export_store(const um_field_t *field, void *base, int64_t value)
{
    char *at = (char *)base + field->offset;
    uint32_t narrow = (uint32_t)value;

    if (field->bytes == 8)
        memcpy(at, &value, sizeof(value));
    else
        memcpy(at, &narrow, sizeof(narrow));
}
