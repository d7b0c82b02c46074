#include "trace/import_survey.h"

#include <stdlib.h>
#include <string.h>

static um_survey_process_t *process_of(um_survey_t *survey, uint32_t pid)
{
    for (size_t i = 0; i < survey->n_processes; i++)
        if (survey->process[i].pid == pid)
            return &survey->process[i];
    if (survey->n_processes == UM_SURVEY_PROCESSES)
        return NULL;
    survey->process[survey->n_processes].pid = pid;
    return &survey->process[survey->n_processes++];
}

static void copy_text(char *out, size_t out_bytes, const char *text)
{
    size_t n = strnlen(text, out_bytes - 1);

    memcpy(out, text, n);
    out[n] = '\0';
}

/* Records that nvprof says it does not have: "56 records have invalid timestamps due to ...". */
static void note_loss(um_survey_t *survey, const char *warning)
{
    static const char *const words[] = {"invalid timestamps", "invalid records", "dropped",
                                        "not recorded"};
    size_t i = 0, n = sizeof words / sizeof words[0];

    while (i < n && strstr(warning, words[i]) == NULL)
        i++;
    if (i == n || survey->n_losses == UM_SURVEY_LOSSES)
        return;
    survey->loss[survey->n_losses].count =
        strtoull(warning + strcspn(warning, "0123456789"), NULL, 10);
    copy_text(survey->loss[survey->n_losses++].reason, sizeof survey->loss[0].reason, warning);
}

static void read_message(um_survey_t *survey, um_survey_process_t *p, const char *text)
{
    static const char banner[] = "NVPROF is ", command[] = "command: ",
                      application[] = "Profiling application: ", warning[] = "Warning: ";
    const char *at;

    if (strncmp(text, banner, sizeof banner - 1) == 0) {
        at = strstr(text, command);
        copy_text(p->command, sizeof p->command, at != NULL ? at + sizeof command - 1 : "");
    } else if (strncmp(text, application, sizeof application - 1) == 0) {
        copy_text(p->command, sizeof p->command, text + sizeof application - 1);
    } else if (strncmp(text, warning, sizeof warning - 1) == 0) {
        at = text + sizeof warning - 1;
        if (strstr(at, "Unified Memory") != NULL && strstr(at, "not supported") != NULL)
            copy_text(p->unsupported, sizeof p->unsupported, at);
        note_loss(survey, at);
    } else if (strstr(text, "No kernels were profiled") != NULL) {
        p->nothing = true;
    }
}

static void read_device(um_survey_t *survey, const char *name)
{
    if (name[0] == '\0' || strcmp(name, "CPU") == 0 || strchr(name, ',') != NULL ||
        survey->n_devices == UM_SURVEY_DEVICES)
        return;
    for (size_t i = 0; i < survey->n_devices; i++)
        if (strcmp(survey->device[i], name) == 0)
            return;
    copy_text(survey->device[survey->n_devices++], UM_SURVEY_NAME, name);
}

static void read_row(um_survey_t *survey, um_survey_process_t *p, const um_log_t *log)
{
    const char *name = log->row.cell[UM_CELL_NAME];
    size_t n = strlen(name);

    /* Names end in a bracket in text ("[CUDA memset]", "kernel(int) [110]"), in a quote in CSV. */
    if (log->ended && (n == 0 || (!log->table.csv && name[n - 1] != ']'))) {
        survey->cut = true;
        survey->cut_offset = log->offset;
        return;
    }
    if (p->rows++ == 0)
        um_cell_time(log->row.cell[UM_CELL_START], log->table.unit[UM_CELL_START], &p->first_ns);
    p->unified_rows += strncmp(name, "[Unified Memory", 15) == 0;
    read_device(survey, log->row.cell[UM_CELL_DEVICE]);
}

static void choose(um_survey_t *survey, uint32_t process)
{
    const um_survey_process_t *best = NULL;

    for (size_t i = 0; i < survey->n_processes; i++) {
        const um_survey_process_t *p = &survey->process[i];

        if (process != 0 && p->pid != process)
            continue;
        if (best == NULL || p->unified_rows > best->unified_rows ||
            (p->unified_rows == best->unified_rows && p->rows > best->rows))
            best = p;
    }
    survey->chosen = best;
}

um_status_t um_survey_read(um_survey_t *survey, um_log_t *log, uint32_t process)
{
    um_status_t status = UM_OK;
    um_log_kind_t kind;

    while (status == UM_OK && (kind = um_log_next(log)) != UM_LOG_END) {
        um_survey_process_t *p;

        if (kind == UM_LOG_OTHER) {
            status = um_arrays_line(&survey->arrays, log->text);
            if (strstr(log->text, "Time(%)") == NULL)
                continue;
        }
        p = process_of(survey, log->pid);
        if (p == NULL)
            continue;
        if (kind == UM_LOG_MESSAGE) {
            read_message(survey, p, log->text);
        } else if (kind == UM_LOG_HEADER) {
            p->table = true;
            p->unified_columns |= log->table.has[UM_CELL_UNIFIED];
        } else if (kind == UM_LOG_ROW) {
            read_row(survey, p, log);
        } else if (kind == UM_LOG_BAD_ROW && log->ended) {
            survey->cut = true;
            survey->cut_offset = log->offset;
        } else if (kind == UM_LOG_BAD_ROW) {
            p->bad_rows++;
        } else if (kind == UM_LOG_OTHER) {
            p->summary = true;
        }
    }
    um_arrays_pair(&survey->arrays);
    choose(survey, process);
    return status;
}

void um_survey_free(um_survey_t *survey)
{
    um_arrays_free(&survey->arrays);
}

um_status_t um_survey_check(const um_survey_t *survey, um_import_t *im)
{
    const um_survey_process_t *p = survey->chosen;

    if (p == NULL && im->process != 0)
        return um_import_fail(im, UM_ERR_NOT_FOUND, "has no records of process %u", im->process);
    if (p == NULL)
        return um_import_fail(im, UM_ERR_FORMAT, "not an nvprof log");
    if (p->rows > 0 || p->nothing)
        return UM_OK;
    if (p->summary)
        return um_import_fail(im, UM_ERR_UNSUPPORTED,
                              "an nvprof summary, no trace; record with nvprof --print-gpu-trace");
    if (p->table)
        return um_import_fail(im, UM_ERR_TRUNCATED, "ends before the first row of nvprof's table");
    return um_import_fail(im, UM_ERR_TRUNCATED, "ends before nvprof's table");
}

static void emit_tracing(const um_survey_process_t *p, um_import_t *im)
{
    char evidence[512];
    const char *value, *option = "off or no records";

    if (p->unified_rows > 0) {
        value = option = "on";
        snprintf(evidence, sizeof evidence, "%llu unified-memory rows",
                 (unsigned long long)p->unified_rows);
    } else if (p->unsupported[0] != '\0') {
        value = option = "unsupported";
        snprintf(evidence, sizeof evidence, "nvprof says: %s", p->unsupported);
    } else if (p->unified_columns) {
        value = "on, no records";
        option = "on";
        snprintf(evidence, sizeof evidence,
                 "the table has the Unified Memory column and no unified-memory row");
    } else {
        value = "off or no records";
        snprintf(evidence, sizeof evidence,
                 "no Unified Memory column, which nvprof leaves out both with "
                 "--unified-memory-profiling off and when nothing faulted or moved");
    }
    um_import_fact(im, "um.tracing", value);
    um_import_fact(im, "um.tracing.evidence", evidence);
    um_import_option(im, "nvprof.unified-memory-profiling", option, "observed");
}

void um_survey_emit(const um_survey_t *survey, um_import_t *im)
{
    const um_survey_process_t *p = survey->chosen;
    char others[256] = "";
    size_t n = 0;

    im->now_ns = p->first_ns;
    um_import_header(im, UM_IMPORT_NVPROF_TEXT);
    if (p->pid != 0)
        um_import_fact_number(im, "process.pid", p->pid);
    um_import_fact(im, "process.command", p->command);
    for (size_t i = 0; i < survey->n_processes && n < sizeof others; i++)
        if (&survey->process[i] != p && survey->process[i].rows > 0)
            n += (size_t)snprintf(others + n, sizeof others - n, "%s%llu rows of process %u",
                                  n > 0 ? ", " : "", (unsigned long long)survey->process[i].rows,
                                  survey->process[i].pid);
    um_import_fact(im, "import.other-processes", others);
    emit_tracing(p, im);
    for (size_t i = 0; i < survey->n_devices; i++) {
        um_event_t event = {0};

        event.u.device = (um_ev_device_t){.device = um_survey_device(survey, survey->device[i]),
                                          .name = survey->device[i],
                                          .uuid = "",
                                          .pci = ""};
        um_import_emit(im, UM_EV_DEVICE, im->now_ns, &event);
    }
    for (size_t i = 0; i < survey->n_losses; i++)
        um_import_loss(im, survey->loss[i].count, survey->loss[i].reason);
}

/* "Tesla K20 (1)" */
static bool printed_ordinal(const char *name, size_t n, int32_t *ordinal)
{
    size_t open = n;
    char *end;
    unsigned long value;

    if (n < 4 || name[n - 1] != ')')
        return false;
    while (open > 0 && name[open - 1] != '(')
        open--;
    if (open == 0 || name[open] < '0' || name[open] > '9')
        return false;
    value = strtoul(name + open, &end, 10);
    if (end != name + n - 1 || value >= UM_SURVEY_DEVICES)
        return false;
    *ordinal = (int32_t)value;
    return true;
}

/* The name may be cut to the width of its column. */
static int32_t device_of(const um_survey_t *survey, const char *name, size_t n)
{
    int32_t found = UM_DEVICE_NONE, ordinal;

    if (n == 0)
        return UM_DEVICE_NONE;
    if (printed_ordinal(name, n, &ordinal))
        return ordinal;
    for (size_t i = 0; i < survey->n_devices; i++) {
        if (strncmp(survey->device[i], name, n) != 0)
            continue;
        if (survey->device[i][n] == '\0')
            return (int32_t)i;
        found = found == UM_DEVICE_NONE ? (int32_t)i : UM_DEVICE_NONE - 1; /* NONE - 1: several */
    }
    return found < UM_DEVICE_NONE ? UM_DEVICE_NONE : found;
}

int32_t um_survey_device(const um_survey_t *survey, const char *cell)
{
    if (strcmp(cell, "CPU") == 0)
        return UM_DEVICE_HOST;
    return device_of(survey, cell, strlen(cell));
}

uint64_t um_survey_processors(const um_survey_t *survey, const char *cell)
{
    uint64_t bits = 0;

    while (*cell != '\0') {
        size_t n = strcspn(cell, ",");
        int32_t device = device_of(survey, cell, n);

        if (n == 3 && strncmp(cell, "CPU", 3) == 0)
            bits |= UINT64_C(1) << 63;
        else if (device >= 0)
            bits |= UINT64_C(1) << device;
        cell += n;
        cell += strspn(cell, ", ");
    }
    return bits;
}
