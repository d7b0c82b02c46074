/*
 * NVTX's side is its C interface of version 3 (and 2): a table of functions that the listener fills in,
 * and structs that only ever grow at their end. They are declared here as far as they are used, so
 * that no NVTX header is needed to build.
 */
#include "marks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define UM_NVTX_NAME 256 /* bytes of a name that are kept */

typedef void (*um_nvtx_fn)(void);

typedef struct um_nvtx_callbacks { /* export table 1 */
    size_t struct_bytes;
    int (*functions)(int module, um_nvtx_fn ***table, unsigned *count);
} um_nvtx_callbacks_t;

typedef struct um_nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type; /* 1 char, 2 wchar_t, 3 registered string */
    const void *message;
} um_nvtx_attributes_t;
_Static_assert(offsetof(um_nvtx_attributes_t, message) == 40, "nvtxEventAttributes_t");

/* What a domain or a registered string is to NVTX: a pointer that it hands back. Never freed: a handle
 * may still be in use on another thread when it is destroyed. */
typedef struct um_nvtx_string {
    char text[UM_NVTX_NAME];
    struct um_nvtx_string *next; /* of all, so that they count as in use */
} um_nvtx_string_t;

static um_runtime_t *_Atomic listener;
static um_nvtx_string_t *_Atomic kept_strings;
static _Atomic uint64_t last_range; /* ids of START/END pairs */
static _Thread_local int depth;

void um_marks_attach(um_runtime_t *runtime)
{
    atomic_store(&listener, runtime);
}

static void mark(um_mark_kind_t kind, uint64_t id, const void *domain, const char *name)
{
    um_runtime_t *runtime = atomic_load(&listener);
    struct timespec t;

    if (!runtime)
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    um_event_t event = {
        .time_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec,
        .type = UM_EV_MARK,
        .tid = (uint32_t)syscall(SYS_gettid),
        .u.mark = {.kind = kind,
                   .id = id,
                   .domain = domain ? ((const um_nvtx_string_t *)domain)->text : "",
                   .name = name ? name : ""},
    };
    um_bus_post(runtime->bus, &event, false);
}

/* wchar_t is UTF-32 on Linux. */
static const char *narrow(const wchar_t *wide, char *out)
{
    size_t n = 0;

    for (; wide && *wide && n + 4 < UM_NVTX_NAME; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c < 0x80) {
            out[n++] = (char)c;
            continue;
        }
        if (c >= 0x10000)
            out[n++] = (char)(0xf0 | (c >> 18 & 0x07));
        if (c >= 0x800)
            out[n++] =
                (char)((c >= 0x10000 ? 0x80 : 0xe0) | (c >> 12 & (c >= 0x10000 ? 0x3f : 0x0f)));
        out[n++] = (char)((c >= 0x800 ? 0x80 : 0xc0) | (c >> 6 & (c >= 0x800 ? 0x3f : 0x1f)));
        out[n++] = (char)(0x80 | (c & 0x3f));
    }
    out[n] = '\0';
    return out;
}

static const char *message(const um_nvtx_attributes_t *a, char *out)
{
    if (!a || a->size < offsetof(um_nvtx_attributes_t, message) + sizeof(a->message) || !a->message)
        return "";
    switch (a->message_type) {
    case 1:
        return a->message;
    case 2:
        return narrow(a->message, out);
    case 3:
        return ((const um_nvtx_string_t *)a->message)->text;
    default:
        return "";
    }
}

static void *keep(const char *text)
{
    um_nvtx_string_t *kept = malloc(sizeof(*kept));

    if (!kept)
        return NULL;
    strncpy(kept->text, text ? text : "", sizeof(kept->text) - 1);
    kept->text[sizeof(kept->text) - 1] = '\0';
    kept->next = atomic_load(&kept_strings);
    while (!atomic_compare_exchange_weak(&kept_strings, &kept->next, kept))
        ;
    return kept;
}

/* ---- what NVTX calls; a range and a push answer as NVTX documents ------------------------------- */

static int push(const void *domain, const char *name)
{
    mark(UM_MARK_PUSH, 0, domain, name);
    return depth++;
}

static int pop(const void *domain)
{
    if (depth == 0)
        return -1;
    mark(UM_MARK_POP, 0, domain, "");
    return --depth;
}

static uint64_t start(const void *domain, const char *name)
{
    uint64_t id = atomic_fetch_add(&last_range, 1) + 1;

    mark(UM_MARK_START, id, domain, name);
    return id;
}

static void mark_a(const char *text)
{
    mark(UM_MARK_INSTANT, 0, NULL, text);
}

static void mark_w(const wchar_t *text)
{
    char name[UM_NVTX_NAME];
    mark(UM_MARK_INSTANT, 0, NULL, narrow(text, name));
}

static void mark_ex(const um_nvtx_attributes_t *a)
{
    char name[UM_NVTX_NAME];
    mark(UM_MARK_INSTANT, 0, NULL, message(a, name));
}

static uint64_t start_a(const char *text)
{
    return start(NULL, text);
}

static uint64_t start_w(const wchar_t *text)
{
    char name[UM_NVTX_NAME];
    return start(NULL, narrow(text, name));
}

static uint64_t start_ex(const um_nvtx_attributes_t *a)
{
    char name[UM_NVTX_NAME];
    return start(NULL, message(a, name));
}

static void end(uint64_t id)
{
    mark(UM_MARK_END, id, NULL, "");
}

static int push_a(const char *text)
{
    return push(NULL, text);
}

static int push_w(const wchar_t *text)
{
    char name[UM_NVTX_NAME];
    return push(NULL, narrow(text, name));
}

static int push_ex(const um_nvtx_attributes_t *a)
{
    char name[UM_NVTX_NAME];
    return push(NULL, message(a, name));
}

static int pop_plain(void)
{
    return pop(NULL);
}

static void domain_mark(void *domain, const um_nvtx_attributes_t *a)
{
    char name[UM_NVTX_NAME];
    mark(UM_MARK_INSTANT, 0, domain, message(a, name));
}

static uint64_t domain_start(void *domain, const um_nvtx_attributes_t *a)
{
    char name[UM_NVTX_NAME];
    return start(domain, message(a, name));
}

static void domain_end(void *domain, uint64_t id)
{
    mark(UM_MARK_END, id, domain, "");
}

static int domain_push(void *domain, const um_nvtx_attributes_t *a)
{
    char name[UM_NVTX_NAME];
    return push(domain, message(a, name));
}

static int domain_pop(void *domain)
{
    return pop(domain);
}

static void *register_a(void *domain, const char *text)
{
    (void)domain;
    return keep(text);
}

static void *register_w(void *domain, const wchar_t *text)
{
    char name[UM_NVTX_NAME];
    (void)domain;
    return keep(narrow(text, name));
}

static void *domain_a(const char *text)
{
    return keep(text);
}

static void *domain_w(const wchar_t *text)
{
    char name[UM_NVTX_NAME];
    return keep(narrow(text, name));
}

/* NVTX's modules: 1 core, 5 core2. What is not listed stays a no-op of NVTX's own. */
static const struct {
    int module;
    unsigned index;
    um_nvtx_fn fn;
} functions[] = {
    {1, 1, (um_nvtx_fn)mark_ex},      {1, 2, (um_nvtx_fn)mark_a},
    {1, 3, (um_nvtx_fn)mark_w},       {1, 4, (um_nvtx_fn)start_ex},
    {1, 5, (um_nvtx_fn)start_a},      {1, 6, (um_nvtx_fn)start_w},
    {1, 7, (um_nvtx_fn)end},          {1, 8, (um_nvtx_fn)push_ex},
    {1, 9, (um_nvtx_fn)push_a},       {1, 10, (um_nvtx_fn)push_w},
    {1, 11, (um_nvtx_fn)pop_plain},   {5, 1, (um_nvtx_fn)domain_mark},
    {5, 2, (um_nvtx_fn)domain_start}, {5, 3, (um_nvtx_fn)domain_end},
    {5, 4, (um_nvtx_fn)domain_push},  {5, 5, (um_nvtx_fn)domain_pop},
    {5, 10, (um_nvtx_fn)register_a},  {5, 11, (um_nvtx_fn)register_w},
    {5, 12, (um_nvtx_fn)domain_a},    {5, 13, (um_nvtx_fn)domain_w},
};

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
    const um_nvtx_callbacks_t *callbacks = export_table ? export_table(1) : NULL;

    if (!callbacks || callbacks->struct_bytes < sizeof(*callbacks) || !callbacks->functions)
        return 0;
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        um_nvtx_fn **table = NULL;
        unsigned count = 0;
        if (callbacks->functions(functions[i].module, &table, &count) && table &&
            functions[i].index < count && table[functions[i].index])
            *table[functions[i].index] = functions[i].fn;
    }
    return 1;
}
