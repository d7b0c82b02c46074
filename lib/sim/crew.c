#include "crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct crew {
    size_t n;
    void (*job)(void *ctx, size_t i);
    void *ctx;
    void (*progress)(void *ctx, size_t done, size_t all);
    void *progress_ctx;
    _Atomic size_t next;
    pthread_mutex_t lock; /* of done; held while progress is told */
    size_t done;
} crew_t;

static void *work(void *ctx)
{
    crew_t *crew = ctx;
    size_t i;

    while ((i = atomic_fetch_add(&crew->next, 1)) < crew->n) {
        crew->job(crew->ctx, i);
        if (!crew->progress)
            continue;
        pthread_mutex_lock(&crew->lock);
        crew->progress(crew->progress_ctx, ++crew->done, crew->n);
        pthread_mutex_unlock(&crew->lock);
    }
    return NULL;
}

void um_crew_run(size_t n, uint32_t threads, void (*job)(void *ctx, size_t i), void *ctx,
                 void (*progress)(void *ctx, size_t done, size_t all), void *progress_ctx)
{
    crew_t crew = {.n = n,
                   .job = job,
                   .ctx = ctx,
                   .progress = progress,
                   .progress_ctx = progress_ctx,
                   .lock = PTHREAD_MUTEX_INITIALIZER};
    size_t others = threads > n ? n : threads, started = 0;
    pthread_t *thread = others > 1 ? calloc(others, sizeof(*thread)) : NULL;

    while (thread && started + 1 < others &&
           pthread_create(&thread[started], NULL, work, &crew) == 0)
        started++;
    work(&crew);
    for (size_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
}
