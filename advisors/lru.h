/*
 * lru.h - a bounded table by key that forgets what was used longest ago.
 *
 * Its entries begin with um_lru_t; whoever uses one sets `used`. An entry is in one of eight places that its key
 * gives, so each question takes constant time.
 */
#ifndef UM_LRU_H
#define UM_LRU_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UM_LRU_PROBES 8u

typedef struct um_lru {
    uint64_t key;  /* 0 = free */
    uint64_t used; /* a number that grows */
} um_lru_t;

static inline um_lru_t *um_lru_at(const void *table, uint32_t n, size_t bytes, uint64_t at)
{
    return (um_lru_t *)((char *)table + at % n * bytes);
}

/* In a table of n entries of so many bytes each; NULL = not there. */
static inline void *um_lru_find(const void *table, uint32_t n, size_t bytes, uint64_t key)
{
    for (uint32_t i = 0; key && i < UM_LRU_PROBES; i++)
        if (um_lru_at(table, n, bytes, key + i)->key == key)
            return um_lru_at(table, n, bytes, key + i);
    return NULL;
}

/* Which of two is to be given up: one that is free, else the one that was not used for longest. */
static inline um_lru_t *um_lru_older(um_lru_t *a, um_lru_t *b)
{
    if (!a->key || !b->key)
        return a->key ? b : a;
    return b->used < a->used ? b : a;
}

/* Found, or made, all zero but for its key, in the place of the one that was not used for longest. */
static inline void *um_lru_make(void *table, uint32_t n, size_t bytes, uint64_t key)
{
    um_lru_t *oldest = (um_lru_t *)um_lru_find(table, n, bytes, key);

    if (oldest)
        return oldest;
    oldest = um_lru_at(table, n, bytes, key);
    for (uint32_t i = 1; i < UM_LRU_PROBES; i++)
        oldest = um_lru_older(oldest, um_lru_at(table, n, bytes, key + i));
    memset(oldest, 0, bytes);
    oldest->key = key;
    return oldest;
}

#endif
