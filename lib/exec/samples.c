#include "samples.h"

#include <string.h>

#define LATELY 3u

uint32_t um_samples_kept(const um_samples_t *samples)
{
    return samples->n < UM_SAMPLES ? samples->n : UM_SAMPLES;
}

void um_samples_add(um_samples_t *samples, int64_t ns)
{
    samples->ns[samples->n++ % UM_SAMPLES] = ns;
}

static int64_t median_of(int64_t *ns, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && ns[k - 1] > ns[k]; k--) {
            int64_t swap = ns[k];

            ns[k] = ns[k - 1];
            ns[k - 1] = swap;
        }
    return n % 2 ? ns[n / 2] : (ns[n / 2 - 1] + ns[n / 2]) / 2;
}

int64_t um_samples_median(const um_samples_t *samples, double *error2)
{
    int64_t ns[UM_SAMPLES], middle;
    uint32_t n = um_samples_kept(samples);
    double sigma;

    memcpy(ns, samples->ns, n * sizeof(ns[0]));
    middle = median_of(ns, n);
    for (uint32_t i = 0; i < n; i++)
        ns[i] = ns[i] > middle ? ns[i] - middle : middle - ns[i];
    sigma = 1.4826 * (double)median_of(ns, n);
    *error2 = 1.5708 * sigma * sigma / n * (1 + 32.0 / n / n); /* few do not show how they differ */
    return middle;
}

/* Of those from the `from`-th to before the `to`-th latest. */
static int64_t median_between(const um_samples_t *samples, uint32_t from, uint32_t to)
{
    int64_t ns[UM_SAMPLES] = {0};

    for (uint32_t i = from; i < to; i++)
        ns[i - from] = samples->ns[(samples->n - 1 - i) % UM_SAMPLES];
    return median_of(ns, to - from);
}

int64_t um_samples_lately(const um_samples_t *samples)
{
    uint32_t n = um_samples_kept(samples);

    return median_between(samples, 0, n < LATELY ? n : LATELY);
}

double um_samples_trend(const um_samples_t *samples)
{
    uint32_t n = um_samples_kept(samples), half = n / 2;

    if (!half)
        return 0;
    return (double)(median_between(samples, 0, half) - median_between(samples, n - half, n)) /
           (double)(n - half);
}

uint64_t um_samples_root(double x)
{
    double r = x > 1 ? x : 1;

    for (int i = 0; i < 64 && r * r > x; i++)
        r = (r + x / r) / 2;
    return (uint64_t)r;
}
