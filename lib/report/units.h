/*
 * units.h - numbers as people read them. All follow snprintf's rules and return its result.
 */
#ifndef UM_UNITS_H
#define UM_UNITS_H

#include "um_event.h"

/* Sums stop where numbers do, rather than begin again. */
static inline void um_sum(uint64_t *to, uint64_t more)
{
    *to = more > UINT64_MAX - *to ? UINT64_MAX : *to + more;
}

int um_units_bytes(uint64_t bytes, char *out, size_t size); /* "384 B", "64.0 KiB", "1.50 GiB" */
int um_units_ns(uint64_t ns, char *out, size_t size);       /* "12.8 us", "0.46 ms", "2.70 s" */
int um_units_count(uint64_t count, char *out, size_t size); /* "1,234,567" */
int um_units_rate(uint64_t bytes_per_s, char *out, size_t size); /* "9.90 GB/s" (10^9, as links) */

#endif
