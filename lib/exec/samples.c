#include "samples.h"

#include <string.h>

uint32_t um_samples_kept(const um_samples_t *samples)
{
    return samples->n < UM_SAMPLES ? samples->n : UM_SAMPLES;
}

void um_samples_add(um_samples_t *samples, uint64_t ns)
{
    samples->ns[samples->n++ % UM_SAMPLES] = ns;
}

static uint64_t median_of(uint64_t *ns, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && ns[k - 1] > ns[k]; k--) {
            uint64_t swap = ns[k];

            ns[k] = ns[k - 1];
            ns[k - 1] = swap;
        }
    return n % 2 ? ns[n / 2] : (ns[n / 2 - 1] + ns[n / 2]) / 2;
}

uint64_t um_samples_median(const um_samples_t *samples, double *error2)
{
    uint64_t ns[UM_SAMPLES], middle;
    uint32_t n = um_samples_kept(samples);
    double sigma;

    memcpy(ns, samples->ns, n * sizeof(ns[0]));
    middle = median_of(ns, n);
    for (uint32_t i = 0; i < n; i++)
        ns[i] = ns[i] > middle ? ns[i] - middle : middle - ns[i];
    sigma = 1.4826 * (double)median_of(ns, n);
    *error2 = 1.5708 * sigma * sigma / n;
    return middle;
}

uint64_t um_samples_root(double x)
{
    double r = x > 1 ? x : 1;

    for (int i = 0; i < 64 && r * r > x; i++)
        r = (r + x / r) / 2;
    return (uint64_t)r;
}
