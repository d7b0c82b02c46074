/*
 * uvm_set.h - sets of the 512 pages of a block, as eight words.
 */
#ifndef UM_UVM_SET_H
#define UM_UVM_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define UM_SET_PAGES 512u
#define UM_SET_WORDS 8u

typedef struct um_set {
    uint64_t word[UM_SET_WORDS];
} um_set_t;

/* A run of pages: [first, end). */
typedef struct um_run {
    uint32_t first, end;
} um_run_t;

static inline bool um_set_has(const um_set_t *s, uint32_t page)
{
    return s->word[page / 64] >> (page % 64) & 1;
}

/* The bits of word `i` that pages [first, end) take. */
static inline uint64_t um_set_word_of_run(uint32_t i, uint32_t first, uint32_t end)
{
    uint32_t low = first > i * 64 ? first - i * 64 : 0;
    uint32_t high = end > i * 64 ? end - i * 64 : 0;

    if (low >= 64 || high <= low)
        return 0;
    return (high >= 64 ? ~0ULL : (1ULL << high) - 1) & (~0ULL << low);
}

static inline void um_set_fill(um_set_t *s, uint32_t first, uint32_t end)
{
    for (uint32_t i = first / 64; i * 64 < end; i++)
        s->word[i] |= um_set_word_of_run(i, first, end);
}

static inline um_set_t um_set_of(uint32_t first, uint32_t end)
{
    um_set_t s = {{0}};

    um_set_fill(&s, first, end);
    return s;
}

/* Bits of a word; without a flag the compiler's builtin is a call, and counting is what is done most. */
static inline uint32_t um_word_count(uint64_t w)
{
    w -= w >> 1 & 0x5555555555555555u;
    w = (w & 0x3333333333333333u) + (w >> 2 & 0x3333333333333333u);
    w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t)(w * 0x0101010101010101u >> 56);
}

static inline uint32_t um_set_count(const um_set_t *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < UM_SET_WORDS; i++)
        n += um_word_count(s->word[i]);
    return n;
}

static inline uint32_t um_set_count_run(const um_set_t *s, uint32_t first, uint32_t end)
{
    uint32_t n = 0;

    for (uint32_t i = first / 64; i * 64 < end; i++)
        n += um_word_count(s->word[i] & um_set_word_of_run(i, first, end));
    return n;
}

/* Whether all pages of the run are in the set. */
static inline bool um_set_has_run(const um_set_t *s, um_run_t run)
{
    for (uint32_t i = run.first / 64; i * 64 < run.end; i++) {
        uint64_t word = um_set_word_of_run(i, run.first, run.end);

        if ((s->word[i] & word) != word)
            return false;
    }
    return true;
}

static inline void um_set_drop_run(um_set_t *s, um_run_t run)
{
    for (uint32_t i = run.first / 64; i * 64 < run.end; i++)
        s->word[i] &= ~um_set_word_of_run(i, run.first, run.end);
}

static inline bool um_set_empty(const um_set_t *s)
{
    uint64_t any = 0;

    for (uint32_t i = 0; i < UM_SET_WORDS; i++)
        any |= s->word[i];
    return !any;
}

static inline bool um_set_equal(const um_set_t *a, const um_set_t *b)
{
    return !memcmp(a, b, sizeof(*a));
}

static inline um_set_t um_set_and(const um_set_t *a, const um_set_t *b)
{
    um_set_t s;

    for (uint32_t i = 0; i < UM_SET_WORDS; i++)
        s.word[i] = a->word[i] & b->word[i];
    return s;
}

static inline um_set_t um_set_less(const um_set_t *a, const um_set_t *b)
{
    um_set_t s;

    for (uint32_t i = 0; i < UM_SET_WORDS; i++)
        s.word[i] = a->word[i] & ~b->word[i];
    return s;
}

static inline um_set_t um_set_or(const um_set_t *a, const um_set_t *b)
{
    um_set_t s;

    for (uint32_t i = 0; i < UM_SET_WORDS; i++)
        s.word[i] = a->word[i] | b->word[i];
    return s;
}

static inline void um_set_add(um_set_t *a, const um_set_t *b)
{
    for (uint32_t i = 0; i < UM_SET_WORDS; i++)
        a->word[i] |= b->word[i];
}

static inline void um_set_drop(um_set_t *a, const um_set_t *b)
{
    for (uint32_t i = 0; i < UM_SET_WORDS; i++)
        a->word[i] &= ~b->word[i];
}

/* The first page of the set at or after `from`; UM_SET_PAGES = none. */
static inline uint32_t um_set_next(const um_set_t *s, uint32_t from)
{
    if (from >= UM_SET_PAGES)
        return UM_SET_PAGES;

    uint32_t i = from / 64;
    uint64_t w = s->word[i] & (~0ULL << (from % 64));

    while (!w) {
        if (++i == UM_SET_WORDS)
            return UM_SET_PAGES;
        w = s->word[i];
    }
    return i * 64 + (uint32_t)__builtin_ctzll(w);
}

/* The next run of the set at or after run->end; false at the end. Start with {0, 0}. */
static inline bool um_set_next_run(const um_set_t *s, um_run_t *run)
{
    run->first = um_set_next(s, run->end);
    if (run->first == UM_SET_PAGES)
        return false;

    uint32_t i = run->first / 64;
    uint64_t w = ~s->word[i] & (~0ULL << (run->first % 64));

    while (!w) {
        if (++i == UM_SET_WORDS) {
            run->end = UM_SET_PAGES;
            return true;
        }
        w = ~s->word[i];
    }
    run->end = i * 64 + (uint32_t)__builtin_ctzll(w);
    return true;
}

#endif
