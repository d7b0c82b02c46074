#include "tracks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/grow.h"
#include "emitter.h"

#define LANES      32u
#define LANE_FIRST UINT32_C(0x40000000) /* above every Linux thread id */
#define A_TRACE    1000u                /* process numbers of one */

struct um_track_lanes {
    uint64_t end_ns[LANES];
};

void um_tracks_text(um_tracks_t *to, const char *text)
{
    char *clean = um_text_clean(text);

    if (!clean && !to->status)
        to->status = UM_ERR_NO_MEMORY;
    fputc('"', to->out);
    for (const char *c = clean ? clean : ""; *c; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', to->out);
        fputc(*c, to->out);
    }
    fputc('"', to->out);
    free(clean);
}

void um_tracks_head(um_tracks_t *to, char phase, uint32_t pid, uint32_t tid, uint64_t ns,
                    const char *name)
{
    fputs(to->comma ? ",\n" : "\n", to->out);
    to->comma = true;
    fprintf(to->out,
            "{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03" PRIu64
            ",\"name\":",
            phase, pid, tid, ns / 1000, ns % 1000);
    um_tracks_text(to, *name ? name : "(no name)");
}

static void put_meta(um_tracks_t *to, uint32_t pid, uint32_t tid, const char *what,
                     const char *name)
{
    um_tracks_head(to, 'M', pid, tid, 0, what);
    fputs(",\"args\":{\"name\":", to->out);
    um_tracks_text(to, name);
    fputs("}}", to->out);
}

static bool is_new(um_tracks_t *to, uint64_t key)
{
    um_status_t status;

    if (um_map_find(&to->known, key) != UM_MAP_NONE)
        return false;
    status = um_map_put(&to->known, key, 0);
    if (status && !to->status)
        to->status = status;
    return true;
}

uint32_t um_tracks_process(um_tracks_t *to, uint32_t part)
{
    static const char *const parts[] = {
        [UM_PART_CPU] = "CPU", [UM_PART_MEMORY] = "memory", [UM_PART_HINTS] = "hints"};
    uint32_t pid = (to->traces - 1) * A_TRACE + part;
    char *name = NULL;

    if (!is_new(to, (uint64_t)pid << 32))
        return pid;
    if ((part < UM_PART_GPU
             ? asprintf(&name, "%s: %s", parts[part], to->path)
             : asprintf(&name, "GPU %" PRIu32 ": %s", part - UM_PART_GPU, to->path)) < 0)
        name = NULL;
    put_meta(to, pid, 0, "process_name", name ? name : "");
    um_tracks_head(to, 'M', pid, 0, 0, "process_sort_index");
    fprintf(to->out, ",\"args\":{\"sort_index\":%" PRIu32 "}}", pid);
    free(name);
    return pid;
}

uint32_t um_tracks_thread(um_tracks_t *to, uint32_t pid, uint32_t tid, const char *name)
{
    if (is_new(to, (uint64_t)pid << 32 | (tid ? tid : UINT32_MAX)))
        put_meta(to, pid, tid, "thread_name", name);
    return tid;
}

void um_tracks_begin(um_tracks_t *to, uint32_t pid, uint32_t tid, uint64_t ns, uint64_t lasts_ns,
                     const char *name)
{
    um_tracks_head(to, lasts_ns ? 'X' : 'i', pid, tid, ns, name);
    if (lasts_ns)
        fprintf(to->out, ",\"dur\":%" PRIu64 ".%03" PRIu64, lasts_ns / 1000, lasts_ns % 1000);
    else
        fputs(",\"s\":\"t\"", to->out);
    fputs(",\"args\":{\"", to->out);
}

/* A lane of the track that is free at start_ns, taken until end_ns; LANES when all are taken. */
static uint32_t take_lane(um_tracks_t *to, uint32_t pid, uint32_t track, uint64_t start_ns,
                          uint64_t end_ns)
{
    uint64_t key = (uint64_t)pid << 32 | track;
    uint32_t at = um_map_find(&to->lane_of, key);

    if (at == UM_MAP_NONE) {
        at = (uint32_t)to->n_lanes;
        if (!um_grow(&to->lanes, &to->lanes_size, to->n_lanes + 1, sizeof(*to->lanes)))
            goto no_memory;
        if (um_map_put(&to->lane_of, key, at))
            goto no_memory;
        to->lanes[to->n_lanes++] = (um_track_lanes_t){{0}};
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        if (to->lanes[at].end_ns[lane] > start_ns)
            continue;
        to->lanes[at].end_ns[lane] = end_ns;
        return lane;
    }
    return LANES;
no_memory:
    if (!to->status)
        to->status = UM_ERR_NO_MEMORY;
    return 0;
}

void um_tracks_slice(um_tracks_t *to, uint32_t part, uint32_t track, const char *track_name,
                     uint64_t ns, uint64_t lasts_ns, const char *name)
{
    uint32_t pid = um_tracks_process(to, part), lane, tid;
    uint64_t end_ns = ns > UINT64_MAX - lasts_ns ? UINT64_MAX : ns + lasts_ns;
    char numbered[160];

    lane = take_lane(to, pid, track, ns, end_ns);
    if (lane == LANES) /* so many at once that only its begin is shown */
        lane = lasts_ns = 0;
    snprintf(numbered, sizeof(numbered), lane ? "%.120s (%" PRIu32 ")" : "%.120s", track_name,
             lane + 1);
    tid = um_tracks_thread(to, pid, LANE_FIRST + track * LANES + lane, numbered);
    um_tracks_begin(to, pid, tid, ns, lasts_ns, name);
}

void um_tracks_end(um_tracks_t *to)
{
    fputs("}}", to->out);
}

void um_tracks_free(um_tracks_t *to)
{
    um_map_free(&to->known);
    um_map_free(&to->lane_of);
    free(to->lanes);
    free(to->path);
}
