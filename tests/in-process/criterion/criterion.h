/*
 * criterion.h - the part of Criterion that our tests of threads use, run in one process.
 *
 * ThreadSanitizer and Criterion's test processes do not go together (the copies crash or report
 * nothing), so a build with --enable-sanitizer=thread includes this instead. Test() and the cr_assert
 * family mean what they mean there; a failed assertion ends the program.
 */
#ifndef UM_IN_PROCESS_CRITERION_H
#define UM_IN_PROCESS_CRITERION_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct um_test_options {
    void (*init)(void);
    void (*fini)(void);
    double timeout;
    int signal, exit_code; /* a test that expects to die cannot run here: skipped */
    bool disabled;
    const char *description;
};

struct um_test {
    const char *suite, *name;
    void (*run)(void);
    struct um_test_options options, suite_options;
    struct um_test *next;
};

static struct um_test *um_tests;
static struct um_test_options *um_suite_options;

/* Registered by constructors, which run in the order of the file: kept in that order. */
static inline void um_test_register(struct um_test *test)
{
    struct um_test **end = &um_tests;

    while (*end != NULL)
        end = &(*end)->next;
    *end = test;
    if (um_suite_options != NULL)
        test->suite_options = *um_suite_options;
}

#define TestSuite(suite_name, ...)                                                                 \
    static struct um_test_options um_suite_##suite_name = {.disabled = false, ##__VA_ARGS__};      \
    __attribute__((constructor)) static void um_register_##suite_name(void)                        \
    {                                                                                              \
        um_suite_options = &um_suite_##suite_name;                                                 \
    }                                                                                              \
    struct um_test

#define Test(suite_name, test_name, ...)                                                           \
    static void um_run_##suite_name##_##test_name(void);                                           \
    static struct um_test um_test_##suite_name##_##test_name = {                                   \
        .suite = #suite_name,                                                                      \
        .name = #test_name,                                                                        \
        .run = um_run_##suite_name##_##test_name,                                                  \
        .options = {.disabled = false, ##__VA_ARGS__},                                             \
    };                                                                                             \
    __attribute__((constructor)) static void um_register_##suite_name##_##test_name(void)          \
    {                                                                                              \
        um_test_register(&um_test_##suite_name##_##test_name);                                     \
    }                                                                                              \
    static void um_run_##suite_name##_##test_name(void)

#define UM_CHECK(condition, text)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("Bail out! %s:%d: %s\n", __FILE__, __LINE__, text);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define cr_assert(condition, ...)      UM_CHECK(condition, #condition)
#define cr_assert_not(condition, ...)  UM_CHECK(!(condition), "not " #condition)
#define cr_assert_null(p, ...)         UM_CHECK((p) == NULL, #p " is NULL")
#define cr_assert_not_null(p, ...)     UM_CHECK((p) != NULL, #p " is not NULL")
#define cr_assert_eq(a, b, ...)        UM_CHECK((a) == (b), #a " == " #b)
#define cr_assert_neq(a, b, ...)       UM_CHECK((a) != (b), #a " != " #b)
#define cr_assert_lt(a, b, ...)        UM_CHECK((a) < (b), #a " < " #b)
#define cr_assert_leq(a, b, ...)       UM_CHECK((a) <= (b), #a " <= " #b)
#define cr_assert_gt(a, b, ...)        UM_CHECK((a) > (b), #a " > " #b)
#define cr_assert_geq(a, b, ...)       UM_CHECK((a) >= (b), #a " >= " #b)
#define cr_assert_str_eq(a, b, ...)    UM_CHECK(strcmp(a, b) == 0, #a " is " #b)
#define cr_assert_arr_eq(a, b, n, ...) UM_CHECK(memcmp(a, b, n) == 0, #a " equals " #b)
#define cr_assert_fail(...)            UM_CHECK(false, "reached what must not be reached")
#define cr_expect                      cr_assert
#define cr_expect_eq                   cr_assert_eq
#define cr_expect_leq                  cr_assert_leq
#define cr_skip_test(...)              return
#define cr_skip(...)                   return

int main(void)
{
    int n = 0;

    for (struct um_test *t = um_tests; t != NULL; t = t->next)
        n++;
    printf("1..%d\n", n);
    n = 0;
    for (struct um_test *t = um_tests; t != NULL; t = t->next) {
        bool skipped = t->options.disabled || t->options.signal || t->options.exit_code;
        void (*init)(void) = t->options.init ? t->options.init : t->suite_options.init;
        void (*fini)(void) = t->options.fini ? t->options.fini : t->suite_options.fini;

        if (!skipped) {
            if (init != NULL)
                init();
            t->run();
            if (fini != NULL)
                fini();
        }
        printf("ok %d - %s::%s%s\n", ++n, t->suite, t->name,
               skipped ? " # SKIP needs a process of its own" : "");
        fflush(stdout);
    }
    return 0;
}

#endif
