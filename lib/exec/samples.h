/* samples.h - the latest times of one sort, or differences of times, and their median. Threads: one. */
#ifndef UM_SAMPLES_H
#define UM_SAMPLES_H

#include <stdint.h>

#define UM_SAMPLES 16u /* are kept, the latest ones */

typedef struct um_samples {
    int64_t ns[UM_SAMPLES];
    uint32_t n; /* ever */
} um_samples_t;

void um_samples_add(um_samples_t *samples, int64_t ns);
uint32_t um_samples_kept(const um_samples_t *samples);
/* The median, and the square of its standard error as the median deviation lets it be guessed. There must be
 * some. */
int64_t um_samples_median(const um_samples_t *samples, double *error2);
/* The median of the latest few. There must be some. */
int64_t um_samples_lately(const um_samples_t *samples);
/* How much longer each is than the one before it, as the later half and the earlier one let it be guessed; may be
 * negative. */
double um_samples_trend(const um_samples_t *samples);
uint64_t um_samples_root(double x); /* at least 1 */

#endif
