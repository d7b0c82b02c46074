/* planted_beside.h - what no simulation tells: events behind those of a held-out program. */
#ifndef UM_PLANTED_BESIDE_H
#define UM_PLANTED_BESIDE_H

#include "planted.h"

void um_beside_loses(um_beside_t *b);    /* records were lost */
void um_beside_is_blind(um_beside_t *b); /* a kind of fault was not recorded */
void um_beside_pins(um_beside_t *b);     /* most of the host's memory is pinned */
void um_beside_copies_pageable(um_beside_t *b);
/* Two GPUs, or a GPU and the CPU, that the driver holds back in turns. */
void um_beside_thrashes(um_beside_t *b);
/* What the CPU counts in lies beside what the GPU works on: the page goes to and fro. */
void um_beside_shares(um_beside_t *b);
/* Pinned both ways, large and small: as it should be. */
void um_beside_copies_pinned(um_beside_t *b);

#endif
