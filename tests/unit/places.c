/* Places from hand-made events: which module a PC belongs to, and which frame is the user's. The files
 * themselves are tests/softgpu/places.sh's. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "report/demangle.h"
#include "report/places.h"
#include "report/places_rules.h"

static um_places_t *places;

static void begin(void)
{
    cr_assert_eq(um_places_new(&places), UM_OK);
    um_places_begin(places);
}

static void end(void)
{
    um_places_free(places);
}

static void put(um_event_t event)
{
    cr_assert_eq(um_places_event(places, &event), UM_OK);
}

static void loaded(const char *name, uint64_t addr, uint64_t bytes)
{
    put((um_event_t){.type = UM_EV_MODULE,
                     .u.module = {.addr = addr,
                                  .bytes = bytes,
                                  .load_bias = addr,
                                  .name = name,
                                  .path = "",
                                  .build_id = name}});
}

static void fault(uint64_t pc)
{
    put((um_event_t){.type = UM_EV_CPU_FAULT, .u.cpu_fault = {.addr = 0x1000, .pc = pc}});
}

static void site(uint64_t id, const char *frames)
{
    put((um_event_t){.type = UM_EV_CALL_SITE, .u.call_site = {id, frames}});
}

static const char *pc_text(uint64_t pc)
{
    um_spot_t spot;

    return um_places_pc(places, pc, &spot) == UM_OK ? spot.text : "unknown";
}

static um_call_place_t site_place(uint64_t id)
{
    um_call_place_t place;

    cr_assert_eq(um_places_site(places, id, &place), UM_OK);
    return place;
}

TestSuite(places, .init = begin, .fini = end);

/* ---- PCs ---- */

Test(places, a_pc_is_in_the_module_that_covers_it)
{
    loaded("app", 0x10000, 0x1000);
    loaded("liba.so", 0x20000, 0x1000);
    fault(0x20ffc);
    fault(0x21000);
    fault(0x10010);
    cr_assert_str_eq(pc_text(0x20ffc), "liba.so+0xffc");
    cr_assert_str_eq(pc_text(0x10010), "app+0x10");
    cr_assert_str_eq(pc_text(0x21000), "unknown");
    cr_assert_str_eq(pc_text(0x12345), "unknown", "it never faulted");
}

Test(places, a_library_in_anothers_place_has_the_faults_after_it)
{
    loaded("liba.so", 0x20000, 0x1000);
    fault(0x20010);
    loaded("libb.so", 0x20000, 0x800);
    fault(0x20020);
    fault(0x20810);
    cr_assert_str_eq(pc_text(0x20010), "liba.so+0x10");
    cr_assert_str_eq(pc_text(0x20020), "libb.so+0x20");
    cr_assert_str_eq(pc_text(0x20810), "liba.so+0x810");
}

Test(places, a_module_told_late_serves_faults_before_it)
{
    fault(0x20010);
    loaded("liba.so", 0x20000, 0x1000);
    cr_assert_str_eq(pc_text(0x20010), "liba.so+0x10");
}

Test(places, modules_end_with_their_trace)
{
    loaded("app", 0x10000, 0x1000);
    um_places_begin(places);
    fault(0x10010);
    cr_assert_str_eq(pc_text(0x10010), "unknown");
    loaded("other", 0x10000, 0x1000);
    cr_assert_str_eq(pc_text(0x10010), "other+0x10");
}

Test(places, a_pc_that_is_two_places_in_two_traces_is_neither)
{
    loaded("app", 0x10000, 0x1000);
    fault(0x10010);
    fault(0x10020);
    um_places_begin(places);
    loaded("other", 0x10000, 0x1000);
    fault(0x10010);
    cr_assert_str_eq(pc_text(0x10010), "unknown");
    cr_assert_str_eq(pc_text(0x10020), "app+0x20");
}

Test(places, ranks_of_one_program_agree)
{
    for (int rank = 0; rank < 2; rank++) {
        um_places_begin(places);
        loaded("app", 0x10000, 0x1000);
        fault(0x10010);
    }
    uint64_t faults;
    cr_assert_eq(um_places_pcs(places), 1);
    cr_assert_eq(um_places_pc_value(places, 0, &faults), 0x10010);
    cr_assert_eq(faults, 2);
    cr_assert_str_eq(pc_text(0x10010), "app+0x10");
}

Test(places, the_end_of_the_address_space_does_not_wrap)
{
    loaded("app", UINT64_MAX - 0x10, 0x1000);
    fault(UINT64_MAX - 8);
    fault(0x10);
    cr_assert_str_eq(pc_text(UINT64_MAX - 8), "app+0x8");
    cr_assert_str_eq(pc_text(0x10), "unknown");
}

/* ---- call sites ---- */

Test(places, libraries_on_top_are_stepped_over)
{
    loaded("libcudart.so.13", 0x10000, 0x1000);
    loaded("app", 0x20000, 0x1000);
    site(1, "libcudart.so.13+0x10;libstdc++.so.6+0x5;app+0x20;libc.so.6+0x1");
    cr_assert_str_eq(site_place(1).text, "app+0x20");
    cr_assert_eq(site_place(1).chosen, 2);
    cr_assert_eq(site_place(1).n_spots, 4);
}

Test(places, frames_that_all_sites_begin_with_are_a_runtime_without_names)
{
    site(1, "app+0x10;app+0x20;app+0x31;libc.so.6+0x1");
    site(2, "app+0x10;app+0x20;app+0x32;libc.so.6+0x1");
    site(3, "app+0x11;app+0x20;app+0x33;libc.so.6+0x1"); /* another call: a class of its own */
    cr_assert_str_eq(site_place(1).text, "app+0x31");
    cr_assert_str_eq(site_place(2).text, "app+0x32");
    cr_assert_str_eq(site_place(3).text, "app+0x11", "one alone tells nothing");
    cr_assert(strstr(site_place(3).note, "perhaps"), "and that is said: %s", site_place(3).note);
    cr_assert_str_eq(site_place(1).note, "");
}

Test(places, an_allocator_that_many_call_has_its_caller_too)
{
    site(1, "app+0x10;app+0x20;app+0x31");
    site(2, "app+0x10;app+0x20;app+0x32");
    site(3, "app+0x10;app+0x33");
    cr_assert_str_eq(site_place(1).text, "app+0x20");
    cr_assert_str_eq(site_place(1).from, "app+0x31");
    cr_assert_str_eq(site_place(3).text, "app+0x33");
    cr_assert_str_eq(site_place(3).from, "");
}

Test(places, a_site_that_is_the_beginning_of_another_keeps_a_place)
{
    site(1, "app+0x10");
    site(2, "app+0x10;app+0x20");
    cr_assert_str_eq(site_place(1).text, "app+0x10");
    cr_assert_neq(*site_place(2).text, '\0');
}

Test(places, nothing_but_libraries_is_still_a_place)
{
    site(1, "libcudart.so.13+0x10;libc.so.6+0x5");
    cr_assert_str_eq(site_place(1).text, "libcudart.so.13+0x10");
    site(2, "");
    cr_assert_neq(*site_place(2).text, '\0');
    site(3, ";;");
    cr_assert_neq(*site_place(3).text, '\0');
}

Test(places, a_python_programs_own_frame_comes_first)
{
    site(1, "libcudart.so.13+0x10;libffi.so.8+0x1;_core.so+0x20;/usr/lib/python3.11/x.py:3(f);"
            "/opt/me/train.py:12(Model.step);/opt/me/train.py:40(<module>)");
    cr_assert_str_eq(site_place(1).text, "Model.step (/opt/me/train.py:12)");
    cr_assert_str_eq(site_place(1).brief, "Model.step (train.py:12)");
    cr_assert_eq(site_place(1).line.line, 12);
    cr_assert_str_eq(site_place(1).line.file, "/opt/me/train.py");
    cr_assert_str_eq(site_place(1).note, "");
    site(2, "libcudart.so.13+0x10;/x/site-packages/lib/a.py:3(f)");
    cr_assert_neq(*site_place(2).text, '\0', "only a package's: better than nothing");
}

Test(places, an_interpreter_without_frames_is_said)
{
    site(1, "libcudart.so.13+0x10;_core.so+0x20;python3.11+0x1;python3.11+0x2");
    cr_assert_str_eq(site_place(1).text, "_core.so+0x20");
    cr_assert(strstr(site_place(1).note, "nearest native frame"), "%s", site_place(1).note);
}

Test(places, what_another_tool_said_stays)
{
    site(77, "fill (grid.c:12)");
    cr_assert_str_eq(site_place(77).text, "fill (grid.c:12)");
    um_call_place_t place;
    cr_assert_eq(um_places_site(places, 78, &place), UM_ERR_NOT_FOUND);
    cr_assert_eq(um_places_site(places, 0, &place), UM_ERR_NOT_FOUND);
}

Test(places, a_thousand_frames_are_cut)
{
    char *frames = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&frames, &bytes);

    for (int i = 0; i < 1000; i++)
        fprintf(stream, "%sapp+0x%x", i ? ";" : "", i);
    fclose(stream);
    site(1, frames);
    cr_assert_str_eq(site_place(1).text, "app+0x0");
    free(frames);
}

Test(places, why_there_is_no_line_is_said)
{
    um_spot_t spot;

    loaded("app", 0x10000, 0x1000);
    cr_assert_eq(um_places_find(places, "app", 0x10, &spot), UM_OK);
    cr_assert_neq(*spot.why, '\0');
    cr_assert_eq(um_places_find(places, "never", 0x10, &spot), UM_OK);
    cr_assert_str_eq(spot.text, "never+0x10");
    cr_assert_neq(*spot.why, '\0');
}

/* ---- names and rules ---- */

Test(places_rules, names_are_readable)
{
    static const struct {
        const char *linkage, *name, *scope;
        bool fortran;
        const char *readable;
    } cases[] = {
        {"_ZN6solver4stepEPf", "step", "", false, "solver::step"},
        {"_Z4makeIfEPT_m", "make<float>", "", false, "make<float>"},
        {NULL, "inlined", "solver::", false, "solver::inlined"},
        {NULL, "main", "", false, "main"},
        {"__grid_MOD_make", "make", "", true, "grid::make"},
        {"__grid_MOD_make", NULL, "", false, "grid::make"},
        {"outside_", "outside", "", true, "outside"},
        {"MAIN__", NULL, "", false, "main program"},
        {"plain", NULL, "", false, "plain"},
        {NULL, NULL, "", false, ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *readable =
            um_readable_name(cases[i].linkage, cases[i].name, cases[i].scope, cases[i].fortran);
        cr_expect_str_eq(readable, cases[i].readable);
        free(readable);
    }
}

Test(places_rules, short_names_keep_operators_and_lambdas)
{
    static const char *const cases[][2] = {
        {"_ZNK4GridclEi", "Grid::operator()"},
        {"_ZlsRSo4Grid", "operator<<"},
        {"_ZgtRK4GridS1_", "operator>"},
        {"_Znwm", "operator new"},
        {"_ZNK4GridcvbEv", "Grid::operator bool"},
        {"_ZZ4mainENKUlmE_clEm", "main::{lambda(unsigned long)#1}::operator()"},
        {"_ZN12_GLOBAL__N_14stepEPf", "(anonymous namespace)::step"},
        {"_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::move<int&>"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *brief = um_demangle_short(cases[i][0]);
        cr_expect_str_eq(brief, cases[i][1]);
        free(brief);
    }
}

Test(places_rules, the_runtime_is_known_and_the_user_is_not)
{
    cr_expect(um_is_runtime_code("cudaMallocManaged", ""));
    cr_expect(um_is_runtime_code("libcudart_static_0a1b", ""));
    cr_expect(um_is_runtime_code("cuMemAllocManaged", ""));
    cr_expect(um_is_runtime_code("std::vector::push_back", "/usr/include/c++/12/vector"));
    cr_expect(um_is_runtime_code("cudaMallocManaged", "/usr/local/cuda/include/cuda_runtime.h"));
    cr_expect(um_is_runtime_code("operator new", ""));
    cr_expect_not(um_is_runtime_code("cudaAllocChecked", "/me/wrap.c"), "the user's wrapper");
    cr_expect_not(um_is_runtime_code("curl_fetch", ""));
    cr_expect_not(um_is_runtime_code("custom", ""));
    cr_expect_not(um_is_runtime_code("", ""));
    cr_expect(um_is_runtime_module("libcudart.so.12"));
    cr_expect(um_is_runtime_module("libumrt.so.0"));
    cr_expect_not(um_is_runtime_module("libcustom.so"));
    cr_expect(um_is_python_library("/usr/lib/python3.11/threading.py"));
    cr_expect(um_is_python_library("<frozen importlib._bootstrap>"));
    cr_expect_not(um_is_python_library("/opt/me/train.py"));
}
