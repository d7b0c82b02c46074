/*
 * Whole reports against tests/golden/. A difference is shown by file name, with the command that accepts
 * the new output: look at it first (git diff).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report_stream.h"

/* One small program with a bit of everything: input faulted in, halo to and fro, scratch first touched
 * by the GPU, two small buffers on one page, a flag around the launches, phases from NVTX. */
static void program(um_report_t *r, uint64_t shift_us)
{
    uint64_t us = 1000 + shift_us;

    stream_fact(r, "process.command", "./solver --steps 4");
    stream_fact(r, "host.name", "node17");
    stream_fact(r, "driver.version", "580.159");
    stream_put(r, (um_event_t){.type = UM_EV_DEVICE,
                               .u.device = {.device = 0,
                                            .name = "NVIDIA H200",
                                            .uuid = "GPU-0",
                                            .pci = "0000:19:00.0"}});
    stream_put(r, (um_event_t){.type = UM_EV_CALL_SITE,
                               .u.call_site = {0xabc, "solver+0x4f21;solver+0x5000"}});
    stream_kernel(r, 1, "step(float*, float*, int)");
    stream_kernel(r, 2, "init(float*)");
    stream_alloc(r, us, 1, BASE, 8 * MIB, "input");
    stream_alloc(r, us + 1, 2, BASE + 8 * MIB, 256 * KIB, "halo");
    stream_alloc_at(r, us + 2, 3, BASE + 64 * MIB, 32 * MIB, 0xabc);
    stream_alloc(r, us + 3, 4, BASE + 128 * MIB, 384, "norm");
    stream_alloc(r, us + 4, 5, BASE + 128 * MIB + 512, 16 * KIB, "sums\xff");
    for (uint64_t i = 0; i < 4; i++)
        stream_cpu_fault(r, us + 10 + i, BASE + i * 2 * MIB);
    stream_cpu_fault(r, us + 20, BASE + 8 * MIB);
    stream_cpu_fault(r, us + 21, BASE + 128 * MIB);
    us += 1000;
    stream_exec(r, us, 3000, 2);
    for (uint64_t i = 0; i < 16; i++)
        stream_gpu_fault(r, us + 10 + 100 * i, 90, BASE + 64 * MIB + i * 2 * MIB);
    us += 4000;
    for (uint64_t step = 0; step < 4; step++, us += 4000) {
        stream_copy(r, us, 2, 1, UM_MEMORY_PAGEABLE, UM_MEMORY_DEVICE);
        stream_exec(r, us + 10, 2000, 1);
        if (!step) {
            for (uint64_t i = 0; i < 4; i++) {
                stream_gpu_fault(r, us + 20 + 300 * i, 280, BASE + i * 2 * MIB);
                stream_move(r, us + 100 + 300 * i, 50, BASE + i * 2 * MIB, 2 * MIB, true,
                            UM_CAUSE_COHERENCE);
            }
            stream_gpu_fault(r, us + 1300, 30, BASE + 128 * MIB);
            stream_move(r, us + 1310, 5, BASE + 128 * MIB, 64 * KIB, true, UM_CAUSE_COHERENCE);
        }
        stream_gpu_fault(r, us + 1400, 200, BASE + 8 * MIB);
        stream_move(r, us + 1450, 20, BASE + 8 * MIB, 128 * KIB, true, UM_CAUSE_COHERENCE);
        stream_cpu_fault(r, us + 2500, BASE + 8 * MIB);
        stream_move(r, us + 2540, 30, BASE + 8 * MIB, 128 * KIB, false, UM_CAUSE_COHERENCE);
        stream_copy(r, us + 3000, 3, 1, UM_MEMORY_DEVICE, UM_MEMORY_PAGEABLE);
    }
    stream_cpu_fault(r, us, BASE + 128 * MIB);
    stream_move(r, us + 30, 10, BASE + 128 * MIB, 64 * KIB, false, UM_CAUSE_COHERENCE);
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text;
    long bytes;

    if (!file)
        return strdup("");
    fseek(file, 0, SEEK_END);
    bytes = ftell(file);
    rewind(file);
    text = calloc(1, (size_t)bytes + 1);
    cr_assert_eq(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    fclose(file);
    return text;
}

static void compare(um_report_t *r, const char *name, um_report_format_t format, uint32_t width)
{
    const char *source = getenv("UM_SRCDIR"), *build = getenv("UM_BUILDDIR");
    char golden[4096], actual[4096];
    char *text = stream_text(r, format, width), *expected;

    cr_assert_not_null(source);
    snprintf(golden, sizeof(golden), "%s/tests/golden/%s", source, name);
    expected = read_all(golden);
    if (strcmp(text, expected)) {
        FILE *file;

        snprintf(actual, sizeof(actual), "%s/tests/golden-%s", build ? build : ".", name);
        file = fopen(actual, "wb");
        cr_assert_not_null(file, "%s: %s", actual, strerror(errno));
        fputs(text, file);
        fclose(file);
        cr_assert_fail("differs from tests/golden/%s; to accept it: cp %s %s", name, actual,
                       golden);
    }
    free(expected);
    free(text);
    um_report_free(r);
}

static um_report_t *one(void)
{
    um_report_t *r = stream_new("solver.umt");

    program(r, 0);
    return r;
}

Test(golden, text)
{
    compare(one(), "report.txt", UM_REPORT_TEXT, 100);
}

Test(golden, narrow_text)
{
    compare(one(), "report-narrow.txt", UM_REPORT_TEXT, 60);
}

Test(golden, json)
{
    compare(one(), "report.json", UM_REPORT_JSON, 100);
}

/* Two ranks, one with named phases and a loss, one whose file is damaged. */
Test(golden, ranks)
{
    um_report_t *r = stream_new("rank0.umt");

    stream_fact(r, "rank.world", "0");
    program(r, 0);
    stream_put(r, (um_event_t){.time_ns = 30000 * US,
                               .type = UM_EV_MARK,
                               .u.mark = {UM_MARK_PUSH, 0, "umrt", "write out"}});
    stream_put(r, (um_event_t){.time_ns = 31000 * US,
                               .type = UM_EV_MARK,
                               .u.mark = {UM_MARK_POP, 0, "", ""}});
    stream_loss(r, 31000);
    cr_assert_eq(um_report_begin(r, "rank1.umt", NULL, 0), UM_OK);
    stream_fact(r, "rank.world", "1");
    program(r, 500);
    cr_assert_eq(um_report_note(r, "rank1.umt: offset 8192: block checksum does not match"), UM_OK);
    compare(r, "report-ranks.txt", UM_REPORT_TEXT, 100);
}

Test(golden, nothing_recorded)
{
    um_report_t *r = stream_new("off.umt");

    stream_put(r, (um_event_t){.type = UM_EV_OPTION,
                               .u.option = {"unified-memory", "0", "environment"}});
    stream_kernel(r, 1, "step(float*, float*, int)");
    stream_exec(r, 1000, 100, 1);
    compare(r, "report-off.txt", UM_REPORT_TEXT, 100);
}

Test(golden, the_same_stream_gives_the_same_bytes)
{
    for (int format = UM_REPORT_TEXT; format <= UM_REPORT_JSON; format++) {
        um_report_t *a = one(), *b = one();
        char *x = stream_text(a, (um_report_format_t)format, 100);
        char *y = stream_text(b, (um_report_format_t)format, 100);
        char *again = stream_text(a, (um_report_format_t)format, 100);

        cr_assert_str_eq(x, y);
        cr_assert_str_eq(x, again, "writing does not change the report");
        free(x);
        free(y);
        free(again);
        um_report_free(a);
        um_report_free(b);
    }
}
