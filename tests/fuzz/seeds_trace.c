/*
 * seeds_trace DIR - writes the seeds of fuzz_trace and fuzz_trace_block to DIR/trace and
 * DIR/trace_block (which exist). Run it again when the format changes.
 */
#include <stdio.h>

#include "../unit/trace_events.h"
#include "trace/encode.h"
#include "trace/index.h"

static const char *directory;

static void save(const char *name, const void *data, size_t bytes)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* A header that describes some types only: short, so that changes hit the blocks. */
static void put_header(um_bytes_t *out, const uint32_t *types, uint32_t n)
{
    um_header_build(out, NULL, 0);
    out->used = UM_FILE_HEADER_BYTES;
    um_bytes_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        const um_schema_t *schema = &um_schema_table[types[i]];
        um_bytes_u32(out, types[i]);
        um_bytes_string(out, schema->name);
        um_bytes_u32(out, schema->n_fields);
        for (const um_field_t *f = schema->fields; f < schema->fields + schema->n_fields; f++) {
            um_bytes_string(out, f->name);
            memcpy(um_bytes_add(out, 4), (uint8_t[]){f->kind, f->bytes, f->ref, f->elements}, 4);
        }
    }
    um_bytes_u32(out, 1);
    um_bytes_string(out, "host.name");
    um_bytes_string(out, "seed");
    um_put64(out->data + 24, out->used - UM_FILE_HEADER_BYTES);
    um_put64(out->data + 32,
             um_check(out->data + UM_FILE_HEADER_BYTES, out->used - UM_FILE_HEADER_BYTES,
                      um_check(out->data, 32, 0)));
    size_t bytes = out->used;
    uint8_t *second = um_bytes_add(out, bytes);
    memcpy(second, out->data, bytes);
}

static void add_events(um_rows_t *rows, const uint32_t *types, uint32_t n, uint64_t first_ns)
{
    event_box_t box;
    uint64_t random = first_ns;
    um_rows_clear(rows);
    for (uint32_t i = 0; i < 3 * n; i++) {
        make_event(&box, types[i % n], first_ns + (i * 7919) % 100, &random);
        um_rows_add(rows, &box.event);
    }
}

/* A file of two blocks that overlap, and the second payload alone. */
static void make(const char *name, const uint32_t *types, uint32_t n)
{
    um_bytes_t file = {0}, input = {0};
    um_rows_t rows = {0};
    um_encoder_t encoder = {0};
    um_block_header_t header = {0};
    um_index_entry_t entries[2];
    char path[256];

    put_header(&file, types, n);
    uint64_t seed = um_header_seed(file.data);
    for (int i = 0; i < 2; i++) {
        uint64_t offset = file.used;
        add_events(&rows, types, n, 1000 + 50 * (uint64_t)i);
        um_rows_encode(&rows, &encoder, 1, seed, i * 3 * n, &file, &header);
        entries[i] = (um_index_entry_t){offset, header.first_ns, header.last_ns, header.events,
                                        header.packed_bytes};
    }
    um_index_build(&file, entries, 2, file.used, seed);
    snprintf(path, sizeof(path), "trace/%s.umt", name);
    save(path, file.data, file.used);

    um_bytes_u64(&input, header.first_ns);
    um_bytes_u64(&input, header.last_ns);
    um_bytes_u32(&input, header.events);
    memcpy(um_bytes_add(&input, encoder.raw.used), encoder.raw.data, encoder.raw.used);
    snprintf(path, sizeof(path), "trace_block/%s", name);
    save(path, input.data, input.used);
}

int main(int argc, char **argv)
{
    uint32_t all[UM_EV_TYPE_COUNT - 1];
    if (argc != 2)
        return 2;
    directory = argv[1];
    for (uint32_t i = 0; i < UM_EV_TYPE_COUNT - 1; i++)
        all[i] = i + 1;
    make("every_type", all, UM_EV_TYPE_COUNT - 1);
    make("marks", (uint32_t[]){UM_EV_MARK}, 1);
    make("launches", (uint32_t[]){UM_EV_KERNEL, UM_EV_LAUNCH}, 2);
    make("migrations", (uint32_t[]){UM_EV_MIGRATE, UM_EV_GPU_FAULT}, 2);
    make("profile", (uint32_t[]){UM_EV_DEVICE, UM_EV_LEARNED}, 2);
    return 0;
}
