/* One table of figures drives loading, checking and saving. */
#include "machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA      "umrt.machine/1"
#define MAX_NAMES   64
#define KIND_DOUBLE 0u
#define KIND_CURVE  1u
#define KIND_BYTES  2u
#define KIND_BOOL   3u

#define FIGURE(field, kind, least, most, text)                                                     \
    {                                                                                              \
        .name = #field, .doc = text, .offset = offsetof(um_machine_t, field), .type = kind,        \
        .min = least, .max = most                                                                  \
    }
#define NS(field, text)   FIGURE(field, KIND_DOUBLE, 0, 1e9, text)
#define RATE(field, text) FIGURE(field, KIND_DOUBLE, 1e-3, 1e5, text)

const um_machine_figure_t um_machine_figures[] = {
    FIGURE(memory_bytes, KIND_BYTES, UM_BLOCK_BYTES, 0x1p50,
           "bytes of one GPU's memory that managed memory can use"),
    FIGURE(kernel_time_scale, KIND_DOUBLE, 1e-3, 1e3,
           "kernel time here over kernel time on an H200, data there"),
    FIGURE(coherent, KIND_BOOL, 0, 1, "GPU and CPU reach each other's memory in hardware"),
    FIGURE(link_to_device, KIND_CURVE, 1e-3, 1e5,
           "GB/s of one DMA transfer from the host by its bytes"),
    FIGURE(link_to_host, KIND_CURVE, 1e-3, 1e5,
           "GB/s of one DMA transfer to the host by its bytes"),
    FIGURE(link_peer, KIND_CURVE, 1e-3, 1e5,
           "GB/s of one transfer between GPUs by its bytes; no points = through the host"),
    RATE(remote_read_gb_per_s, "GB/s of a kernel that reads host memory over the link"),
    RATE(remote_write_gb_per_s, "GB/s of a kernel that writes host memory over the link"),
    FIGURE(remote_write_wait, KIND_DOUBLE, 0, 1,
           "part of the time of a kernel's writes over the link for which its reads wait"),
    NS(fault_batch_ns, "ns of one round of the GPU fault handler: fetch, replay, wake"),
    NS(fault_block_ns, "ns of one visit to a block by the fault handler"),
    NS(fault_page_ns, "ns for each page that faulted on a GPU"),
    NS(fault_transfer_ns, "ns to set up one DMA transfer of the fault handler, besides the link"),
    FIGURE(fault_window_bytes, KIND_BYTES, UM_PAGE_BYTES, 0x1p40,
           "bytes of a sweep that a GPU has under way at once: they fault together"),
    NS(cpu_fault_ns, "ns of one CPU fault besides what it moves"),
    NS(cpu_write_fault_ns, "ns more of a CPU fault that writes what a GPU has"),
    NS(unmap_host_ns_per_mib, "ns to take 1 MiB out of the CPU's page tables"),
    NS(unmap_device_ns_per_mib, "ns to take 1 MiB out of a GPU's page tables"),
    NS(populate_device_ns_per_mib, "ns to allocate and zero 1 MiB on a GPU"),
    NS(populate_host_ns_per_mib, "ns to allocate and zero 1 MiB on the host"),
    NS(host_alloc_ns_per_mib, "ns to allocate and map 1 MiB on the host for data that comes there"),
    NS(map_remote_ns_per_mib, "ns to map 1 MiB of the other side's memory"),
    NS(evict_block_ns, "ns to choose and clear one block, besides the transfer"),
    NS(duplicate_block_ns, "ns to make a ReadMostly copy of a block, besides the transfer"),
    NS(collapse_page_ns, "ns for each page written in a ReadMostly block that has copies"),
    NS(prefetch_call_ns, "ns of one prefetch call that finds nothing to do"),
    NS(prefetch_block_ns, "ns of a prefetch for each block it looks at"),
    NS(prefetch_start_ns, "ns of a prefetch call that moves something, once"),
    NS(advise_call_ns, "ns of one call that gives advice"),
    NS(preferred_location_ns_per_mib,
       "ns for each populated MiB that is given a preferred location"),
    NS(read_mostly_ns_per_mib, "ns for each populated MiB that becomes ReadMostly"),
    NS(alloc_call_ns, "ns of cudaMallocManaged"),
    NS(free_call_ns, "ns of cudaFree"),
    NS(free_ns_per_mib, "ns of cudaFree for each MiB that is populated"),
    NS(launch_call_ns, "ns of the CPU in a launch"),
    NS(kernel_start_ns, "ns from the stream's turn to the first access of a kernel"),
    NS(sync_call_ns, "ns of a wait that finds all done"),
    NS(copy_call_ns, "ns of the CPU in a copy or set, besides the data"),
    RATE(pageable_copy_gb_per_s, "GB/s of a copy from or to pageable host memory"),
    RATE(device_gb_per_s, "GB/s of a copy or set inside a GPU"),
    NS(hint_delay_ns, "ns from a call of the program to umrt's decision"),
    NS(record_delay_ns, "ns from a fault or migration to umrt hearing of it"),
    {0},
};

/* ---- curves ---- */

uint64_t um_curve_ns(const um_curve_t *curve, uint64_t bytes)
{
    double rate;
    uint32_t i = 0;

    if (!curve->n || !bytes)
        return 0;
    while (i < curve->n && curve->point[i].bytes < bytes)
        i++;
    if (i == 0) {
        rate = curve->point[0].gb_per_s;
    } else if (i == curve->n) {
        rate = curve->point[curve->n - 1].gb_per_s;
    } else {
        double low = log2((double)curve->point[i - 1].bytes);
        double high = log2((double)curve->point[i].bytes);
        double part = (log2((double)bytes) - low) / (high - low);

        rate = curve->point[i - 1].gb_per_s +
               part * (curve->point[i].gb_per_s - curve->point[i - 1].gb_per_s);
    }
    return (uint64_t)((double)bytes / rate + 0.5);
}

static bool read_curve(const json_t *value, const um_machine_figure_t *figure, um_curve_t *out)
{
    um_curve_t curve = {.n = (uint32_t)json_array_size(value)};

    if (!json_is_array(value) || json_array_size(value) > UM_CURVE_POINTS ||
        (!curve.n && figure->offset != offsetof(um_machine_t, link_peer)))
        return false;
    for (uint32_t i = 0; i < curve.n; i++) {
        const json_t *pair = json_array_get(value, i);
        json_int_t bytes = json_integer_value(json_array_get(pair, 0));
        double rate = json_number_value(json_array_get(pair, 1));

        if (json_array_size(pair) != 2 || bytes <= 0 || !(rate >= figure->min) ||
            rate > figure->max || (i && (uint64_t)bytes <= curve.point[i - 1].bytes))
            return false;
        curve.point[i].bytes = (uint64_t)bytes;
        curve.point[i].gb_per_s = rate;
    }
    *out = curve;
    return true;
}

static json_t *write_curve(const um_curve_t *curve)
{
    json_t *value = json_array();

    for (uint32_t i = 0; i < curve->n; i++)
        json_array_append_new(value, json_pack("[I, f]", (json_int_t)curve->point[i].bytes,
                                               curve->point[i].gb_per_s));
    return value;
}

/* ---- one figure ---- */

static bool read_figure(const json_t *value, const um_machine_figure_t *figure, um_machine_t *out)
{
    void *field = (char *)out + figure->offset;
    double number = json_number_value(value);

    switch (figure->type) {
    case KIND_CURVE:
        return read_curve(value, figure, field);
    case KIND_BOOL:
        *(bool *)field = json_is_true(value);
        return json_is_boolean(value);
    case KIND_BYTES:
        if (!json_is_integer(value) || number < figure->min || number > figure->max)
            return false;
        *(uint64_t *)field = (uint64_t)json_integer_value(value);
        return true;
    default:
        if (!json_is_number(value) || !(number >= figure->min) || number > figure->max)
            return false;
        *(double *)field = number;
        return true;
    }
}

static json_t *write_figure(const um_machine_figure_t *figure, const um_machine_t *machine)
{
    const void *field = (const char *)machine + figure->offset;

    switch (figure->type) {
    case KIND_CURVE:
        return write_curve(field);
    case KIND_BOOL:
        return json_boolean(*(const bool *)field);
    case KIND_BYTES:
        return json_integer((json_int_t) * (const uint64_t *)field);
    default:
        return json_real(*(const double *)field);
    }
}

/* ---- one file ---- */

static um_status_t refuse(char *error, size_t bytes, const char *path, const char *what,
                          const char *which)
{
    snprintf(error, bytes, "%s: %s%s%s", path, what, *which ? " " : "", which);
    return UM_ERR_FORMAT;
}

static um_status_t read_figures(const json_t *figures, const char *path, um_machine_t *out,
                                char *error, size_t error_bytes)
{
    const char *key;
    json_t *entry;
    size_t known = 0;

    for (const um_machine_figure_t *figure = um_machine_figures; figure->name; figure++, known++) {
        const json_t *one = json_object_get(figures, figure->name);
        const char *source = json_string_value(json_object_get(one, "source"));

        if (!one)
            return refuse(error, error_bytes, path, "there is no figure", figure->name);
        if (!source || !*source)
            return refuse(error, error_bytes, path, "there is no source for", figure->name);
        if (!read_figure(json_object_get(one, "value"), figure, out))
            return refuse(error, error_bytes, path,
                          "the value is not one or out of range:", figure->name);
        out->estimates += strncmp(source, "estimate", strlen("estimate")) == 0;
    }
    if (json_object_size(figures) == known)
        return UM_OK;
    json_object_foreach((json_t *)figures, key, entry)
    {
        const um_machine_figure_t *figure = um_machine_figures;

        while (figure->name && strcmp(figure->name, key) != 0)
            figure++;
        if (!figure->name)
            return refuse(error, error_bytes, path, "there is no figure called", key);
    }
    return UM_OK;
}

/* NULL with a line in error. O_NONBLOCK: a pipe's writer is not waited for. */
static FILE *open_regular(const char *path, char *error, size_t error_bytes)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    FILE *file = NULL;

    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        snprintf(error, error_bytes, "%s: not a regular file", path);
        close(fd);
        return NULL;
    }
    if (fd >= 0 && !(file = fdopen(fd, "r")))
        close(fd);
    if (!file)
        snprintf(error, error_bytes, "%s: %s", path, strerror(errno));
    return file;
}

static um_status_t load_file(const char *path, um_machine_t *out, char *error, size_t error_bytes)
{
    json_error_t where;
    json_t *root;
    um_machine_t machine = {0};
    const char *schema, *name, *gpu;
    um_status_t status;
    FILE *file;

    file = open_regular(path, error, error_bytes);
    if (!file)
        return UM_ERR_IO;
    root = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    fclose(file);
    if (!root) {
        snprintf(error, error_bytes, "%s: line %d: %s", path, where.line, where.text);
        return UM_ERR_FORMAT;
    }
    schema = json_string_value(json_object_get(root, "schema"));
    name = json_string_value(json_object_get(root, "name"));
    gpu = json_string_value(json_object_get(root, "gpu"));
    if (!schema || strcmp(schema, SCHEMA) != 0)
        status = refuse(error, error_bytes, path, "the schema is not", SCHEMA);
    else if (!name || !*name || !gpu)
        status = refuse(error, error_bytes, path, "there is no name or gpu", "");
    else
        status = read_figures(json_object_get(root, "figures"), path, &machine, error, error_bytes);
    if (status == UM_OK) {
        snprintf(machine.name, sizeof(machine.name), "%s", name);
        snprintf(machine.gpu, sizeof(machine.gpu), "%s", gpu);
        snprintf(machine.path, sizeof(machine.path), "%s", path);
        *out = machine;
    }
    json_decref(root);
    return status;
}

um_status_t um_machine_save(const um_machine_t *machine, const char *const *sources,
                            const char *date, const char *path)
{
    json_t *figures = json_object(), *root;
    um_status_t status = UM_OK;

    for (size_t i = 0; um_machine_figures[i].name; i++)
        json_object_set_new(figures, um_machine_figures[i].name,
                            json_pack("{s:o, s:s}", "value",
                                      write_figure(&um_machine_figures[i], machine), "source",
                                      sources && sources[i] ? sources[i] : "estimate"));
    root = json_pack("{s:s, s:s, s:s, s:s, s:o}", "schema", SCHEMA, "name", machine->name, "gpu",
                     machine->gpu, "date", date, "figures", figures);
    if (!root)
        return UM_ERR_NO_MEMORY;
    if (json_dump_file(root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0)
        status = UM_ERR_IO;
    json_decref(root);
    return status;
}

/* ---- where machines are ---- */

#define MAX_DIRECTORIES 4

/* In the order in which they are looked at; ends with NULL. */
static void directories(const char *list[MAX_DIRECTORIES])
{
    const char *given = getenv("UMRT_MACHINES");
    size_t n = 0;

    if (given && *given)
        list[n++] = given;
#ifdef UM_MACHINES_DIR
    list[n++] = UM_MACHINES_DIR;
#endif
#ifdef UM_MACHINES_SOURCE_DIR
    list[n++] = UM_MACHINES_SOURCE_DIR;
#endif
    list[n] = NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the machines that there are, sorted, each once; the caller frees them. */
static size_t list_names(char *name[MAX_NAMES])
{
    const char *list[MAX_DIRECTORIES];
    size_t n = 0, kept = 0;

    directories(list);
    for (const char **dir = list; *dir; dir++) {
        DIR *open = opendir(*dir);
        struct dirent *entry;

        while (open && n < MAX_NAMES && (entry = readdir(open))) {
            size_t length = strlen(entry->d_name);

            if (length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0)
                name[n++] = strndup(entry->d_name, length - 5);
        }
        if (open)
            closedir(open);
    }
    qsort(name, n, sizeof(name[0]), by_name);
    for (size_t i = 0; i < n; i++)
        if (kept && strcmp(name[i], name[kept - 1]) == 0)
            free(name[i]);
        else
            name[kept++] = name[i];
    return kept;
}

static void say_names(const char *wanted, char *error, size_t bytes)
{
    char *name[MAX_NAMES];
    size_t n = list_names(name), used;

    used = (size_t)snprintf(error, bytes, "there is no machine '%s'; there are", wanted);
    for (size_t i = 0; i < n; i++) {
        if (used < bytes)
            used += (size_t)snprintf(error + used, bytes - used, "%s %s", i ? "," : "", name[i]);
        free(name[i]);
    }
    if (!n && used < bytes)
        snprintf(error + used, bytes - used, " none");
}

um_status_t um_machine_load(const char *name, um_machine_t *out, char *error, size_t error_bytes)
{
    size_t length = strlen(name);
    const char *list[MAX_DIRECTORIES];
    char path[4096];

    if (strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".json") == 0))
        return load_file(name, out, error, error_bytes);
    directories(list);
    for (const char **dir = list; *dir; dir++) {
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s.json", *dir, name);
        file = fopen(path, "re");
        if (!file)
            continue;
        fclose(file);
        return load_file(path, out, error, error_bytes);
    }
    say_names(name, error, error_bytes);
    return UM_ERR_NOT_FOUND;
}

um_status_t um_machine_for_gpu(const char *gpu, um_machine_t *out)
{
    char *name[MAX_NAMES];
    size_t n = list_names(name);
    um_status_t status = UM_ERR_NOT_FOUND;

    for (size_t i = 0; i < n; i++) {
        um_machine_t machine;
        char error[256];

        if (status != UM_OK && um_machine_load(name[i], &machine, error, sizeof(error)) == UM_OK &&
            strcmp(machine.gpu, gpu) == 0) {
            *out = machine;
            status = UM_OK;
        }
        free(name[i]);
    }
    return status;
}
