/* A workload is what was put in, checked. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/gen.h"
#include "sim/workload.h"
#include "um_trace.h"

#define BASE UINT64_C(0x100000000000)

typedef struct made {
    um_workload_builder_t *builder;
    uint64_t time_ns;
} made_t;

static um_status_t put(made_t *m, um_event_t event)
{
    event.time_ns = ++m->time_ns;
    return um_workload_builder_step(m->builder, &event, 0, 0);
}

static um_status_t region(made_t *m, uint32_t id, uint64_t addr, uint64_t bytes)
{
    um_event_t e = {.type = UM_EV_REGION_ALLOC};

    e.u.region_alloc = (um_ev_region_alloc_t){.region = id,
                                              .family = UM_FAMILY_MANAGED,
                                              .addr = addr,
                                              .bytes = bytes};
    return put(m, e);
}

static um_status_t gone(made_t *m, uint32_t id)
{
    um_event_t e = {.type = UM_EV_REGION_FREE};

    e.u.region_free.region = id;
    return put(m, e);
}

static um_status_t launch(made_t *m, uint32_t arg)
{
    um_event_t e = {.type = UM_EV_LAUNCH};
    um_arg_t a = {.region = arg};

    e.u.launch =
        (um_ev_launch_t){.correlation = (uint32_t)m->time_ns, .n_args = arg != 0, .args = &a};
    return put(m, e);
}

static um_status_t touch(made_t *m, uint32_t id, uint64_t addr, uint64_t bytes, int beside)
{
    um_touch_t t = {addr, bytes, id, UM_ACCESS_READ, (uint8_t)beside};

    return um_workload_builder_touch(m->builder, &t);
}

static made_t begin(void)
{
    made_t m = {0};

    cr_assert_eq(um_workload_builder_new(UM_WORKLOAD_GENERATED, "made", &m.builder), UM_OK);
    return m;
}

static void refused(made_t *m, const char *why)
{
    um_workload_t *w = NULL;
    char error[512] = "";

    cr_assert_eq(um_workload_builder_finish(m->builder, &w, error, sizeof error), UM_ERR_INVALID);
    cr_expect_null(w);
    cr_expect_not_null(strstr(error, why), "'%s' does not say '%s'", error, why);
    cr_expect_null(strchr(error, '\n'));
    cr_expect_eq(strncmp(error, "made: ", 6), 0);
}

Test(workload, keeps_steps_and_touches)
{
    made_t m = begin();
    um_workload_t *w;

    region(&m, 1, BASE, 1 << 20);
    launch(&m, 1);
    touch(&m, 1, BASE, 4096, 0);
    touch(&m, 1, BASE + 8192, 4096, 0);
    um_workload_builder_step(m.builder, NULL, 7, 0);
    touch(&m, 1, BASE, 100, 0);
    cr_assert_eq(um_workload_builder_finish(m.builder, &w, NULL, 0), UM_OK);
    cr_expect_eq(w->n_steps, 3);
    cr_expect_eq(w->n_launches, 1);
    cr_expect_eq(w->n_touches, 3);
    cr_expect_eq(w->touched_bytes, 8192, "the host's are not counted");
    cr_expect_eq(w->managed_peak_bytes, 1 << 20);
    cr_expect_eq(w->steps[1].event->u.launch.args[0].region, 1);
    cr_expect_null(w->steps[2].event);
    cr_expect_eq(w->steps[2].cpu_ns, 7);
    cr_expect_eq(w->touches[w->steps[2].first_touch].bytes, 100);
    um_workload_free(w);
}

Test(workload, merges_what_goes_on_but_not_what_is_side_by_side)
{
    made_t m = begin();
    um_workload_t *w;

    region(&m, 1, BASE, 1 << 20);
    launch(&m, 1);
    touch(&m, 1, BASE, 4096, 0);
    touch(&m, 1, BASE + 4096, 4096, 0);
    touch(&m, 1, BASE + 8192, 4096, 0); /* swept beside the next: stays alone */
    touch(&m, 1, BASE + 65536, 4096, 1);
    touch(&m, 1, BASE + 69632, 4096, 0);
    cr_assert_eq(um_workload_builder_finish(m.builder, &w, NULL, 0), UM_OK);
    cr_assert_eq(w->n_touches, 4);
    cr_expect_eq(w->touches[0].bytes, 8192);
    cr_expect_eq(w->touches[1].bytes, 4096);
    cr_expect_eq(w->touches[2].beside, 1);
    cr_expect_eq(w->touches[3].addr, BASE + 69632);
    cr_expect_eq(w->touched_bytes, 5 * 4096);
    um_workload_free(w);
}

Test(workload, without_launches_is_none)
{
    made_t m = begin();

    region(&m, 1, BASE, 1 << 20);
    refused(&m, "no launches");
}

Test(workload, refuses_a_free_of_what_is_not_alive)
{
    made_t m = begin();

    region(&m, 1, BASE, 1 << 20);
    launch(&m, 1);
    cr_expect_eq(gone(&m, 1), UM_OK);
    cr_expect_eq(gone(&m, 1), UM_ERR_INVALID);
    refused(&m, "region_free at 4 ns: region 1 is not alive");
}

Test(workload, refuses_an_argument_in_a_dead_region)
{
    made_t m = begin();

    region(&m, 1, BASE, 1 << 20);
    gone(&m, 1);
    launch(&m, 1);
    refused(&m, "argument 0");
}

Test(workload, refuses_regions_over_each_other)
{
    made_t m = begin();

    region(&m, 1, BASE, 1 << 20);
    region(&m, 2, BASE + (2 << 20), 1 << 20);
    cr_expect_eq(region(&m, 3, BASE + (1 << 20), 1 << 20), UM_OK, "just fits between");
    region(&m, 4, BASE + (2 << 20) - 4096, 8192);
    refused(&m, "region 4 lies over region 3");
}

Test(workload, refuses_numbers_of_regions_that_no_table_holds)
{
    const uint32_t ids[] = {UINT32_MAX, UINT32_C(1) << 31, (UINT32_C(1) << 24) + 1};

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        made_t m = begin();

        cr_expect_eq(region(&m, ids[i], BASE, 4096), UM_ERR_INVALID);
        refused(&m, "numbers go up to 16777216");
    }
}

/* A simulation keeps something for each block, used or not. */
Test(workload, refuses_more_memory_than_can_be_kept_track_of)
{
    const uint64_t tib = (uint64_t)1 << 40;
    made_t m = begin();

    cr_expect_eq(region(&m, 1, BASE, 5 * tib), UM_OK);
    gone(&m, 1);
    cr_expect_eq(region(&m, 2, BASE, 5 * tib), UM_OK, "one at a time");
    cr_expect_eq(region(&m, 3, BASE + 5 * tib, 3 * tib), UM_OK, "just fits");
    cr_expect_eq(region(&m, 4, BASE + 8 * tib, 1), UM_ERR_INVALID);
    refused(&m, "region 4 of 1 bytes: no more than 8 TiB of managed memory at a time");
    m = begin();
    cr_expect_eq(region(&m, 1, BASE, (uint64_t)1 << 62), UM_ERR_INVALID);
    refused(&m, "no more than 8 TiB");
}

Test(workload, refuses_a_region_whose_last_page_ends_the_address_space)
{
    const uint64_t bytes[] = {1, 4095};

    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        made_t m = begin();

        cr_expect_eq(region(&m, 1, UINT64_MAX - 4095, bytes[i]), UM_ERR_INVALID);
        refused(&m, "cannot be");
    }
}

Test(workload, refuses_accesses_outside_live_regions)
{
    made_t m = begin();

    region(&m, 1, BASE, 1 << 20);
    launch(&m, 1);
    cr_expect_eq(touch(&m, 1, BASE + (1 << 20) - 4096, 4096, 0), UM_OK);
    cr_expect_eq(touch(&m, 1, BASE + (1 << 20) - 4096, 8192, 0), UM_ERR_INVALID);
    refused(&m, "not inside region 1");
}

/* ---- files --------------------------------------------------------------------------------------- */

static char path[] = "/tmp/um_workload_XXXXXX";

static void name_file(void)
{
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
}

/* A file of one region, one launch and one more event. */
static void write_file(const char *accesses, um_event_t more)
{
    um_ev_fact_t fact = {"workload.accesses", accesses};
    um_event_t alloc = {.type = UM_EV_REGION_ALLOC, .time_ns = 1, .tid = 1};
    um_event_t put = {.type = UM_EV_LAUNCH, .time_ns = 2, .tid = 1};
    um_trace_writer_t *writer;

    name_file();
    alloc.u.region_alloc = (um_ev_region_alloc_t){.region = 1,
                                                  .family = UM_FAMILY_MANAGED,
                                                  .addr = BASE,
                                                  .bytes = 1 << 20};
    put.u.launch.correlation = 5;
    more.time_ns = 3;
    cr_assert_eq(um_trace_writer_open(path, &fact, 1, NULL, &writer), UM_OK);
    cr_assert_eq(um_trace_writer_put(writer, &alloc), UM_OK);
    cr_assert_eq(um_trace_writer_put(writer, &put), UM_OK);
    cr_assert_eq(um_trace_writer_put(writer, &more), UM_OK);
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);
}

static um_status_t load(const char *why)
{
    um_workload_t *w = NULL;
    char error[512] = "";
    bool whole;
    um_status_t status = um_workload_load(path, &w, &whole, error, sizeof error);

    unlink(path);
    um_workload_free(w);
    if (status != UM_OK) {
        cr_expect_eq(strncmp(error, path, strlen(path)), 0, "%s", error);
        cr_expect_not_null(strstr(error, why), "%s", error);
        cr_expect_null(strchr(error, '\n'));
    }
    return status;
}

Test(workload, of_a_file_with_an_execution_that_nobody_launched_is_refused)
{
    um_event_t exec = {.type = UM_EV_KERNEL_EXEC};

    exec.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = 6, .duration_ns = 10};
    write_file("exact", exec);
    cr_expect_eq(load("kernel_exec at 3 ns: there is no launch 6"), UM_ERR_INVALID);
}

/* A recording may begin in between. */
Test(workload, of_a_recording_leaves_out_what_was_launched_before)
{
    um_event_t exec = {.type = UM_EV_KERNEL_EXEC};

    exec.u.kernel_exec = (um_ev_kernel_exec_t){.correlation = 6, .duration_ns = 10};
    write_file("", exec);
    cr_expect_eq(load(""), UM_OK);
}

Test(workload, of_a_file_with_an_access_by_no_launch_is_refused)
{
    um_event_t access = {.type = UM_EV_ACCESS};

    access.u.access = (um_ev_access_t){
        .addr = BASE, .bytes = 4096, .kind = UM_ACCESS_READ, .correlation = 6, .region = 1};
    write_file("exact", access);
    cr_expect_eq(load("there is no launch 6"), UM_ERR_INVALID);
}

Test(workload, of_a_file_with_an_access_to_nothing_is_refused)
{
    um_event_t access = {.type = UM_EV_ACCESS};

    access.u.access = (um_ev_access_t){.addr = BASE + (1 << 20),
                                       .bytes = 4096,
                                       .kind = UM_ACCESS_READ,
                                       .correlation = 5,
                                       .region = 1};
    write_file("exact", access);
    cr_expect_eq(load("not inside region 1"), UM_ERR_INVALID);
}

Test(workload, of_no_file_is_an_io_error)
{
    um_workload_t *w;
    char error[512] = "";

    cr_expect_eq(um_workload_load("/nowhere/x.umt", &w, NULL, error, sizeof error), UM_ERR_IO);
    cr_expect_eq(strncmp(error, "/nowhere/x.umt: ", 16), 0, "%s", error);
}

/* Many blocks, each with allocations and frees. */
static size_t long_file(void)
{
    um_gen_options_t o = {.bytes = 1 << 20, .iterations = 40000, .gpus = 1, .compute = 1};
    FILE *f;
    long bytes;

    name_file();
    cr_assert_eq(um_gen_file(um_gen_find("first-touch"), &o, "test", path), UM_OK);
    f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    bytes = ftell(f);
    fclose(f);
    return (size_t)bytes;
}

Test(workload, of_a_file_that_is_cut_off_is_what_is_whole)
{
    size_t bytes = long_file();
    um_workload_t *w;
    char error[512] = "";
    bool whole = true;

    cr_assert_eq(truncate(path, (off_t)(bytes * 2 / 3)), 0);
    cr_assert_eq(um_workload_load(path, &w, &whole, error, sizeof error), UM_OK, "%s", error);
    unlink(path);
    cr_expect_not(whole);
    cr_expect(w->n_launches > 10000 && w->n_launches < 80000, "%u", w->n_launches);
    um_workload_free(w);
}

Test(workload, of_a_file_with_a_hole_leaves_out_what_hangs_in_the_air)
{
    size_t bytes = long_file();
    um_workload_t *w;
    char error[512] = "";
    bool whole = true;
    FILE *f = fopen(path, "r+b");

    fseek(f, (long)(bytes / 2), SEEK_SET);
    fputs("not what it was", f);
    fclose(f);
    cr_assert_eq(um_workload_load(path, &w, &whole, error, sizeof error), UM_OK, "%s", error);
    unlink(path);
    cr_expect_not(whole);
    cr_expect_gt(w->skipped, 0);
    cr_expect(w->n_launches > 10000 && w->n_launches < 80000, "%u", w->n_launches);
    um_workload_free(w);
}
