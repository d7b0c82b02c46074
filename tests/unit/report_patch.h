/*
 * report_patch.h - a program in a folder of its own, and the diff that --patch makes of the findings on it.
 *
 * Frames are given as a Python program's, which name file and line without debug information.
 */
#ifndef UM_TEST_REPORT_PATCH_H
#define UM_TEST_REPORT_PATCH_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/findings/limits.h"
#include "report/patch.h"
#include "report_stream.h"

static char folder[64];
static char refused[4096]; /* what the last patch said, by lines */

static inline void start(void)
{
    snprintf(folder, sizeof(folder), "/tmp/umrt-patch-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    *refused = '\0';
}

static inline void finish(void)
{
    char command[128];

    cr_assert_eq(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

/* ---- its files ---- */

static inline void write_bytes(const char *name, const char *text, size_t n)
{
    FILE *file = fopen(name, "wb");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, n, file), n);
    fclose(file);
}

static inline void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

static inline char *read_text(const char *name)
{
    char *text = calloc(1, 65536);
    FILE *file = fopen(name, "rb");

    cr_assert_not_null(text);
    cr_assert_not_null(file, "%s", name);
    cr_assert(fread(text, 1, 65535, file) < 65535);
    fclose(file);
    return text;
}

/* The line on which the text stands first. */
static inline unsigned line_of(const char *source, const char *text)
{
    const char *at = strstr(source, text);
    unsigned line = 1;

    cr_assert_not_null(at, "%s", text);
    for (; at > source; at--)
        line += at[-1] == '\n';
    return line;
}

/* ---- its trace ---- */

static inline void put_site(um_report_t *r, uint64_t id, const char *file, unsigned line)
{
    char frames[512];

    snprintf(frames, sizeof(frames), "%s/%s:%u(main)", folder, file, line);
    stream_put(r, (um_event_t){.type = UM_EV_CALL_SITE, .u.call_site = {id, frames}});
}

/* When the trace was begun, `ahead` seconds from now. */
static inline um_report_t *trace(int ahead, const char *cuda)
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

/* A kernel's first touch of a region allocated at a site: never-on-cpu. */
static inline void gpu_only(um_report_t *r, uint32_t region, uint64_t site, uint64_t bytes)
{
    uint64_t addr = BASE + region * 64 * MIB, us = 1000 * region;

    stream_alloc_at(r, us, region, addr, bytes, site);
    stream_kernel(r, region, "fill(float*)");
    stream_exec(r, us + 10, 900, region);
    for (uint64_t i = 0; i < 20; i++)
        stream_gpu_fault(r, us + 20 + 40 * i, 30, addr + i * 64 * KIB);
}

/* One CPU fault elsewhere. */
static inline void end(um_report_t *r)
{
    stream_alloc(r, 6000, 90, BASE + 8192 * MIB, 64 * KIB, "other");
    stream_cpu_fault(r, 6001, BASE + 8192 * MIB);
}

/* ---- the patch ---- */

static inline void on_refused(void *ctx, const char *line)
{
    (void)ctx;
    strncat(refused, line, sizeof(refused) - strlen(refused) - 2);
    strcat(refused, "\n");
}

static inline char *patch_of(um_report_t *r, const char *root, const char *cuda, um_patch_t *patch)
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

static inline void is_nothing(char *diff)
{
    cr_assert_str_eq(diff, "");
    free(diff);
}

/* What patch -p0 makes of the file. */
static inline char *applied(const char *diff, const char *file)
{
    write_text("it.diff", diff);
    if (system("patch -s -p0 -i it.diff >patch.out 2>&1") != 0) {
        char *said = read_text("patch.out");

        cr_assert_fail("%s\n%s", said, diff);
    }
    return read_text(file);
}

/* Of a finding never-on-cpu about what is allocated in that line. */
static inline char *at_line(const char *file, unsigned line, int ahead, const char *root)
{
    um_report_t *r = trace(ahead, "12.4");
    um_patch_t patch;

    put_site(r, 7, file, line);
    gpu_only(r, 1, 7, 32 * MIB);
    end(r);
    return patch_of(r, root, NULL, &patch);
}

/* The same, where `call` stands first. */
static inline char *never_on_cpu(const char *file, const char *call)
{
    char *source = read_text(file);
    char *diff = at_line(file, line_of(source, call), 10, NULL);

    free(source);
    return diff;
}

/* Of a buffer that goes to and fro: advice behind its allocation, in the CUDA that is asked for. */
static inline char *mapped(const char *file, const char *source, const char *driver,
                           const char *cuda)
{
    um_report_t *r = trace(10, driver);
    um_patch_t patch;

    write_text(file, source);
    put_site(r, 7, file, line_of(source, "cudaMallocManaged"));
    stream_alloc_at(r, 0, 1, BASE, 64 * KIB, 7);
    stream_kernel(r, 1, "step(float*)");
    for (uint64_t us = 1000; us < 40000; us += 4000) {
        stream_exec(r, us, 1000, 1);
        stream_gpu_fault(r, us + 10, 500, BASE);
        stream_move(r, us + 50, 20, BASE, 64 * KIB, true, UM_CAUSE_COHERENCE);
        stream_cpu_fault(r, us + 2000, BASE);
        stream_move(r, us + 2040, 400, BASE, 64 * KIB, false, UM_CAUSE_COHERENCE);
    }
    return patch_of(r, NULL, cuda, &patch);
}

#endif
