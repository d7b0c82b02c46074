/*
 * backtest_measure.h - a run carried out: how long it takes, and its kernels and host accesses alone.
 */
#ifndef BACKTEST_MEASURE_H
#define BACKTEST_MEASURE_H

#include "backtest_race.h"

static double now_ns()
{
    return example_now_ms() * 1e6;
}

static void finish()
{
    race_wait();
    CHECK(cudaDeviceSynchronize());
}

static void carry_out(op &o, bool in_setup)
{
    char *start = o.type == SYNC ? NULL : (char *)memory[o.region] + o.at;

    if (o.race)
        race_post(o);
    switch (o.type) {
    case HOST:
        if (in_setup)
            host_fill(start, o.bytes, o.step);
        else
            host_access(o.name == "write", start, o.bytes, o.step);
        break;
    case KERNEL:
        launch(o);
        break;
    case PREFETCH:
        for (size_t at = 0; at < o.bytes; at += o.step)
            prefetch(start + at, std::min(o.step, o.bytes - at), o.other, streams[o.stream]);
        break;
    case ADVISE:
        advise(o);
        break;
    case SYNC:
        finish();
        break;
    }
}

static void take(const run &r)
{
    memory.clear();
    for (size_t bytes : r.regions)
        memory.push_back(example_managed(bytes));
}

static void give_back(const run &r)
{
    for (size_t i = 0; i < r.regions.size(); i++)
        example_free(memory[i], r.regions[i]);
}

static double repetition(run &r)
{
    take(r);
    race_begin(r);
    for (op &o : r.setup)
        carry_out(o, true);
    finish();
    for (int i = 0; i < r.warm; i++)
        for (op &o : r.body)
            carry_out(o, false);
    finish();
    for (op &o : r.body)
        o.took = 0;
    double start = now_ns();
    for (int i = 0; i < r.iterations; i++) {
        for (op &o : r.body) {
            double t = now_ns();
            carry_out(o, false);
            o.took += (now_ns() - t) / r.iterations;
        }
    }
    finish();
    double ns = now_ns() - start;
    race_end();
    give_back(r);
    return ns;
}

static double quantile(std::vector<double> v, double share)
{
    std::sort(v.begin(), v.end());
    double at = share * (v.size() - 1);
    size_t low = (size_t)at;
    return low + 1 < v.size() ? v[low] + (at - low) * (v[low + 1] - v[low]) : v[low];
}

/* Every kernel with everything on the GPU, every host access with everything on the host. */
static void measure_resident(run &r)
{
    cudaEvent_t from, to;

    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    take(r);
    for (int place = 0; place >= -1; place--) {
        for (size_t i = 0; i < r.regions.size(); i++)
            for (size_t at = 0; at < r.regions[i]; at += PIECE)
                prefetch((char *)memory[i] + at, std::min(PIECE, r.regions[i] - at), place,
                         streams[0]);
        CHECK(cudaDeviceSynchronize());
        for (op &o : r.body) {
            std::vector<double> times;
            if (o.type != (place ? HOST : KERNEL))
                continue;
            for (int i = 0; i < 4; i++) {
                double t = now_ns();
                if (o.type == HOST) {
                    host_access(o.name == "write", (char *)memory[o.region] + o.at, o.bytes,
                                o.step);
                    times.push_back(now_ns() - t);
                } else {
                    float ms;
                    launch(o); /* keeps the GPU busy while the three calls below are made */
                    CHECK(cudaEventRecord(from, streams[o.stream]));
                    launch(o);
                    CHECK(cudaEventRecord(to, streams[o.stream]));
                    CHECK(cudaEventSynchronize(to));
                    CHECK(cudaEventElapsedTime(&ms, from, to));
                    times.push_back(ms * 1e6);
                }
            }
            times.erase(times.begin()); /* warms up */
            o.ns = quantile(times, 0.5);
        }
    }
    give_back(r);
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
}

#endif
