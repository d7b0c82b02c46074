/* Names of the event vocabulary: one table an enumeration. */
#include "um_event.h"

/* The table's entry, "unknown" outside it. Enumerations may hold anything that a trace said. */
#define UM_NAME(table, n) um_name(table, sizeof(table) / sizeof *(table), (uint64_t)(int64_t)(n))

static const char *um_name(const char *const *table, size_t count, uint64_t n)
{
    return n < count && table[n] != NULL ? table[n] : "unknown";
}

const char *um_event_type_name(um_event_type_t type)
{
    static const char *const name[UM_EV_TYPE_COUNT] = {
        [UM_EV_NONE] = "none",
        [UM_EV_FACT] = "fact",
        [UM_EV_DEVICE] = "device",
        [UM_EV_OPTION] = "option",
        [UM_EV_LOSS] = "loss",
        [UM_EV_CONTEXT] = "context",
        [UM_EV_CALL_SITE] = "call_site",
        [UM_EV_REGION_ALLOC] = "region_alloc",
        [UM_EV_REGION_FREE] = "region_free",
        [UM_EV_REGION_LABEL] = "region_label",
        [UM_EV_KERNEL] = "kernel",
        [UM_EV_LAUNCH] = "launch",
        [UM_EV_KERNEL_EXEC] = "kernel_exec",
        [UM_EV_GPU_FAULT] = "gpu_fault",
        [UM_EV_CPU_FAULT] = "cpu_fault",
        [UM_EV_MIGRATE] = "migrate",
        [UM_EV_THRASH] = "thrash",
        [UM_EV_THROTTLE] = "throttle",
        [UM_EV_REMOTE_MAP] = "remote_map",
        [UM_EV_COPY] = "copy",
        [UM_EV_SET] = "set",
        [UM_EV_SYNC] = "sync",
        [UM_EV_HINT] = "hint",
        [UM_EV_MARK] = "mark",
        [UM_EV_RESIDENCY] = "residency",
        [UM_EV_ACCESS] = "access",
        [UM_EV_MODULE] = "module",
        [UM_EV_LEARNED] = "learned",
        [UM_EV_REGION_HINT] = "region_hint",
    };
    return UM_NAME(name, type);
}

const char *um_family_name(um_family_t family)
{
    static const char *const name[UM_FAMILY_COUNT] = {
        [UM_FAMILY_UNKNOWN] = "unknown",
        [UM_FAMILY_DEVICE] = "device",
        [UM_FAMILY_PINNED] = "pinned",
        [UM_FAMILY_MAPPED] = "mapped",
        [UM_FAMILY_REGISTERED] = "registered",
        [UM_FAMILY_MANAGED] = "managed",
        [UM_FAMILY_POOL] = "pool",
        [UM_FAMILY_VMM] = "vmm",
        [UM_FAMILY_SYSTEM] = "system",
    };
    return UM_NAME(name, family);
}

const char *um_migrate_cause_name(um_migrate_cause_t cause)
{
    static const char *const name[] = {
        [UM_CAUSE_UNKNOWN] = "unknown",   [UM_CAUSE_USER] = "user",
        [UM_CAUSE_COHERENCE] = "fault",   [UM_CAUSE_PREFETCH] = "driver prefetch",
        [UM_CAUSE_EVICTION] = "eviction", [UM_CAUSE_ACCESS_COUNTERS] = "access counters",
    };
    return UM_NAME(name, cause);
}

const char *um_hint_kind_name(um_hint_kind_t kind)
{
    static const char *const name[UM_HINT_KIND_COUNT] = {
        [UM_HINT_NONE] = "none",
        [UM_HINT_PREFETCH] = "prefetch",
        [UM_HINT_READ_MOSTLY] = "read mostly",
        [UM_HINT_UNSET_READ_MOSTLY] = "unset read mostly",
        [UM_HINT_PREFERRED_LOCATION] = "preferred location",
        [UM_HINT_UNSET_PREFERRED_LOCATION] = "unset preferred location",
        [UM_HINT_ACCESSED_BY] = "accessed by",
        [UM_HINT_UNSET_ACCESSED_BY] = "unset accessed by",
        [UM_HINT_DISCARD] = "discard",
    };
    return UM_NAME(name, kind);
}

const char *um_hint_result_name(um_hint_result_t result)
{
    static const char *const name[UM_HINT_RESULT_COUNT] = {
        [UM_HINT_PROPOSED] = "proposed",
        [UM_HINT_APPLIED] = "applied",
        [UM_HINT_FAILED] = "failed",
        [UM_HINT_REFUSED_RANGE] = "refused: range",
        [UM_HINT_REFUSED_CAPTURE] = "refused: capture",
        [UM_HINT_REFUSED_CAPABILITY] = "refused: capability",
        [UM_HINT_REFUSED_CAPACITY] = "refused: capacity",
        [UM_HINT_REFUSED_QUOTA] = "refused: quota",
        [UM_HINT_REFUSED_DUPLICATE] = "refused: duplicate",
        [UM_HINT_REFUSED_COOLDOWN] = "refused: cooldown",
        [UM_HINT_REFUSED_DISABLED] = "refused: disabled",
        [UM_HINT_REFUSED_BUSY] = "refused: busy",
        [UM_HINT_CANCELLED] = "cancelled",
    };
    return UM_NAME(name, result);
}
