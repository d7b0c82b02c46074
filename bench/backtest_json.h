/*
 * backtest_json.h - the file that is written: umrt.backtest/1, read by lib/sim/backtest.c.
 */
#ifndef BACKTEST_JSON_H
#define BACKTEST_JSON_H

#include <sys/utsname.h>
#include <time.h>

#include "backtest_measure.h"

static const char *const op_names[] = {"host", "kernel", "prefetch", "advise", "sync"};

static void print_ops(const char *name, const std::vector<op> &ops)
{
    printf(", \"%s\": [", name);
    for (const op &o : ops) {
        printf("%s{\"op\": \"%s\"", &o == &ops[0] ? "" : ", ", op_names[o.type]);
        if (o.type != SYNC)
            printf(", \"region\": %d, \"at\": %zu, \"bytes\": %zu", o.region, o.at, o.bytes);
        if (!o.name.empty())
            printf(", \"name\": \"%s\"", o.name.c_str());
        if (o.type == HOST || o.type == PREFETCH)
            printf(", \"step\": %zu", o.step);
        if (o.type == KERNEL || o.type == PREFETCH)
            printf(", \"stream\": %d", o.stream);
        if (o.type == PREFETCH || o.type == ADVISE || o.name == "copy")
            printf(", \"%s\": %d", o.type == KERNEL ? "other" : "to", o.other);
        if (o.race)
            printf(", \"race\": true");
        if (o.type == HOST || o.type == KERNEL)
            printf(", \"ns\": %.0f", o.ns);
        if (!o.tooks.empty())
            printf(", \"took_ns\": %.0f", quantile(o.tooks, 0.5));
        printf("}");
    }
    printf("]");
}

static void print_run(const run &r, bool first)
{
    double compute = 0, host = 0;

    for (const op &o : r.body)
        (o.type == KERNEL ? compute : host) += o.ns;
    printf(
        "%s\n{\"run\": \"%s/%zu/%s\", \"pattern\": \"%s\", \"variant\": \"%s\", \"mib\": %zu, "
        "\"bytes\": %zu, \"warm\": %d, \"iterations\": %d, \"median_ns\": %.0f, \"q1_ns\": %.0f, "
        "\"q3_ns\": %.0f, \"compute_ns\": %.0f, \"host_ns_resident\": %.0f, \"samples_ns\": [",
        first ? "" : ",", r.pattern.c_str(), r.mib, r.variant.c_str(), r.pattern.c_str(),
        r.variant.c_str(), r.mib, r.mib * MIB, r.warm, r.iterations, quantile(r.samples, 0.5),
        quantile(r.samples, 0.25), quantile(r.samples, 0.75), compute, host);
    for (size_t i = 0; i < r.samples.size(); i++)
        printf("%s%.0f", i ? ", " : "", r.samples[i]);
    printf("], \"regions\": [");
    for (size_t i = 0; i < r.regions.size(); i++)
        printf("%s%zu", i ? ", " : "", r.regions[i]);
    printf("]");
    print_ops("setup", r.setup);
    print_ops("body", r.body);
    printf("}");
    fflush(stdout);
}

/* The first line of a file after `key`, without quotes and ends that JSON minds. */
static std::string line_of(const char *path, const char *key)
{
    char line[512];
    std::string found;
    FILE *f = fopen(path, "r");

    while (f && found.empty() && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)))
            continue;
        for (const char *c = line + strlen(key); *c && *c != '\n'; c++)
            if (*c != '"' && *c != '\\' && (unsigned char)*c >= ' ' &&
                (!found.empty() || !strchr(" :\t", *c)))
                found += *c;
    }
    if (f)
        fclose(f);
    return found;
}

static void print_header(bool held_out)
{
    cudaDeviceProp properties;
    struct utsname host;
    char date[16];
    time_t t = time(NULL);
    int driver, racers = RACERS;

    CHECK(cudaGetDeviceProperties(&properties, example.device));
    CHECK(cudaDriverGetVersion(&driver));
    uname(&host);
    strftime(date, sizeof date, "%F", gmtime(&t));
    printf(
        "{\"schema\": \"umrt.backtest/1\", \"date\": \"%s\", \"gpu\": \"%s\", \"gpu_bytes\": %zu,\n"
        "\"driver\": \"%s\", \"cuda\": %d, \"cpu\": \"%s\", \"kernel\": \"%s\",\n"
        "\"piece_bytes\": %zu, \"racers\": %d, %s\"runs\": [",
        date, properties.name, properties.totalGlobalMem,
        line_of("/proc/driver/nvidia/version", "NVRM version").c_str(), driver,
        line_of("/proc/cpuinfo", "model name").c_str(), host.release, PIECE, racers,
        held_out ? "\"held_out\": true, " : "");
}

#endif
