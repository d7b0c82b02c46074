#include "format.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t um_check(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

bool um_check_matches(uint64_t found, const void *data, size_t bytes, uint64_t seed)
{
    return um_check(data, bytes, seed) == found;
}

/* ---- file header: magic 8, version 4, min reader 4, features 8, payload bytes 8, check 8 ---- */

enum { AT_VERSION = 8, AT_MIN_READER = 12, AT_FEATURES = 16, AT_PAYLOAD = 24, AT_CHECK = 32 };

/* The check covers all but itself: the payload, seeded with the check of the fixed part. */
static uint64_t header_check(const uint8_t *copy, uint64_t bytes)
{
    return um_check(copy + UM_FILE_HEADER_BYTES, bytes - UM_FILE_HEADER_BYTES,
                    um_check(copy, AT_CHECK, 0));
}

static bool put_schema(um_bytes_t *out)
{
    uint32_t n_types = 0;
    for (size_t t = 0; t < UM_EV_TYPE_COUNT; t++)
        n_types += um_schema_table[t].fields != NULL;
    if (!um_bytes_u32(out, n_types))
        return false;
    for (uint32_t t = 0; t < UM_EV_TYPE_COUNT; t++) {
        const um_schema_t *schema = &um_schema_table[t];
        if (!schema->fields)
            continue;
        if (!um_bytes_u32(out, t) || !um_bytes_string(out, schema->name) ||
            !um_bytes_u32(out, schema->n_fields))
            return false;
        for (const um_field_t *f = schema->fields; f < schema->fields + schema->n_fields; f++) {
            uint8_t *at = um_bytes_string(out, f->name) ? um_bytes_add(out, 4) : NULL;
            if (!at)
                return false;
            memcpy(at, (uint8_t[]){f->kind, f->bytes, f->ref, f->elements}, 4);
        }
    }
    return true;
}

static bool put_facts(um_bytes_t *out, const um_ev_fact_t *facts, size_t n_facts)
{
    if (!um_bytes_u32(out, (uint32_t)n_facts))
        return false;
    for (size_t i = 0; i < n_facts; i++)
        if (!um_bytes_string(out, facts[i].key ? facts[i].key : "") ||
            !um_bytes_string(out, facts[i].value ? facts[i].value : ""))
            return false;
    return true;
}

um_status_t um_header_build(um_bytes_t *out, const um_ev_fact_t *facts, size_t n_facts)
{
    size_t start = out->used;
    for (size_t i = 0; i < n_facts; i++)
        if ((facts[i].key && strlen(facts[i].key) > UM_MAX_STRING_BYTES) ||
            (facts[i].value && strlen(facts[i].value) > UM_MAX_STRING_BYTES))
            return UM_ERR_INVALID;
    if (!um_bytes_add(out, UM_FILE_HEADER_BYTES) || !put_schema(out) ||
        !put_facts(out, facts, n_facts))
        return UM_ERR_NO_MEMORY;

    uint64_t bytes = out->used - start;
    if (bytes > UM_MAX_HEADER_BYTES)
        return UM_ERR_INVALID;
    uint8_t *copy = out->data + start;
    memcpy(copy, UM_MAGIC_FILE, UM_MAGIC_BYTES);
    um_put32(copy + AT_VERSION, UM_FORMAT_VERSION);
    um_put32(copy + AT_MIN_READER, UM_FORMAT_MIN_READER);
    um_put64(copy + AT_FEATURES, UM_FEATURES);
    um_put64(copy + AT_PAYLOAD, bytes - UM_FILE_HEADER_BYTES);
    um_put64(copy + AT_CHECK, header_check(copy, bytes));
    return UM_OK;
}

uint64_t um_header_bytes(const uint8_t *fixed)
{
    uint64_t payload = um_get64(fixed + AT_PAYLOAD);
    if (memcmp(fixed, UM_MAGIC_FILE, UM_MAGIC_BYTES) != 0 || payload > UM_MAX_HEADER_BYTES)
        return 0;
    return UM_FILE_HEADER_BYTES + payload;
}

uint64_t um_header_seed(const uint8_t *copy)
{
    return um_get64(copy + AT_CHECK);
}

/* The field of the table that a field of a file is, or one that nobody wants (its kind is kept,
 * because the columns must still be stepped over). */
static void bind_field(um_field_t *field, const um_field_t *known, size_t n_known)
{
    bool number = field->kind < UM_FIELD_STRING;
    for (size_t i = 0; i < n_known; i += 1 + known[i].elements) {
        bool known_number = known[i].kind < UM_FIELD_STRING;
        if (strcmp(known[i].name, field->name) != 0)
            continue;
        if (number != known_number || (!number && field->kind != known[i].kind))
            break;
        field->bytes = known[i].bytes;
        field->offset = known[i].offset;
        field->array_offset = known[i].array_offset;
        field->element_bytes = known[i].element_bytes;
        return;
    }
    field->bytes = 0;
}

/* Where the elements of an array of the table begin; NULL when it has none of that name. */
static const um_field_t *known_elements(const um_schema_t *schema, const char *name, size_t *n)
{
    for (size_t i = 0; i < schema->n_fields; i++)
        if (schema->fields[i].kind == UM_FIELD_ARRAY && !strcmp(schema->fields[i].name, name)) {
            *n = schema->fields[i].elements;
            return &schema->fields[i + 1];
        }
    *n = 0;
    return NULL;
}

/* Checks how the fields of one type hang together and binds them to the table. */
static bool bind_type(um_field_t *fields, size_t n, const um_schema_t *schema)
{
    for (size_t i = 0; i < n; i++) {
        um_field_t *f = &fields[i];
        bind_field(f, schema->fields, schema->n_fields);
        if (f->kind == UM_FIELD_CHAIN && (f->ref >= i || fields[f->ref].kind >= UM_FIELD_STRING))
            return false;
        if (f->kind != UM_FIELD_ARRAY)
            continue;
        if (f->elements == 0 || f->elements > n - i - 1)
            return false;
        size_t n_known;
        const um_field_t *known = known_elements(schema, f->name, &n_known);
        for (size_t k = i + 1; k <= i + f->elements; k++) {
            if (fields[k].kind > UM_FIELD_DELTA)
                return false; /* elements are plain numbers */
            bind_field(&fields[k], known, n_known);
        }
        i += f->elements;
    }
    return true;
}

static bool get_type(um_file_header_t *header, um_cursor_t *in)
{
    static const um_schema_t nothing;
    uint32_t type, n;
    const char *name;
    if (!um_cursor_u32(in, &type) || !um_cursor_string(in, &name) || !um_cursor_u32(in, &n) ||
        type >= UM_SCHEMA_MAX_TYPES || header->types[type].name || n > UM_SCHEMA_MAX_FIELDS)
        return false;
    um_field_t *fields =
        realloc(header->fields, (header->n_fields + n + 1) * sizeof(*header->fields));
    if (!fields)
        return false;
    header->fields = fields;
    header->types[type] = (um_file_type_t){name, (uint16_t)header->n_fields, (uint16_t)n};
    fields += header->n_fields;
    for (uint32_t i = 0; i < n; i++) {
        fields[i] = (um_field_t){0};
        const uint8_t *at = um_cursor_string(in, &fields[i].name) ? um_cursor_take(in, 4) : NULL;
        if (!at || at[0] > UM_FIELD_ARRAY)
            return false;
        fields[i].kind = at[0];
        fields[i].bytes = at[1];
        fields[i].ref = at[2];
        fields[i].elements = at[3];
    }
    header->n_fields += n;
    return bind_type(fields, n, type < UM_EV_TYPE_COUNT ? &um_schema_table[type] : &nothing);
}

static bool get_facts(um_file_header_t *header, um_cursor_t *in)
{
    uint32_t n;
    if (!um_cursor_u32(in, &n) || n > (size_t)(in->end - in->at) / 10)
        return false; /* a fact has at least 10 bytes */
    header->facts = calloc(n + 1, sizeof(*header->facts));
    if (!header->facts)
        return false;
    for (; header->n_facts < n; header->n_facts++) {
        um_ev_fact_t *fact = &header->facts[header->n_facts];
        if (!um_cursor_string(in, &fact->key) || !um_cursor_string(in, &fact->value))
            return false;
    }
    return true;
}

um_status_t um_header_parse(um_file_header_t *header, uint8_t *data, uint64_t bytes,
                            const char **why)
{
    *header =
        (um_file_header_t){.data = data, .bytes = bytes, .version = um_get32(data + AT_VERSION)};
    bool newer = um_get32(data + AT_MIN_READER) > UM_FORMAT_VERSION;
    bool strange = um_get64(data + AT_FEATURES) & ~UM_FEATURES;

    header->check = um_header_seed(data);
    if (!um_check_matches(header->check, data + UM_FILE_HEADER_BYTES, bytes - UM_FILE_HEADER_BYTES,
                          um_check(data, AT_CHECK, 0))) {
        *why = newer ? "needs a newer reader" : "file header checksum does not match";
        return newer ? UM_ERR_VERSION : UM_ERR_FORMAT;
    }
    if (newer || strange) {
        *why = newer ? "needs a newer reader" : "uses features that this reader does not know";
        return UM_ERR_VERSION;
    }

    um_cursor_t in = {data + UM_FILE_HEADER_BYTES, data + bytes};
    uint32_t n_types;
    bool good = um_cursor_u32(&in, &n_types) && n_types <= UM_SCHEMA_MAX_TYPES;
    for (uint32_t i = 0; good && i < n_types; i++)
        good = get_type(header, &in);
    if (!good || !get_facts(header, &in)) {
        *why = "file header is malformed";
        return UM_ERR_FORMAT;
    }
    return UM_OK;
}

void um_header_free(um_file_header_t *header)
{
    free(header->fields);
    free(header->facts);
    free(header->data);
    *header = (um_file_header_t){0};
}

/* ---- block header ------------------------------------------------------------------------- */

enum { AT_HEADER_CHECK = 48 };

void um_block_header_put(const um_block_header_t *header, uint64_t seed, uint8_t *out)
{
    um_put32(out, UM_MAGIC_BLOCK);
    um_put32(out + 4, header->packed_bytes);
    um_put32(out + 8, header->raw_bytes);
    um_put32(out + 12, header->events);
    um_put64(out + 16, header->first_event);
    um_put64(out + 24, header->first_ns);
    um_put64(out + 32, header->last_ns);
    um_put64(out + 40, header->payload_check);
    um_put64(out + AT_HEADER_CHECK, um_check(out, AT_HEADER_CHECK, seed));
}

bool um_block_header_get(um_block_header_t *header, uint64_t seed, const uint8_t *in)
{
    *header = (um_block_header_t){um_get32(in + 4),  um_get32(in + 8),  um_get32(in + 12),
                                  um_get64(in + 16), um_get64(in + 24), um_get64(in + 32),
                                  um_get64(in + 40)};
    return um_get32(in) == UM_MAGIC_BLOCK && header->packed_bytes <= UM_MAX_PACKED_BYTES &&
           header->raw_bytes <= UM_MAX_BLOCK_BYTES && header->events > 0 &&
           header->events <= UM_MAX_BLOCK_EVENTS && header->first_ns <= header->last_ns &&
           um_check_matches(um_get64(in + AT_HEADER_CHECK), in, AT_HEADER_CHECK, seed);
}
