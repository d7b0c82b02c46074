/* umrt report --patch: what is written applies and says what was meant. */
#include "report_patch.h"

TestSuite(patch, .init = start, .fini = finish);

static void writes(const char *before, const char *call, const char *after)
{
    char *diff, *result;

    write_text("main.cu", before);
    diff = never_on_cpu("main.cu", call);
    cr_assert(*diff, "%s", refused);
    result = applied(diff, "main.cu");
    cr_assert_str_eq(result, after, "%s", diff);
    free(result);
    free(diff);
}

/* ---- allocations and advice ------------------------------------------------------------------- */

Test(patch, an_allocation_becomes_device_memory)
{
    writes("int main()\n{\n    float *a;\n    cudaMallocManaged(&a, n * 4, cudaMemAttachGlobal);\n"
           "    return 0;\n}\n",
           "cudaMallocManaged",
           "int main()\n{\n    float *a;\n    cudaMalloc(&a, n * 4);\n    return 0;\n}\n");
}

Test(patch, checks_around_the_call_and_comments_behind_it_stay)
{
    writes("{\n\tCHECK( cudaMallocManaged((void **)&s->a[i + 1], n * sizeof(float)) ); // a\n}\n",
           "cudaMallocManaged",
           "{\n\tCHECK( cudaMalloc((void **)&s->a[i + 1], n * sizeof(float)) ); // a\n}\n");
    writes("{\n  cudaError_t e = cudaMallocManaged(&a, 4); /* b */\n}\n", "cudaMallocManaged",
           "{\n  cudaError_t e = cudaMalloc(&a, 4); /* b */\n}\n");
}

Test(patch, line_endings_stay)
{
    writes("int x;\r\ncudaMallocManaged(&a, n);\r\nint y;\r\n", "cudaMallocManaged",
           "int x;\r\ncudaMalloc(&a, n);\r\nint y;\r\n");
}

Test(patch, a_last_line_without_an_ending_stays_so)
{
    writes("int x;\ncudaMallocManaged(&a, n);", "cudaMallocManaged", "int x;\ncudaMalloc(&a, n);");
}

Test(patch, any_bytes_around_are_kept)
{
    writes("// \xe9\xff\x01 latin\n\tcudaMallocManaged(&a, n);\n\x0c\n\"\xff\";\n",
           "cudaMallocManaged", "// \xe9\xff\x01 latin\n\tcudaMalloc(&a, n);\n\x0c\n\"\xff\";\n");
}

Test(patch, what_only_looks_like_the_call_is_none)
{
    writes("f(\"cudaMallocManaged(\"); /* cudaMallocManaged(&b, 1); */\n"
           "g('\\'', R\"x(cudaMallocManaged()x\");\n"
           "cudaMallocManaged(&a, n); // not cudaMallocManaged(&b, n)\n",
           "cudaMallocManaged(&a",
           "f(\"cudaMallocManaged(\"); /* cudaMallocManaged(&b, 1); */\n"
           "g('\\'', R\"x(cudaMallocManaged()x\");\n"
           "cudaMalloc(&a, n); // not cudaMallocManaged(&b, n)\n");
}

Test(patch, advice_in_each_cuda)
{
    static const struct {
        const char *cuda, *after;
    } known[] = {
        {NULL, "{\n    cudaMallocManaged(&a, n);\n"
               "    cudaMemAdvise(a, n, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId);\n"
               "    cudaMemAdvise(a, n, cudaMemAdviseSetAccessedBy, 0);\n}\n"},
        {"12.2", "{\n    cudaMallocManaged(&a, n);\n"
                 "    {\n        struct cudaMemLocation umrt_cpu;\n"
                 "        umrt_cpu.type = cudaMemLocationTypeHost;\n        umrt_cpu.id = 0;\n"
                 "        struct cudaMemLocation umrt_gpu;\n"
                 "        umrt_gpu.type = cudaMemLocationTypeDevice;\n        umrt_gpu.id = 0;\n"
                 "        cudaMemAdvise_v2(a, n, cudaMemAdviseSetPreferredLocation, umrt_cpu);\n"
                 "        cudaMemAdvise_v2(a, n, cudaMemAdviseSetAccessedBy, umrt_gpu);\n"
                 "    }\n}\n"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char *diff =
            mapped("main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n", "12.4", known[i].cuda);
        char *result;

        cr_assert(*diff, "%s", refused);
        result = applied(diff, "main.cu");
        cr_assert_str_eq(result, known[i].after, "%s", diff);
        free(result);
        free(diff);
    }
}

Test(patch, lines_that_are_put_in_end_as_those_beside_them)
{
    char *diff = mapped("main.cu", "\tcudaMallocManaged(&a, n);\r\n}\r\n", "12.4", NULL);
    char *result = applied(diff, "main.cu");

    cr_assert_str_eq(result, "\tcudaMallocManaged(&a, n);\r\n\tcudaMemAdvise(a, n, "
                             "cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId);\r\n"
                             "\tcudaMemAdvise(a, n, cudaMemAdviseSetAccessedBy, 0);\r\n}\r\n");
    free(result);
    free(diff);
    diff = mapped("last.cu", "cudaMallocManaged(&a, n);", "12.4", NULL);
    result = applied(diff, "last.cu");
    cr_assert_str_eq(result, "cudaMallocManaged(&a, n);\ncudaMemAdvise(a, n, "
                             "cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId);\n"
                             "cudaMemAdvise(a, n, cudaMemAdviseSetAccessedBy, 0);");
    free(result);
    free(diff);
}

static const char two[] =
    "{\n    cudaMallocManaged(&a, n);\n    use(a);\n    use(a);\n    use(a);\n"
    "    use(a);\n    use(a);\n    use(a);\n    use(a);\n    use(a);\n"
    "    cudaMallocManaged(&b, m);\n}\n";

Test(patch, several_findings_make_one_diff)
{
    um_report_t *r = trace(10, "12.4");
    um_patch_t patch;
    char *diff, *result;

    write_text("two.cu", two);
    put_site(r, 7, "two.cu", line_of(two, "&a"));
    put_site(r, 8, "two.cu", line_of(two, "&b"));
    gpu_only(r, 1, 7, 32 * MIB);
    gpu_only(r, 2, 8, 16 * MIB);
    end(r);
    diff = patch_of(r, NULL, NULL, &patch);
    cr_assert_eq(patch.n_written, 2, "%s", refused);
    cr_assert_null(strstr(strstr(diff, "+++ ") + 4, "+++ "), "one file, one header:\n%s", diff);
    result = applied(diff, "two.cu");
    cr_assert_not_null(strstr(result, "cudaMalloc(&a, n);\n"));
    cr_assert_not_null(strstr(result, "cudaMalloc(&b, m);\n"));
    free(result);
    free(diff);
}

/* ---- sizes and calls -------------------------------------------------------------------------- */

Test(patch, buffers_on_one_page_get_pages_of_their_own)
{
    static const char source[] = "{\n    cudaMallocManaged(&norm, 384);\n"
                                 "    cudaMallocManaged((void **)&sums, k * 4, 1);\n}\n";
    um_report_t *r = trace(10, "12.4");
    um_patch_t patch;
    char *diff, *result;

    write_text("main.cu", source);
    put_site(r, 7, "main.cu", 2);
    put_site(r, 8, "main.cu", 3);
    stream_alloc_at(r, 0, 1, BASE, 384, 7);
    stream_alloc_at(r, 1, 2, BASE + 512, 16 * KIB, 8);
    stream_kernel(r, 1, "step(float*)");
    stream_exec(r, 1000, 1000, 1);
    stream_gpu_fault(r, 1010, 100, BASE);
    stream_move(r, 1020, 20, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
    stream_cpu_fault(r, 3000, BASE);
    stream_move(r, 3040, 200, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
    diff = patch_of(r, NULL, NULL, &patch);
    cr_assert(*diff, "%s", refused);
    result = applied(diff, "main.cu");
    cr_assert_not_null(strstr(result,
                              "cudaMallocManaged(&norm, ((384) + 65535) / 65536 * 65536);\n"),
                       "%s", diff);
    cr_assert_not_null(
        strstr(result,
               "cudaMallocManaged((void **)&sums, ((k * 4) + 65535) / 65536 * 65536, 1);\n"),
        "%s", diff);
    free(result);
    free(diff);
}

static char *read_mostly(const char *source, um_patch_t *patch)
{
    um_report_t *r = trace(10, "12.4");

    write_text("main.cu", source);
    put_site(r, 7, "main.cu", 2);
    put_site(r, 8, "main.cu", line_of(source, "cudaMemAdviseSetReadMostly"));
    stream_alloc_at(r, 0, 1, BASE, MIB, 7);
    stream_put(r, (um_event_t){.time_ns = 10 * US,
                               .type = UM_EV_HINT,
                               .u.hint = {.kind = UM_HINT_READ_MOSTLY,
                                          .result = UM_HINT_APPLIED,
                                          .addr = BASE,
                                          .bytes = MIB,
                                          .region = 1,
                                          .call_site = 8,
                                          .who = "app",
                                          .why = ""}});
    stream_kernel(r, 1, "step(float*)");
    stream_exec(r, 1000, 9000, 1);
    for (uint64_t i = 0; i < 8; i++)
        stream_put(r, (um_event_t){.time_ns = (1010 + 500 * i) * US,
                                   .type = UM_EV_GPU_FAULT,
                                   .u.gpu_fault = {.addr = BASE + i * 64 * KIB,
                                                   .duration_ns = 400 * US,
                                                   .groups = 4,
                                                   .access = UM_ACCESS_WRITE}});
    return patch_of(r, NULL, NULL, patch);
}

Test(patch, advice_that_harms_is_taken_out)
{
    um_patch_t patch;
    char *diff = read_mostly("{\n    cudaMallocManaged(&a, n);\n    CHECK(cudaMemAdvise(a, n, "
                             "cudaMemAdviseSetReadMostly, 0));\n    use(a);\n}\n",
                             &patch);
    char *result;

    cr_assert_not_null(strstr(diff, "(read-mostly-written)"), "%s", refused);
    result = applied(diff, "main.cu");
    cr_assert_null(strstr(result, "cudaMemAdviseSetReadMostly"), "%s", result);
    cr_assert_not_null(strstr(result, "    use(a);\n}\n"), "%s", result);
    free(result);
    free(diff);
}

Test(patch, a_call_whose_value_is_used_stays)
{
    um_patch_t patch;
    char *diff = read_mostly("{\n    cudaMallocManaged(&a, n);\n    e = cudaMemAdvise(a, n, "
                             "cudaMemAdviseSetReadMostly, 0);\n    use(e);\n}\n",
                             &patch);

    cr_assert_null(strstr(diff, "-    e = cudaMemAdvise"), "%s", diff);
    cr_assert_not_null(strstr(refused, "more than the call"), "%s", refused);
    free(diff);
}
