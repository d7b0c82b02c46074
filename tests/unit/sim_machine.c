#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/machine.h"

static const char *const names[] = {"h200-pcie5",     "a100-pcie4",    "v100-pcie3",
                                    "v100-nvlink-p9", "rtx4090-pcie4", "gh200-c2c"};

static um_machine_t load(const char *name)
{
    um_machine_t machine;
    char error[512];

    cr_assert_eq(um_machine_load(name, &machine, error, sizeof(error)), UM_OK, "%s", error);
    return machine;
}

/* A file with one piece of text put in place of another. */
static um_status_t load_changed(const char *from, const char *to, char *error, size_t error_bytes)
{
    static char text[65536];
    char path[] = "/tmp/umrt-machine-XXXXXX.json", source[512];
    um_machine_t machine;
    size_t n;
    char *at;
    int fd = mkstemps(path, 5);
    FILE *file;
    um_status_t status;

    snprintf(source, sizeof(source), "%s/lib/sim/machines/h200-pcie5.json", getenv("UM_SRCDIR"));
    file = fopen(source, "r");
    cr_assert(file && fd >= 0);
    n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    fclose(file);
    at = strstr(text, from);
    cr_assert(at, "%s", from);
    dprintf(fd, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    close(fd);
    status = um_machine_load(path, &machine, error, error_bytes);
    if (status != UM_OK)
        cr_assert(strstr(error, path), "%s", error);
    unlink(path);
    return status;
}

Test(machine, all_that_come_along_load)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        um_machine_t machine = load(names[i]);

        cr_assert_str_eq(machine.name, names[i]);
        cr_assert_gt(machine.memory_bytes, 0);
    }
}

Test(machine, an_unknown_one_is_answered_with_the_list)
{
    um_machine_t machine;
    char error[512];

    cr_assert_eq(um_machine_load("h300", &machine, error, sizeof(error)), UM_ERR_NOT_FOUND);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        cr_assert(strstr(error, names[i]), "%s", error);
}

Test(machine, is_found_by_its_gpu)
{
    um_machine_t machine;

    cr_assert_eq(um_machine_for_gpu("NVIDIA H200", &machine), UM_OK);
    cr_assert_str_eq(machine.name, "h200-pcie5");
    cr_assert_eq(um_machine_for_gpu("NVIDIA H300", &machine), UM_ERR_NOT_FOUND);
}

Test(machine, a_file_must_give_every_figure_in_range_and_no_other)
{
    static const struct {
        const char *from, *to, *said;
    } change[] = {
        {"\"cpu_fault_ns\"", "\"cpu_fault_us\"", "cpu_fault_ns"},
        {"\"sync_call_ns\": {", "\"surplus_ns\": {}, \"sync_call_ns\": {", "surplus_ns"},
        {"\"launch_call_ns\": {\"value\": ", "\"launch_call_ns\": {\"value\": -", "launch_call_ns"},
        {"\"launch_call_ns\": {\"value\": ", "\"launch_call_ns\": {\"value\": \"x\", \"was\": ",
         "launch_call_ns"},
        {"\"coherent\": {\"value\": false", "\"coherent\": {\"value\": 0", "coherent"},
        {"[[4096, ", "[[4096, -", "link_to_device"},
        {"[[4096, ", "[[4096000, ", "link_to_device"},
        {"umrt.machine/1", "umrt.machine/2", "schema"},
        {"\"name\": \"h200-pcie5\"", "\"name\": \"\"", "name"},
        {"{", "[", "line"},
    };
    char error[512];

    for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
        cr_assert_eq(load_changed(change[i].from, change[i].to, error, sizeof(error)),
                     UM_ERR_FORMAT, "%s", change[i].to);
        cr_assert(strstr(error, change[i].said), "%s", error);
    }
}

Test(machine, what_is_saved_loads_as_it_was)
{
    um_machine_t before = load("h200-pcie5"), after;
    char path[] = "/tmp/umrt-machine-XXXXXX.json", error[512];
    int fd = mkstemps(path, 5);

    cr_assert_geq(fd, 0);
    close(fd);
    before.launch_call_ns = 1234.5;
    cr_assert_eq(um_machine_save(&before, NULL, "2026-12-01", path), UM_OK);
    cr_assert_eq(um_machine_load(path, &after, error, sizeof(error)), UM_OK, "%s", error);
    unlink(path);
    for (const um_machine_figure_t *figure = um_machine_figures; figure->name; figure++) {
        static const size_t size[] = {sizeof(double), sizeof(um_curve_t), sizeof(uint64_t),
                                      sizeof(bool)};

        cr_assert_arr_eq((char *)&before + figure->offset, (char *)&after + figure->offset,
                         size[figure->type], "%s", figure->name);
    }
}

Test(machine, a_curve_is_read_between_its_points_and_held_beyond_them)
{
    um_curve_t curve = {.n = 2, .point = {{4096, 4}, {65536, 8}}};

    cr_assert_eq(um_curve_ns(&curve, 4096), 1024);
    cr_assert_eq(um_curve_ns(&curve, 2048), 512);
    cr_assert_eq(um_curve_ns(&curve, 16384), 2731); /* 6 GB/s half way */
    cr_assert_eq(um_curve_ns(&curve, 131072), 16384);
    cr_assert_eq(um_curve_ns(&curve, 0), 0);
}
