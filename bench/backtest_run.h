/*
 * backtest_run.h - a run of the back-test: the list of operations that is carried out and printed.
 */
#ifndef BACKTEST_RUN_H
#define BACKTEST_RUN_H

#include <string>
#include <vector>

static const size_t MIB = (size_t)1 << 20, PAGE = 4096, PIECE = 32 * MIB;
static const int STREAMS = 4, RACERS = 2;

enum op_type { HOST, KERNEL, PREFETCH, ADVISE, SYNC };

struct op {
    op_type type = SYNC;
    std::string name = ""; /* HOST: read, write; KERNEL: see launch(); ADVISE: the advice */
    int region = 0;
    size_t at = 0, bytes = 0;
    int other = 0;   /* KERNEL copy: the region written; PREFETCH, ADVISE: 0 the GPU, -1 the host */
    int stream = 0;  /* KERNEL, PREFETCH: 0..STREAMS-1 */
    size_t step = 0; /* HOST: one word every so many bytes; PREFETCH: bytes of one call */
    int loops = 0;   /* KERNEL: arithmetic on each element */
    bool race = false; /* RACERS threads prefetch the range to where it is used, meanwhile */
    double ns = 0;     /* HOST, KERNEL: with its data there */
    double took = 0;   /* in the repetition that runs, mean over iterations */
    std::vector<double> tooks = {};
};

struct run {
    std::string pattern, variant;
    size_t mib;
    std::vector<size_t> regions; /* bytes */
    std::vector<op> setup, body;
    int warm = 0, iterations = 1;
    std::vector<double> samples = {};
};

#endif
