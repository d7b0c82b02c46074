/* Generated programs are what they say: the same each time, inside their memory, as large as asked. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/gen.h"
#include "sim/workload_load.h"
#include "um_trace.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true /* whose shadow would be counted */
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED false
#endif

#define SMALL ((uint64_t)64 << 20)

static um_gen_options_t completed(const um_gen_pattern_t *p, uint64_t bytes, uint32_t iterations)
{
    um_gen_options_t o = {.bytes = bytes, .iterations = iterations};

    cr_assert_eq(um_gen_complete(p, &o, NULL, 0), UM_OK);
    return o;
}

static um_workload_t *made(const um_gen_pattern_t *p, uint64_t bytes, uint32_t iterations)
{
    um_gen_options_t o = completed(p, bytes, iterations);
    um_workload_t *w = NULL;

    cr_assert_eq(um_gen_workload(p->name, &o, &w), UM_OK, "%s", p->name);
    return w;
}

static char *file(const um_gen_pattern_t *p, const um_gen_options_t *o, size_t *bytes)
{
    char path[] = "/tmp/um_gen_XXXXXX", *content;
    int fd = mkstemp(path);
    FILE *f;

    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(um_gen_file(p, o, "test", path), UM_OK, "%s", p->name);
    f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    content = malloc(*bytes);
    cr_assert_eq(fread(content, 1, *bytes, f), *bytes);
    fclose(f);
    unlink(path);
    return content;
}

static bool same(const um_workload_t *a, const um_workload_t *b)
{
    if (a->n_steps != b->n_steps || a->n_touches != b->n_touches || a->n_gpus != b->n_gpus ||
        a->managed_peak_bytes != b->managed_peak_bytes || a->touched_bytes != b->touched_bytes ||
        memcmp(a->touches, b->touches, a->n_touches * sizeof *a->touches) != 0)
        return false;
    for (uint64_t i = 0; i < a->n_steps; i++) {
        const um_step_t *x = &a->steps[i], *y = &b->steps[i];

        if ((x->event ? x->event->type : 0) != (y->event ? y->event->type : 0) ||
            x->cpu_ns != y->cpu_ns || x->compute_ns != y->compute_ns ||
            x->first_touch != y->first_touch || x->n_touches != y->n_touches ||
            x->launch != y->launch)
            return false;
    }
    return true;
}

/* The loader checks every access against its region, every argument and every free. */
Test(gen, every_pattern_is_a_workload_without_contradiction)
{
    for (const um_gen_pattern_t *p = um_gen_patterns; p->name; p++) {
        um_workload_t *w = made(p, SMALL, 3);

        cr_expect_eq(w->kind, UM_WORKLOAD_GENERATED);
        cr_expect_eq(w->skipped, 0);
        cr_expect_gt(w->touched_bytes, 0);
        cr_expect_str_eq(w->source_gpu, UM_GEN_GPU);
        for (uint64_t i = 0; i < w->n_steps; i++)
            if (w->steps[i].event && w->steps[i].event->type == UM_EV_LAUNCH) {
                cr_expect_gt(w->steps[i].compute_ns, 0, "%s", p->name);
                cr_expect_gt(w->steps[i].n_touches, 0, "%s", p->name);
            }
        um_workload_free(w);
    }
}

Test(gen, a_file_and_memory_hold_the_same_program)
{
    for (const um_gen_pattern_t *p = um_gen_patterns; p->name; p++) {
        um_gen_options_t o = completed(p, SMALL, 3);
        um_workload_t *memory = made(p, SMALL, 3), *loaded = NULL;
        char path[] = "/tmp/um_gen_XXXXXX", error[512] = "";
        bool whole = false;
        int fd = mkstemp(path);

        cr_assert_geq(fd, 0);
        close(fd);
        cr_assert_eq(um_gen_file(p, &o, "test", path), UM_OK);
        cr_assert_eq(um_workload_load(path, &loaded, &whole, error, sizeof error), UM_OK, "%s",
                     error);
        unlink(path);
        cr_expect(whole);
        cr_expect(same(memory, loaded), "%s", p->name);
        um_workload_free(memory);
        um_workload_free(loaded);
    }
}

Test(gen, equal_options_give_equal_bytes_and_another_seed_other_ones)
{
    for (const um_gen_pattern_t *p = um_gen_patterns; p->name; p++) {
        um_gen_options_t o = completed(p, SMALL, 2);
        size_t n[3];
        char *a = file(p, &o, &n[0]), *b = file(p, &o, &n[1]), *c;

        cr_expect(n[0] == n[1] && memcmp(a, b, n[0]) == 0, "%s", p->name);
        if (o.seed) {
            o.seed++;
            c = file(p, &o, &n[2]);
            cr_expect(n[0] != n[2] || memcmp(a, c, n[0]) != 0, "%s", p->name);
            free(c);
        }
        free(a);
        free(b);
    }
}

Test(gen, is_as_large_as_asked)
{
    static const uint64_t sizes[] = {(uint64_t)1 << 20, (uint64_t)100 << 20, (uint64_t)10 << 30};

    for (const um_gen_pattern_t *p = um_gen_patterns; p->name; p++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            um_workload_t *w = made(p, sizes[i], 1);
            double ratio = (double)w->managed_peak_bytes / (double)sizes[i];

            cr_expect(ratio > 0.9 && ratio < 1.4, "%s of %llu: %f", p->name,
                      (unsigned long long)sizes[i], ratio);
            um_workload_free(w);
        }
}

Test(gen, more_iterations_are_more_launches)
{
    for (const um_gen_pattern_t *p = um_gen_patterns; p->name; p++) {
        um_workload_t *few = made(p, SMALL, 2), *many = made(p, SMALL, 6);

        cr_expect_gt(many->n_launches, few->n_launches, "%s", p->name);
        um_workload_free(few);
        um_workload_free(many);
    }
}

/* What a launch touches is in a region that one of its arguments points into. */
Test(gen, arguments_cover_what_is_touched)
{
    for (const um_gen_pattern_t *p = um_gen_patterns; p->name; p++) {
        um_workload_t *w = made(p, SMALL, 2);

        for (uint64_t i = 0; i < w->n_steps; i++) {
            const um_step_t *s = &w->steps[i];

            for (uint32_t k = 0; s->event && k < s->n_touches; k++) {
                const um_ev_launch_t *l = &s->event->u.launch;
                bool found = false;

                for (uint32_t a = 0; a < l->n_args; a++)
                    found |= l->args[a].region == w->touches[s->first_touch + k].region;
                cr_expect(found, "%s, step %llu", p->name, (unsigned long long)i);
            }
        }
        um_workload_free(w);
    }
}

/* Through a pointer to const nothing is written. */
Test(gen, const_pointers_are_not_written_through)
{
    for (const um_gen_pattern_t *p = um_gen_patterns; p->name; p++) {
        um_workload_t *w = made(p, SMALL, 2);
        const um_ev_kernel_t *kernels[8] = {NULL};

        for (uint64_t i = 0; i < w->n_steps; i++) {
            const um_step_t *s = &w->steps[i];

            if (s->event && s->event->type == UM_EV_KERNEL)
                kernels[s->event->u.kernel.kernel % 8] = &s->event->u.kernel;
            for (uint32_t k = 0; s->event && k < s->n_touches; k++) {
                const um_touch_t *t = &w->touches[s->first_touch + k];
                const um_ev_launch_t *l = &s->event->u.launch;
                bool writable = false;

                for (uint32_t a = 0; a < l->n_args; a++)
                    if (l->args[a].region == t->region)
                        writable |= !(kernels[l->kernel % 8]->params[l->args[a].slot].flags &
                                      UM_PARAM_CONST_POINTER);
                cr_expect(t->kind == UM_ACCESS_READ || writable, "%s, step %llu", p->name,
                          (unsigned long long)i);
            }
        }
        um_workload_free(w);
    }
}

Test(gen, halo_runs_on_as_many_gpus_as_asked)
{
    for (uint32_t gpus = 1; gpus <= 8; gpus++) {
        um_gen_options_t o = {.bytes = SMALL, .iterations = 2, .gpus = gpus};
        um_workload_t *w;

        cr_assert_eq(um_gen_workload("halo", &o, &w), UM_OK);
        cr_expect_eq(w->n_gpus, gpus);
        um_workload_free(w);
    }
}

Test(gen, refuses_what_is_out_of_range_or_means_nothing)
{
    static const struct {
        const char *pattern;
        um_gen_options_t options;
    } wrong[] = {
        {"stream", {.bytes = 4096}},         {"stream", {.bytes = UINT64_MAX}},
        {"stream", {.iterations = 2000000}}, {"stream", {.gpus = 2}},
        {"stream", {.compute = -1}},         {"halo", {.gpus = 9}},
    };
    um_workload_t *w;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_eq(um_gen_workload(wrong[i].pattern, &wrong[i].options, &w), UM_ERR_INVALID,
                     "case %zu", i);
    cr_expect_eq(um_gen_workload("streams", NULL, &w), UM_ERR_NOT_FOUND);
}

static long peak_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

Test(gen, a_tebibyte_over_a_hundred_thousand_launches_takes_little_memory)
{
    um_gen_options_t o = {.bytes = (uint64_t)1 << 40, .iterations = 100000};
    um_workload_t *w;

    cr_assert_eq(um_gen_workload("stream", &o, &w), UM_OK);
    cr_expect_eq(w->n_launches, 100000);
    cr_expect_gt(w->touched_bytes, (uint64_t)99999 << 40);
    if (!SANITIZED)
        cr_expect_lt(peak_kib(), 200 * 1024);
    um_workload_free(w);
}

static void feed(um_workload_loader_t *loader, um_event_t event, uint64_t time_ns)
{
    event.time_ns = time_ns;
    event.tid = 1;
    um_workload_loader_event(loader, &event);
}

Test(gen, a_hundred_thousand_launches_of_ten_touches_stay_under_200_mib)
{
    um_workload_loader_t *loader;
    um_workload_t *w;
    um_event_t event = {.type = UM_EV_REGION_ALLOC};
    um_arg_t args[4] = {{.region = 1}, {.region = 1}, {.region = 1}, {.region = 1}};

    cr_assert_eq(um_workload_loader_new("many", UM_WORKLOAD_GENERATED, false, &loader), UM_OK);
    event.u.region_alloc = (um_ev_region_alloc_t){.region = 1,
                                                  .family = UM_FAMILY_MANAGED,
                                                  .addr = (uint64_t)1 << 40,
                                                  .bytes = (uint64_t)1 << 30};
    feed(loader, event, 1);
    for (uint32_t i = 1; i <= 100000; i++) {
        event = (um_event_t){.type = UM_EV_LAUNCH};
        event.u.launch = (um_ev_launch_t){.correlation = i, .n_args = 4, .args = args};
        feed(loader, event, i * 1000);
        for (uint32_t k = 0; k < 10; k++) {
            event = (um_event_t){.type = UM_EV_ACCESS};
            event.u.access = (um_ev_access_t){.addr = ((uint64_t)1 << 40) + k * 65536,
                                              .bytes = 4096,
                                              .kind = UM_ACCESS_READ,
                                              .correlation = i,
                                              .region = 1};
            feed(loader, event, i * 1000 + k);
        }
        event = (um_event_t){.type = UM_EV_SYNC};
        event.u.sync.sync = i;
        feed(loader, event, i * 1000 + 100);
    }
    cr_assert_eq(um_workload_loader_finish(loader, &w, NULL, 0), UM_OK);
    cr_expect_eq(w->n_touches, 1000000);
    if (!SANITIZED)
        cr_expect_lt(peak_kib(), 200 * 1024);
    um_workload_free(w);
}
