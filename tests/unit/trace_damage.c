/*
 * Damaged traces: all whole blocks come out, one line says what is wrong with the rest, and nothing
 * that was not written is ever believed.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/encode.h"
#include "trace/index.h"
#include "trace/reader.h"
#include "trace_events.h"
#include "um_trace.h"

enum { BLOCK = 256, BLOCKS = 6, EVENTS = BLOCK * (BLOCKS - 1) + 100 };

/* A small trace in memory, and where its parts are. */
typedef struct sample {
    uint8_t *data;
    size_t bytes;
    size_t header;            /* of one copy */
    size_t block[BLOCKS + 1]; /* the last one is where the index is */
} sample_t;

static void make_sample(sample_t *s)
{
    char path[64];
    um_trace_writer_t *writer;
    event_box_t box;
    um_ev_fact_t fact = {"host.name", "example"};
    snprintf(path, sizeof(path), "trace_damage.%d.umt", (int)getpid());
    um_trace_write_options_t options = {.block_events = BLOCK};
    cr_assert_eq(um_trace_writer_open(path, &fact, 1, &options, &writer), UM_OK);
    for (uint64_t i = 0; i < EVENTS; i++) {
        stream_event(&box, i);
        cr_assert_eq(um_trace_writer_put(writer, &box.event), UM_OK);
    }
    cr_assert_eq(um_trace_writer_close(writer), UM_OK);

    FILE *file = fopen(path, "rb");
    struct stat st;
    cr_assert_eq(fstat(fileno(file), &st), 0);
    s->bytes = (size_t)st.st_size;
    s->data = malloc(s->bytes + 1);
    cr_assert_eq(fread(s->data, 1, s->bytes, file), s->bytes);
    fclose(file);
    unlink(path);

    s->header = um_header_bytes(s->data);
    size_t at = 2 * s->header;
    for (size_t i = 0; i < BLOCKS; i++) {
        um_block_header_t header;
        cr_assert(um_block_header_get(&header, um_header_seed(s->data), s->data + at));
        s->block[i] = at;
        at += UM_BLOCK_HEADER_BYTES + header.packed_bytes;
    }
    s->block[BLOCKS] = at;
    cr_assert_eq(at + UM_INDEX_HEADER_BYTES + BLOCKS * UM_INDEX_ENTRY_BYTES + UM_TRAILER_BYTES,
                 s->bytes);
}

/* What reading gave. */
typedef struct outcome {
    um_status_t opened, ended;
    char line[512];
    uint64_t events;
    bool blocks[BLOCKS]; /* came out, whole */
} outcome_t;

/* Reads what is there. Every event must be one that was written, in its place inside a block that
 * comes out whole or not at all. */
static void read_sample(const uint8_t *data, size_t bytes, um_trace_order_t order, outcome_t *out)
{
    um_trace_reader_t *reader;
    const um_event_t *event;
    event_box_t box;
    uint64_t at = 0;

    memset(out, 0, sizeof(*out));
    out->opened = um_trace_reader_open_memory(data, bytes, "sample", order, &reader, out->line,
                                              sizeof(out->line));
    if (out->opened != UM_OK)
        return;
    if (order == UM_TRACE_FILE_ORDER) {
        while ((out->ended = um_trace_reader_next(reader, &event)) == UM_OK) {
            for (stream_event(&box, at); !same_event(&box.event, event); stream_event(&box, at)) {
                cr_assert_eq(at % BLOCK, 0, "a block came out in part");
                at += BLOCK;
                cr_assert_lt(at, EVENTS, "an event was never written");
            }
            out->blocks[at / BLOCK] = true;
            at++;
            out->events++;
        }
    } else {
        uint64_t last_ns = 0;
        while ((out->ended = um_trace_reader_next(reader, &event)) == UM_OK) {
            cr_assert_geq(event->time_ns, last_ns);
            last_ns = event->time_ns;
            out->events++;
        }
    }
    cr_assert_eq(um_trace_reader_next(reader, &event), out->ended, "the end stays the end");
    snprintf(out->line, sizeof(out->line), "%s", um_trace_reader_error(reader));
    um_trace_reader_close(reader);
}

static size_t count_blocks(const outcome_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        n += out->blocks[i];
    return n;
}

static void check_line(const outcome_t *out)
{
    cr_assert_eq(strncmp(out->line, "sample: offset ", 15), 0, "line: %s", out->line);
    cr_assert_null(strchr(out->line, '\n'));
}

Test(trace_damage, reads_the_sample_cleanly)
{
    sample_t s;
    outcome_t out;
    make_sample(&s);
    for (um_trace_order_t order = UM_TRACE_FILE_ORDER; order <= UM_TRACE_TIME_ORDER; order++) {
        read_sample(s.data, s.bytes, order, &out);
        cr_assert_eq(out.opened, UM_OK);
        cr_assert_eq(out.ended, UM_ERR_NOT_FOUND);
        cr_assert_str_eq(out.line, "");
        cr_assert_eq(out.events, EVENTS);
    }
    free(s.data);
}

/* ---- truncation --------------------------------------------------------------------------- */

static void check_cut(const sample_t *s, size_t bytes)
{
    outcome_t out, by_time;
    uint8_t *cut = malloc(bytes ? bytes : 1); /* of its size: reading past it is caught */
    memcpy(cut, s->data, bytes);
    read_sample(cut, bytes, UM_TRACE_FILE_ORDER, &out);
    read_sample(cut, bytes, UM_TRACE_TIME_ORDER, &by_time);
    free(cut);
    cr_assert_eq(out.opened, by_time.opened);
    check_line(&out);
    if (bytes < s->header) {
        cr_assert_eq(out.opened, bytes ? UM_ERR_TRUNCATED : UM_ERR_FORMAT, "at %zu", bytes);
        return;
    }
    cr_assert_eq(out.opened, UM_OK);
    cr_assert(out.ended == UM_ERR_TRUNCATED ||
                  (out.ended == UM_ERR_FORMAT && bytes > s->block[BLOCKS]),
              "at %zu: %s", bytes, out.line);
    size_t whole = 0;
    while (whole < BLOCKS && s->block[whole + 1] <= bytes)
        whole++;
    cr_assert_eq(count_blocks(&out), whole, "at %zu: %s", bytes, out.line);
    for (size_t i = 0; i < whole; i++)
        cr_assert(out.blocks[i]);
    cr_assert_eq(out.events, whole == BLOCKS ? EVENTS : whole * BLOCK);
    cr_assert_eq(by_time.events, out.events);
    cr_assert_eq(by_time.ended, out.ended);
}

Test(trace_damage, gives_all_whole_blocks_wherever_it_is_cut)
{
    sample_t s;
    make_sample(&s);
    for (size_t i = 0; i <= BLOCKS; i++)
        for (int d = -1; d <= 1; d++)
            check_cut(&s, s.block[i] + (size_t)d);
    check_cut(&s, s.header - 1);
    check_cut(&s, s.header);
    check_cut(&s, s.header + 1);
    check_cut(&s, s.bytes - 1);
    for (size_t bytes = 0; bytes < 64; bytes++)
        check_cut(&s, bytes);
    for (size_t bytes = 64; bytes < s.bytes; bytes += 101)
        check_cut(&s, bytes);
    free(s.data);
}

/* ---- flipped bits ------------------------------------------------------------------------- */

static void check_flip(const sample_t *s, uint8_t *copy, size_t at, uint8_t bits)
{
    outcome_t out;
    copy[at] ^= bits;
    read_sample(copy, s->bytes, UM_TRACE_FILE_ORDER, &out);
    copy[at] ^= bits;
    cr_assert_eq(out.opened, UM_OK, "byte %zu: %s", at, out.line);
    cr_assert_eq(out.ended, UM_ERR_FORMAT, "byte %zu: %d %s", at, out.ended, out.line);
    check_line(&out);

    /* At most the block that holds the byte is missing, and then all that it holds. */
    bool in_block = at >= s->block[0] && at < s->block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        bool hit = at >= s->block[i] && at < s->block[i + 1];
        cr_assert_eq(out.blocks[i], !hit, "byte %zu, block %zu: %s", at, i, out.line);
    }
    cr_assert_eq(count_blocks(&out), BLOCKS - in_block);
}

Test(trace_damage, notices_any_flipped_byte_and_loses_one_block_at_most)
{
    sample_t s;
    make_sample(&s);
    uint8_t *copy = malloc(s.bytes);
    memcpy(copy, s.data, s.bytes);
    /* Every byte of headers and index; every 13th of what checksums cover as a whole. */
    for (size_t at = 0; at < UM_FILE_HEADER_BYTES; at++) {
        check_flip(&s, copy, at, (uint8_t)(1u << at % 8));
        check_flip(&s, copy, s.header + at, 0xff);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < UM_BLOCK_HEADER_BYTES + 16; at++)
            check_flip(&s, copy, s.block[i] + at, (uint8_t)(1u << (at + i) % 8));
    for (size_t at = s.block[BLOCKS]; at < s.bytes; at++)
        check_flip(&s, copy, at, (uint8_t)(1u << at % 8));
    for (size_t at = 0; at < s.bytes; at += 13)
        check_flip(&s, copy, at, 0x10);
    free(copy);
    free(s.data);
}

Test(trace_damage, gives_the_same_events_by_time_when_a_byte_is_flipped)
{
    sample_t s;
    outcome_t in_file, by_time;
    make_sample(&s);
    for (size_t at = 5; at < s.bytes; at += 311) {
        s.data[at] ^= 0x40;
        read_sample(s.data, s.bytes, UM_TRACE_FILE_ORDER, &in_file);
        read_sample(s.data, s.bytes, UM_TRACE_TIME_ORDER, &by_time);
        s.data[at] ^= 0x40;
        cr_assert_eq(by_time.opened, in_file.opened);
        cr_assert_eq(by_time.events, in_file.events, "byte %zu: %s", at, by_time.line);
        cr_assert_eq(by_time.ended, UM_ERR_FORMAT);
        check_line(&by_time);
    }
    free(s.data);
}

Test(trace_damage, survives_random_holes)
{
    sample_t s;
    outcome_t out;
    make_sample(&s);
    uint8_t *copy = malloc(s.bytes);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t random = seed;
        memcpy(copy, s.data, s.bytes);
        for (uint64_t holes = 1 + next_random(&random) % 4; holes > 0; holes--) {
            size_t at = next_random(&random) % s.bytes;
            size_t n = next_random(&random) % 2000;
            for (size_t i = at; i < at + n && i < s.bytes; i++)
                copy[i] = (uint8_t)next_random(&random);
        }
        read_sample(copy, s.bytes, UM_TRACE_FILE_ORDER, &out); /* asserts what comes out */
        if (out.opened == UM_OK && memcmp(copy, s.data, s.bytes) != 0)
            cr_assert_eq(out.ended, UM_ERR_FORMAT, "seed %llu", (unsigned long long)seed);
    }
    free(copy);
    free(s.data);
}

Test(trace_damage, notices_a_block_taken_out_or_put_in_twice)
{
    sample_t s;
    outcome_t out;
    make_sample(&s);
    size_t a = s.block[2], b = s.block[3];
    uint8_t *copy = malloc(2 * s.bytes);

    memcpy(copy, s.data, a);
    memcpy(copy + a, s.data + b, s.bytes - b);
    read_sample(copy, s.bytes - (b - a), UM_TRACE_FILE_ORDER, &out);
    cr_assert_eq(out.ended, UM_ERR_FORMAT);
    cr_assert_eq(count_blocks(&out), BLOCKS - 1);

    memcpy(copy, s.data, b);
    memcpy(copy + b, s.data + a, s.bytes - a);
    read_sample(copy, s.bytes + (b - a), UM_TRACE_FILE_ORDER, &out);
    cr_assert_eq(out.ended, UM_ERR_FORMAT);
    cr_assert_eq(out.events, EVENTS, "twice is not once more");
    free(copy);
    free(s.data);
}

/* A block of another trace, whole and checked, does not belong here. */
Test(trace_damage, does_not_take_blocks_of_other_traces)
{
    sample_t s;
    outcome_t out;
    make_sample(&s);
    um_rows_t rows = {0};
    um_encoder_t encoder = {0};
    um_bytes_t block = {0};
    um_block_header_t header;
    um_event_t event = {.type = UM_EV_SYNC};
    cr_assert_eq(um_rows_add(&rows, &event), UM_OK);
    cr_assert_eq(um_rows_encode(&rows, &encoder, 1, 12345, EVENTS, &block, &header), UM_OK);

    uint8_t *copy = malloc(s.bytes + block.used);
    memcpy(copy, s.data, s.block[BLOCKS]);
    memcpy(copy + s.block[BLOCKS], block.data, block.used);
    read_sample(copy, s.block[BLOCKS] + block.used, UM_TRACE_FILE_ORDER, &out);
    cr_assert_eq(out.ended, UM_ERR_FORMAT);
    cr_assert_eq(out.events, EVENTS);
    free(copy);
    free(s.data);
    um_bytes_free(&block);
    um_encoder_free(&encoder);
    um_rows_free(&rows);
}

/* ---- versions ----------------------------------------------------------------------------- */

/* Rewrites a header copy's checksum after a change, so that only the change is judged. */
static void reseal(uint8_t *copy, size_t bytes)
{
    uint64_t check =
        um_check(copy + UM_FILE_HEADER_BYTES, bytes - UM_FILE_HEADER_BYTES, um_check(copy, 32, 0));
    um_put64(copy + 32, check);
}

Test(trace_damage, tells_what_needs_a_newer_reader)
{
    sample_t s;
    outcome_t out;
    make_sample(&s);
    for (int copy = 0; copy < 2; copy++) {
        um_put32(s.data + copy * s.header + 12, 2); /* minimum reader version */
        reseal(s.data + copy * s.header, s.header);
    }
    read_sample(s.data, s.bytes, UM_TRACE_FILE_ORDER, &out);
    cr_assert_eq(out.opened, UM_ERR_VERSION);
    check_line(&out);

    for (int copy = 0; copy < 2; copy++) {
        um_put32(s.data + copy * s.header + 12, 1);
        um_put64(s.data + copy * s.header + 16, UM_FEATURES | 1ull << 40);
        reseal(s.data + copy * s.header, s.header);
    }
    read_sample(s.data, s.bytes, UM_TRACE_FILE_ORDER, &out);
    cr_assert_eq(out.opened, UM_ERR_VERSION);
    check_line(&out);
    free(s.data);
}

/* A file whose schema differs from ours, as a newer or older umrt would write it: a field that we
 * have is missing (zero, ""), one that we do not know is skipped, and so is a type. Made by hand:
 * the header from changed tables, the block from columns. */
Test(trace_damage, reads_files_of_another_schema)
{
    um_bytes_t file = {0}, raw = {0};
    um_block_header_t header = {.events = 3, .first_ns = 5, .last_ns = 7};

    cr_assert_eq(um_header_build(&file, NULL, 0), UM_OK);
    file.used = UM_FILE_HEADER_BYTES;
    um_bytes_u32(&file, 2); /* types */
    um_bytes_u32(&file, UM_EV_LOSS);
    um_bytes_string(&file, "loss");
    um_bytes_u32(&file, 5);
    static const struct {
        const char *name;
        uint8_t coding[4]; /* kind, bytes, ref, elements */
    } fields[] = {{"count", {UM_FIELD_UINT, 8, 0, 0}},
                  {"colour", {UM_FIELD_STRING, 8, 0, 0}},
                  {"parts", {UM_FIELD_ARRAY, 4, 0, 1}},
                  {"weight", {UM_FIELD_DELTA, 8, 0, 0}},
                  {"bytes", {UM_FIELD_CHAIN, 8, 0, 0}}};
    for (size_t i = 0; i < 5; i++) {
        um_bytes_string(&file, fields[i].name);
        memcpy(um_bytes_add(&file, 4), fields[i].coding, 4);
    }
    um_bytes_u32(&file, 200); /* a type of the future */
    um_bytes_string(&file, "teleport");
    um_bytes_u32(&file, 1);
    um_bytes_string(&file, "speed");
    memcpy(um_bytes_add(&file, 4), (uint8_t[]){UM_FIELD_UINT, 8, 0, 0}, 4);
    um_bytes_u32(&file, 0); /* facts */
    um_put64(file.data + 24, file.used - UM_FILE_HEADER_BYTES);
    reseal(file.data, file.used);
    uint64_t seed = um_header_seed(file.data);
    size_t bytes = file.used;
    uint8_t *second = um_bytes_add(&file, bytes);
    memcpy(second, file.data, bytes);

    memcpy((um_bytes_u32(&raw, 2), um_bytes_u32(&raw, 5), um_bytes_add(&raw, 5)), "red\0", 5);
    um_column_write(&raw, UM_FIELD_DELTA, (uint64_t[]){5, 6, 7}, 3, NULL);
    um_column_write(&raw, UM_FIELD_UINT, (uint64_t[]){UM_EV_LOSS, 200, UM_EV_LOSS}, 3, NULL);
    um_column_write(&raw, UM_FIELD_UINT, (uint64_t[]){1, 1, 1}, 3, NULL);
    um_column_write(&raw, UM_FIELD_UINT, (uint64_t[]){10, 20}, 2, NULL);
    um_column_write(&raw, UM_FIELD_STRING, (uint64_t[]){0, 1}, 2, NULL);
    um_column_write(&raw, UM_FIELD_UINT, (uint64_t[]){2, 1}, 2, NULL);
    um_column_write(&raw, UM_FIELD_DELTA, (uint64_t[]){4, 9, 1}, 3, NULL);
    um_column_write(&raw, UM_FIELD_CHAIN, (uint64_t[]){100, 110}, 2, (uint64_t[]){10, 20});
    um_column_write(&raw, UM_FIELD_UINT, (uint64_t[]){99}, 1, NULL);

    /* The payload as a zstd frame of one raw block: magic, single segment of 4-byte size. */
    um_bytes_t packed = {0};
    um_bytes_u32(&packed, 0xfd2fb528u);
    memcpy(um_bytes_add(&packed, 1), "\xa0", 1);
    um_bytes_u32(&packed, (uint32_t)raw.used);
    uint32_t frame = (uint32_t)raw.used << 3 | 1;
    memcpy(um_bytes_add(&packed, 3), (uint8_t[]){(uint8_t)frame, (uint8_t)(frame >> 8), 0}, 3);
    memcpy(um_bytes_add(&packed, raw.used), raw.data, raw.used);
    header.raw_bytes = (uint32_t)raw.used;
    header.packed_bytes = (uint32_t)packed.used;
    header.payload_check = um_check(packed.data, packed.used, seed);
    um_block_header_put(&header, seed, um_bytes_add(&file, UM_BLOCK_HEADER_BYTES));
    memcpy(um_bytes_add(&file, packed.used), packed.data, packed.used);
    um_index_entry_t entry = {2 * bytes, 5, 7, 3, header.packed_bytes};
    um_index_build(&file, &entry, 1, file.used, seed);

    for (um_trace_order_t order = UM_TRACE_FILE_ORDER; order <= UM_TRACE_TIME_ORDER; order++) {
        um_trace_reader_t *reader;
        const um_event_t *event;
        char line[256] = "";
        cr_assert_eq(um_trace_reader_open_memory(file.data, file.used, "other", order, &reader,
                                                 line, sizeof(line)),
                     UM_OK, "%s", line);
        for (uint64_t i = 0; i < 2; i++) {
            cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK, "%s",
                         um_trace_reader_error(reader));
            cr_assert_eq(event->time_ns, 5 + 2 * i);
            cr_assert_eq(event->type, UM_EV_LOSS);
            cr_assert_eq(event->u.loss.count, 10 + 10 * i);
            cr_assert_eq(event->u.loss.bytes, 100 + 10 * i);
            cr_assert_eq(event->u.loss.what, 0);
            cr_assert_str_eq(event->u.loss.reason, "");
        }
        cr_assert_eq(um_trace_reader_next(reader, &event), UM_ERR_NOT_FOUND, "%s",
                     um_trace_reader_error(reader));
        um_trace_reader_close(reader);
    }
    um_bytes_free(&file);
    um_bytes_free(&raw);
    um_bytes_free(&packed);
}

/* ---- what is no trace --------------------------------------------------------------------- */

Test(trace_damage, refuses_what_is_no_trace_with_one_line)
{
    char path[64], line[256];
    um_trace_reader_t *reader;
    snprintf(path, sizeof(path), "trace_damage.%d.txt", (int)getpid());

    static const struct {
        const char *text;
        um_status_t expected;
    } files[] = {{"", UM_ERR_FORMAT},
                 {"==1234== NVPROF is profiling process 1234", UM_ERR_FORMAT},
                 {"UMT", UM_ERR_TRUNCATED}};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        FILE *file = fopen(path, "w");
        fputs(files[i].text, file);
        fclose(file);
        cr_assert_eq(um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, line, sizeof(line)),
                     files[i].expected, "%s", files[i].text);
        cr_assert_eq(strncmp(line, path, strlen(path)), 0, "%s", line);
    }
    unlink(path);
    cr_assert_eq(um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, line, sizeof(line)),
                 UM_ERR_IO);
    cr_assert(strstr(line, "No such file"), "%s", line);
    cr_assert_eq(um_trace_reader_open("/", UM_TRACE_FILE_ORDER, &reader, line, sizeof(line)),
                 UM_ERR_FORMAT);
    cr_assert(strstr(line, "directory"), "%s", line);
    cr_assert_eq(um_trace_reader_open("/dev/zero", UM_TRACE_FILE_ORDER, &reader, NULL, 0),
                 UM_ERR_FORMAT);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(um_trace_reader_open(path, UM_TRACE_FILE_ORDER, &reader, line, sizeof(line)),
                 UM_ERR_FORMAT, "a pipe does not block");
    unlink(path);

    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t random = seed;
        uint8_t noise[4096];
        outcome_t out;
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (uint8_t)next_random(&random);
        if (seed % 2) /* looks like one at first */
            memcpy(noise, UM_MAGIC_FILE, UM_MAGIC_BYTES);
        read_sample(noise, sizeof(noise), UM_TRACE_FILE_ORDER, &out);
        cr_assert_neq(out.opened, UM_OK);
        check_line(&out);
    }
}
