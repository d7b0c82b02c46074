/*
 * planted_scene.h - what the held-out programs work on, and with.
 *
 * A scene is the data that the fault is in, cut into buffers of odd sizes, and healthy work beside it.
 * How the data is swept, and when the rest works, is drawn by lot from what a draw may use: the first three
 * draws share no structure, the fourth has any of them. The top byte of the seed is the draw.
 */
#ifndef UM_PLANTED_SCENE_H
#define UM_PLANTED_SCENE_H

#include "planted.h"

#define UM_SCENE_BUFFERS 5u

/* How the data is swept. */
#define UM_SCENE_SLICED       (1u << 0) /* several launches a sweep, a slice each */
#define UM_SCENE_LOOSE        (1u << 1) /* other work of the GPU between two buffers */
#define UM_SCENE_JOINT        (1u << 2) /* one launch takes all the buffers */
#define UM_SCENE_STREAMS      (1u << 3) /* on three streams in turns */
#define UM_SCENE_BACKWARD     (1u << 4) /* from the last buffer to the first, slices likewise */
#define UM_SCENE_HOST_PIECES  (1u << 5) /* the CPU takes a piece of each buffer in turns */
#define UM_SCENE_MANY_KERNELS (1u << 6) /* each sweep by another kernel of three */
#define UM_SCENE_ZIPPED       (1u << 7) /* a slice of each buffer in turns, a launch each */
#define UM_SCENE_HOST_BACK    (1u << 8) /* the CPU goes from the end to the start */
/* When the healthy rest works. */
#define UM_SCENE_EVERY_ROUND   (1u << 9)
#define UM_SCENE_AROUND        (1u << 10) /* before and after, a phase of its own */
#define UM_SCENE_NOW_AND_AGAIN (1u << 11)

typedef struct um_scene {
    um_gen_t *gen;
    uint32_t structure;
    uint32_t n, region[UM_SCENE_BUFFERS]; /* the data */
    uint64_t bytes[UM_SCENE_BUFFERS], all;
    uint32_t slices, rounds, round, launches;
    uint32_t kernel[3][2][UM_SCENE_BUFFERS + 1]; /* by turn, written or not, pointers */
    uint32_t busy, calm, flag; /* the rest: device memory; managed and well kept */
    uint64_t busy_bytes, calm_bytes;
} um_scene_t;

/* A scene with its healthy rest, and with no data yet; with managed data. */
um_scene_t um_scene(um_gen_t *gen);
um_scene_t um_scene_managed(um_gen_t *gen);
void um_scene_buffers(um_scene_t *s, um_family_t family);
void um_scene_release(um_scene_t *s);
/* The next round; false = there is none. At the end the rest is made up. */
bool um_scene_again(um_scene_t *s);
void um_scene_end(um_scene_t *s);

/* The GPU sweeps all of it once. */
void um_scene_gpu(um_scene_t *s, um_access_kind_t kind, int32_t device);
/* The CPU, so many thousandths of each buffer from its start. */
void um_scene_cpu(um_scene_t *s, um_access_kind_t kind, uint32_t thousandths);
void um_scene_hint(um_scene_t *s, um_hint_kind_t kind, int32_t device);
void um_scene_fetch(um_scene_t *s, int32_t device);

/* The kernel whose turn it is, which reads or writes through so many pointers; a launch of it, to be ended. */
uint32_t um_scene_kernel(um_scene_t *s, um_access_kind_t kind, uint32_t pointers);
void um_scene_launch(um_scene_t *s, um_access_kind_t kind, uint32_t pointers, uint64_t bytes,
                     int32_t device);
/* A launch that takes one range. */
void um_scene_one(um_scene_t *s, um_access_kind_t kind, uint32_t region, uint64_t at,
                  uint64_t bytes, int32_t device);
/* Launches that have nothing to do with managed memory. */
void um_scene_on_device(um_scene_t *s, uint32_t times);

uint64_t um_scene_between(um_scene_t *s, uint64_t least, uint64_t most); /* by lot */
uint64_t um_scene_odd(uint64_t bytes); /* not a multiple of anything but a page */

#endif
