/* umrt report --patch: what is not certain is refused, and says why. */
#include <sys/stat.h>

#include "report_patch.h"

TestSuite(patch, .init = start, .fini = finish);

static void refuses(const char *source, const char *call, const char *why)
{
    char *diff, *still;

    write_text("main.cu", source);
    diff = never_on_cpu("main.cu", call);
    cr_assert_str_eq(diff, "");
    cr_assert_not_null(strstr(refused, why), "%s", refused);
    cr_assert_not_null(strstr(refused, "finding 1 (never-on-cpu), region 1 (32.0 MiB): "), "%s",
                       refused);
    still = read_text("main.cu");
    cr_assert_str_eq(still, source, "the source is never written");
    free(still);
    free(diff);
}

Test(patch, a_place_that_is_not_certain_is_refused)
{
    refuses("{\n    cudaMallocManaged(&a,\n        n);\n}\n", "cudaMallocManaged", "several lines");
    refuses("{\n    if (x)\n        cudaMallocManaged(&a, n);\n}\n", "cudaMallocManaged",
            "a line above");
    refuses("{\n    if (x) cudaMallocManaged(&a, n);\n}\n", "cudaMallocManaged",
            "more than the call");
    refuses("{\n    cudaMallocManaged(&a, n); cudaMallocManaged(&b, n);\n}\n", "cudaMallocManaged",
            "more than one such call");
    refuses("{\n    cudaMallocManaged(&a, n); a[0] = 1;\n}\n", "cudaMallocManaged",
            "more than the call");
    refuses("#define MAKE(p) \\\n    cudaMallocManaged(&p, n);\n", "cudaMallocManaged", "macro");
    refuses("#define MAKE(p) cudaMallocManaged(&p, n);\n", "cudaMallocManaged", "macro");
    refuses("/*\n    cudaMallocManaged(&a, n);\n*/\n", "cudaMallocManaged", "comment");
    refuses("x = R\"(\n    cudaMallocManaged(&a, n);\n)\";\n", "cudaMallocManaged", "comment");
    refuses("{\n    make(&a, n); // cudaMallocManaged\n}\n", "make", "not in that line");
    refuses("{\n    auto f = cudaMallocManaged;\n}\n", "cudaMallocManaged", "plain name");
    refuses("{\n    cudaMallocManaged(&a);\n}\n", "cudaMallocManaged", "other arguments");
    refuses("{\n    cudaMallocManaged(&a, n++);\n}\n", "cudaMallocManaged", "written twice");
    refuses("{\n    cudaMallocManaged(&a, next());\n}\n", "cudaMallocManaged", "written twice");
    refuses("{\n    cudaMallocManaged(&a[i++], n);\n}\n", "cudaMallocManaged", "written twice");
    refuses("{\n    cudaMallocManaged(get(), n);\n}\n", "cudaMallocManaged", "written twice");
    refuses("{\n    return cudaMallocManaged(&a, n);\n}\n", "cudaMallocManaged",
            "more than the call");
    refuses("{\n    CHECK(cudaMallocManaged(&a, n), \"a\");\n}\n", "cudaMallocManaged",
            "more than the call");
}

Test(patch, a_file_that_is_not_certain_is_refused)
{
    static const char good[] = "{\n    cudaMallocManaged(&a, n);\n}\n";
    char *diff;

    write_text("real.cu", good);
    cr_assert_eq(symlink("real.cu", "main.cu"), 0);
    diff = never_on_cpu("main.cu", "cudaMallocManaged");
    cr_assert_str_eq(diff, "");
    cr_assert_not_null(strstr(refused, "symbolic link"), "%s", refused);
    free(diff);
    cr_assert_eq(unlink("main.cu"), 0);

    write_bytes("main.cu", "cudaMallocManaged(&a, n);\n\0\n", 28);
    diff = never_on_cpu("main.cu", "cudaMallocManaged");
    cr_assert_str_eq(diff, "");
    cr_assert_not_null(strstr(refused, "not text"), "%s", refused);
    free(diff);

    write_text("a\\b.cu", good);
    diff = never_on_cpu("a\\b.cu", "cudaMallocManaged");
    cr_assert_str_eq(diff, "");
    cr_assert_not_null(strstr(refused, "cannot stand in a diff"), "%s", refused);
    free(diff);

    write_text("with blank.cu", good);
    diff = never_on_cpu("with blank.cu", "cudaMallocManaged");
    free(applied(diff, "with blank.cu"));
    free(diff);

    if (geteuid()) {
        write_text("main.cu", good);
        cr_assert_eq(chmod("main.cu", 0), 0);
        diff = never_on_cpu("main.cu", "cudaMallocManaged");
        cr_assert_not_null(strstr(refused, "Permission denied"), "%s", refused);
        free(diff);
    }
}

Test(patch, a_source_that_is_not_the_recorded_one_is_refused)
{
    write_text("main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n");
    is_nothing(at_line("main.cu", 2, -10, NULL));
    cr_assert_not_null(strstr(refused, "changed after the program"), "%s", refused);
    is_nothing(at_line("main.cu", 3, 10, NULL));
    cr_assert_not_null(strstr(refused, "not in that line"), "%s", refused);
    is_nothing(at_line("main.cu", 999, 10, NULL));
    cr_assert_not_null(strstr(refused, "no line 999"), "%s", refused);
    is_nothing(at_line("gone.cu", 2, 10, NULL));
    cr_assert_not_null(strstr(refused, "not below the current folder"), "%s", refused);
}

Test(patch, a_source_that_moved_is_found_by_its_end)
{
    char *diff;

    cr_assert_eq(mkdir("root", 0777), 0);
    cr_assert_eq(mkdir("root/src", 0777), 0);
    write_text("root/src/main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n");
    diff = at_line("old/src/main.cu", 2, 10, "root");
    cr_assert_not_null(strstr(diff, "--- src/main.cu\n+++ src/main.cu\n"), "%s", refused);
    free(diff);
    write_text("root/main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n");
    is_nothing(at_line("old/src/main.cu", 2, 10, "root"));
    cr_assert_not_null(strstr(refused, "may be"), "%s", refused);
    is_nothing(at_line("main.cu", 2, 10, "nowhere"));
    cr_assert_not_null(strstr(refused, "nowhere: No such file"), "%s", refused);
}

Test(patch, a_path_does_not_lead_out_of_the_root)
{
    cr_assert_eq(mkdir("root", 0777), 0);
    write_text("main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n");
    is_nothing(at_line("root/../main.cu", 2, 10, "root"));
    cr_assert_not_null(strstr(refused, "not below the source root"), "%s", refused);
    cr_assert_eq(symlink("..", "root/up"), 0);
    is_nothing(at_line("x/up/../main.cu", 2, 10, "root"));
}

Test(patch, a_line_from_which_other_buffers_come_is_refused)
{
    static const char source[] = "{\n    cudaMallocManaged(&a, n);\n}\n";
    um_report_t *r = trace(10, "12.4");
    um_patch_t patch;

    write_text("main.cu", source);
    put_site(r, 7, "main.cu", 2);
    gpu_only(r, 1, 7, 32 * MIB);
    stream_alloc_at(r, 4000, 2, BASE + 4096 * MIB, MIB,
                    7); /* of another size, and used otherwise */
    end(r);
    is_nothing(patch_of(r, NULL, NULL, &patch));
    cr_assert_not_null(strstr(refused, "other buffers are allocated on that line"), "%s", refused);
    cr_assert_eq(patch.n_written, 0);
    cr_assert(patch.n_refused > 0);
}

/* The oldest form is no error of CUDA 13's compiler alone: it does another thing. */
Test(patch, without_a_version_no_call_that_depends_on_it_is_written)
{
    is_nothing(mapped("main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n", "13.0", NULL));
    cr_assert_not_null(strstr(refused, "--cuda says it"), "%s", refused);
}
