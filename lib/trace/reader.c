#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "core/grow.h"
#include "decode.h"
#include "index.h"

/* A block that waits for its turn in time order. */
typedef struct um_place {
    uint64_t offset;
    uint64_t first_ns;
} um_place_t;

struct um_trace_reader {
    um_source_t source;
    char *name;
    um_trace_order_t order;
    um_file_header_t header;
    um_trace_info_t info;
    um_damage_t damage;
    uint64_t good_events, good_blocks; /* read so far */
    um_status_t status;                /* UM_OK until the end */
    char *error;
    void *zstd;
    um_bytes_t packed; /* one block as in the file */

    um_block_t *current; /* whose events are being delivered */
    um_walk_t walk;      /* file order */

    /* Time order: places by first_ns; blocks that overlap are open, a heap by their next event. */
    um_bytes_t places; /* um_place_t each */
    size_t next_place;
    um_block_t **heap;
    size_t n_heap, heap_room;
    um_block_t **spare;
    size_t n_spare, spare_room;
};

/* ---- blocks ------------------------------------------------------------------------------- */

/* Reads, checks and decodes a block. UM_ERR_FORMAT: it is damaged, and that is noted. */
static um_status_t load(um_trace_reader_t *r, const um_block_header_t *header, uint64_t payload_at,
                        um_block_t *block)
{
    const uint8_t *payload;
    uint64_t at = payload_at - UM_BLOCK_HEADER_BYTES;
    if (r->source.memory) {
        payload = r->source.memory + payload_at;
    } else {
        r->packed.used = 0;
        uint8_t *room = um_bytes_add(&r->packed, header->packed_bytes);
        if (!room)
            return UM_ERR_NO_MEMORY;
        if (!um_source_read(&r->source, payload_at, room, header->packed_bytes)) {
            um_damage_add(&r->damage, UM_ERR_IO, at, "block cannot be read");
            return UM_ERR_FORMAT;
        }
        payload = room;
    }
    if (!um_check_matches(header->payload_check, payload, header->packed_bytes, r->header.check)) {
        um_damage_add(&r->damage, UM_ERR_FORMAT, at, "block checksum does not match");
        return UM_ERR_FORMAT;
    }
    um_status_t status = um_block_decode(block, &r->header, header, payload, r->zstd,
                                         r->order == UM_TRACE_TIME_ORDER);
    if (status == UM_ERR_FORMAT)
        um_damage_add(&r->damage, UM_ERR_FORMAT, at, "block is malformed");
    if (status == UM_OK) {
        r->good_events += header->events;
        r->good_blocks++;
    }
    return status;
}

static um_status_t next_in_file(um_trace_reader_t *r)
{
    um_block_header_t header;
    uint64_t payload_at;
    while (um_walk_next(&r->walk, &r->damage, &header, &payload_at)) {
        um_status_t status = load(r, &header, payload_at, r->current);
        if (status == UM_ERR_NO_MEMORY)
            return status;
        if (status == UM_OK && r->current->n > 0) {
            r->current->stop = r->current->n;
            return UM_OK;
        }
    }
    return UM_ERR_NOT_FOUND;
}

/* ---- time order --------------------------------------------------------------------------- */

static bool earlier(const um_block_t *a, const um_block_t *b)
{
    uint64_t ta = um_block_time(a, a->at), tb = um_block_time(b, b->at);
    return ta != tb ? ta < tb : a->rank < b->rank;
}

static void sift_down(um_trace_reader_t *r)
{
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= r->n_heap)
            return;
        if (child + 1 < r->n_heap && earlier(r->heap[child + 1], r->heap[child]))
            child++;
        if (!earlier(r->heap[child], r->heap[at]))
            return;
        um_block_t *swap = r->heap[at];
        r->heap[at] = r->heap[child];
        r->heap[child] = swap;
        at = child;
    }
}

static void sift_up(um_trace_reader_t *r)
{
    for (size_t at = r->n_heap - 1; at > 0 && earlier(r->heap[at], r->heap[(at - 1) / 2]);
         at = (at - 1) / 2) {
        um_block_t *swap = r->heap[at];
        r->heap[at] = r->heap[(at - 1) / 2];
        r->heap[(at - 1) / 2] = swap;
    }
}

static bool push(um_block_t ***list, size_t *n, size_t *room, um_block_t *block)
{
    if (!um_grow(list, room, *n + 1, sizeof(**list)))
        return false;
    (*list)[(*n)++] = block;
    return true;
}

static um_status_t open_place(um_trace_reader_t *r, const um_place_t *place)
{
    uint8_t bytes[UM_BLOCK_HEADER_BYTES];
    um_block_header_t header;
    uint64_t end = r->walk.end;
    if (place->offset > end || end - place->offset < sizeof(bytes) ||
        !um_source_read(&r->source, place->offset, bytes, sizeof(bytes)) ||
        !um_block_header_get(&header, r->header.check, bytes) ||
        header.first_ns != place->first_ns ||
        header.packed_bytes > end - place->offset - sizeof(bytes)) {
        um_damage_add(&r->damage, UM_ERR_FORMAT, place->offset, "block header is damaged");
        return UM_OK;
    }

    um_block_t *block = r->n_spare ? r->spare[--r->n_spare] : calloc(1, sizeof(*block));
    if (!block)
        return UM_ERR_NO_MEMORY;
    um_status_t status = load(r, &header, place->offset + sizeof(bytes), block);
    block->rank = place->offset;
    bool kept = status == UM_OK && block->n > 0
                    ? push(&r->heap, &r->n_heap, &r->heap_room, block)
                    : push(&r->spare, &r->n_spare, &r->spare_room, block);
    if (!kept) {
        um_block_free(block);
        free(block);
        return UM_ERR_NO_MEMORY;
    }
    if (status == UM_OK && block->n > 0)
        sift_up(r);
    return status == UM_ERR_NO_MEMORY ? status : UM_OK;
}

/* How far the first block of the heap may go before another one has something earlier. */
static void set_stop(um_trace_reader_t *r, const um_place_t *places, size_t n_places)
{
    um_block_t *top = r->heap[0];
    uint64_t unopened = r->next_place < n_places ? places[r->next_place].first_ns : UINT64_MAX;
    bool any_unopened = r->next_place < n_places;
    const um_block_t *rival = r->n_heap > 1 ? r->heap[1] : NULL;
    if (r->n_heap > 2 && earlier(r->heap[2], rival))
        rival = r->heap[2];
    uint64_t rival_ns = rival ? um_block_time(rival, rival->at) : UINT64_MAX;
    bool wins_ties = !rival || top->rank < rival->rank;

    for (top->stop = top->at + 1; top->stop < top->n; top->stop++) {
        uint64_t t = um_block_time(top, top->stop);
        if ((any_unopened && t >= unopened) || t > rival_ns || (t == rival_ns && !wins_ties))
            break;
    }
}

static um_status_t next_in_time(um_trace_reader_t *r)
{
    const um_place_t *places = (const um_place_t *)r->places.data;
    size_t n_places = r->places.used / sizeof(*places);

    if (r->n_heap > 0) {
        if (r->heap[0]->at == r->heap[0]->n) {
            if (!push(&r->spare, &r->n_spare, &r->spare_room, r->heap[0]))
                return UM_ERR_NO_MEMORY;
            r->heap[0] = r->heap[--r->n_heap];
        }
        sift_down(r);
    }
    while (r->next_place < n_places &&
           (r->n_heap == 0 ||
            places[r->next_place].first_ns <= um_block_time(r->heap[0], r->heap[0]->at))) {
        um_status_t status = open_place(r, &places[r->next_place++]);
        if (status != UM_OK)
            return status;
    }
    r->current = r->n_heap ? r->heap[0] : NULL;
    if (!r->current)
        return UM_ERR_NOT_FOUND;
    set_stop(r, places, n_places);
    return UM_OK;
}

/* ---- next --------------------------------------------------------------------------------- */

static void set_error(um_trace_reader_t *r, uint64_t offset, const char *what, uint32_t others)
{
    char more[48] = "";
    if (others)
        snprintf(more, sizeof(more), " (and %" PRIu32 " more faults)", others);
    if (asprintf(&r->error,
                 "%s: offset %" PRIu64 ": %s%s; read the %" PRIu64 " events of %" PRIu64
                 " whole blocks",
                 r->name, offset, what, more, r->good_events, r->good_blocks) < 0)
        r->error = NULL;
}

/* No block is left, or memory is. */
static um_status_t finish(um_trace_reader_t *r, um_status_t status)
{
    r->status = status;
    if (status == UM_ERR_NO_MEMORY) {
        set_error(r, r->walk.at, "out of memory", 0);
    } else if (r->damage.status != UM_OK) {
        r->status = r->damage.status;
        set_error(r, r->damage.offset, r->damage.what, r->damage.others);
    } else if (!r->info.finished) {
        r->status = UM_ERR_TRUNCATED;
        set_error(r, r->source.bytes, "trace was not closed: its writer was killed or had an error",
                  0);
    }
    return r->status;
}

um_status_t um_trace_reader_next(um_trace_reader_t *r, const um_event_t **event)
{
    if (!r->current || r->current->at == r->current->stop) {
        if (r->status != UM_OK)
            return r->status;
        um_status_t status = r->order == UM_TRACE_TIME_ORDER ? next_in_time(r) : next_in_file(r);
        if (status != UM_OK)
            return finish(r, status);
    }
    *event = um_block_next(r->current);
    return UM_OK;
}

/* ---- opening ------------------------------------------------------------------------------ */

static um_status_t read_header_at(um_trace_reader_t *r, uint64_t offset, const char **why)
{
    uint8_t fixed[UM_FILE_HEADER_BYTES];
    uint64_t left = r->source.bytes - offset;
    size_t n = left < sizeof(fixed) ? (size_t)left : sizeof(fixed);
    if (!um_source_read(&r->source, offset, fixed, n)) {
        *why = strerror(errno);
        return UM_ERR_IO;
    }
    bool magic = n && !memcmp(fixed, UM_MAGIC_FILE, n < UM_MAGIC_BYTES ? n : UM_MAGIC_BYTES);
    if (!magic) {
        *why = n ? "not a umrt trace" : "file is empty";
        return UM_ERR_FORMAT;
    }
    uint64_t bytes = n == sizeof(fixed) ? um_header_bytes(fixed) : UINT64_MAX;
    if (bytes == 0) {
        *why = "file header is malformed";
        return UM_ERR_FORMAT;
    }
    if (bytes > left) {
        *why = "file header is cut short";
        return UM_ERR_TRUNCATED;
    }
    uint8_t *data = malloc(bytes);
    if (!data || !um_source_read(&r->source, offset, data, bytes)) {
        *why = strerror(errno);
        free(data);
        return data ? UM_ERR_IO : UM_ERR_NO_MEMORY;
    }
    um_status_t status = um_header_parse(&r->header, data, bytes, why);
    if (status != UM_OK)
        um_header_free(&r->header);
    return status;
}

/* The first copy is fine: is the second one too? */
static void check_copy(um_trace_reader_t *r)
{
    uint64_t bytes = r->header.bytes;
    uint8_t *copy = malloc(bytes);
    if (r->source.bytes < 2 * bytes)
        um_damage_add(&r->damage, UM_ERR_TRUNCATED, bytes, "second file header is cut short");
    else if (copy && um_source_read(&r->source, bytes, copy, bytes) &&
             memcmp(copy, r->header.data, bytes) != 0)
        um_damage_add(&r->damage, UM_ERR_FORMAT, bytes, "second file header is damaged");
    free(copy);
}

/* Reads either copy of the file header and finds where the blocks begin. */
static um_status_t read_header(um_trace_reader_t *r, const char **why)
{
    um_status_t status = read_header_at(r, 0, why);
    if (status == UM_OK) {
        check_copy(r);
        r->walk.at = 2 * r->header.bytes;
        if (r->walk.at > r->source.bytes)
            r->walk.at = r->source.bytes;
        return UM_OK;
    }
    if (status == UM_ERR_IO || status == UM_ERR_NO_MEMORY)
        return status;
    const char *copy_why;
    uint64_t end = r->source.bytes, at = 0;
    if (end > UM_MAX_HEADER_BYTES + UM_FILE_HEADER_BYTES)
        end = UM_MAX_HEADER_BYTES + UM_FILE_HEADER_BYTES;
    while ((at = um_source_find(&r->source, at + 1, end, UM_MAGIC_FILE, UM_MAGIC_BYTES)) !=
           UINT64_MAX) {
        if (read_header_at(r, at, &copy_why) == UM_OK) {
            um_damage_add(&r->damage, UM_ERR_FORMAT, 0, "file header is damaged, used its copy");
            r->walk.at = at + r->header.bytes;
            return UM_OK;
        }
    }
    return status;
}

static bool add_place(um_trace_reader_t *r, const um_index_entry_t *entry)
{
    um_trace_info_t *info = &r->info;
    if (info->blocks == 0 || entry->first_ns < info->first_ns)
        info->first_ns = entry->first_ns;
    if (entry->last_ns > info->last_ns)
        info->last_ns = entry->last_ns;
    info->events += entry->events;
    info->blocks++;
    if (r->order != UM_TRACE_TIME_ORDER)
        return true;
    um_place_t *place = (um_place_t *)um_bytes_add(&r->places, sizeof(*place));
    if (place)
        *place = (um_place_t){entry->offset, entry->first_ns};
    return place;
}

static bool add_entry(void *ctx, const um_index_entry_t *entry)
{
    return add_place(ctx, entry);
}

static int by_first_time(const void *a, const void *b)
{
    const um_place_t *x = a, *y = b;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Where the blocks are and what they hold: from the index, or else from header to header. */
static um_status_t survey(um_trace_reader_t *r)
{
    um_trace_info_t empty = {.version = r->header.version,
                             .file_bytes = r->source.bytes,
                             .n_facts = r->header.n_facts,
                             .facts = r->header.facts};
    r->walk.source = &r->source;
    r->walk.seed = r->header.check;
    r->info = empty;
    r->walk.finished =
        um_index_read(&r->source, r->walk.at, r->header.check, add_entry, r, &r->walk.end);
    if (!r->walk.finished) {
        r->info = empty;
        r->places.used = 0;
        r->walk.end = r->source.bytes;
        um_walk_t walk = r->walk;
        um_damage_t unused = {0}, *damage = &unused;
        if (r->order == UM_TRACE_TIME_ORDER)
            damage = &r->damage; /* nobody walks again */
        um_block_header_t header;
        uint64_t payload_at;
        while (um_walk_next(&walk, damage, &header, &payload_at)) {
            um_index_entry_t entry = {payload_at - UM_BLOCK_HEADER_BYTES, header.first_ns,
                                      header.last_ns, header.events, header.packed_bytes};
            if (!add_place(r, &entry))
                return UM_ERR_NO_MEMORY;
        }
    }
    r->info.finished = r->walk.finished;
    if (r->places.used)
        qsort(r->places.data, r->places.used / sizeof(um_place_t), sizeof(um_place_t),
              by_first_time);
    return UM_OK;
}

/* Takes over an opened source; on failure everything is freed and `error` filled in. */
static um_status_t open_source(um_source_t source, const char *name, um_trace_order_t order,
                               um_trace_reader_t **out, char *error, size_t error_bytes)
{
    const char *why = "out of memory";
    um_status_t status = UM_ERR_NO_MEMORY;
    um_trace_reader_t *r = calloc(1, sizeof(*r));
    if (!r)
        goto failed;
    r->source = source;
    r->order = order;
    r->name = strdup(name);
    r->zstd = ZSTD_createDCtx();
    r->current = order == UM_TRACE_FILE_ORDER ? calloc(1, sizeof(*r->current)) : NULL;
    if (!r->name || !r->zstd || (order == UM_TRACE_FILE_ORDER && !r->current))
        goto failed;
    status = read_header(r, &why);
    if (status == UM_OK) {
        why = "out of memory";
        status = survey(r);
    }
    if (status == UM_OK) {
        *out = r;
        return UM_OK;
    }

failed:
    if (error_bytes)
        snprintf(error, error_bytes, "%s: offset 0: %s", name, why);
    if (r)
        um_trace_reader_close(r);
    else if (!source.memory)
        close(source.fd);
    return status;
}

um_status_t um_trace_reader_open(const char *path, um_trace_order_t order, um_trace_reader_t **out,
                                 char *error, size_t error_bytes)
{
    um_source_t source = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
    struct stat st;
    const char *why = "";
    um_status_t status = UM_OK;
    if (source.fd < 0 || fstat(source.fd, &st) != 0) {
        why = strerror(errno);
        status = UM_ERR_IO;
    } else if (S_ISDIR(st.st_mode)) {
        why = "is a directory";
        status = UM_ERR_FORMAT;
    } else if (!S_ISREG(st.st_mode)) {
        why = "is not a regular file";
        status = UM_ERR_FORMAT;
    }
    if (status != UM_OK) {
        if (error_bytes)
            snprintf(error, error_bytes, "%s: %s", path, why);
        if (source.fd >= 0)
            close(source.fd);
        return status;
    }
    source.bytes = (uint64_t)st.st_size;
    return open_source(source, path, order, out, error, error_bytes);
}

um_status_t um_trace_reader_open_memory(const void *data, size_t bytes, const char *name,
                                        um_trace_order_t order, um_trace_reader_t **out,
                                        char *error, size_t error_bytes)
{
    um_source_t source = {.fd = -1, .memory = data, .bytes = bytes};
    return open_source(source, name, order, out, error, error_bytes);
}

const um_trace_info_t *um_trace_reader_info(const um_trace_reader_t *r)
{
    return &r->info;
}

const char *um_trace_reader_error(const um_trace_reader_t *r)
{
    return r->error ? r->error : "";
}

const char *um_trace_reader_fact(const um_trace_reader_t *r, const char *key)
{
    for (size_t i = 0; i < r->info.n_facts; i++)
        if (strcmp(r->info.facts[i].key, key) == 0)
            return r->info.facts[i].value;
    return NULL;
}

static void free_blocks(um_block_t **blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        um_block_free(blocks[i]);
        free(blocks[i]);
    }
    free(blocks);
}

void um_trace_reader_close(um_trace_reader_t *r)
{
    if (!r)
        return;
    if (r->order == UM_TRACE_FILE_ORDER && r->current) {
        um_block_free(r->current);
        free(r->current);
    }
    free_blocks(r->heap, r->n_heap);
    free_blocks(r->spare, r->n_spare);
    um_header_free(&r->header);
    um_bytes_free(&r->places);
    um_bytes_free(&r->packed);
    ZSTD_freeDCtx(r->zstd);
    if (!r->source.memory)
        close(r->source.fd);
    free(r->name);
    free(r->error);
    free(r);
}
