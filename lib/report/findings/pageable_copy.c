/*
 * Pageable copies: the driver stages them through its own pinned buffer, and an ...Async call on them
 * waits. Small ones that frame the launches of every round are a finding of their own.
 */
#include "finding.h"

#include <stdlib.h>

static bool pageable(const um_copy_class_t *of)
{
    return of->src == UM_MEMORY_PAGEABLE || of->dst == UM_MEMORY_PAGEABLE;
}

static bool small_trip(const um_report_t *r, uint64_t bytes)
{
    for (uint32_t i = 0; i < r->copies.n_trips; i++) {
        if (r->copies.trip[i].bytes == bytes && r->copies.trip[i].trips >= r->limits.copy_trips)
            return true;
    }
    return false;
}

static um_status_t round_trips(const um_report_t *r, const um_finding_kind_t *kind,
                               const um_round_trip_t *trip, um_findings_t *out)
{
    um_finding_t f = {.kind = kind, .confidence = 90};
    uint64_t in = 0, back = 0, ns = 0;

    for (size_t i = 0; i < r->copies.n_classes; i++) {
        const um_copy_class_t *of = &r->copies.classes[i];

        if (of->bytes != trip->bytes || !pageable(of) || !um_copies_counted(&r->copies, of))
            continue;
        if (of->src == UM_MEMORY_PAGEABLE)
            in += of->count;
        else
            back += of->count;
        ns += of->ns;
    }
    if (!in || !back)
        return UM_OK; /* pinned: cheap, and meant */
    um_say_in(f.title, "A %llu-byte pageable copy each way around every round of launches",
              (unsigned long long)trip->bytes);
    um_say_in(f.where, "%s to the device, then %s kernel%s, then %s back",
              um_h(um_bytes(trip->bytes)),
              um_h(um_count((trip->launches + trip->trips / 2) / trip->trips)),
              trip->launches / trip->trips == 1 ? "" : "s", um_h(um_bytes(trip->bytes)));
    um_say_in(f.seen,
              "%s rounds; %s such copies to the device and %s back, %s in the copies alone "
              "(each also makes the CPU wait for the kernels before it)",
              um_h(um_count(trip->trips)), um_h(um_count(in)), um_h(um_count(back)),
              um_h(um_ns(ns)));
    um_say_in(f.advice,
              "keep the flag in pinned host memory that the GPU can reach, and wait for an "
              "event; or let the GPU decide and look only every few rounds");
    f.asks = UM_CHANGE_FLAG;
    f.win_ns = ns;
    um_say_in(f.basis, "the copies' own time; the waits they cause are not in it");
    um_finding_evidence(&f, "bytes_each", um_bytes(trip->bytes));
    um_finding_evidence(&f, "rounds", um_count(trip->trips));
    um_finding_evidence(&f, "launches_inside", um_count(trip->launches));
    um_finding_evidence(&f, "to_device_copies", um_count(in));
    um_finding_evidence(&f, "to_host_copies", um_count(back));
    um_finding_evidence(&f, "copy_ns", um_ns(ns));
    return um_findings_add(out, &f);
}

static uint64_t fault_ns_in_copies(const um_report_t *r)
{
    uint64_t ns = 0;

    for (size_t k = 0; k < r->kernels.n_kernels; k++)
        ns += r->kernels.kernels[k].copy ? r->kernels.kernels[k].ns : 0;
    return ns;
}

UM_DETECTOR(um_detect_pageable_copy)
{
    um_finding_t f = {.kind = kind, .confidence = 95};
    uint64_t count[2] = {0}, bytes[2] = {0}, ns[2] = {0}, async = 0, managed_ns = 0, spent, faults;
    uint64_t cost;
    um_rate_t rate;

    for (uint32_t i = 0; i < report->copies.n_trips; i++) {
        const um_round_trip_t *trip = &report->copies.trip[i];
        um_status_t status =
            trip->trips >= report->limits.copy_trips ? round_trips(report, kind, trip, out) : UM_OK;

        if (status)
            return status;
    }
    for (size_t i = 0; i < report->copies.n_classes; i++) {
        const um_copy_class_t *of = &report->copies.classes[i];
        int back = of->dst == UM_MEMORY_PAGEABLE;

        if (!pageable(of) || !um_copies_counted(&report->copies, of) ||
            small_trip(report, of->bytes))
            continue;
        count[back] += of->count;
        bytes[back] += of->total_bytes;
        ns[back] += of->ns;
        if (of->src == UM_MEMORY_MANAGED || of->dst == UM_MEMORY_MANAGED)
            managed_ns += of->ns;
        async += of->async;
    }
    if (bytes[0] + bytes[1] < report->limits.copy_bytes && ns[0] + ns[1] < report->limits.copy_ns)
        return UM_OK;
    um_say_in(f.title, "Pageable copies");
    for (int back = 0; back < 2; back++) {
        if (count[back])
            um_say_in(f.where, "%s%s to the %s (%s, %s)", *f.where ? "; " : "",
                      um_h(um_count(count[back])), back ? "host" : "device",
                      um_h(um_bytes(bytes[back])), um_h(um_ns(ns[back])));
    }
    um_say_in(f.seen, "the host side of these copies is pageable: the driver stages them and they "
                      "cannot overlap with kernels");
    if (async)
        um_say_in(f.seen, "; %s were asynchronous calls that wait all the same",
                  um_h(um_count(async)));
    um_say_in(f.advice, "pin the host buffer, or let it be managed and prefetch it");
    f.asks = UM_CHANGE_PIN;
    rate = um_report_rate(report, UM_TO_DEVICE);
    cost = um_rate_ns(&rate, bytes[0] + bytes[1]);
    /* Faults in the managed side are demand faulting's or first touch's to win. */
    faults = fault_ns_in_copies(report);
    faults = faults < managed_ns ? faults : managed_ns;
    spent = ns[0] + ns[1] - faults;
    f.win_ns = spent > cost ? spent - cost : 0;
    um_say_in(f.basis, "%s in these copies", um_h(um_ns(ns[0] + ns[1])));
    if (faults)
        um_say_in(f.basis, ", less %s of GPU fault service in their managed side",
                  um_h(um_ns(faults)));
    if (rate.bytes_per_s)
        um_say_in(f.basis, ", less their bytes at %s (%s)", um_h(um_rate(rate.bytes_per_s)),
                  rate.source);
    if (!report->copies.gpu_records)
        um_say_in(f.basis, "; the calls' time, which holds the wait for what was queued before");
    um_finding_evidence(&f, "to_device_copies", um_count(count[0]));
    um_finding_evidence(&f, "to_device_bytes", um_bytes(bytes[0]));
    um_finding_evidence(&f, "to_host_copies", um_count(count[1]));
    um_finding_evidence(&f, "to_host_bytes", um_bytes(bytes[1]));
    um_finding_evidence(&f, "async_copies", um_count(async));
    um_finding_evidence(&f, "copy_ns", um_ns(ns[0] + ns[1]));
    return um_findings_add(out, &f);
}
