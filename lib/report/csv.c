#include "csv.h"

#include "units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "emitter.h"
#include "map.h"
#include "places.h"

/* One address, or one instruction, or everything. Zero is "nothing of that kind", as Nsight's blank. */
typedef struct um_csv_row {
    uint64_t key;
    uint64_t in_bytes, out_bytes, ns; /* to the device, to the host, the time of both */
    uint64_t cpu_faults, gpu_faults;
} um_csv_row_t;

/* um_total_sum's blanks in the address columns: of what was never seen. */
typedef struct um_csv_range {
    uint64_t least, most;
    bool any;
} um_csv_range_t;

typedef struct um_csv_table {
    const char *name, *head;
    uint64_t (*key)(const um_event_t *event); /* the row that an event belongs to */
    int (*order)(const void *a, const void *b);
    void (*print)(const um_csv_t *csv, const um_csv_row_t *row, FILE *out);
} um_csv_table_t;

struct um_csv {
    const um_csv_table_t *table;
    um_csv_row_t *rows;
    size_t n, size;
    um_map_t by_key;
    um_csv_range_t range;
    um_places_t *places;
};

/* ---- the tables ------------------------------------------------------------------------------- */

static uint64_t address_of(const um_event_t *event)
{
    return event->type == UM_EV_MIGRATE     ? event->u.migrate.addr
           : event->type == UM_EV_GPU_FAULT ? event->u.gpu_fault.addr
                                            : event->u.cpu_fault.addr;
}

static uint64_t one_for_all(const um_event_t *event)
{
    (void)event;
    return 0;
}

static uint64_t instruction_of(const um_event_t *event)
{
    return event->u.cpu_fault.pc;
}

static double throughput(const um_csv_row_t *row)
{
    return row->ns ? (double)(row->in_bytes + row->out_bytes) * 1e9 / (double)row->ns : 0;
}

static int by_key(const um_csv_row_t *a, const um_csv_row_t *b)
{
    return a->key < b->key ? -1 : a->key > b->key;
}

static int by_throughput(const void *x, const void *y)
{
    double a = throughput(x), b = throughput(y);

    return a < b ? 1 : a > b ? -1 : by_key(x, y);
}

static int by_cpu_faults(const void *x, const void *y)
{
    const um_csv_row_t *a = x, *b = y;

    return a->cpu_faults < b->cpu_faults ? 1 : a->cpu_faults > b->cpu_faults ? -1 : by_key(a, b);
}

static void print_megabytes(uint64_t bytes, FILE *out)
{
    if (bytes)
        fprintf(out, "%.3f", (double)bytes / 1e6);
}

static void print_count(uint64_t count, FILE *out)
{
    if (count)
        fprintf(out, "%" PRIu64, count);
}

/* The columns that two tables share: in, out, CPU faults, GPU faults. */
static void print_sums(const um_csv_row_t *row, FILE *out)
{
    print_megabytes(row->in_bytes, out);
    fputc(',', out);
    print_megabytes(row->out_bytes, out);
    fputc(',', out);
    print_count(row->cpu_faults, out);
    fputc(',', out);
    print_count(row->gpu_faults, out);
    fputc(',', out);
}

static void print_address(const um_csv_t *csv, const um_csv_row_t *row, FILE *out)
{
    (void)csv;
    fprintf(out, "0x%" PRIX64 ",", row->key);
    print_sums(row, out);
    if (row->ns)
        fprintf(out, "%.3f", throughput(row) / 1e6);
}

static void print_total(const um_csv_t *csv, const um_csv_row_t *row, FILE *out)
{
    print_sums(row, out);
    if (csv->range.any)
        fprintf(out, "0x%" PRIX64 ",0x%" PRIX64, csv->range.least, csv->range.most);
    else
        fputc(',', out);
}

/* A text; one that a spreadsheet would take for a formula is set off. */
static void print_quoted(const char *text, FILE *out)
{
    char *clean = um_text_clean(text);
    const char *c = clean ? clean : "";
    bool quote = c[strcspn(c, ",\"")] != '\0';

    if (quote)
        fputc('"', out);
    if (*c && strchr("=+-@", *c))
        fputc('\'', out);
    for (; *c; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    if (quote)
        fputc('"', out);
    free(clean);
}

static void print_instruction(const um_csv_t *csv, const um_csv_row_t *row, FILE *out)
{
    um_call_place_t site;
    um_spot_t spot;

    fprintf(out, "%" PRIu64 ",", row->cpu_faults);
    if (!um_places_pc(csv->places, row->key, &spot))
        print_quoted(spot.text, out);
    else if (!um_places_site(csv->places, row->key, &site)) /* an importer knew */
        print_quoted(site.text, out);
    else
        fprintf(out, "0x%" PRIX64, row->key);
}

/* The small s of "size" and the blank before "GPU" are as nsys prints them. */
static const um_csv_table_t tables[] = {
    {"um_sum",
     "Virtual Address,HtoD Migration size (MB),DtoH Migration size (MB),CPU Page Faults, GPU Page "
     "Faults,Migration Throughput (MB/s)",
     address_of, by_throughput, print_address},
    {"um_total_sum",
     "Total HtoD Migration Size (MB),Total DtoH Migration Size (MB),Total CPU Page Faults,Total "
     "GPU "
     "PageFaults,Minimum Virtual Address,Maximum Virtual Address",
     one_for_all, NULL, print_total},
    {"um_cpu_page_faults_sum", "CPU Page Faults,CPU Instruction Address", instruction_of,
     by_cpu_faults, print_instruction},
};
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

const char *um_csv_name(size_t i)
{
    return i < TABLES ? tables[i].name : NULL;
}

const char *um_csv_head(const um_csv_t *csv)
{
    return csv->table->head;
}

/* ---- collecting ------------------------------------------------------------------------------- */

um_status_t um_csv_new(const char *table, um_csv_t **out)
{
    for (size_t i = 0; i < TABLES; i++) {
        if (strcmp(tables[i].name, table) != 0)
            continue;
        *out = calloc(1, sizeof(**out));
        if (!*out)
            return UM_ERR_NO_MEMORY;
        (*out)->table = &tables[i];
        if (!um_places_new(&(*out)->places))
            return UM_OK;
        um_csv_free(*out);
        return UM_ERR_NO_MEMORY;
    }
    return UM_ERR_NOT_FOUND;
}

void um_csv_free(um_csv_t *csv)
{
    if (!csv)
        return;
    um_places_free(csv->places);
    free(csv->rows);
    um_map_free(&csv->by_key);
    free(csv);
}

void um_csv_begin(um_csv_t *csv)
{
    um_places_begin(csv->places);
}

static um_status_t row_at(um_csv_t *csv, uint64_t key, um_csv_row_t **out)
{
    uint32_t at = um_map_find(&csv->by_key, key);

    if (at == UM_MAP_NONE) {
        um_status_t status;

        if (!um_grow(&csv->rows, &csv->size, csv->n + 1, sizeof(*csv->rows)))
            return UM_ERR_NO_MEMORY;
        at = (uint32_t)csv->n;
        status = um_map_put(&csv->by_key, key, at);
        if (status)
            return status;
        csv->rows[csv->n++] = (um_csv_row_t){.key = key};
    }
    *out = &csv->rows[at];
    return UM_OK;
}

static void widen(um_csv_range_t *range, uint64_t address)
{
    if (!range->any || address < range->least)
        range->least = address;
    if (!range->any || address > range->most)
        range->most = address;
    range->any = true;
}

/* From GPU to GPU is in none of these tables. */
static bool counts(const um_csv_t *csv, const um_event_t *event)
{
    const um_ev_migrate_t *migrate = &event->u.migrate;

    if (event->type == UM_EV_CPU_FAULT)
        return true;
    if (csv->table->key == instruction_of)
        return false;
    return event->type == UM_EV_GPU_FAULT ||
           (event->type == UM_EV_MIGRATE && (migrate->src < 0) != (migrate->dst < 0));
}

um_status_t um_csv_event(um_csv_t *csv, const um_event_t *event)
{
    um_csv_row_t *row;
    um_status_t status;

    if (csv->table->key == instruction_of &&
        (status = um_places_event(csv->places, event)) != UM_OK)
        return status;
    if (!counts(csv, event))
        return UM_OK;
    status = row_at(csv, csv->table->key(event), &row);
    if (status)
        return status;
    widen(&csv->range, address_of(event));
    if (event->type == UM_EV_CPU_FAULT) {
        row->cpu_faults++;
    } else if (event->type == UM_EV_GPU_FAULT) {
        row->gpu_faults += event->u.gpu_fault.groups;
    } else {
        *(event->u.migrate.dst >= 0 ? &row->in_bytes : &row->out_bytes) += event->u.migrate.bytes;
        um_sum(&row->ns, event->u.migrate.duration_ns);
    }
    return UM_OK;
}

um_status_t um_csv_write(um_csv_t *csv, uint64_t top, FILE *out)
{
    um_csv_row_t *none;
    um_status_t status = UM_OK;

    if (csv->table->key == one_for_all) /* its one row is there in any case */
        status = row_at(csv, 0, &none);
    if (status)
        return status;
    fprintf(out, "%s\n", csv->table->head);
    if (csv->table->order && csv->n) {
        qsort(csv->rows, csv->n, sizeof(*csv->rows), csv->table->order);
        um_map_free(&csv->by_key); /* indices no longer hold */
    }
    for (size_t i = 0; i < csv->n && i < top; i++) {
        csv->table->print(csv, &csv->rows[i], out);
        fputc('\n', out);
    }
    return fflush(out) || ferror(out) ? UM_ERR_IO : UM_OK;
}
