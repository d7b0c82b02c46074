#include "trace/import_log.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void um_log_begin(um_log_t *log, FILE *in)
{
    log->in = in;
    log->offset = log->next = 0;
    log->ended = log->in_table = false;
    log->pid = 0;
}

static bool read_line(um_log_t *log)
{
    size_t n = 0;
    int c;

    log->offset = log->next;
    while ((c = getc_unlocked(log->in)) != EOF) {
        log->next++;
        if (c == '\n')
            break;
        if (n < sizeof log->line - 1)
            log->line[n++] = c == '\0' ? '?' : (char)c;
    }
    log->ended = c == EOF;
    while (n > 0 && log->line[n - 1] == '\r')
        n--;
    log->line[n] = '\0';
    log->text = log->line;
    return log->next > log->offset;
}

/* "==79029== text", and "======== text" of old versions. */
static bool message(um_log_t *log)
{
    char *at = log->line + 2, *end;
    unsigned long pid;

    if (strncmp(log->line, "==", 2) != 0)
        return false;
    if (strncmp(at, "====== ", 7) == 0) {
        log->pid = 0;
        log->text = at + 7;
        return true;
    }
    if (!isdigit((unsigned char)*at))
        return false;
    pid = strtoul(at, &end, 10);
    if (strncmp(end, "== ", 3) != 0 || pid > UINT32_MAX)
        return false;
    log->pid = (uint32_t)pid;
    log->text = end + 3;
    return true;
}

/* A row begins with a time: "455.39ms", in CSV "0.455390" or "455.390000". */
static bool begins_row(const um_log_t *log)
{
    const char *at = log->line + (log->table.csv ? 0 : strspn(log->line, " "));
    char first[32];
    size_t n = strcspn(at, log->table.csv ? "," : " ");
    uint64_t ns;

    if (n >= sizeof first)
        return false;
    memcpy(first, at, n);
    first[n] = '\0';
    return um_cell_time(first, log->table.unit[UM_CELL_START], &ns);
}

um_log_kind_t um_log_next(um_log_t *log)
{
    bool expects_units =
        log->in_table && log->table.csv && log->table.unit[UM_CELL_START][0] == '\0';

    if (!read_line(log))
        return UM_LOG_END;
    if (message(log)) {
        log->in_table = false;
        return UM_LOG_MESSAGE;
    }
    if (log->line[0] == '"' || strstr(log->line, "Duration") != NULL) {
        um_table_t table;

        if (um_table_header(&table, log->line)) {
            log->table = table;
            log->in_table = true;
            return UM_LOG_HEADER;
        }
    }
    if (!log->in_table)
        return UM_LOG_OTHER;
    if (log->line[0] == '\0') {
        log->in_table = false;
        return UM_LOG_OTHER;
    }
    if (expects_units && um_table_units(&log->table, log->line))
        return UM_LOG_UNITS;
    if (!begins_row(log))
        return UM_LOG_OTHER;
    return um_table_row(&log->table, log->line, &log->row) ? UM_LOG_ROW : UM_LOG_BAD_ROW;
}
