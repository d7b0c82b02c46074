/* What a finding's change looks like in each version of CUDA and each library, and how that is chosen. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report_code.h"

/* ---- golden: tests/golden/code-KEY.txt -------------------------------------------------------- */

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);

    cr_assert_not_null(text);
    if (file) {
        cr_assert(fread(text, 1, (1 << 20) - 1, file) > 0);
        fclose(file);
    }
    return text;
}

static char *all_changes(const char *key)
{
    um_report_t *r = code_report();
    const um_dialect_t *dialect;
    um_cuda_form_t form;
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    cr_assert_not_null(out);
    cr_assert(code_dialect(key, &dialect, &form));
    for (int change = 1; change < UM_CHANGE_COUNT; change++) {
        um_finding_t f;
        um_code_t code;

        if (!code_finding(r, (um_change_t)change, &f))
            continue;
        cr_assert_eq(um_code_write(r, &f, dialect, form, &code), UM_OK);
        fprintf(out, "==== %s\n%s\n---- undo\n%s\n", um_change_name((um_change_t)change), code.code,
                code.undo);
        um_code_free(&code);
    }
    um_report_free(r);
    fclose(out);
    return text;
}

static void compare(const char *key)
{
    const char *source = getenv("UM_SRCDIR"), *build = getenv("UM_BUILDDIR");
    char golden[4096], actual[4096];
    char *text = all_changes(key), *expected;

    cr_assert_not_null(source);
    snprintf(golden, sizeof(golden), "%s/tests/golden/code-%s.txt", source, key);
    expected = read_all(golden);
    if (strcmp(text, expected)) {
        FILE *file;

        snprintf(actual, sizeof(actual), "%s/tests/golden-report-code-%s.txt", build ? build : ".",
                 key);
        file = fopen(actual, "wb");
        cr_assert_not_null(file, "%s: %s", actual, strerror(errno));
        fputs(text, file);
        fclose(file);
        cr_assert_fail("differs from tests/golden/code-%s.txt; to accept it: cp %s %s", key, actual,
                       golden);
    }
    free(expected);
    free(text);
}

Test(code, of_cuda_up_to_12_1)
{
    compare("cuda12");
}

Test(code, of_cuda_12_2)
{
    compare("cuda12_2");
}

Test(code, of_cuda_13)
{
    compare("cuda13");
}

Test(code, of_rmm)
{
    compare("rmm");
}

Test(code, of_umpire)
{
    compare("umpire");
}

Test(code, of_kokkos)
{
    compare("kokkos");
}

Test(code, of_amrex)
{
    compare("amrex");
}

Test(code, of_cupy)
{
    compare("cupy");
}

/* ---- names ------------------------------------------------------------------------------------ */

static um_code_t code_of(um_report_t *r, uint32_t groups, um_change_t change,
                         const um_dialect_t *dialect, um_cuda_form_t form)
{
    um_finding_t f = {.kind = um_finding_table, .asks = change};
    um_code_t code;

    for (uint32_t region = 1; region <= groups; region++)
        um_finding_place(&f, r, code_group(r, region), (um_place_t){0});
    cr_assert_eq(um_code_write(r, &f, dialect, form, &code), UM_OK);
    return code;
}

/* Whatever a label is, it stays inside a comment. */
Test(code, a_label_cannot_leave_its_comment)
{
    static const char *const hostile[] = {
        "*/ system(\"x\"); /*",
        "a*/",
        "x\ny",
        "\\",
        "a b",
        "1st",
        "",
        "\xff\xfe",
        "*\\\n/",
        "int",
        "stream",
        "grid[0]",
        "**//",
        "%n%s%p",
    };

    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        um_report_t *r = stream_new("hostile.umt");
        um_code_t code;
        const char *call;

        stream_alloc(r, 1, 1, BASE, MIB, hostile[i]);
        for (int d = UM_DIALECT_CUDA; d < UM_DIALECT_COUNT; d++) {
            code = code_of(r, 1, UM_CHANGE_PREFETCH, um_dialect((um_dialect_id_t)d), UM_CUDA_PLAIN);
            if (d == UM_DIALECT_CUDA) {
                call = strstr(code.code, "\ncudaMemPrefetchAsync(p, 1048576, device, stream);");
                cr_assert_not_null(call, "%s", code.code);
                for (const char *end = strstr(code.code, "*/"); end && end < call;
                     end = strstr(end + 2, "*/"))
                    cr_assert(end[2] == '\n', "'%s' ends a comment: %s", hostile[i], code.code);
            }
            cr_assert_null(strstr(code.code, "system(\"x\");\n"));
            um_code_free(&code);
        }
        um_report_free(r);
    }
}

Test(code, two_buffers_without_names_are_told_apart)
{
    um_report_t *r = stream_new("two.umt");
    um_code_t code;

    stream_alloc(r, 1, 1, BASE, MIB, NULL);
    stream_alloc(r, 2, 2, BASE + 8 * MIB, MIB, NULL);
    code = code_of(r, 2, UM_CHANGE_PREFETCH, um_dialect_cuda(UM_CUDA_PLAIN), UM_CUDA_PLAIN);
    cr_assert_not_null(strstr(code.code, "/* p1: region 1 (1.00 MiB) */"), "%s", code.code);
    cr_assert_not_null(strstr(code.code, "cudaMemPrefetchAsync(p2, 1048576,"), "%s", code.code);
    um_code_free(&code);
    um_report_free(r);
}

Test(code, a_gpu_and_a_stream_that_are_not_known_are_left_to_the_program)
{
    um_report_t *r = stream_new("many.umt");
    um_event_t launch = {.time_ns = 5000, .type = UM_EV_LAUNCH, .u.launch = {.kernel = 1}};
    um_code_t code;

    stream_kernel(r, 1, "step(float*)");
    stream_alloc(r, 1, 1, BASE, MIB, "grid");
    for (uint64_t stream = 0; stream < 2; stream++) {
        launch.u.launch.stream = stream * 0x1000;
        stream_put(r, launch);
    }
    code = code_of(r, 1, UM_CHANGE_PREFETCH, um_dialect_cuda(UM_CUDA_13), UM_CUDA_13);
    cr_assert_not_null(strstr(code.code, "gpu.type = cudaMemLocationTypeDevice; gpu.id = device;"),
                       "%s", code.code);
    cr_assert_not_null(strstr(code.code, "(grid, 1048576, gpu, 0, stream);"), "%s", code.code);
    um_code_free(&code);
    um_report_free(r);
}

/* A CuPy for CUDA 13 would prefetch to a GPU of number -1. */
Test(code, what_cupy_cannot_say_is_said)
{
    um_report_t *r = code_report();
    um_code_t code =
        code_of(r, 1, UM_CHANGE_PREFETCH_BACK, um_dialect(UM_DIALECT_CUPY), UM_CUDA_13);

    cr_assert_null(strstr(code.code, "memPrefetchAsync("), "%s", code.code);
    um_code_free(&code);
    um_report_free(r);
}

/* ---- which version ---------------------------------------------------------------------------- */

Test(target, versions_that_cuda_has_had)
{
    static const char *const bad[] = {"",    "12.", "12.x",  "11.7", "10.2",        "v12", "12.4.1",
                                      "-12", " 12", "12.10", "1e9",  "99999999999", "0x12"};
    um_target_t target;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_not(um_target_parse(bad[i], &target), "%s", bad[i]);
    cr_assert(um_target_parse("11.8", &target));
    cr_assert_eq(um_target_form(&target), UM_CUDA_PLAIN);
    cr_assert(um_target_parse("12.1", &target));
    cr_assert_eq(um_target_form(&target), UM_CUDA_PLAIN);
    cr_assert(um_target_parse("12", &target));
    cr_assert_eq(um_target_form(&target), UM_CUDA_PLAIN, "12.0 is 12, too");
    cr_assert(um_target_parse("12.2", &target));
    cr_assert_eq(um_target_form(&target), UM_CUDA_V2);
    cr_assert(um_target_parse("13", &target));
    cr_assert_eq(um_target_form(&target), UM_CUDA_13);
    cr_assert(um_target_parse("14.1", &target));
    cr_assert_eq(um_target_form(&target), UM_CUDA_13);
}

static void put_module(um_report_t *r, const char *name, const char *path)
{
    static uint64_t addr = 0x10000000;

    stream_put(r, (um_event_t){.type = UM_EV_MODULE,
                               .u.module = {.addr = addr += 0x100000,
                                            .bytes = 0x10000,
                                            .name = name,
                                            .path = path,
                                            .build_id = ""}});
}

Test(target, the_runtime_library_says_the_version)
{
    static const struct {
        const char *name, *path;
        um_cuda_form_t form;
        uint32_t cuda;
    } known[] = {
        {"libcudart.so.11.0", "/usr/local/cuda/lib64/libcudart.so.11.0", UM_CUDA_PLAIN, 11000},
        {"libcudart.so.12", "/opt/lib/libcudart.so.12", UM_CUDA_PLAIN, 12000},
        {"libcudart.so.12", "/usr/local/cuda-12.4/lib64/libcudart.so.12", UM_CUDA_V2, 12040},
        {"libcudart.so.12", "/opt/lib/libcudart.so.12.1.105", UM_CUDA_PLAIN, 12010},
        {"libcudart.so.12", "/opt/lib/libcudart.so.12.8.90", UM_CUDA_V2, 12080},
        {"libcudart.so.13", "", UM_CUDA_13, 13000},
        {"libcudart.so.x", "/cuda-12.4/libcudart.so.", UM_CUDA_PLAIN, 0},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        um_report_t *r = stream_new("t.umt");
        um_target_t target;

        put_module(r, known[i].name, known[i].path);
        target = um_target_of(r, NULL);
        cr_assert_eq(target.cuda, known[i].cuda, "%s: %u", known[i].path, target.cuda);
        cr_assert_eq(um_target_form(&target), known[i].form, "%s", known[i].path);
        cr_assert_eq(um_target_of(r, "13.0").cuda, 13000, "the command line's word is last");
        um_report_free(r);
    }
}

/* A program as it is linked with a runtime that has these names of the driver's. */
static uint32_t filler; /* bytes before the names */

static um_target_t target_inside(const char *names, bool changed)
{
    um_report_t *r = stream_new("t.umt");
    um_target_t target;
    char path[64];
    struct stat is;
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/umrt-test-program-%d", (int)getpid());
    cr_assert_not_null(file = fopen(path, "w"));
    fputs("\x7f"
          "ELF",
          file);
    for (uint32_t i = 0; i < filler; i++)
        fputc(i % 251, file);
    for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ')
        fprintf(file, "%c%.*s%c", 0, (int)strcspn(at, " "), at, 0);
    fclose(file);
    cr_assert_eq(stat(path, &is), 0);
    stream_fact(r, "process.exe", path);
    stream_fact(r, "cuda.driver", "13.0");
    stream_put(r,
               (um_event_t){.type = UM_EV_MODULE,
                            .u.module = {.addr = 0x1000,
                                         .bytes = 0x1000,
                                         .file_bytes = (uint64_t)is.st_size + changed,
                                         .modified_ns = (uint64_t)is.st_mtim.tv_sec * 1000000000u +
                                                        (uint64_t)is.st_mtim.tv_nsec,
                                         .name = "program",
                                         .path = path,
                                         .build_id = ""}});
    target = um_target_of(r, NULL);
    um_report_free(r);
    unlink(path);
    return target;
}

Test(target, a_linked_runtime_says_since_which_version_it_may_be)
{
    static const char errors[] = "cudaErrorMissingConfiguration cudaErrorInsufficientDriver";
    static const char upto[][120] = {"cuGetProcAddress cuMemPrefetchAsync",
                                     "cuGetProcAddress_v2 cuLibraryLoadData",
                                     "cuMemPrefetchAsync_v2 cuMemAdvise_v2",
                                     "cuMemPrefetchBatchAsync cuMemDiscardBatchAsync"};
    static const um_cuda_form_t form[] = {UM_CUDA_PLAIN, UM_CUDA_PLAIN, UM_CUDA_V2, UM_CUDA_13};
    static const uint32_t cuda[] = {11000, 12000, 12020, 13000};
    char names[600];
    um_target_t target;

    snprintf(names, sizeof(names), "%s", errors);
    for (size_t i = 0; i < sizeof(form) / sizeof(form[0]); i++) {
        um_say_in(names, " %s", upto[i]);
        target = target_inside(names, false);
        cr_assert_eq(target.cuda, cuda[i], "%s: %u", names, target.cuda);
        cr_assert_eq(um_target_form(&target), form[i], "%s", names);
        cr_assert_str_eq(target.cuda_why, "the runtime in program");
        cr_assert_eq(target_inside(names, true).cuda, 0, "it is another file now");
        cr_assert_eq(target_inside(names + sizeof(errors), false).cuda, 0, "it is no runtime");
    }
    cr_assert_eq(target_inside(errors, false).cuda, 0);
    snprintf(names, sizeof(names), "%s cuGetProcAddress_v2x xcuLibraryLoadData", errors);
    cr_assert_eq(target_inside(names, false).cuda, 0, "longer words are others");
}

/* Files are read piece by piece. */
Test(target, a_linked_runtime_is_found_wherever_it_lies)
{
    for (filler = (1 << 20) - 200; filler < (1 << 20); filler += 3)
        cr_assert_eq(target_inside("cudaErrorMissingConfiguration cudaErrorInsufficientDriver "
                                   "cuMemPrefetchAsync_v2 cuMemAdvise_v2",
                                   false)
                         .cuda,
                     12020, "behind %u bytes", filler);
}

static bool cut; /* whose size is asked for is cut right then, as by a linker that writes it anew */

int fstat(int fd, struct stat *out)
{
    char path[64];
    int failed = fstatat(fd, "", out, AT_EMPTY_PATH);

    if (cut && !failed) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        cut = truncate(path, 0) != 0;
    }
    return failed;
}

Test(target, a_program_that_is_cut_while_it_is_read_is_not_known)
{
    filler = 1 << 20;
    cut = true;
    cr_assert_eq(target_inside("cudaErrorMissingConfiguration cudaErrorInsufficientDriver "
                               "cuMemPrefetchAsync_v2 cuMemAdvise_v2",
                               false)
                     .cuda,
                 0);
    cr_assert_not(cut, "nobody has asked for the size");
}

/* A driver serves programs of older versions, too: only that they are no newer is certain. */
Test(target, the_driver_is_an_upper_bound)
{
    um_report_t *old = stream_new("old.umt"), *new = stream_new("new.umt");
    um_target_t target;

    stream_fact(old, "cuda.driver", "12.4");
    target = um_target_of(old, NULL);
    cr_assert_eq(um_target_form(&target), UM_CUDA_PLAIN);
    cr_assert_str_eq(target.cuda_why, "the driver's is 12.4");
    stream_fact(new, "cuda.driver", "13.0");
    cr_assert_eq(um_target_of(new, NULL).cuda, 0);
    um_report_free(old);
    um_report_free(new);
}

/* ---- which library ---------------------------------------------------------------------------- */

static um_dialect_id_t library(um_report_t *r, uint32_t groups, char *why)
{
    um_finding_t f = {.kind = um_finding_table};
    um_target_t target;

    for (uint32_t region = 1; region <= groups; region++)
        um_finding_place(&f, r, code_group(r, region), (um_place_t){0});
    target = um_target_of(r, NULL);
    return um_target_dialect(r, &target, &f, why, 300);
}

static void put_site(um_report_t *r, uint64_t id, const char *frames)
{
    stream_put(r, (um_event_t){.type = UM_EV_CALL_SITE, .u.call_site = {id, frames}});
}

Test(target, a_library_in_the_stack_of_the_allocation)
{
    static const struct {
        const char *frames;
        um_dialect_id_t dialect;
        const char *why;
    } known[] = {
        {"libcudart.so.12+0x1;librmm.so+0x2;app+0x3", UM_DIALECT_RMM, "librmm.so in the stack"},
        {"libumpire.so.2025+0x2;app+0x3", UM_DIALECT_UMPIRE, "libumpire.so.2025"},
        {"libkokkoscore.so.4.5+0x2;app+0x3", UM_DIALECT_KOKKOS, "libkokkoscore.so.4.5"},
        {"libamrex_3d.so+0x2;app+0x3", UM_DIALECT_AMREX, "libamrex_3d.so"},
        {"librmm.so+0x1;libkokkoscore.so.4+0x2;app+0x3", UM_DIALECT_KOKKOS, "libkokkoscore.so.4"},
        {"rmm::mr::managed_memory_resource::do_allocate (m.hpp:9);main (a.cpp:3)", UM_DIALECT_RMM,
         ""},
        {"libcudart.so.12+0x1;app+0x3", UM_DIALECT_CUDA, ""},
        {"", UM_DIALECT_CUDA, ""},
        {";;;+0x;", UM_DIALECT_CUDA, ""},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        um_report_t *r = stream_new("t.umt");
        char why[300];

        put_site(r, 7, known[i].frames);
        stream_alloc_at(r, 1, 1, BASE, MIB, 7);
        cr_assert_eq(library(r, 1, why), known[i].dialect, "%s: %s", known[i].frames, why);
        cr_assert_not_null(strstr(why, known[i].why), "%s", why);
        um_report_free(r);
    }
}

Test(target, a_library_by_kernel_names_where_stacks_say_nothing)
{
    um_report_t *r = stream_new("t.umt");
    char why[300];

    stream_alloc(r, 1, 1, BASE, MIB, NULL);
    stream_kernel(r, 1, "cupy_add__float32_float32_float32");
    cr_assert_eq(library(r, 1, why), UM_DIALECT_CUPY, "%s", why);
    cr_assert_str_eq(why, "kernel cupy_add__float32_float32_float32");
    um_report_free(r);
}

Test(target, what_is_ambiguous_is_cuda)
{
    um_report_t *r = stream_new("t.umt");
    char why[300];

    put_site(r, 7, "librmm.so+0x2;app+0x3");
    put_site(r, 8, "libumpire.so+0x2;app+0x3");
    stream_alloc_at(r, 1, 1, BASE, MIB, 7);
    stream_alloc_at(r, 2, 2, BASE + 8 * MIB, 2 * MIB, 8);
    cr_assert_eq(library(r, 2, why), UM_DIALECT_CUDA);
    cr_assert_not_null(strstr(why, "ambiguous: RMM (librmm.so"), "%s", why);
    cr_assert_not_null(strstr(why, "Umpire (libumpire.so"), "%s", why);
    cr_assert_eq(library(r, 1, why), UM_DIALECT_RMM, "one buffer alone is not");
    um_report_free(r);
}
