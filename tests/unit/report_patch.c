/*
 * umrt report --patch: what is written applies and says what was meant; what is not certain is refused, and
 * says why. Frames are given as a Python program's, which name file and line without debug information.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report/findings/limits.h"
#include "report/patch.h"
#include "report_stream.h"

static char folder[64];
static char refused[4096];

static void start(void)
{
    snprintf(folder, sizeof(folder), "/tmp/umrt-patch-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    *refused = '\0';
}

static void finish(void)
{
    char command[128];

    cr_assert_eq(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(patch, .init = start, .fini = finish);

static void write_bytes(const char *name, const char *text, size_t n)
{
    FILE *file = fopen(name, "wb");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, n, file), n);
    fclose(file);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

static char *read_text(const char *name)
{
    char *text = calloc(1, 65536);
    FILE *file = fopen(name, "rb");

    cr_assert_not_null(text);
    cr_assert_not_null(file, "%s", name);
    cr_assert(fread(text, 1, 65535, file) < 65535);
    fclose(file);
    return text;
}

static void on_refused(void *ctx, const char *line)
{
    (void)ctx;
    strncat(refused, line, sizeof(refused) - strlen(refused) - 2);
    strcat(refused, "\n");
}

/* The line on which the text stands first. */
static unsigned line_of(const char *source, const char *text)
{
    const char *at = strstr(source, text);
    unsigned line = 1;

    cr_assert_not_null(at, "%s", text);
    for (; at > source; at--)
        line += at[-1] == '\n';
    return line;
}

static void put_site(um_report_t *r, uint64_t id, const char *file, unsigned line)
{
    char frames[512];

    snprintf(frames, sizeof(frames), "%s/%s:%u(main)", folder, file, line);
    stream_put(r, (um_event_t){.type = UM_EV_CALL_SITE, .u.call_site = {id, frames}});
}

/* When the trace was begun, `ahead` seconds from now. */
static um_report_t *trace(int ahead, const char *cuda)
{
    um_report_t *r = stream_new("t.umt");
    time_t now = time(NULL) + ahead;
    struct tm tm;
    char text[64];

    gmtime_r(&now, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    stream_fact(r, "process.recorded_at", text);
    if (cuda)
        stream_fact(r, "cuda.driver", cuda);
    stream_put(r, (um_event_t){.type = UM_EV_DEVICE, .u.device = {.name = "NVIDIA H200"}});
    return r;
}

/* A kernel's first touch of a region allocated at a site: never-on-cpu. One CPU fault elsewhere. */
static void gpu_only(um_report_t *r, uint32_t region, uint64_t site, uint64_t bytes)
{
    uint64_t addr = BASE + region * 64 * MIB, us = 1000 * region;

    stream_alloc_at(r, us, region, addr, bytes, site);
    stream_kernel(r, region, "fill(float*)");
    stream_exec(r, us + 10, 900, region);
    for (uint64_t i = 0; i < 20; i++)
        stream_gpu_fault(r, us + 20 + 40 * i, 30, addr + i * 64 * KIB);
}

static void end(um_report_t *r)
{
    stream_alloc(r, 6000, 90, BASE + 8192 * MIB, 64 * KIB, "other");
    stream_cpu_fault(r, 6001, BASE + 8192 * MIB);
}

static char *patch_of(um_report_t *r, const char *root, const char *cuda, um_patch_t *patch)
{
    um_limits_t limits = um_limits_default;
    um_report_options_t options = {.top = 100, .width = 100, .cuda = cuda, .limits = &limits};
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    cr_assert_not_null(out);
    limits.win_percent = 0;
    *patch = (um_patch_t){.root = root, .refused = on_refused};
    *refused = '\0';
    cr_assert_eq(um_report_patch(r, &options, patch, out), UM_OK);
    fclose(out);
    um_report_free(r);
    return text;
}

static void is_nothing(char *diff)
{
    cr_assert_str_eq(diff, "");
    free(diff);
}

/* What patch -p0 makes of it; "" where it does not apply. */
static char *applied(const char *diff, const char *file)
{
    write_text("it.diff", diff);
    if (system("patch -s -p0 -i it.diff >patch.out 2>&1") != 0) {
        char *said = read_text("patch.out");

        cr_assert_fail("%s\n%s", said, diff);
    }
    return read_text(file);
}

static char *never_on_cpu(const char *file, const char *call)
{
    char *source = read_text(file);
    um_report_t *r = trace(10, "12.4");
    um_patch_t patch;
    char *diff;

    put_site(r, 7, file, line_of(source, call));
    gpu_only(r, 1, 7, 32 * MIB);
    end(r);
    diff = patch_of(r, NULL, NULL, &patch);
    free(source);
    return diff;
}

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

/* ---- what is written -------------------------------------------------------------------------- */

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

/* Advice is put behind the allocation, with its own words; in the CUDA that is asked for. */
static char *mapped(const char *file, const char *source, const char *cuda)
{
    um_report_t *r = trace(10, "12.4");
    um_patch_t patch;

    write_text(file, source);
    put_site(r, 7, file, line_of(source, "cudaMallocManaged"));
    stream_alloc_at(r, 0, 1, BASE, 64 * KIB, 7);
    stream_kernel(r, 1, "step(float*)");
    for (uint64_t us = 1000; us < 40000; us += 4000) { /* to and fro */
        stream_exec(r, us, 1000, 1);
        stream_gpu_fault(r, us + 10, 500, BASE);
        stream_move(r, us + 50, 20, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
        stream_cpu_fault(r, us + 2000, BASE);
        stream_move(r, us + 2040, 400, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
    }
    return patch_of(r, NULL, cuda, &patch);
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
        char *diff = mapped("main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n", known[i].cuda);
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
    char *diff = mapped("main.cu", "\tcudaMallocManaged(&a, n);\r\n}\r\n", NULL);
    char *result = applied(diff, "main.cu");

    cr_assert_str_eq(result, "\tcudaMallocManaged(&a, n);\r\n\tcudaMemAdvise(a, n, "
                             "cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId);\r\n"
                             "\tcudaMemAdvise(a, n, cudaMemAdviseSetAccessedBy, 0);\r\n}\r\n");
    free(result);
    free(diff);
    diff = mapped("last.cu", "cudaMallocManaged(&a, n);", NULL);
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

/* ---- launches --------------------------------------------------------------------------------- */

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

/* ---- what is refused -------------------------------------------------------------------------- */

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

static char *at_line(const char *file, unsigned line, int ahead, const char *root,
                     const char *driver)
{
    um_report_t *r = trace(ahead, driver);
    um_patch_t patch;

    put_site(r, 7, file, line);
    gpu_only(r, 1, 7, 32 * MIB);
    end(r);
    return patch_of(r, root, NULL, &patch);
}

Test(patch, a_source_that_is_not_the_recorded_one_is_refused)
{
    write_text("main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n");
    is_nothing(at_line("main.cu", 2, -10, NULL, "12.4"));
    cr_assert_not_null(strstr(refused, "changed after the program"), "%s", refused);
    is_nothing(at_line("main.cu", 3, 10, NULL, "12.4"));
    cr_assert_not_null(strstr(refused, "not in that line"), "%s", refused);
    is_nothing(at_line("main.cu", 999, 10, NULL, "12.4"));
    cr_assert_not_null(strstr(refused, "no line 999"), "%s", refused);
    is_nothing(at_line("gone.cu", 2, 10, NULL, "12.4"));
    cr_assert_not_null(strstr(refused, "not below the current folder"), "%s", refused);
}

Test(patch, a_source_that_moved_is_found_by_its_end)
{
    char *diff;

    cr_assert_eq(mkdir("root", 0777), 0);
    cr_assert_eq(mkdir("root/src", 0777), 0);
    write_text("root/src/main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n");
    diff = at_line("old/src/main.cu", 2, 10, "root", "12.4");
    cr_assert_not_null(strstr(diff, "--- src/main.cu\n+++ src/main.cu\n"), "%s", refused);
    free(diff);
    write_text("root/main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n");
    is_nothing(at_line("old/src/main.cu", 2, 10, "root", "12.4"));
    cr_assert_not_null(strstr(refused, "may be"), "%s", refused);
    is_nothing(at_line("main.cu", 2, 10, "nowhere", "12.4"));
    cr_assert_not_null(strstr(refused, "nowhere: No such file"), "%s", refused);
}

Test(patch, a_path_does_not_lead_out_of_the_root)
{
    cr_assert_eq(mkdir("root", 0777), 0);
    write_text("main.cu", "{\n    cudaMallocManaged(&a, n);\n}\n");
    is_nothing(at_line("root/../main.cu", 2, 10, "root", "12.4"));
    cr_assert_not_null(strstr(refused, "not below the source root"), "%s", refused);
    cr_assert_eq(symlink("..", "root/up"), 0);
    is_nothing(at_line("x/up/../main.cu", 2, 10, "root", "12.4"));
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
    char *diff;
    um_report_t *r = trace(10, "13.0");
    um_patch_t patch;
    static const char source[] = "{\n    cudaMallocManaged(&a, n);\n}\n";

    write_text("main.cu", source);
    put_site(r, 7, "main.cu", 2);
    stream_alloc_at(r, 0, 1, BASE, 64 * KIB, 7);
    stream_kernel(r, 1, "step(float*)");
    for (uint64_t us = 1000; us < 40000; us += 4000) {
        stream_exec(r, us, 1000, 1);
        stream_gpu_fault(r, us + 10, 500, BASE);
        stream_move(r, us + 50, 20, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
        stream_cpu_fault(r, us + 2000, BASE);
        stream_move(r, us + 2040, 400, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
    }
    diff = patch_of(r, NULL, NULL, &patch);
    cr_assert_str_eq(diff, "");
    cr_assert_not_null(strstr(refused, "--cuda says it"), "%s", refused);
    free(diff);
}

/* ---- anything at all -------------------------------------------------------------------------- */

/* Lines made of what parsers trip over: no crash, and what is written applies. */
Test(patch, whatever_the_source_holds)
{
    static const char *const pieces[] = {
        "cudaMallocManaged",
        "(",
        ")",
        "&a",
        ", ",
        "n",
        ";",
        "\n",
        "\r\n",
        "/*",
        "*/",
        "//",
        "\"",
        "'",
        "\\",
        "#define ",
        "<<<",
        ">>>",
        "{",
        "}",
        "[",
        "]",
        "R\"(",
        ")\"",
        "if (x) ",
        "CHECK(",
        " ",
        "\t",
        "= ",
        "cudaMallocManaged(&a, n);",
        "\xff",
        "\\\n",
        "R\"",
        "->",
        "&",
        "<",
        ",",
    };
    uint32_t seed = 1;
    unsigned written = 0;

    for (int round = 0; round < 900; round++) {
        char source[2048] = "";
        char *diff;
        unsigned lines = 1;

        for (int i = 0; i < 40; i++) {
            seed = seed * 1664525u + 1013904223u;
            strcat(source, pieces[(seed >> 16) % (sizeof(pieces) / sizeof(pieces[0]))]);
        }
        if (round % 3 == 0)
            strcat(source, "\n;\ncudaMallocManaged(&a, n);\n");
        for (const char *at = source; *at; at++)
            lines += *at == '\n';
        write_text("main.cu", source);
        seed = seed * 1664525u + 1013904223u;
        diff =
            at_line("main.cu", round % 3 ? 1 + (seed >> 16) % lines : lines - 1, 10, NULL, "12.4");
        if (*diff && round % 20 == 0) {
            char *result = applied(diff, "main.cu");

            cr_assert_not_null(strstr(result, "cudaMalloc(&a, n)"));
            free(result);
        }
        written += *diff != 0;
        free(diff);
    }
    cr_assert(written > 20, "%u", written);
}
