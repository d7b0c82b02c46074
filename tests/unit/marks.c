/* What a program marks with NVTX arrives as events; the program's half of NVTX is played here. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "core/marks.h"

/* The program's side of NVTX, as its loader does it: a table of pointers to function pointers. */
static void (*core[16])(void), (*core2[16])(void);
static void (**core_table[16])(void), (**core2_table[16])(void);

static int functions(int module, void (****table)(void), unsigned *count)
{
    for (int i = 1; i < 16; i++) {
        core_table[i] = &core[i];
        core2_table[i] = &core2[i];
    }
    *table = module == 1 ? core_table : module == 5 ? core2_table : NULL;
    *count = module == 1 || module == 5 ? 16 : 0;
    return *table != NULL;
}

static struct {
    size_t bytes;
    int (*functions)(int module, void (****table)(void), unsigned *count);
} callbacks = {sizeof(callbacks), functions};

static const void *export_table(uint32_t id)
{
    return id == 1 ? &callbacks : NULL;
}

static const void *no_export_table(uint32_t id)
{
    (void)id;
    return NULL;
}

static um_runtime_t runtime;
static um_event_t *events[64];
static size_t n_events;

static void keep(void *ctx, const um_event_t *event)
{
    size_t bytes = um_event_pack(event, NULL, 0);

    (void)ctx;
    events[n_events] = malloc(bytes);
    um_event_pack(event, events[n_events++], bytes);
}

static void listen(void)
{
    um_sink_t sink = {.event = keep};

    cr_assert_eq(InitializeInjectionNvtx2(export_table), 1);
    um_bus_new(65536, 1000, &runtime.bus);
    um_bus_add_sink(runtime.bus, &sink);
    um_bus_start(runtime.bus);
    um_marks_attach(&runtime);
}

static const um_ev_mark_t *nth(size_t n)
{
    um_bus_sync(runtime.bus);
    cr_assert_lt(n, n_events);
    cr_assert_eq(events[n]->type, UM_EV_MARK);
    cr_assert_neq(events[n]->tid, 0);
    return &events[n]->u.mark;
}

#define PUSH_A(text)  (((int (*)(const char *))core[9])(text))
#define POP()         (((int (*)(void))core[11])())
#define MARK_W(text)  (((void (*)(const wchar_t *))core[3])(text))
#define START_A(text) (((uint64_t(*)(const char *))core[5])(text))
#define END(id)       (((void (*)(uint64_t))core[7])(id))

Test(marks, ranges_nest_and_answer_their_depth)
{
    listen();
    cr_assert_eq(PUSH_A("outer"), 0);
    cr_assert_eq(PUSH_A("inner"), 1);
    cr_assert_eq(POP(), 1);
    cr_assert_eq(POP(), 0);
    cr_assert_lt(POP(), 0, "one pop too many is an error and no event");
    cr_assert_eq(nth(0)->kind, UM_MARK_PUSH);
    cr_assert_str_eq(nth(0)->name, "outer");
    cr_assert_str_eq(nth(1)->name, "inner");
    cr_assert_eq(nth(3)->kind, UM_MARK_POP);
    cr_assert_eq(n_events, 4);
}

Test(marks, started_ranges_end_by_their_id)
{
    listen();
    uint64_t a = START_A("a"), b = START_A("b");
    END(a);
    END(b);
    cr_assert_neq(a, b);
    cr_assert_eq(nth(0)->id, a);
    cr_assert_eq(nth(2)->kind, UM_MARK_END);
    cr_assert_eq(nth(2)->id, a);
    cr_assert_eq(nth(3)->id, b);
}

Test(marks, domains_and_registered_strings)
{
    struct {
        uint16_t version, size;
        uint32_t category, color[2];
        int32_t payload_type, reserved;
        uint64_t payload;
        int32_t message_type;
        const void *message;
    } attributes = {.version = 3, .size = 48, .message_type = 3};

    listen();
    void *domain = ((void *(*)(const char *))core2[12])("solver");
    attributes.message = ((void *(*)(void *, const char *))core2[10])(domain, "relax");
    ((int (*)(void *, const void *))core2[4])(domain, &attributes);
    ((int (*)(void *))core2[5])(domain);
    attributes.size = 24; /* an older struct, without a message */
    ((void (*)(void *, const void *))core2[1])(domain, &attributes);
    cr_assert_str_eq(nth(0)->domain, "solver");
    cr_assert_str_eq(nth(0)->name, "relax");
    cr_assert_eq(nth(1)->kind, UM_MARK_POP);
    cr_assert_eq(nth(2)->kind, UM_MARK_INSTANT);
    cr_assert_str_eq(nth(2)->name, "");
}

Test(marks, wide_names_become_utf8)
{
    listen();
    MARK_W(L"a\u00e9\u20ac\U0001f600");
    cr_assert_str_eq(nth(0)->name, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    wchar_t longer[1000];
    wmemset(longer, L'\u20ac', 999);
    longer[999] = 0;
    MARK_W(longer);
    cr_assert_leq(strlen(nth(1)->name), 255);
    cr_assert_eq(strlen(nth(1)->name) % 3, 0, "cut between characters");
}

Test(marks, nobody_listens_before_and_after)
{
    cr_assert_eq(InitializeInjectionNvtx2(export_table), 1);
    cr_assert_eq(PUSH_A("early"), 0);
    cr_assert_eq(POP(), 0);
    listen();
    um_marks_attach(NULL);
    PUSH_A("late");
    um_bus_sync(runtime.bus);
    cr_assert_eq(n_events, 0);
}

Test(marks, an_unknown_nvtx_is_refused)
{
    cr_assert_eq(InitializeInjectionNvtx2(no_export_table), 0);
    cr_assert_eq(InitializeInjectionNvtx2(NULL), 0);
    callbacks.bytes = 8;
    cr_assert_eq(InitializeInjectionNvtx2(export_table), 0);
}
