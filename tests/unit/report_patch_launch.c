/* umrt report --patch beside launches: prefetches where the arguments are certain, refusals where not. */
#include "report_patch.h"

TestSuite(patch, .init = start, .fini = finish);

/* The region is faulted in by each of `launches` from one place. */
static char *launched(const char *source, uint64_t launches, um_patch_t *patch)
{
    um_report_t *r = trace(10, "12.4");
    um_arg_t arg = {.slot = 1, .region = 1};

    write_text("main.cu", source);
    put_site(r, 7, "main.cu", line_of(source, "cudaMallocManaged"));
    put_site(r, 8, "main.cu", line_of(source, "<<<"));
    stream_alloc_at(r, 0, 1, BASE, 8 * MIB, 7);
    stream_kernel(r, 1, "solver::step(int, float*)");
    for (uint64_t i = 0; i < 4; i++)
        stream_cpu_fault(r, 10 + i, BASE + i * 2 * MIB);
    for (uint64_t i = 0; i < launches; i++) {
        uint64_t us = 1000 + 5000 * i;

        stream_put(r, (um_event_t){.time_ns = (us - 1) * US,
                                   .type = UM_EV_LAUNCH,
                                   .u.launch = {.correlation = (uint32_t)i + 1,
                                                .kernel = 1,
                                                .call_site = 8,
                                                .n_args = 1,
                                                .args = &arg}});
        stream_put(r, (um_event_t){.time_ns = us * US,
                                   .type = UM_EV_KERNEL_EXEC,
                                   .u.kernel_exec = {.correlation = (uint32_t)i + 1,
                                                     .kernel = 1,
                                                     .duration_ns = 4000 * US}});
        for (uint64_t b = 0; b < 4 && i < 2; b++) {
            stream_gpu_fault(r, us + 20 + 900 * b, 800, BASE + b * 2 * MIB);
            stream_move(r, us + 100 + 900 * b, 50, BASE + b * 2 * MIB, 2 * MIB, true,
                        UM_CAUSE_COHERENCE);
        }
    }
    return patch_of(r, NULL, NULL, patch);
}

Test(patch, a_prefetch_before_the_launch_on_its_stream)
{
    um_patch_t patch;
    char *diff = launched("int main()\n{\n    cudaMallocManaged(&a, n * 4);\n    fill(a);\n"
                          "    if (x) {\n        solver::step<float><<<n / 256, dim3(256, 1), 0, "
                          "s>>>(n, (float *)a);\n    }\n}\n",
                          2, &patch);
    char *result;

    cr_assert(*diff, "%s", refused);
    result = applied(diff, "main.cu");
    cr_assert_not_null(strstr(result, "    if (x) {\n"
                                      "        cudaMemPrefetchAsync(a, n * 4, 0, s);\n"
                                      "        solver::step<float><<<"),
                       "%s", result);
    free(result);
    free(diff);
}

/* Two regions that one launch takes, faulted in by each of two. */
Test(patch, calls_beside_one_line_share_a_block)
{
    static const char source[] =
        "{\n    cudaMallocManaged(&a, n);\n    cudaMallocManaged(&b, m);\n    fill(a, b);\n"
        "    while (x)\n    {\n        add<<<1, 256>>>(a, b);\n    }\n}\n";
    um_arg_t args[] = {{.slot = 0, .region = 1}, {.slot = 1, .region = 2}};
    um_report_t *r = trace(10, "13.0");
    um_patch_t patch;
    char *diff, *result;

    write_text("main.cu", source);
    put_site(r, 7, "main.cu", line_of(source, "&a"));
    put_site(r, 8, "main.cu", line_of(source, "<<<"));
    put_site(r, 9, "main.cu", line_of(source, "&b"));
    stream_alloc_at(r, 0, 1, BASE, 8 * MIB, 7);
    stream_alloc_at(r, 0, 2, BASE + 8 * MIB, 8 * MIB, 9);
    stream_kernel(r, 1, "add(float*, float*)");
    for (uint64_t i = 0; i < 8; i++)
        stream_cpu_fault(r, 10 + i, BASE + i * 2 * MIB);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t us = 1000 + 10000 * i;

        stream_put(r, (um_event_t){.time_ns = (us - 1) * US,
                                   .type = UM_EV_LAUNCH,
                                   .u.launch = {.correlation = i + 1,
                                                .kernel = 1,
                                                .call_site = 8,
                                                .n_args = 2,
                                                .args = args}});
        stream_put(r, (um_event_t){.time_ns = us * US,
                                   .type = UM_EV_KERNEL_EXEC,
                                   .u.kernel_exec = {.correlation = i + 1,
                                                     .kernel = 1,
                                                     .duration_ns = 8000 * US}});
        for (uint64_t b = 0; b < 8; b++) {
            stream_gpu_fault(r, us + 20 + 900 * b, 800, BASE + b * 2 * MIB);
            stream_move(r, us + 100 + 900 * b, 50, BASE + b * 2 * MIB, 2 * MIB, true,
                        UM_CAUSE_COHERENCE);
        }
    }
    diff = patch_of(r, NULL, "13.0", &patch);
    cr_assert(*diff, "%s", refused);
    result = applied(diff, "main.cu");
    cr_assert_not_null(strstr(result, "        {\n            struct cudaMemLocation umrt_gpu;\n"
                                      "            umrt_gpu.type = cudaMemLocationTypeDevice;\n"
                                      "            umrt_gpu.id = 0;\n"
                                      "            cudaMemPrefetchAsync(a, n, umrt_gpu, 0, 0);\n"
                                      "            cudaMemPrefetchAsync(b, m, umrt_gpu, 0, 0);\n"
                                      "        }\n"
                                      "        add<<<"),
                       "%s", result);
    free(result);
    free(diff);
}

Test(patch, a_launch_whose_prefetch_would_be_repeated_for_nothing_is_refused)
{
    um_patch_t patch;
    char *diff = launched("{\n    cudaMallocManaged(&a, n * 4);\n    step<<<1, 1>>>(n, a);\n}\n",
                          20, &patch);

    cr_assert_str_eq(diff, "");
    cr_assert_not_null(strstr(refused, "2 of 20 launches need it"), "%s", refused);
    free(diff);
}

Test(patch, a_launch_that_is_not_certain_is_refused)
{
    static const struct {
        const char *source, *why;
    } known[] = {
        {"{\n    cudaMallocManaged(&a, n);\n    other<<<1, 1>>>(n, a);\n}\n", "another kernel's"},
        {"{\n    cudaMallocManaged(&a, n);\n    step<<<1, 1>>>(n,\n        a);\n}\n",
         "several lines"},
        {"{\n    cudaMallocManaged(&a, n);\n    step<<<1, 1>>>(n, a + 4);\n}\n",
         "no plain pointer"},
        {"{\n    cudaMallocManaged(&a, n);\n    step<<<1, 1>>>(n, b);\n}\n", "by another name"},
        {"{\n    cudaMallocManaged(&a, n);\n    step<<<1, 1>>>(n);\n}\n", "no plain pointer"},
        {"{\n    {\n    cudaMallocManaged(&a, n);\n    }\n    step<<<1, 1>>>(n, a);\n}\n",
         "size is not known there"},
        {"{\n    cudaMallocManaged(&a, n);\n    if (x)\n        step<<<1, 1>>>(n, a);\n}\n",
         "a line above"},
        {"{\n    cudaMallocManaged(&a, n);\n    step<<<1, 1, 0, streams()>>>(n, a);\n}\n",
         "the stream is an expression"},
        {"{\n    cudaMallocManaged(&a, n);\n    step<<<1, 1>>>(n, a); step<<<1, 1>>>(n, a);\n}\n",
         "more than one launch"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        um_patch_t patch;
        char *diff = launched(known[i].source, 2, &patch);

        cr_assert_str_eq(diff, "", "%s", known[i].source);
        cr_assert_not_null(strstr(refused, known[i].why), "%s: %s", known[i].source, refused);
        free(diff);
    }
}
