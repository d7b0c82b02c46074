/* nvprof --print-gpu-trace, as text or --csv. The log is read twice: import_survey.c finds what must come
 * first (facts, devices, array ranges that the program may print anywhere), this file the rows. */
#include "trace/import_survey.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A row being turned into an event. */
typedef struct um_text {
    um_import_t *im;
    const um_survey_t *survey;
    const um_log_t *log;
    const um_row_t *row;
    uint64_t time_ns, duration_ns;
    uint64_t addr;
    int32_t device;
    uint32_t region;
} um_text_t;

static const char *unit(const um_text_t *t, um_cell_t cell)
{
    return t->log->table.unit[cell];
}

static void emit(um_text_t *t, um_event_type_t type, um_event_t *event)
{
    um_import_emit(t->im, type, t->time_ns, event);
}

/* ---- unified-memory rows: one function a name ------------------------------------------------- */

/* "PC 0x57cd80a8" (its low 32 bits); before Virtual Address existed the cell was a count. */
static bool row_cpu_fault(um_text_t *t, um_event_t *event)
{
    const char *cell = t->row->cell[UM_CELL_UNIFIED];
    uint64_t value;

    if (!um_cell_number(strncmp(cell, "PC ", 3) == 0 ? cell + 3 : cell, &value))
        return false;
    event->u.cpu_fault = (um_ev_cpu_fault_t){.addr = t->addr, .region = t->region};
    if (cell[0] == 'P') {
        event->u.cpu_fault.pc = value;
        value = 1;
    }
    for (uint64_t i = 0; i < value && i < 65536; i++)
        emit(t, UM_EV_CPU_FAULT, event);
    return value > 0;
}

static bool row_gpu_fault(um_text_t *t, um_event_t *event)
{
    uint64_t groups;

    if (!um_cell_number(t->row->cell[UM_CELL_UNIFIED], &groups) || groups > UINT32_MAX)
        return false;
    event->u.gpu_fault = (um_ev_gpu_fault_t){.addr = t->addr,
                                             .duration_ns = t->duration_ns,
                                             .groups = (uint32_t)groups,
                                             .device = t->device,
                                             .region = t->region};
    emit(t, UM_EV_GPU_FAULT, event);
    return true;
}

static bool unified_bytes(const um_text_t *t, uint64_t *bytes)
{
    return um_cell_bytes(t->row->cell[UM_CELL_UNIFIED], unit(t, UM_CELL_UNIFIED), true, bytes);
}

static bool migrate(um_text_t *t, um_event_t *event, int32_t src, int32_t dst)
{
    uint64_t bytes;

    if (!unified_bytes(t, &bytes))
        return false;
    event->u.migrate = (um_ev_migrate_t){.addr = t->addr,
                                         .bytes = bytes,
                                         .duration_ns = t->duration_ns,
                                         .src = src,
                                         .dst = dst,
                                         .cause = UM_CAUSE_UNKNOWN,
                                         .region = t->region};
    emit(t, UM_EV_MIGRATE, event);
    return true;
}

static bool row_htod(um_text_t *t, um_event_t *event)
{
    return migrate(t, event, UM_DEVICE_HOST, t->device);
}

static bool row_dtoh(um_text_t *t, um_event_t *event)
{
    return migrate(t, event, t->device, UM_DEVICE_HOST);
}

static bool row_dtod(um_text_t *t, um_event_t *event)
{
    return migrate(t, event, t->device, UM_DEVICE_NONE);
}

static bool row_thrash(um_text_t *t, um_event_t *event)
{
    uint64_t bytes = 0;

    unified_bytes(t, &bytes);
    event->u.thrash =
        (um_ev_thrash_t){.addr = t->addr,
                         .bytes = bytes,
                         .processors =
                             um_survey_processors(t->survey, t->row->cell[UM_CELL_DEVICE]),
                         .region = t->region};
    emit(t, UM_EV_THRASH, event);
    return true;
}

static bool row_throttle(um_text_t *t, um_event_t *event)
{
    event->u.throttle = (um_ev_throttle_t){.addr = t->addr,
                                           .duration_ns = t->duration_ns,
                                           .device = t->device,
                                           .region = t->region};
    emit(t, UM_EV_THROTTLE, event);
    return true;
}

static bool row_remote_map(um_text_t *t, um_event_t *event)
{
    uint64_t bytes = 0;

    unified_bytes(t, &bytes);
    event->u.remote_map = (um_ev_remote_map_t){.addr = t->addr,
                                               .bytes = bytes,
                                               .src = UM_DEVICE_NONE,
                                               .dst = t->device,
                                               .region = t->region};
    emit(t, UM_EV_REMOTE_MAP, event);
    return true;
}

/* ---- kernels, copies, sets -------------------------------------------------------------------- */

/* "kernel(int, float*) [110]": takes the correlation id off the name. */
static uint32_t take_correlation(char *name)
{
    size_t n = strlen(name);
    char *open = strrchr(name, '[');
    unsigned long id;
    char *end;

    if (n < 4 || name[n - 1] != ']' || open == NULL || open < name + 2 || open[-1] != ' ' ||
        !isdigit((unsigned char)open[1]))
        return 0;
    id = strtoul(open + 1, &end, 10);
    if (end != name + n - 1 || id > UINT32_MAX)
        return 0;
    open[-1] = '\0';
    return (uint32_t)id;
}

static uint32_t small_number(const char *cell)
{
    uint64_t value;

    return um_cell_number(cell, &value) && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static bool dimensions(const um_row_t *row, um_cell_t one, um_cell_t x, uint32_t dim[3])
{
    if (um_cell_dim3(row->cell[one], dim))
        return true;
    for (int i = 0; i < 3; i++)
        dim[i] = small_number(row->cell[x + (um_cell_t)i]);
    return dim[0] != 0;
}

static bool row_kernel(um_text_t *t, um_event_t *event)
{
    um_ev_kernel_exec_t exec = {.duration_ns = t->duration_ns, .device = t->device};
    char *name = (char *)t->row->cell[UM_CELL_NAME]; /* inside log->line, which is ours */

    if (!dimensions(t->row, UM_CELL_GRID, UM_CELL_GRID_X, exec.grid) ||
        !dimensions(t->row, UM_CELL_BLOCK, UM_CELL_BLOCK_X, exec.block))
        return false;
    exec.correlation = take_correlation(name);
    if (exec.correlation == 0)
        exec.correlation = small_number(t->row->cell[UM_CELL_CORRELATION]);
    exec.context = small_number(t->row->cell[UM_CELL_CONTEXT]);
    exec.stream_id = small_number(t->row->cell[UM_CELL_STREAM]);
    exec.kernel = um_import_kernel(t->im, t->time_ns, name);
    event->u.kernel_exec = exec;
    emit(t, UM_EV_KERNEL_EXEC, event);
    return true;
}

static uint32_t memory_kind(const char *cell)
{
    static const struct {
        const char *name;
        um_memory_kind_t kind;
    } kinds[] = {{"Pageable", UM_MEMORY_PAGEABLE},   {"Pinned", UM_MEMORY_PINNED},
                 {"Device", UM_MEMORY_DEVICE},       {"Array", UM_MEMORY_ARRAY},
                 {"Managed", UM_MEMORY_MANAGED},     {"Managed Static", UM_MEMORY_MANAGED},
                 {"Device Static", UM_MEMORY_DEVICE}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(cell, kinds[i].name) == 0)
            return kinds[i].kind;
    return UM_MEMORY_UNKNOWN;
}

/* Without memory columns: the letter of "HtoD". H is pageable or pinned, nobody knows. */
static uint32_t letter_kind(char letter)
{
    return letter == 'D' ? UM_MEMORY_DEVICE : letter == 'A' ? UM_MEMORY_ARRAY : UM_MEMORY_UNKNOWN;
}

static bool row_copy(um_text_t *t, um_event_t *event)
{
    um_ev_copy_t copy = {.duration_ns = t->duration_ns,
                         .device = t->device,
                         .stream = small_number(t->row->cell[UM_CELL_STREAM]),
                         .correlation = small_number(t->row->cell[UM_CELL_CORRELATION]),
                         .flags = UM_TRANSFER_ON_GPU};
    const char *name = t->row->cell[UM_CELL_NAME], *way = name + sizeof "[CUDA memcpy " - 1;

    if (!um_cell_bytes(t->row->cell[UM_CELL_SIZE], unit(t, UM_CELL_SIZE), false, &copy.bytes))
        return false;
    copy.src_memory = memory_kind(t->row->cell[UM_CELL_SRC_MEMORY]);
    copy.dst_memory = memory_kind(t->row->cell[UM_CELL_DST_MEMORY]);
    if (strncmp(way + 1, "to", 2) == 0) {
        if (copy.src_memory == UM_MEMORY_UNKNOWN)
            copy.src_memory = letter_kind(way[0]);
        if (copy.dst_memory == UM_MEMORY_UNKNOWN)
            copy.dst_memory = letter_kind(way[3]);
    }
    event->u.copy = copy;
    emit(t, UM_EV_COPY, event);
    return true;
}

static bool row_set(um_text_t *t, um_event_t *event)
{
    um_ev_set_t set = {.duration_ns = t->duration_ns,
                       .device = t->device,
                       .stream = small_number(t->row->cell[UM_CELL_STREAM]),
                       .correlation = small_number(t->row->cell[UM_CELL_CORRELATION]),
                       .flags = UM_TRANSFER_ON_GPU};

    if (!um_cell_bytes(t->row->cell[UM_CELL_SIZE], unit(t, UM_CELL_SIZE), false, &set.bytes))
        return false;
    set.memory = memory_kind(t->row->cell[UM_CELL_DST_MEMORY]);
    if (set.memory == UM_MEMORY_UNKNOWN)
        set.memory = memory_kind(t->row->cell[UM_CELL_SRC_MEMORY]);
    event->u.set = set;
    emit(t, UM_EV_SET, event);
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------- */

/* By the beginning of the name; anything else in brackets is counted as left out. */
static const struct {
    const char *prefix;
    bool (*row)(um_text_t *t, um_event_t *event);
} rows[] = {
    {"[Unified Memory CPU page faults", row_cpu_fault},
    {"[Unified Memory GPU page faults", row_gpu_fault},
    {"[Unified Memory Memcpy HtoD", row_htod},
    {"[Unified Memory Memcpy DtoH", row_dtoh},
    {"[Unified Memory Memcpy DtoD", row_dtod},
    {"[Unified Memory page thrash", row_thrash},
    {"[Unified Memory page throttle", row_throttle},
    {"[Unified Memory page remote map", row_remote_map},
    {"[Unified Memory remote map", row_remote_map},
    {"[CUDA memcpy ", row_copy},
    {"[CUDA memset", row_set},
};

static bool import_row(um_text_t *t)
{
    const char *name = t->row->cell[UM_CELL_NAME];
    um_event_t event = {0};

    if (!um_cell_time(t->row->cell[UM_CELL_START], unit(t, UM_CELL_START), &t->time_ns))
        return false;
    t->duration_ns = 0;
    um_cell_time(t->row->cell[UM_CELL_DURATION], unit(t, UM_CELL_DURATION), &t->duration_ns);
    t->addr = 0;
    um_cell_number(t->row->cell[UM_CELL_ADDRESS], &t->addr);
    t->region = um_import_region_at(t->im, t->addr);
    t->device = um_survey_device(t->survey, t->row->cell[UM_CELL_DEVICE]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strncmp(name, rows[i].prefix, strlen(rows[i].prefix)) == 0)
            return rows[i].row(t, &event);
    return row_kernel(t, &event);
}

static void emit_arrays(um_import_t *im, const um_arrays_t *arrays)
{
    for (size_t i = 0; i < arrays->n; i++) {
        const um_array_t *a = &arrays->array[i];
        um_ev_region_alloc_t alloc = {.family = UM_FAMILY_MANAGED,
                                      .addr = a->first,
                                      .bytes = a->end - a->first,
                                      .device = UM_DEVICE_NONE};
        uint32_t region = um_import_region_alloc(im, im->now_ns, &alloc);

        um_import_region_label(im, im->now_ns, region, a->name);
    }
}

static void import_rows(um_import_t *im, const um_survey_t *survey, um_log_t *log, FILE *in)
{
    um_text_t t = {.im = im, .survey = survey, .log = log, .row = &log->row};
    uint64_t unknown = 0, unreadable = survey->chosen->bad_rows;
    um_log_kind_t kind;

    um_log_begin(log, in);
    while (im->status == UM_OK && (kind = um_log_next(log)) != UM_LOG_END) {
        if (kind != UM_LOG_ROW || log->pid != survey->chosen->pid ||
            (survey->cut && log->offset == survey->cut_offset))
            continue;
        if (import_row(&t))
            continue;
        /* API calls (--print-api-trace beside the GPU trace) are no loss: they are not read. */
        if (log->row.cell[UM_CELL_NAME][0] == '[')
            unknown++;
        else if (log->row.cell[UM_CELL_DEVICE][0] != '\0')
            unreadable++;
    }
    if (unknown > 0)
        um_import_loss(im, unknown, "nvprof rows of a kind that is not known here");
    if (unreadable > 0)
        um_import_loss(im, unreadable, "nvprof rows that could not be read");
}

um_status_t um_import_nvprof_text(um_import_t *im, FILE *in)
{
    um_survey_t *survey = calloc(1, sizeof *survey);
    um_log_t *log = calloc(1, sizeof *log);
    um_status_t status = UM_ERR_NO_MEMORY;

    if (survey == NULL || log == NULL)
        goto out;
    um_log_begin(log, in);
    status = um_survey_read(survey, log, im->process);
    if (status != UM_OK)
        goto out;
    if (ferror(in) || fseeko(in, 0, SEEK_SET) != 0) {
        status = um_import_fail(im, UM_ERR_IO, "cannot be read twice");
        goto out;
    }
    status = um_survey_check(survey, im);
    if (status != UM_OK)
        goto out;
    um_survey_emit(survey, im);
    emit_arrays(im, &survey->arrays);
    import_rows(im, survey, log, in);
    status = im->status;
    if (status == UM_OK && ferror(in))
        status = um_import_fail(im, UM_ERR_IO, "read error at offset %llu",
                                (unsigned long long)log->offset);
    if (status == UM_OK && survey->cut) {
        um_import_loss(im, 1, "the log is cut off inside a row");
        status = um_import_fail(im, UM_ERR_TRUNCATED,
                                "offset %llu: cut off inside a row; the rows before it were read",
                                (unsigned long long)survey->cut_offset);
    }
out:
    if (status == UM_ERR_NO_MEMORY)
        um_import_fail(im, status, "out of memory");
    if (survey != NULL)
        um_survey_free(survey);
    free(survey);
    free(log);
    return status;
}

um_status_t um_import_is_nvprof_text(FILE *in)
{
    um_log_t *log = calloc(1, sizeof *log);
    um_status_t status = UM_ERR_FORMAT;
    um_log_kind_t kind;

    if (log == NULL)
        return UM_ERR_NO_MEMORY;
    um_log_begin(log, in);
    while (status == UM_ERR_FORMAT && (kind = um_log_next(log)) != UM_LOG_END)
        if (kind == UM_LOG_HEADER ||
            (kind == UM_LOG_MESSAGE && (strncmp(log->text, "NVPROF is ", 10) == 0 ||
                                        strncmp(log->text, "Profiling ", 10) == 0)))
            status = UM_OK;
    if (status == UM_ERR_FORMAT && ferror(in))
        status = UM_ERR_IO;
    free(log);
    return status;
}
