#include "report_stream.h"

#include <assert.h> /* not Criterion: code_print is a program of its own */
#include <stdlib.h>
#include <string.h>

um_report_t *stream_new(const char *path)
{
    um_report_t *r;

    assert(um_report_new(&r) == UM_OK);
    assert(um_report_begin(r, path, NULL, 0) == UM_OK);
    return r;
}

void stream_put(um_report_t *r, um_event_t event)
{
    assert(um_report_event(r, &event) == UM_OK);
}

void stream_fact(um_report_t *r, const char *key, const char *value)
{
    stream_put(r, (um_event_t){.type = UM_EV_FACT, .u.fact = {key, value}});
}

void stream_alloc_at(um_report_t *r, uint64_t us, uint32_t id, uint64_t addr, uint64_t bytes,
                     uint64_t call_site)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_REGION_ALLOC,
                               .u.region_alloc = {.region = id,
                                                  .family = UM_FAMILY_MANAGED,
                                                  .addr = addr,
                                                  .bytes = bytes,
                                                  .device = UM_DEVICE_NONE,
                                                  .call_site = call_site}});
}

void stream_alloc(um_report_t *r, uint64_t us, uint32_t id, uint64_t addr, uint64_t bytes,
                  const char *label)
{
    stream_alloc_at(r, us, id, addr, bytes, 0);
    if (label)
        stream_put(r, (um_event_t){.time_ns = us * US,
                                   .type = UM_EV_REGION_LABEL,
                                   .u.region_label = {id, label}});
}

void stream_free(um_report_t *r, uint64_t us, uint32_t id, uint64_t addr)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_REGION_FREE,
                               .u.region_free = {.region = id, .addr = addr}});
}

void stream_kernel(um_report_t *r, uint32_t id, const char *name)
{
    stream_put(r, (um_event_t){.type = UM_EV_KERNEL, .u.kernel = {.kernel = id, .name = name}});
}

void stream_exec(um_report_t *r, uint64_t us, uint64_t lasts_us, uint32_t kernel)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_KERNEL_EXEC,
                               .u.kernel_exec = {.kernel = kernel, .duration_ns = lasts_us * US}});
}

void stream_gpu_fault(um_report_t *r, uint64_t us, uint64_t lasts_us, uint64_t addr)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_GPU_FAULT,
                               .u.gpu_fault = {.addr = addr,
                                               .duration_ns = lasts_us * US,
                                               .groups = 4,
                                               .access = UM_ACCESS_READ}});
}

void stream_cpu_fault(um_report_t *r, uint64_t us, uint64_t addr)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_CPU_FAULT,
                               .u.cpu_fault = {.addr = addr, .pc = 0x401234}});
}

void stream_move(um_report_t *r, uint64_t us, uint64_t lasts_us, uint64_t addr, uint64_t bytes,
                 bool to_gpu, um_migrate_cause_t cause)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_MIGRATE,
                               .u.migrate = {.addr = addr,
                                             .bytes = bytes,
                                             .duration_ns = lasts_us * US,
                                             .src = to_gpu ? UM_DEVICE_HOST : 0,
                                             .dst = to_gpu ? 0 : UM_DEVICE_HOST,
                                             .cause = cause}});
}

void stream_loss(um_report_t *r, uint64_t us)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_LOSS,
                               .u.loss = {.count = 5, .reason = "queue full"}});
}

void stream_copy(um_report_t *r, uint64_t us, uint64_t lasts_us, uint64_t bytes,
                 um_memory_kind_t from, um_memory_kind_t to)
{
    stream_put(r, (um_event_t){.time_ns = us * US,
                               .type = UM_EV_COPY,
                               .u.copy = {.bytes = bytes,
                                          .duration_ns = lasts_us * US,
                                          .src_memory = from,
                                          .dst_memory = to,
                                          .flags = UM_TRANSFER_ON_GPU}});
}

char *stream_text(um_report_t *r, um_report_format_t format, uint32_t width)
{
    um_report_options_t options = {.format = format, .top = 1000, .width = width};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    assert(out);
    assert(um_report_write(r, &options, out) == UM_OK);
    fclose(out);
    return text;
}

json_t *stream_json(um_report_t *r)
{
    char *text = stream_text(r, UM_REPORT_JSON, 100);
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);

    if (!json)
        fprintf(stderr, "%s at line %d of:\n%s\n", error.text, error.line, text);
    assert(json);
    free(text);
    return json;
}

json_t *stream_finding(json_t *report, const char *kind)
{
    json_t *finding;
    size_t i;

    json_array_foreach(json_object_get(report, "findings"), i, finding)
    {
        if (!strcmp(json_string_value(json_object_get(finding, "kind")), kind))
            return finding;
    }
    return NULL;
}

uint64_t stream_evidence(json_t *finding, const char *key)
{
    json_t *value = json_object_get(json_object_get(finding, "evidence"), key);

    if (!json_is_integer(value))
        fprintf(stderr, "no evidence '%s'\n", key);
    assert(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}
