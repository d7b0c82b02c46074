/* report_found.h - the report of one stream at a time, and what was found in it. */
#ifndef UM_REPORT_FOUND_H
#define UM_REPORT_FOUND_H

#include "report_stream.h"

static json_t *json;

/* Ends the stream: its findings can then be asked for. */
static inline void close_stream(um_report_t *r)
{
    json_decref(json);
    json = stream_json(r);
    um_report_free(r);
}

/* The first finding of a kind, NULL without. */
static inline json_t *found(const char *kind)
{
    return stream_finding(json, kind);
}

static inline const char *text_of(json_t *finding, const char *key)
{
    return json_string_value(json_object_get(finding, key));
}

static inline void drop_report(void)
{
    json_decref(json);
    json = NULL;
}

/* ---- streams for more than one file ---- */

/* The GPU faults on `faults` pages, 100 us each, of a region that nothing else was seen to touch. A CPU
 * fault elsewhere and a move elsewhere show that records flow. */
static inline um_report_t *gpu_touches_first(uint32_t faults)
{
    um_report_t *r = stream_new("first.umt");

    stream_alloc(r, 1, 1, BASE, 64 * MIB, "scratch");
    stream_alloc(r, 1, 2, BASE + 512 * MIB, 64 * KIB, "flags");
    stream_kernel(r, 1, "_Z4fillPf");
    stream_cpu_fault(r, 5, BASE + 512 * MIB);
    stream_exec(r, 10, 100000, 1);
    for (uint32_t i = 0; i < faults; i++)
        stream_gpu_fault(r, 20 + 100 * i, 100, BASE + i * 2 * MIB);
    return r;
}

/* `pages` of each 2 MiB block's 32 big pages fault in, over 8 blocks. */
static inline um_report_t *faults_in(uint32_t pages)
{
    um_report_t *r = stream_new("demand.umt");
    uint64_t us = 1000;

    stream_alloc(r, 1, 1, BASE, 16 * MIB, "input");
    stream_kernel(r, 1, "_Z3sumPKf");
    stream_cpu_fault(r, 5, BASE);
    stream_exec(r, us, 100000, 1);
    for (uint32_t block = 0; block < 8; block++) {
        for (uint32_t page = 0; page < pages; page++, us += 60) {
            uint64_t addr = BASE + block * 2 * MIB + page * 64 * KIB;

            stream_gpu_fault(r, us + 1, 50, addr);
            stream_move(r, us + 30, 10, addr, 64 * KIB, true, UM_CAUSE_COHERENCE);
        }
    }
    stream_exec(r, 200000, 100, 1);
    return r;
}

#endif
