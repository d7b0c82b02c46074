/*
 * sample FILE [unfinished|blind|profile] - writes a small trace whose every figure is known: one managed region of
 * 1 GiB that goes to the GPU and comes back exactly once, a second of 64 KiB of which half moves. For
 * the scripts of this folder. "unfinished" ends as kill -9 does, "blind" is as umrt run --trace writes it,
 * without what moved, and "profile" is a profile of nothing.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "um_trace.h"

#define GIB   (UINT64_C(1) << 30)
#define BASE  UINT64_C(0x7f0000000000)
#define OTHER UINT64_C(0x7f8000000000)

static um_trace_writer_t *writer;
static uint64_t now = 1000;

static void put(um_event_t event)
{
    event.time_ns = now += 10;
    if (um_trace_writer_put(writer, &event) != UM_OK)
        fputs("sample: put failed\n", stderr);
}

static void migrate(uint64_t addr, uint64_t bytes, int32_t src, int32_t dst, uint32_t region)
{
    put((um_event_t){.type = UM_EV_MIGRATE,
                     .u.migrate = {.addr = addr,
                                   .bytes = bytes,
                                   .duration_ns = 5,
                                   .src = src,
                                   .dst = dst,
                                   .cause = UM_CAUSE_COHERENCE,
                                   .region = region}});
}

int main(int argc, char **argv)
{
    static const um_ev_fact_t facts[] = {{"host.name", "sample"}, {"note", "a \"quoted\" text"}};
    static const um_param_t params[] = {{0, 8, UM_PARAM_POINTER}, {8, 4, 0}};
    static const um_arg_t args[] = {{0, 0, 1, 4096}};
    static const um_scalar_t scalars[] = {{1, 4, 262144}};
    static const um_ev_fact_t of_profile[] = {{"profile.version", "1"}, {"profile.runs", "1"}};
    const char *how = argc > 2 ? argv[2] : "";
    bool profile = strcmp(how, "profile") == 0, blind = strcmp(how, "blind") == 0;
    um_trace_write_stats_t stats;
    um_status_t status;
    uint64_t header_bytes;

    if (argc < 2 ||
        um_trace_writer_open(argv[1], profile ? of_profile : facts, 2, NULL, &writer) != UM_OK)
        return 1;
    if (profile)
        goto close;
    if (blind)
        put((um_event_t){.type = UM_EV_OPTION, .u.option = {"mode", "hint", "environment"}});
    um_trace_writer_stats(writer, &stats);
    header_bytes = stats.bytes;
    put((um_event_t){.type = UM_EV_REGION_ALLOC,
                     .tid = 7,
                     .u.region_alloc = {.region = 1,
                                        .family = UM_FAMILY_MANAGED,
                                        .addr = BASE,
                                        .bytes = GIB,
                                        .device = UM_DEVICE_NONE}});
    put((um_event_t){.type = UM_EV_REGION_LABEL, .u.region_label = {1, "grid"}});
    put((um_event_t){.type = UM_EV_REGION_ALLOC,
                     .u.region_alloc = {.region = 2,
                                        .family = UM_FAMILY_MANAGED,
                                        .addr = OTHER,
                                        .bytes = 65536,
                                        .device = UM_DEVICE_NONE}});
    put((um_event_t){.type = UM_EV_KERNEL,
                     .u.kernel = {.kernel = 1,
                                  .name = "_Z3addPfi",
                                  .n_params = 2,
                                  .layout_known = 1,
                                  .params = params}});
    put((um_event_t){.type = UM_EV_LAUNCH,
                     .u.launch = {.correlation = 5,
                                  .kernel = 1,
                                  .grid = {64, 1, 1},
                                  .block = {256, 1, 1},
                                  .n_args = 1,
                                  .n_scalars = 1,
                                  .scalars = scalars,
                                  .args = args}});
    if (blind)
        goto close;
    for (uint64_t at = 0; at < GIB; at += UM_BLOCK_BYTES)
        migrate(BASE + at, UM_BLOCK_BYTES, UM_DEVICE_HOST, 0, 1);
    for (uint64_t at = 0; at < GIB; at += UM_BLOCK_BYTES)
        migrate(BASE + at, UM_BLOCK_BYTES, 0, UM_DEVICE_HOST, 1);
    migrate(OTHER, 32768, UM_DEVICE_HOST, 0, 0); /* not attributed: found by its address */
    put((um_event_t){.type = UM_EV_HINT,
                     .u.hint = {.kind = UM_HINT_PREFETCH,
                                .result = UM_HINT_REFUSED_CAPACITY,
                                .addr = BASE,
                                .bytes = GIB,
                                .who = "ahead",
                                .why = "tab\there"}});
    put((um_event_t){.type = UM_EV_LOSS,
                     .u.loss = {.what = UM_EV_GPU_FAULT, .count = 3, .reason = "queue full"}});
    if (strcmp(how, "unfinished") == 0) {
        um_trace_writer_flush(writer);
        while (stats.bytes == header_bytes && stats.status == UM_OK) /* until it is there */
            um_trace_writer_stats(writer, &stats);
        raise(SIGKILL);
    }
close:
    status = um_trace_writer_close(writer);
    if (status != UM_OK)
        fprintf(stderr, "sample: %s\n", um_status_string(status));
    return status == UM_OK ? 0 : 1;
}
