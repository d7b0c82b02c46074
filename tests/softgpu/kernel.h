/*
 * kernel.h - what a kernel does, as module.c reads it and kernel.c runs it.
 */
#ifndef SOFTGPU_KERNEL_H
#define SOFTGPU_KERNEL_H

#include "softgpu.h"

/* One step of a kernel: an operation with up to four operands, each a parameter (plus an offset, for what lies
 * inside a struct) or a number. */
typedef struct operand {
    int param; /* -1: a number */
    size_t offset;
    double number;
} operand_t;

typedef struct sg_step {
    struct sg_step *next;
    char what[16];
    char type; /* f f32, d f64, i u32, l u64, b byte */
    operand_t on[4];
    unsigned n;
} step_t;

static inline size_t type_bytes(char type)
{
    return type == 'd' || type == 'l' ? 8 : type == 'b' ? 1 : 4;
}

#endif
