/* What is written to a trace comes back out of it. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "trace_events.h"
#include "um_trace.h"

static char path[64];

static void setup(void)
{
    snprintf(path, sizeof(path), "trace_file.%d.umt", (int)getpid());
}

static void teardown(void)
{
    unlink(path);
}

TestSuite(trace_file, .init = setup, .fini = teardown);

static um_trace_writer_t *create(const um_trace_write_options_t *options)
{
    um_trace_writer_t *writer;
    cr_assert_eq(um_trace_writer_open(path, NULL, 0, options, &writer), UM_OK);
    return writer;
}

static um_trace_reader_t *open_trace(um_trace_order_t order)
{
    char error[256] = "";
    um_trace_reader_t *reader = NULL;
    cr_assert_eq(um_trace_reader_open(path, order, &reader, error, sizeof(error)), UM_OK, "%s",
                 error);
    return reader;
}

static void put_stream(um_trace_writer_t *writer, uint64_t n)
{
    event_box_t box;
    for (uint64_t i = 0; i < n; i++) {
        stream_event(&box, i);
        cr_assert_eq(um_trace_writer_put(writer, &box.event), UM_OK);
    }
}

static void put_access(um_trace_writer_t *writer, uint64_t time_ns, uint64_t addr)
{
    um_event_t event = {.time_ns = time_ns, .type = UM_EV_ACCESS};
    event.u.access.addr = addr;
    cr_assert_eq(um_trace_writer_put(writer, &event), UM_OK);
}

static void check_clean_end(um_trace_reader_t *reader)
{
    const um_event_t *event;
    cr_assert_eq(um_trace_reader_next(reader, &event), UM_ERR_NOT_FOUND);
    cr_assert_eq(um_trace_reader_next(reader, &event), UM_ERR_NOT_FOUND);
    cr_assert_str_eq(um_trace_reader_error(reader), "");
    um_trace_reader_close(reader);
}

Test(trace_file, gives_back_every_field_of_every_type)
{
    enum { N = 20000, BLOCK = 777 };
    um_trace_writer_t *writer = create(&(um_trace_write_options_t){.block_events = BLOCK});
    put_stream(writer, N);
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);

    um_trace_reader_t *reader = open_trace(UM_TRACE_FILE_ORDER);
    const um_trace_info_t *info = um_trace_reader_info(reader);
    cr_assert(info->finished);
    cr_assert_eq(info->version, 1);
    cr_assert_eq(info->events, N);
    cr_assert_eq(info->blocks, (N + BLOCK - 1) / BLOCK);

    const um_event_t *event;
    event_box_t box;
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (uint64_t i = 0; i < N; i++) {
        cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK);
        stream_event(&box, i);
        cr_assert(same_event(&box.event, event), "event %llu of type %s", (unsigned long long)i,
                  um_schema_table[box.event.type].name);
        first_ns = event->time_ns < first_ns ? event->time_ns : first_ns;
        last_ns = event->time_ns > last_ns ? event->time_ns : last_ns;
    }
    cr_assert_eq(info->first_ns, first_ns);
    cr_assert_eq(info->last_ns, last_ns);
    check_clean_end(reader);
}

/* One type alone, with values at the ends of their ranges, and one event alone. */
Test(trace_file, gives_back_extreme_values)
{
    static const uint64_t values[] = {0, UINT64_MAX, 1, 1ull << 63, UINT64_MAX - 1, 1ull << 32, 0};
    um_trace_writer_t *writer = create(NULL);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (uint32_t type = 1; type < UM_EV_TYPE_COUNT; type++) {
            um_event_t event = {.time_ns = values[i], .type = type, .tid = (uint32_t)values[i]};
            const um_schema_t *schema = &um_schema_table[type];
            for (size_t k = 0; k < schema->n_fields; k++)
                if (schema->fields[k].kind < UM_FIELD_STRING)
                    put_number((uint8_t *)&event.u + schema->fields[k].offset,
                               schema->fields[k].bytes, values[i]);
                else if (schema->fields[k].kind == UM_FIELD_ARRAY)
                    k += schema->fields[k].elements;
            cr_assert_eq(um_trace_writer_put(writer, &event), UM_OK);
        }
        cr_assert_eq(um_trace_writer_flush(writer), UM_OK);
        cr_assert_eq(um_trace_writer_flush(writer), UM_OK);
    }
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);

    um_trace_reader_t *reader = open_trace(UM_TRACE_FILE_ORDER);
    cr_assert_eq(um_trace_reader_info(reader)->blocks, sizeof(values) / sizeof(values[0]));
    const um_event_t *event;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (uint32_t type = 1; type < UM_EV_TYPE_COUNT; type++) {
            cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK);
            cr_assert_eq(event->type, type);
            cr_assert_eq(event->time_ns, values[i]);
            cr_assert_eq(event->tid, (uint32_t)values[i]);
            const um_schema_t *schema = &um_schema_table[type];
            for (size_t k = 0; k < schema->n_fields; k++) {
                const um_field_t *f = &schema->fields[k];
                const uint8_t *at = (const uint8_t *)&event->u + f->offset;
                if (f->kind < UM_FIELD_STRING) {
                    cr_assert_eq(memcmp(at, &values[i], f->bytes), 0, "%s.%s", schema->name,
                                 f->name);
                } else if (f->kind == UM_FIELD_STRING) {
                    const char *text;
                    memcpy(&text, at, sizeof(text));
                    cr_assert_str_eq(text, "", "NULL is written as \"\"");
                } else {
                    k += f->elements;
                }
            }
        }
    }
    check_clean_end(reader);
}

Test(trace_file, keeps_long_strings_and_cuts_monstrous_ones)
{
    enum { LONG = 300000, MONSTER = 3 << 20, CUT = 1 << 20 };
    char *text = malloc(MONSTER + 1);
    memset(text, 'x', MONSTER);
    um_trace_writer_t *writer = create(NULL);
    um_event_t event = {.type = UM_EV_MARK};
    const um_event_t *back;
    event.u.mark.name = text;
    event.u.mark.domain = NULL;
    text[LONG] = 0;
    cr_assert_eq(um_trace_writer_put(writer, &event), UM_OK);
    text[LONG] = 'x';
    text[MONSTER] = 0;
    for (int i = 0; i < 20; i++) {
        text[0] = (char)('a' + i); /* all different: more than one block can hold */
        cr_assert_eq(um_trace_writer_put(writer, &event), UM_OK);
    }
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);

    um_trace_reader_t *reader = open_trace(UM_TRACE_FILE_ORDER);
    cr_assert_eq(um_trace_reader_next(reader, &back), UM_OK);
    cr_assert_eq(strlen(back->u.mark.name), LONG);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(um_trace_reader_next(reader, &back), UM_OK);
        cr_assert_eq(strlen(back->u.mark.name), CUT);
        cr_assert_eq(back->u.mark.name[0], 'a' + i);
        cr_assert_str_eq(back->u.mark.domain, "");
    }
    check_clean_end(reader);
    free(text);
}

Test(trace_file, keeps_large_argument_lists)
{
    enum { N = 100000 };
    um_arg_t *args = calloc(N, sizeof(*args));
    for (uint32_t i = 0; i < N; i++)
        args[i] = (um_arg_t){i, i % 7, i * 3, (uint64_t)i << 21};
    um_scalar_t *scalars = calloc(N, sizeof(*scalars));
    for (uint32_t i = 0; i < N; i++)
        scalars[i] = (um_scalar_t){i, 4 + i % 2 * 4, i % 3 ? UINT64_MAX - i : (uint64_t)i << 13};
    um_trace_writer_t *writer = create(NULL);
    um_event_t event = {.type = UM_EV_LAUNCH};
    const um_event_t *back;
    event.u.launch.args = args;
    event.u.launch.scalars = scalars;
    for (uint32_t n = 0; n <= N; n += N / 10) {
        event.u.launch.n_args = n;
        event.u.launch.n_scalars = N - n;
        cr_assert_eq(um_trace_writer_put(writer, &event), UM_OK);
    }
    event.u.launch.n_scalars = UINT32_MAX;
    cr_assert_eq(um_trace_writer_put(writer, &event), UM_ERR_INVALID);
    event.u.launch.n_args = UINT32_MAX;
    event.u.launch.n_scalars = 0;
    cr_assert_eq(um_trace_writer_put(writer, &event), UM_ERR_INVALID);
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);

    um_trace_reader_t *reader = open_trace(UM_TRACE_FILE_ORDER);
    for (uint32_t n = 0; n <= N; n += N / 10) {
        cr_assert_eq(um_trace_reader_next(reader, &back), UM_OK);
        cr_assert_eq(back->u.launch.n_args, n);
        for (uint32_t i = 0; i < n; i++) {
            cr_assert_eq(back->u.launch.args[i].slot, args[i].slot);
            cr_assert_eq(back->u.launch.args[i].offset_bytes, args[i].offset_bytes);
            cr_assert_eq(back->u.launch.args[i].region, args[i].region);
            cr_assert_eq(back->u.launch.args[i].region_offset_bytes, args[i].region_offset_bytes);
        }
        cr_assert_eq(back->u.launch.n_scalars, N - n);
        for (uint32_t i = 0; i < N - n; i++) {
            cr_assert_eq(back->u.launch.scalars[i].slot, scalars[i].slot);
            cr_assert_eq(back->u.launch.scalars[i].size_bytes, scalars[i].size_bytes);
            cr_assert_eq(back->u.launch.scalars[i].value, scalars[i].value);
        }
    }
    check_clean_end(reader);
    free(scalars);
    free(args);
}

/* Recorded on an H200 before launches had them. */
Test(trace_file, reads_launches_of_before_they_told_integers)
{
    char old[512], error[256] = "";
    um_trace_reader_t *reader = NULL;
    const um_event_t *event;
    um_status_t status;
    uint32_t launches = 0;

    snprintf(old, sizeof(old), "%s/tests/data/h200/stencil.umt", getenv("UM_SRCDIR"));
    cr_assert_eq(um_trace_reader_open(old, UM_TRACE_FILE_ORDER, &reader, error, sizeof(error)),
                 UM_OK, "%s", error);
    while ((status = um_trace_reader_next(reader, &event)) == UM_OK) {
        if (event->type != UM_EV_LAUNCH)
            continue;
        launches += event->u.launch.n_args > 0;
        cr_assert_eq(event->u.launch.n_scalars, 0);
        cr_assert_null(event->u.launch.scalars);
    }
    cr_assert_eq(status, UM_ERR_NOT_FOUND);
    cr_assert_gt(launches, 0);
    um_trace_reader_close(reader);
}

Test(trace_file, refuses_events_that_do_not_exist)
{
    um_trace_writer_t *writer = create(NULL);
    um_event_t event = {.type = UM_EV_NONE};
    cr_assert_eq(um_trace_writer_put(writer, &event), UM_ERR_INVALID);
    event.type = UM_EV_TYPE_COUNT;
    cr_assert_eq(um_trace_writer_put(writer, &event), UM_ERR_INVALID);
    event.type = UINT32_MAX;
    cr_assert_eq(um_trace_writer_put(writer, &event), UM_ERR_INVALID);
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);
    check_clean_end(open_trace(UM_TRACE_FILE_ORDER));
    check_clean_end(open_trace(UM_TRACE_TIME_ORDER));
}

/* ---- order -------------------------------------------------------------------------------- */

typedef struct seen {
    uint64_t time_ns, addr;
} seen_t;

static int by_time_then_place(const void *a, const void *b)
{
    const seen_t *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Writes events with these times (addr = position), reads them by time, compares with a sort. */
static void check_order(seen_t *events, size_t n, uint32_t block_events)
{
    um_trace_writer_t *writer = create(&(um_trace_write_options_t){.block_events = block_events});
    for (size_t i = 0; i < n; i++) {
        events[i].addr = i;
        put_access(writer, events[i].time_ns, i);
    }
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);
    qsort(events, n, sizeof(*events), by_time_then_place);

    um_trace_reader_t *reader = open_trace(UM_TRACE_TIME_ORDER);
    const um_event_t *event;
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK);
        cr_assert_eq(event->time_ns, events[i].time_ns, "place %zu", i);
        cr_assert_eq(event->u.access.addr, events[i].addr, "place %zu", i);
    }
    check_clean_end(reader);
}

Test(trace_file, orders_by_time_and_keeps_ties_as_they_were)
{
    enum { N = 10000 };
    static seen_t events[N];
    uint64_t random = 7;
    for (size_t shape = 0; shape < 7; shape++) {
        for (size_t i = 0; i < N; i++) {
            uint64_t r = next_random(&random);
            events[i].time_ns = shape == 0   ? i                 /* sorted */
                                : shape == 1 ? N - i             /* backwards */
                                : shape == 2 ? r % 50            /* many ties */
                                : shape == 3 ? i * 10 + r % 3000 /* nearly sorted */
                                : shape == 4 ? r                 /* no order at all */
                                : shape == 5 ? 42                /* one time */
                                             : (i % 2 ? i : UINT64_MAX - i % 3); /* two streams */
        }
        check_order(events, N, 256);
    }
}

Test(trace_file, mixes_types_in_order_of_time)
{
    enum { N = 5000 };
    um_trace_writer_t *writer = create(&(um_trace_write_options_t){.block_events = 300});
    put_stream(writer, N);
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);

    static bool seen[N];
    um_trace_reader_t *reader = open_trace(UM_TRACE_TIME_ORDER);
    const um_event_t *event;
    event_box_t box;
    uint64_t last_ns = 0;
    for (uint64_t i = 0; i < N; i++) {
        cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK);
        cr_assert_geq(event->time_ns, last_ns);
        last_ns = event->time_ns;
        /* The stream has jitter below 5000 and steps of 100: the event is one of about 50. */
        uint64_t from = (event->time_ns - 1000000) / 100, k = from > 50 ? from - 50 : 0;
        for (; k < N; k++) {
            stream_event(&box, k);
            if (!seen[k] && same_event(&box.event, event))
                break;
        }
        cr_assert_lt(k, N, "event %llu is none of those written", (unsigned long long)i);
        seen[k] = true;
    }
    check_clean_end(reader);
}

/* ---- facts -------------------------------------------------------------------------------- */

Test(trace_file, carries_the_facts_of_its_header)
{
    um_ev_fact_t facts[] = {{"host.name", "abc"}, {"odd", ""}, {"host.name", "second"}, {"", "x"}};
    um_trace_writer_t *writer;
    cr_assert_eq(um_trace_writer_open(path, facts, 4, NULL, &writer), UM_OK);
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);
    um_trace_reader_t *reader = open_trace(UM_TRACE_FILE_ORDER);
    cr_assert_eq(um_trace_reader_info(reader)->n_facts, 4);
    cr_assert_str_eq(um_trace_reader_info(reader)->facts[2].value, "second");
    cr_assert_str_eq(um_trace_reader_fact(reader, "host.name"), "abc");
    cr_assert_str_eq(um_trace_reader_fact(reader, "odd"), "");
    cr_assert_null(um_trace_reader_fact(reader, "missing"));
    check_clean_end(reader);
}

typedef struct fact_list {
    um_ev_fact_t facts[200];
    size_t n;
} fact_list_t;

static void keep_fact(void *ctx, const um_event_t *event)
{
    fact_list_t *list = ctx;
    cr_assert_eq(event->type, UM_EV_FACT);
    cr_assert_eq(event->time_ns, 77);
    list->facts[list->n++] = (um_ev_fact_t){strdup(event->u.fact.key), strdup(event->u.fact.value)};
}

static const char *fact_value(const fact_list_t *list, const char *key)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->facts[i].key, key))
            return list->facts[i].value;
    return NULL;
}

Test(trace_file, knows_host_process_and_rank)
{
    static fact_list_t list;
    char pid[24];
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
    setenv("SLURM_PROCID", "5", 1); /* mpirun inside a Slurm job: the inner launcher counts */
    setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
    cr_assert_eq(um_trace_host_facts(77, keep_fact, &list), UM_OK);

    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    cr_assert_str_eq(fact_value(&list, "process.pid"), pid);
    struct tm utc = {0};
    const char *date = fact_value(&list, "process.recorded_at");
    cr_assert_not_null(date);
    cr_assert_str_eq(strptime(date, "%Y-%m-%dT%H:%M:%S", &utc), "Z");
    cr_assert_gt(utc.tm_year, 120);
    cr_assert_str_eq(fact_value(&list, "rank.launcher"), "openmpi");
    cr_assert_str_eq(fact_value(&list, "rank.world"), "3");
    cr_assert_str_eq(fact_value(&list, "rank.world_size"), "8");
    cr_assert_str_eq(fact_value(&list, "env.CUDA_VISIBLE_DEVICES"), "1,0");
    cr_assert_not_null(fact_value(&list, "umrt.version"));
    cr_assert_not_null(fact_value(&list, "host.name"));
    cr_assert_not_null(fact_value(&list, "host.kernel"));
    char command[256] = "";
    FILE *file = fopen("/proc/self/cmdline", "r"); /* Criterion gives its children names */
    fread(command, 1, sizeof(command) - 1, file);
    fclose(file);
    cr_assert_neq(command[0], 0);
    cr_assert_eq(strncmp(fact_value(&list, "process.command"), command, strlen(command)), 0);
    char exe[512] = "";
    cr_assert_gt(readlink("/proc/self/exe", exe, sizeof(exe) - 1), 0);
    cr_assert_str_eq(fact_value(&list, "process.exe"), exe);
}

/* ---- determinism -------------------------------------------------------------------------- */

static char *read_all(size_t *n)
{
    FILE *file = fopen(path, "rb");
    fseek(file, 0, SEEK_END);
    *n = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*n);
    cr_assert_eq(fread(data, 1, *n, file), *n);
    fclose(file);
    return data;
}

Test(trace_file, is_the_same_bytes_for_the_same_events)
{
    size_t n[2];
    char *data[2];
    for (int i = 0; i < 2; i++) {
        um_trace_writer_t *writer = create(&(um_trace_write_options_t){.queue_blocks = 2 + 7 * i});
        put_stream(writer, 30000);
        cr_assert_eq(um_trace_writer_close(writer), UM_OK);
        data[i] = read_all(&n[i]);
    }
    cr_assert_eq(n[0], n[1]);
    cr_assert_eq(memcmp(data[0], data[1], n[0]), 0);
    free(data[0]);
    free(data[1]);
}
