/*
 * report_stream.h - hand-made event streams for the tests of the report.
 *
 * Times in microseconds, addresses as given. Functions put one event each.
 */
#ifndef UM_REPORT_STREAM_H
#define UM_REPORT_STREAM_H

#include <jansson.h>

#include "report/report.h"

#define KIB  UINT64_C(1024)
#define MIB  (1024 * KIB)
#define US   UINT64_C(1000)
#define BASE UINT64_C(0x7f0000000000)

um_report_t *stream_new(const char *path);
void stream_put(um_report_t *r, um_event_t event);
void stream_fact(um_report_t *r, const char *key, const char *value);
void stream_alloc(um_report_t *r, uint64_t us, uint32_t id, uint64_t addr, uint64_t bytes,
                  const char *label);
void stream_alloc_at(um_report_t *r, uint64_t us, uint32_t id, uint64_t addr, uint64_t bytes,
                     uint64_t call_site);
void stream_free(um_report_t *r, uint64_t us, uint32_t id, uint64_t addr);
void stream_kernel(um_report_t *r, uint32_t id, const char *name);
void stream_exec(um_report_t *r, uint64_t us, uint64_t lasts_us, uint32_t kernel);
void stream_gpu_fault(um_report_t *r, uint64_t us, uint64_t lasts_us, uint64_t addr);
void stream_cpu_fault(um_report_t *r, uint64_t us, uint64_t addr);
void stream_move(um_report_t *r, uint64_t us, uint64_t lasts_us, uint64_t addr, uint64_t bytes,
                 bool to_gpu, um_migrate_cause_t cause);
void stream_loss(um_report_t *r, uint64_t us);
void stream_copy(um_report_t *r, uint64_t us, uint64_t lasts_us, uint64_t bytes,
                 um_memory_kind_t from, um_memory_kind_t to);

/* The report as JSON (caller: json_decref) and as text (caller: free). */
json_t *stream_json(um_report_t *r);
char *stream_text(um_report_t *r, um_report_format_t format, uint32_t width);
/* The first finding of a kind in it, or NULL; borrowed. */
json_t *stream_finding(json_t *report, const char *kind);
uint64_t stream_evidence(json_t *finding, const char *key);

#endif
