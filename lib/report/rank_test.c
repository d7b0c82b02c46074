#include "rank_test.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Steps of the exact test beyond which the approximation is taken. */
#define STEPS_MAX 2000000.0

typedef struct um_ranked {
    double value;
    size_t twice; /* its rank, doubled: mean ranks are whole halves */
    bool first;   /* of the smaller sample */
} um_ranked_t;

static int by_value(const void *x, const void *y)
{
    const um_ranked_t *a = x, *b = y;

    return a->value < b->value ? -1 : a->value > b->value;
}

/* Doubled mean ranks; returns what the ties take from the variance. */
static double rank(um_ranked_t *all, size_t n)
{
    double ties = 0;

    qsort(all, n, sizeof(*all), by_value);
    for (size_t i = 0, end; i < n; i = end) {
        double t;

        for (end = i + 1; end < n && all[end].value == all[i].value; end++)
            ;
        t = (double)(end - i);
        ties += t * t * t - t;
        for (size_t k = i; k < end; k++)
            all[k].twice = i + end + 1;
    }
    return ties;
}

/* How many of the ways to choose k of the ranks give a sum as far from the mean as `sum` is. */
static double exact(const um_ranked_t *all, size_t n, size_t k, size_t sum)
{
    size_t total = n * (n + 1), width = total + 1;
    double far = 0, ways = 0, *count = calloc((k + 1) * width, sizeof(*count));
    size_t distance = sum * n > k * total ? sum * n - k * total : k * total - sum * n;

    if (!count)
        return -1;
    count[0] = 1;
    for (size_t i = 0; i < n; i++) {
        for (size_t used = k; used > 0; used--) {
            double *to = count + used * width, *from = to - width;

            for (size_t s = all[i].twice; s < width; s++)
                to[s] += from[s - all[i].twice];
        }
    }
    for (size_t s = 0; s < width; s++) {
        double here = count[k * width + s];

        ways += here;
        /* in units of 1/n, so that the mean is whole */
        if ((s * n > k * total ? s * n - k * total : k * total - s * n) >= distance)
            far += here;
    }
    free(count);
    return far / ways;
}

static double approximate(size_t n, size_t k, size_t sum, double ties)
{
    double all = (double)n, a = (double)k, b = all - a;
    double variance = a * b / 12 * (all + 1 - ties / (all * (all - 1)));
    double distance = fabs((double)sum / 2 - a * (all + 1) / 2) - 0.5;

    return variance <= 0 || distance <= 0 ? 1 : erfc(distance / sqrt(2 * variance));
}

double um_rank_test(const double *a, size_t n, const double *b, size_t m)
{
    size_t all = n + m, sum = 0, k = n < m ? n : m;
    um_ranked_t *ranked;
    double ties, p;

    if (!n || !m)
        return 1;
    ranked = malloc(all * sizeof(*ranked));
    if (!ranked)
        return -1;
    for (size_t i = 0; i < all; i++)
        ranked[i] =
            (um_ranked_t){.value = i < n ? a[i] : b[i - n], .first = n <= m ? i < n : i >= n};
    ties = rank(ranked, all);
    for (size_t i = 0; i < all; i++)
        sum += ranked[i].first ? ranked[i].twice : 0;
    if ((double)all * (double)all * (double)(all + 1) * (double)k <= STEPS_MAX)
        p = exact(ranked, all, k, sum);
    else
        p = approximate(all, k, sum, ties);
    free(ranked);
    return p;
}

double um_rank_test_least(size_t n, size_t m)
{
    double ways = 1;

    for (size_t i = 1; i <= n; i++)
        ways *= (double)(m + i) / (double)i;
    return ways > 2 ? 2 / ways : 1;
}
