/* What a run has learned is there for the next one, whoever else saves, and whatever happened to the file. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/profile.h"
#include "um_trace.h"

static char file[64];
static char line[512];

static void start(void)
{
    snprintf(file, sizeof(file), "profile.%d.ump", (int)getpid());
    unlink(file);
}

static void stop(void)
{
    char lock[80];

    snprintf(lock, sizeof(lock), "%s.lock", file);
    unlink(file);
    unlink(lock);
}

TestSuite(profile, .init = start, .fini = stop);

static const um_ev_device_t h200 = {.name = "NVIDIA H200",
                                    .uuid = "GPU-1",
                                    .pci = "0000:19:00.0",
                                    .memory_bytes = (uint64_t)139 << 30};
static const um_ev_device_t other_h200 = {.device = 3,
                                          .name = "NVIDIA H200",
                                          .uuid = "GPU-2",
                                          .pci = "0000:1a:00.0",
                                          .memory_bytes = (uint64_t)139 << 30};
static const um_ev_device_t a100 = {.name = "NVIDIA A100",
                                    .uuid = "GPU-3",
                                    .pci = "0000:1b:00.0",
                                    .memory_bytes = (uint64_t)40 << 30};

static um_ev_learned_t fact(uint64_t role, uint64_t count, uint64_t value)
{
    return (um_ev_learned_t){.who = "readback",
                             .what = "wait",
                             .kernel = "_Z7add_onePfm",
                             .module_hash = 0xabc,
                             .role = role,
                             .slot = 1,
                             .count = count,
                             .value = {value, 2, 3, 4, 5, UINT64_MAX}};
}

static um_profile_t *empty(void)
{
    um_profile_t *profile;

    cr_assert_eq(um_profile_new(&profile), UM_OK);
    return profile;
}

static um_profile_t *loaded(void)
{
    um_profile_t *profile;

    cr_assert_eq(um_profile_load(file, &profile, line, sizeof(line)), UM_OK, "%s", line);
    return profile;
}

static void put(um_profile_t *profile, const um_ev_device_t *gpu, um_ev_learned_t learned)
{
    cr_assert_eq(um_profile_add(profile, um_profile_gpu(profile, gpu), &learned), UM_OK);
}

static const um_ev_learned_t *get(um_profile_t *profile, const um_ev_device_t *gpu, uint64_t role)
{
    um_ev_learned_t like = fact(role, 0, 0);

    return um_profile_find(profile, um_profile_gpu(profile, gpu), &like);
}

/* A run that began with `base` and knows one fact. */
static um_status_t save_one(const um_profile_t *base, const um_ev_device_t *gpu,
                            um_ev_learned_t learned, uint64_t began_ns)
{
    um_profile_t *ours = empty();
    um_profile_run_t run = {
        .base = base, .ours = ours, .gpu = gpu, .began_ns = began_ns, .now_ns = began_ns + 50};
    um_status_t status;

    put(ours, gpu, learned);
    status = um_profile_save(file, &run, line, sizeof(line));
    um_profile_free(ours);
    return status;
}

static void count_facts(void *ctx, const um_ev_device_t *gpu, const um_ev_learned_t *learned)
{
    (void)gpu;
    (void)learned;
    ++*(unsigned *)ctx;
}

static unsigned size_of(const um_profile_t *profile)
{
    unsigned n = 0;

    cr_assert_eq(um_profile_each(profile, count_facts, &n), UM_OK);
    return n;
}

Test(profile, holds_what_was_saved)
{
    um_profile_t *profile;
    const um_ev_learned_t *found;

    cr_assert_eq(save_one(NULL, &h200, fact(7, 5, 11), 100), UM_OK, "%s", line);
    profile = loaded();
    cr_assert_eq(um_profile_runs(profile), 1);
    cr_assert_eq(size_of(profile), 1);
    cr_assert_not_null(found = get(profile, &other_h200, 7), "the same model");
    cr_assert_str_eq(found->who, "readback");
    cr_assert_str_eq(found->kernel, "_Z7add_onePfm");
    cr_assert_eq(found->count, 5);
    cr_assert_eq(found->age, 0);
    cr_assert_eq(found->value[0], 11);
    cr_assert_eq(found->value[5], UINT64_MAX);
    cr_assert_null(get(profile, &h200, 8));
    um_profile_free(profile);
}

/* The file is a trace file: nothing else is needed to read it. */
Test(profile, is_a_trace_of_learned_events)
{
    um_trace_reader_t *reader;
    const um_event_t *event;

    cr_assert_eq(save_one(NULL, &h200, fact(7, 5, 11), 100), UM_OK);
    cr_assert_eq(um_trace_reader_open(file, UM_TRACE_TIME_ORDER, &reader, line, sizeof(line)),
                 UM_OK);
    cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK);
    cr_assert_eq(event->type, UM_EV_DEVICE);
    cr_assert_eq(um_trace_reader_next(reader, &event), UM_OK);
    cr_assert_eq(event->type, UM_EV_LEARNED);
    cr_assert_eq(um_trace_reader_next(reader, &event), UM_ERR_NOT_FOUND);
    um_trace_reader_close(reader);
}

Test(profile, merging_adds_counts_and_does_not_care_for_the_order)
{
    um_profile_t *a = empty(), *b = empty(), *ab = empty(), *ba = empty();

    put(a, &h200, fact(1, 5, 11));
    put(a, &h200, fact(2, 1, 12));
    put(b, &h200, fact(1, 7, 21));
    put(b, &h200, fact(3, 1, 23));
    put(b, &a100, fact(1, 100, 31));
    cr_assert_eq(um_profile_merge(ab, a), UM_OK);
    cr_assert_eq(um_profile_merge(ab, b), UM_OK);
    cr_assert_eq(um_profile_merge(ba, b), UM_OK);
    cr_assert_eq(um_profile_merge(ba, a), UM_OK);
    cr_assert_eq(size_of(ab), 4);
    cr_assert_eq(size_of(ba), 4);
    cr_assert_eq(get(ab, &h200, 1)->count, 12);
    cr_assert_eq(get(ba, &h200, 1)->count, 12);
    cr_assert_eq(get(ab, &h200, 1)->value[0], 21, "the more confident one's");
    cr_assert_eq(get(ba, &h200, 1)->value[0], 21);
    cr_assert_eq(get(ab, &a100, 1)->count, 100, "of another model: on its own");
    um_profile_free(a);
    um_profile_free(b);
    um_profile_free(ab);
    um_profile_free(ba);
}

Test(profile, counts_that_are_equal_still_have_one_outcome)
{
    um_profile_t *ab = empty(), *ba = empty();

    put(ab, &h200, fact(1, 5, 11));
    put(ab, &h200, fact(1, 5, 13));
    put(ba, &h200, fact(1, 5, 13));
    put(ba, &h200, fact(1, 5, 11));
    cr_assert_eq(get(ab, &h200, 1)->value[0], get(ba, &h200, 1)->value[0]);
    um_profile_free(ab);
    um_profile_free(ba);
}

/* What the run knows includes what it was told; two that ran at once each add what is theirs. */
Test(profile, two_runs_at_once_lose_nothing)
{
    um_profile_t *base, *end;

    save_one(NULL, &h200, fact(1, 10, 1), 100);
    base = loaded();
    cr_assert_eq(save_one(base, &h200, fact(1, 13, 2), 1000), UM_OK);
    cr_assert_eq(save_one(base, &h200, fact(1, 17, 3), 1010), UM_OK);
    end = loaded();
    cr_assert_eq(get(end, &h200, 1)->count, 10 + 3 + 7);
    cr_assert_eq(get(end, &h200, 1)->value[0], 3);
    um_profile_free(base);
    um_profile_free(end);
}

/* One that comes to another conclusion has the last word, however often the old one held. */
Test(profile, a_new_conclusion_replaces_the_old_one)
{
    um_profile_t *base, *end;

    save_one(NULL, &h200, fact(1, 1000, 1), 100);
    base = loaded();
    cr_assert_eq(save_one(base, &h200, fact(1, 3, 2), 1000), UM_OK);
    end = loaded();
    cr_assert_eq(get(end, &h200, 1)->count, 3);
    cr_assert_eq(get(end, &h200, 1)->value[0], 2);
    um_profile_free(base);
    um_profile_free(end);
}

Test(profile, ages_once_a_run_and_is_dropped_in_the_end)
{
    um_profile_t *profile;

    save_one(NULL, &h200, fact(1, 1, 1), 100);
    for (uint64_t run = 1; run <= UM_PROFILE_MAX_AGE; run++) {
        for (uint64_t rank = 0; rank < 3; rank++) /* all began before the first was done */
            cr_assert_eq(save_one(NULL, &h200, fact(2 + rank, 1, 1), run * 1000 + rank), UM_OK);
        profile = loaded();
        cr_assert_not_null(get(profile, &h200, 1), "run %d", (int)run);
        cr_assert_eq(get(profile, &h200, 1)->age, run);
        cr_assert_eq(get(profile, &h200, 2)->age, 0);
        cr_assert_eq(um_profile_runs(profile), run + 1);
        um_profile_free(profile);
    }
    cr_assert_eq(save_one(NULL, &h200, fact(2, 1, 1), 1000000), UM_OK);
    profile = loaded();
    cr_assert_null(get(profile, &h200, 1));
    cr_assert_not_null(get(profile, &h200, 3));
    um_profile_free(profile);
}

Test(profile, a_run_on_another_gpu_leaves_the_rest_alone)
{
    um_profile_t *profile;

    save_one(NULL, &h200, fact(1, 1, 1), 100);
    for (uint64_t run = 1; run < 2 * UM_PROFILE_MAX_AGE; run++)
        save_one(NULL, &a100, fact(2, 1, 1), run * 1000);
    profile = loaded();
    cr_assert_eq(get(profile, &h200, 1)->age, 0);
    cr_assert_eq(get(profile, &a100, 2)->age, 0);
    um_profile_free(profile);
}

typedef struct told {
    um_ev_learned_t fact[8];
    unsigned n;
} told_t;

static void hear(void *ctx, const um_event_t *event)
{
    told_t *told = ctx;

    cr_assert_eq(event->type, UM_EV_LEARNED);
    cr_assert_eq(event->time_ns, 77);
    cr_assert_lt(told->n, 8);
    told->fact[told->n++] = event->u.learned;
}

Test(profile, what_another_model_taught_is_told_as_old)
{
    um_profile_t *profile = empty();
    told_t told = {0};

    put(profile, &h200, fact(1, 5, 11));
    put(profile, &a100, fact(1, 100, 21));
    put(profile, &a100, fact(2, 100, 22));
    um_profile_tell(profile, &other_h200, 77, hear, &told);
    cr_assert_eq(told.n, 2, "the own one of the first, the other's of the second");
    cr_assert_eq(told.fact[0].value[0], 11);
    cr_assert_eq(told.fact[0].age, 1);
    cr_assert_eq(told.fact[1].value[0], 22);
    cr_assert_eq(told.fact[1].age, UM_PROFILE_FOREIGN);
    um_profile_free(profile);
}

Test(profile, what_was_told_and_not_seen_stays_in_the_file)
{
    um_ev_learned_t old = fact(1, 10, 1);
    um_profile_t *base, *end;

    save_one(NULL, &h200, old, 100);
    base = loaded();
    old.age = 1;
    old.count = 500;
    cr_assert_eq(save_one(base, &h200, old, 1000), UM_OK);
    end = loaded();
    cr_assert_eq(get(end, &h200, 1)->count, 10);
    cr_assert_eq(get(end, &h200, 1)->age, 1);
    um_profile_free(base);
    um_profile_free(end);
}

Test(profile, is_bounded_and_keeps_the_best_proven)
{
    um_profile_t *ours = empty(), *end;
    um_profile_run_t run = {.ours = ours, .gpu = &h200, .began_ns = 1, .now_ns = 2};

    for (uint32_t i = 1; i <= UM_PROFILE_MAX_FACTS + 100; i++)
        put(ours, &h200, fact(i, i, i));
    cr_assert_eq(um_profile_save(file, &run, line, sizeof(line)), UM_OK);
    end = loaded();
    cr_assert_eq(size_of(end), UM_PROFILE_MAX_FACTS);
    cr_assert_null(get(end, &h200, 100));
    cr_assert_not_null(get(end, &h200, 101));
    um_profile_free(ours);
    um_profile_free(end);
}

/* ---- many at once ---- */

Test(profile, processes_that_save_at_once_lose_nothing)
{
    enum { PROCESSES = 8, SAVES = 10 };
    um_profile_t *end;
    int status;

    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            for (int s = 0; s < SAVES; s++) {
                um_profile_t *ours = empty();
                um_profile_run_t run = {.ours = ours, .gpu = &h200, .began_ns = 1, .now_ns = 2};

                put(ours, &h200, fact(1, 1, 1));
                put(ours, &h200, fact(100 + (uint64_t)(p * SAVES + s), 1, 1));
                if (um_profile_save(file, &run, line, sizeof(line)) != UM_OK)
                    _exit(1);
                um_profile_free(ours);
            }
            _exit(0);
        }
    for (int p = 0; p < PROCESSES; p++) {
        cr_assert_gt(wait(&status), 0);
        cr_assert_eq(status, 0);
    }
    end = loaded();
    cr_assert_eq(size_of(end), 1 + PROCESSES * SAVES);
    cr_assert_eq(get(end, &h200, 1)->count, PROCESSES * SAVES);
    um_profile_free(end);
}

/* ---- files that are not what they should be ---- */

static void write_file(const void *data, size_t bytes)
{
    FILE *f = fopen(file, "wb");

    cr_assert_not_null(f);
    cr_assert_eq(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

static size_t read_back(char *data, size_t bytes)
{
    FILE *f = fopen(file, "rb");
    size_t n;

    cr_assert_not_null(f);
    n = fread(data, 1, bytes, f);
    fclose(f);
    return n;
}

Test(profile, a_missing_file_is_said_to_be_missing)
{
    um_profile_t *profile;

    cr_assert_eq(um_profile_load(file, &profile, line, sizeof(line)), UM_ERR_IO);
    cr_assert_eq(errno, ENOENT);
    cr_assert(strstr(line, file));
}

Test(profile, an_empty_file_is_an_empty_profile)
{
    write_file("", 0);
    um_profile_free(loaded());
    cr_assert_eq(save_one(NULL, &h200, fact(1, 1, 1), 100), UM_OK);
    um_profile_free(loaded());
}

Test(profile, what_is_no_profile_is_never_overwritten)
{
    static const char text[] = "int main(void) { return 0; }\n";
    um_trace_writer_t *writer;
    um_event_t event = {.type = UM_EV_DEVICE, .u.device = h200};
    um_profile_t *profile;
    char back[4096];
    size_t n;

    write_file(text, sizeof(text));
    cr_assert_eq(um_profile_load(file, &profile, line, sizeof(line)), UM_ERR_FORMAT);
    cr_assert_eq(strncmp(line, file, strlen(file)), 0, "%s", line);
    cr_assert_eq(save_one(NULL, &h200, fact(1, 1, 1), 100), UM_ERR_FORMAT);
    cr_assert_eq(read_back(back, sizeof(back)), sizeof(text));
    cr_assert_arr_eq(back, text, sizeof(text));

    cr_assert_eq(um_trace_writer_open(file, NULL, 0, NULL, &writer), UM_OK);
    um_trace_writer_put(writer, &event);
    um_trace_writer_close(writer);
    n = read_back(back, sizeof(back));
    cr_assert_eq(save_one(NULL, &h200, fact(1, 1, 1), 100), UM_ERR_FORMAT);
    cr_assert(strstr(line, "a trace, not a profile"));
    cr_assert_eq(read_back(back, sizeof(back)), n);
}

Test(profile, a_newer_one_is_left_alone)
{
    static const um_ev_fact_t facts[] = {{"profile.version", "99"}};
    um_trace_writer_t *writer;
    um_profile_t *profile;

    cr_assert_eq(um_trace_writer_open(file, facts, 1, NULL, &writer), UM_OK);
    um_trace_writer_close(writer);
    cr_assert_eq(um_profile_load(file, &profile, line, sizeof(line)), UM_ERR_VERSION);
    cr_assert_eq(save_one(NULL, &h200, fact(1, 1, 1), 100), UM_ERR_VERSION);
}

Test(profile, a_directory_or_a_fifo_is_refused_at_once)
{
    um_profile_t *profile;

    cr_assert_eq(mkfifo(file, 0600), 0);
    cr_assert_eq(um_profile_load(file, &profile, line, sizeof(line)), UM_ERR_FORMAT);
    cr_assert_eq(um_profile_load("/tmp", &profile, line, sizeof(line)), UM_ERR_FORMAT);
}

/* Cut anywhere, changed anywhere: a line, or all that was there; then it is made anew, or left alone. */
Test(profile, damage_anywhere_is_told_and_survived)
{
    static char whole[1 << 16], now[1 << 16];
    um_profile_t *ours = empty(), *profile;
    um_profile_run_t run = {.ours = ours, .gpu = &h200, .began_ns = 1, .now_ns = 2};
    size_t bytes;
    unsigned refused = 0, replaced = 0;

    for (uint32_t i = 1; i <= 50; i++)
        put(ours, &h200, fact(i, i, i));
    cr_assert_eq(um_profile_save(file, &run, line, sizeof(line)), UM_OK);
    bytes = read_back(whole, sizeof(whole));
    cr_assert_lt(bytes, sizeof(whole));
    for (size_t at = 1; at < 2 * bytes; at += 7) {
        um_status_t status;

        memcpy(now, whole, bytes);
        if (at < bytes)
            now[at] ^= 0x55;
        write_file(now, at < bytes ? bytes : at - bytes);
        *line = '\0';
        status = um_profile_load(file, &profile, line, sizeof(line));
        if (status == UM_OK) {
            cr_assert(size_of(profile) == 50 || at == bytes, "at %zu", at);
            um_profile_free(profile);
            continue;
        }
        cr_assert(strstr(line, file), "at %zu: %s", at, line);
        refused++;
        status = um_profile_save(file, &run, line, sizeof(line));
        replaced += status == UM_OK;
        cr_assert(status == UM_OK || status == UM_ERR_FORMAT || status == UM_ERR_VERSION,
                  "at %zu: %s", at, line);
        if (status == UM_OK)
            um_profile_free(loaded());
    }
    cr_assert_gt(refused, 10);
    cr_assert_gt(replaced, 10);
    um_profile_free(ours);
}

Test(profile, what_a_link_points_to_is_replaced)
{
    char link[80];
    struct stat st;

    snprintf(link, sizeof(link), "%s.link", file);
    write_file("", 0);
    cr_assert_eq(symlink(file, link), 0);
    {
        um_profile_t *ours = empty();
        um_profile_run_t run = {.ours = ours, .gpu = &h200, .began_ns = 1, .now_ns = 2};

        put(ours, &h200, fact(1, 1, 1));
        cr_assert_eq(um_profile_save(link, &run, line, sizeof(line)), UM_OK);
        um_profile_free(ours);
    }
    cr_assert_eq(lstat(link, &st), 0);
    cr_assert(S_ISLNK(st.st_mode));
    cr_assert_eq(unlink(link), 0);
    strcat(link, ".lock");
    unlink(link);
    um_profile_free(loaded());
}

Test(profile, where_nothing_can_be_written_it_is_said)
{
    snprintf(file, sizeof(file), "no/such/directory/x.ump");
    cr_assert_eq(save_one(NULL, &h200, fact(1, 1, 1), 100), UM_ERR_IO);
    cr_assert(strstr(line, "No such file or directory"));
}
