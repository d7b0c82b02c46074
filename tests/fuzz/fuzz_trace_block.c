/* The block decoder on arbitrary payloads, before compression: what fuzz_trace hardly reaches. Input:
 * first and last time (8 bytes each) and number of events (4), then the payload. */
#include <zstd.h>

#include "trace/decode.h"
#include "trace_check.h"

enum { HEAD = 20 };

static um_file_header_t file;
static um_block_t block;
static void *zstd;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    um_bytes_t header = {0};
    const char *why;
    (void)argc, (void)argv;
    zstd = ZSTD_createDCtx();
    if (um_header_build(&header, NULL, 0) != UM_OK ||
        um_header_parse(&file, header.data, header.used, &why) != UM_OK)
        abort();
    return 0;
}

static void decode(const um_block_header_t *header, const uint8_t *packed, bool by_time)
{
    if (um_block_decode(&block, &file, header, packed, zstd, by_time) != UM_OK)
        return;
    uint64_t last_ns = 0;
    while (block.at < block.n) {
        const um_event_t *event = um_block_next(&block);
        um_touch_event(event);
        if (by_time && event->time_ns < last_ns)
            abort();
        last_ns = event->time_ns;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD || size > UM_MAX_BLOCK_BYTES)
        return 0;
    um_block_header_t header = {.first_ns = um_get64(data),
                                .last_ns = um_get64(data + 8),
                                .events = um_get32(data + 16) % 2048};
    header.raw_bytes = (uint32_t)(size - HEAD);
    size_t bound = ZSTD_compressBound(size - HEAD);
    uint8_t *packed = malloc(bound);
    size_t got = packed ? ZSTD_compress(packed, bound, data + HEAD, size - HEAD, 1) : 0;
    if (got && !ZSTD_isError(got) && header.events) {
        header.packed_bytes = (uint32_t)got;
        decode(&header, packed, false);
        decode(&header, packed, true);
    }
    free(packed);
    return 0;
}
