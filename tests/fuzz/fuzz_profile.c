/* A profile of arbitrary bytes: loaded, told, saved over; never a crash, never a line without the file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/profile.h"
#include "um_trace.h"

static char path[64];

static void touch(void *ctx, const um_event_t *event)
{
    *(size_t *)ctx += strlen(event->u.learned.who) + strlen(event->u.learned.kernel);
}

static void save_over(void)
{
    const um_ev_device_t gpu = {.name = "gpu", .uuid = "", .pci = ""};
    const um_ev_learned_t fact = {.who = "a", .what = "b", .kernel = "", .count = 1};
    um_profile_run_t run = {.gpu = &gpu, .began_ns = 1, .now_ns = 2};
    um_profile_t *ours;
    char line[512];

    if (um_profile_new(&ours) != UM_OK)
        return;
    um_profile_add(ours, um_profile_gpu(ours, &gpu), &fact);
    run.ours = ours;
    um_profile_save(path, &run, line, sizeof(line));
    um_profile_free(ours);
}

/* The bytes as they are, or as the events of a profile, so that the header's checks are passed. */
static void put(const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

static void put_events(const uint8_t *data, size_t size)
{
    static const um_ev_fact_t facts[] = {{"profile.version", "1"}};
    um_event_t event = {.type = UM_EV_LEARNED};
    um_trace_writer_t *writer;
    char word[3][64] = {""};

    if (um_trace_writer_open(path, facts, 1, NULL, &writer) != UM_OK)
        abort();
    for (; size >= sizeof(event.u.learned); data += 8, size -= 8) {
        memcpy(&event.u.learned, data, sizeof(event.u.learned));
        for (int i = 0; i < 3; i++)
            snprintf(word[i], sizeof(word[i]), "%.*s", data[i] % 60, (const char *)data);
        event.u.learned.who = word[0];
        event.u.learned.what = word[1];
        event.u.learned.kernel = word[2];
        um_trace_writer_put(writer, &event);
    }
    um_trace_writer_close(writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    snprintf(path, sizeof(path), "/tmp/fuzz_profile.%d.ump", (int)getpid());
    for (int round = 0; round < 2; round++) {
        um_profile_t *profile;
        char line[512] = "";
        size_t n = 0;

        if (round == 0)
            put(data, size);
        else
            put_events(data, size > 4096 ? 4096 : size);
        if (um_profile_load(path, &profile, line, sizeof(line)) == UM_OK) {
            um_profile_tell(profile, NULL, 1, touch, &n);
            um_profile_free(profile);
        } else if (strncmp(line, path, strlen(path)) != 0) {
            abort();
        }
        save_over();
    }
    return 0;
}
