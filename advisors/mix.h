/* mix.h - two numbers into one, every bit of them in it. Profiles hold such keys: it must stay as it is. */
#ifndef UM_MIX_H
#define UM_MIX_H

#include <stdint.h>

static inline uint64_t um_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;

    return x ^ x >> 32;
}

#endif
