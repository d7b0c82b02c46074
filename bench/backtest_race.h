/*
 * backtest_race.h - prefetching from other threads beside the operation that uses the data.
 *
 * The threads wait spinning, so that no wake-up time blurs the measurement.
 */
#ifndef BACKTEST_RACE_H
#define BACKTEST_RACE_H

#include <atomic>

#include "backtest_ops.h"

static cudaStream_t side[RACERS]; /* made once, at the start */

static struct {
    std::atomic<int> generation, done;
    std::atomic<bool> stop;
    int posted;
    char *start;
    size_t bytes;
    int to;
    std::vector<std::thread> threads;
} race;

static void racer(int me)
{
    CHECK(cudaSetDevice(example.device));
    for (int seen = 0;;) {
        int generation = race.generation.load();
        if (generation == seen) {
            if (race.stop)
                return;
            continue;
        }
        seen = generation;
        for (size_t at = me * PIECE; at < race.bytes; at += RACERS * PIECE)
            prefetch(race.start + at, std::min(PIECE, race.bytes - at), race.to, side[me]);
        race.done++;
    }
}

static void race_wait()
{
    while (race.done < race.posted)
        ;
}

static void race_post(const op &o)
{
    race_wait();
    race.start = (char *)memory[o.region] + o.at;
    race.bytes = o.bytes;
    race.to = o.type == HOST ? -1 : 0;
    race.posted += RACERS;
    race.generation++;
}

static void race_begin(const run &r)
{
    bool any = false;

    for (const op &o : r.body)
        any = any || o.race;
    race.generation = race.done = race.posted = 0;
    race.stop = false;
    for (int i = 0; any && i < RACERS; i++)
        race.threads.emplace_back(racer, i);
}

static void race_end()
{
    race.stop = true;
    for (auto &t : race.threads)
        t.join();
    race.threads.clear();
}

#endif
