/*
 * rank_test.h - do two samples differ by more than chance?
 *
 * The Mann-Whitney U (Wilcoxon rank-sum) test, two-sided, which assumes nothing of how the values are
 * spread. Exact over all ways to deal the ranks out, ties included (equal values share their mean rank),
 * while that is cheap; with many values the normal approximation, corrected for ties and continuity.
 */
#ifndef UM_RANK_TEST_H
#define UM_RANK_TEST_H

#include <stddef.h>

/* How likely values that are at least so far apart are when nothing differs: above 0 to 1. 1 where there
 * is nothing to compare; negative when out of memory. */
double um_rank_test(const double *a, size_t n, const double *b, size_t m);

/* The least that it can say with so many values: 2 / (n + m choose n), at most 1. */
double um_rank_test_least(size_t n, size_t m);

#endif
