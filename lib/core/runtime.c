/* The life of the one runtime of this process: start, end, fork, and what it knows of itself. */
#include "runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exec/host_memory.h"
#include "exec/learning.h"
#include "exec/outcome.h"
#include "exec/share.h"
#include "exec/view.h"
#include "note.h"
#include "recorder.h"
#include "summary.h"
#include "top.h"

#define CATCH_UP_MS 100u /* how long a call of the program may wait for the hint loop */
#define BUS_WAIT_MS 100u /* how long a full ring may hold up the program before an event is lost */

/*
 * `phase` only ever grows. Everything below it is written by the thread that starts or stops the
 * runtime, under `lock`, and published by `phase`; nothing is ever freed, because other threads of the
 * program may still be on their way through us when it exits.
 */
typedef enum phase { ASLEEP = 0, STARTING = 1, RUNNING = 2, STOPPED = 3, FORKED = 4 } phase_t;

static _Atomic phase_t phase;
static _Atomic uint32_t starter; /* thread id of who is STARTING */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static um_runtime_t self;
static um_recorder_t *recorder; /* RECORD, or a trace of a hinted run; else NULL */
static um_hinter_t *hinter;     /* HINT; else NULL */
static um_learning_t *learning; /* HINT with a profile; else NULL */
static char *report;            /* HINT: file pattern; NULL = none */
static um_executor_t *executor;
static um_share_t *share;    /* HINT */
static uint32_t local_ranks; /* as they are at the start: the environment is the program's */
static um_pagemap_t *pagemap;
static um_top_t *top; /* NULL = nobody may look */
static const um_backend_t *backend;
static um_runtime_state_t state;
static char reason[256];

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

void um_runtime_use_backend(const um_backend_t *other)
{
    backend = other;
}

/* ---- start ---- */

static void post_now(void *ctx, const um_event_t *event)
{
    um_event_t copy = *event;

    (void)ctx;
    if (!copy.time_ns)
        copy.time_ns = now_ns();
    um_bus_post(self.bus, &copy, false);
}

/* What the profile says goes wherever events go. */
static um_status_t add_sink(um_sink_t sink)
{
    if (learning)
        um_learning_tells(learning, &sink);
    return um_bus_add_sink(self.bus, &sink);
}

static um_status_t start_recorder(const char *pattern)
{
    um_status_t status = um_recorder_open(pattern, &recorder);

    if (status == UM_OK)
        return add_sink(um_recorder_sink(recorder));
    snprintf(reason, sizeof(reason), "cannot write the trace '%.150s': %s", pattern,
             status == UM_ERR_IO ? strerror(errno) : um_status_string(status));
    return status;
}

/* Without page tables hints are still made, for what nobody has touched yet. */
static const um_page_tables_t *page_tables(um_page_tables_t *tables)
{
    if (!self.settings.page_tables)
        return NULL;
    if (um_pagemap_open(&pagemap) != UM_OK) {
        um_log(UM_LOG_WARN, "/proc/self/pagemap says nothing: what the cpu touches is not seen");
        return NULL;
    }
    um_page_tables_live(pagemap, tables);
    return tables;
}

/* Before the sinks that it tells. Without it the run is as good as a first one. */
static um_status_t start_learning(const char *pattern)
{
    struct stat st;
    um_sink_t sink;

    if (um_learning_open(pattern, &learning) != UM_OK)
        return UM_OK;
    if (stat(um_learning_path(learning), &st) == 0 && st.st_size == 0)
        um_log(UM_LOG_WARN, "the profile is not used: %s: is empty; it is made anew at the end",
               um_learning_path(learning));
    sink = um_learning_sink(learning);
    return um_bus_add_sink(self.bus, &sink);
}

/* What the machine has left for this process: ranks on it share that evenly, too. */
static uint64_t host_bytes(void *ctx)
{
    uint64_t bytes = um_host_memory_bytes("");

    (void)ctx;
    if (bytes == UINT64_MAX)
        return bytes;
    bytes =
        bytes > self.settings.host_headroom_bytes ? bytes - self.settings.host_headroom_bytes : 0;
    return bytes / local_ranks;
}

static um_status_t start_share(const char *given)
{
    um_share_config_t config = {.local_ranks = local_ranks = um_local_ranks(),
                                .folder = self.settings.share_dir};

    if (given && !um_budget_parse(given, &config.budget)) {
        um_log(UM_LOG_WARN,
               "um_runtime_init: '%s' is no budget: auto, all, bytes (k, M, G) or 1%% to 100%% "
               "expected",
               given);
        given = NULL;
    }
    if (!given)
        um_budget_parse(self.settings.budget, &config.budget);
    return um_share_new(&config, &share);
}

static um_status_t start_hinter(bool trial)
{
    um_page_tables_t tables;
    um_hinter_config_t config = {.regions = self.regions,
                                 .advisors = self.settings.advisors,
                                 .guard_per_mille = (uint32_t)self.settings.guard_per_mille,
                                 .gate = {.headroom_bytes = self.settings.headroom_bytes,
                                          .share = share,
                                          .host_bytes = host_bytes,
                                          .piece_bytes = self.settings.piece_bytes,
                                          .pending = &self.hints_pending},
                                 .guard_trial = trial,
                                 .post = post_now,
                                 .hinting = &self.hinting,
                                 .waiting = &self.waiting};
    um_status_t status;

    if (!backend->executor || backend->executor(&self, &executor) != UM_OK) {
        snprintf(reason, sizeof(reason), "the %s backend cannot prefetch", backend->name);
        return UM_ERR_UNSUPPORTED;
    }
    config.executor = executor;
    config.page_tables = page_tables(&tables);
    if ((status = um_hinter_new(&config, &hinter)) != UM_OK)
        return status;
    return add_sink(um_hinter_sink(hinter));
}

static um_runtime_state_t state_of(um_mode_t mode)
{
    return mode == UM_MODE_RECORD ? UM_RUNTIME_RECORD
           : mode >= UM_MODE_HINT ? UM_RUNTIME_HINT
                                  : UM_RUNTIME_OBSERVE;
}

/* What `umrt top` shows. On the bus thread, or once it has stopped. */
static void top_figures(void *ctx, um_top_figures_t *out)
{
    um_hinter_stats_t hints = {0};
    um_account_t account[UM_TOP_ADVISORS] = {0};
    const char *why = reason;

    (void)ctx;
    if (atomic_load(&phase) != RUNNING) /* `reason` is the starter's */
        return;
    out->mode = (uint32_t)self.settings.mode;
    out->state = state_of((um_mode_t)self.settings.mode);
    out->recorded = self.settings.mode == UM_MODE_RECORD && self.settings.unified_memory;
    um_runtime_stats(&out->stats);
    if (hinter) {
        um_hinter_stats(hinter, &hints);
        out->n_advisors = (uint32_t)um_hinter_accounts(hinter, account, UM_TOP_ADVISORS);
        if (hints.no_hints)
            why = hints.no_hints;
    }
    for (uint32_t i = 0; i < out->n_advisors; i++) {
        um_top_advisor_t *to = &out->advisor[i];

        snprintf(to->who, sizeof(to->who), "%s", account[i].who);
        to->proposals = account[i].proposals;
        to->proposed_bytes = account[i].proposed_bytes;
        to->admitted = account[i].admitted;
        to->refused = account[i].refused;
        to->applied = account[i].applied;
        to->failed = account[i].failed;
        to->cancelled = account[i].cancelled;
        to->applied_bytes = account[i].applied_bytes;
        to->driver_ns = account[i].driver_ns;
    }
    snprintf(out->reason, sizeof(out->reason), "%s", why);
    out->hinted_launches = hints.hinted_launches;
    out->declined = hints.declined;
    out->guard_groups = hints.guard.groups;
    out->guard_won = hints.guard.won;
    out->guard_lost = hints.guard.lost;
    out->guard_rounds = hints.guard.rounds;
    out->guard_withheld = hints.guard.withheld;
    out->guard_at_once = hints.guard.at_once;
    out->guard_measured = hints.guard.measured;
    out->guard_saved_ns = hints.guard.saved_ns;
    out->guard_error_ns = hints.guard.error_ns;
}

static bool top_where(void *ctx, uint32_t region, uint64_t bytes[UM_TOP_WHERES])
{
    (void)ctx;
    return hinter && um_hinter_where(hinter, region, bytes);
}

/* Last of all sinks: what it asks the others has come to them. */
static um_status_t start_top(void)
{
    const um_top_source_t source = {.figures = top_figures, .where = top_where};
    um_sink_t sink;
    um_status_t status = um_top_new(&source, &top);

    if (status != UM_OK)
        return status;
    um_top_sink(top, &sink);
    return um_bus_add_sink(self.bus, &sink);
}

/* A trace of a hinted run has all but what the switched-off records of CUPTI would tell. */
static um_status_t start_hinting(um_mode_t mode, const um_config_t *config)
{
    const char *profile = config->profile_path ? config->profile_path : self.settings.profile;
    const char *trace = config->trace_path ? config->trace_path : self.settings.trace;
    const char *path = config->report_path ? config->report_path : self.settings.report;
    um_status_t status = UM_OK;

    if (*profile && (status = start_learning(profile)) != UM_OK)
        return status;
    if (*trace && start_recorder(trace) != UM_OK) {
        um_log(UM_LOG_WARN, "%s", reason);
        *reason = '\0';
    }
    report = *path ? strdup(path) : NULL;
    if ((status = start_share(config->budget)) != UM_OK)
        return status;
    self.expecting = learning != NULL;
    return start_hinter(mode == UM_MODE_TRIAL);
}

/* Builds the runtime for `mode`; on failure `reason` says why and the program goes on without us. */
static um_status_t start(um_mode_t mode, const um_config_t *config)
{
    const char *pattern = config->trace_path ? config->trace_path : self.settings.out;
    um_status_t status;

    if ((status = um_regions_new(&self.regions)) != UM_OK ||
        (status = um_kernels_new(&self.kernels)) != UM_OK ||
        (status = um_bus_new(self.settings.queue_bytes, BUS_WAIT_MS, &self.bus)) != UM_OK)
        return status;
    if (mode == UM_MODE_RECORD && (status = start_recorder(pattern)) != UM_OK)
        return status;
    if (mode >= UM_MODE_HINT && (status = start_hinting(mode, config)) != UM_OK)
        return status;
    if (self.settings.top && (status = start_top()) != UM_OK)
        return status;
    if ((status = um_bus_start(self.bus)) != UM_OK)
        return status;
    um_settings_each(&self.settings, post_now, NULL);
    status = backend->attach(&self, reason, sizeof(reason));
    if (status == UM_OK)
        return UM_OK;
    um_bus_stop(self.bus);
    if (recorder)
        um_recorder_discard(recorder);
    return status;
}

/* false when no umrt command is there to read it. */
static bool leave_note(um_note_kind_t kind, const char *text)
{
    const char *path = recorder && state != UM_RUNTIME_INERT ? um_recorder_path(recorder) : "";
    char *absolute = *path ? realpath(path, NULL) : NULL;
    um_note_t note = {.pid = (int32_t)getpid(),
                      .kind = kind,
                      .state = state,
                      .text = text,
                      .trace_path = absolute ? absolute : path};
    bool left = um_note_leave(&note);

    free(absolute);
    return left;
}

/* Under `lock`, phase STARTING. */
static void bring_up(const um_config_t *config)
{
    um_mode_t mode = config->mode;
    um_status_t status;

    state = UM_RUNTIME_INERT;
    if (!backend)
        backend = um_backend();
    /* The log first: loading the settings may already have something to say. */
    um_log_set(UM_LOG_WARN, config->log, config->log_ctx);
    if ((status = um_settings_load(&self.settings)) != UM_OK) {
        snprintf(reason, sizeof(reason), "%s", um_status_string(status));
        return;
    }
    um_log_set((um_log_level_t)self.settings.log_level, config->log, config->log_ctx);
    if (mode > UM_MODE_TRIAL) {
        um_log(UM_LOG_WARN, "um_runtime_init: %u is no mode: 0 to %u (um_mode_t) expected",
               (unsigned)mode, (unsigned)UM_MODE_TRIAL);
        mode = UM_MODE_DEFAULT;
    }
    if (mode == UM_MODE_DEFAULT)
        mode = (um_mode_t)self.settings.mode;
    if (mode == UM_MODE_DEFAULT)
        mode = UM_MODE_HINT;
    self.settings.mode = mode;
    if (mode == UM_MODE_OFF)
        return;
    if ((status = start(mode, config)) == UM_OK) {
        state = state_of(mode);
        return;
    }
    if (!*reason)
        snprintf(reason, sizeof(reason), "%s", um_status_string(status));
}

/* A forked child has none of our threads and must not touch our files: everything becomes a no-op. */
static void in_child(void)
{
    phase_t before = atomic_exchange(&phase, FORKED);

    if (before != STARTING && before != RUNNING)
        return;
    atomic_store(&self.hinting, false);
    if (self.bus)
        um_bus_abandon(self.bus);
    if (recorder)
        um_recorder_abandon(recorder);
    if (top)
        um_top_abandon(top);
    if (executor)
        executor->ops->abandon(executor);
    if (share)
        um_share_abandon(share);
    if (backend && backend->abandon)
        backend->abandon();
}

static void start_once(const um_config_t *config)
{
    atomic_store(&starter, thread_id());
    atomic_store(&phase, STARTING);
    pthread_atfork(NULL, NULL, in_child);
    bring_up(config);
    atexit(um_runtime_shutdown);
    if ((!leave_note(UM_NOTE_START, reason) || config->log) && *reason)
        um_log(UM_LOG_WARN, "not active in this process: %s", reason);
    atomic_store(&phase, RUNNING);
}

/* The config of a program built with an older or newer header; false when its size is nobody's. */
static bool read_config(const um_config_t *given, um_config_t *out)
{
    const size_t first = offsetof(um_config_t, profile_path); /* of the first version */

    *out = (um_config_t){0};
    if (!given)
        return true;
    if (given->size < first || given->size > 4096 || given->size % sizeof(void *))
        return false;
    memcpy(out, given, given->size < sizeof(*out) ? given->size : sizeof(*out));
    return true;
}

um_status_t um_runtime_init(const um_config_t *given)
{
    um_config_t config;

    if (!read_config(given, &config))
        return UM_ERR_INVALID;
    if (atomic_load(&phase) >= RUNNING)
        return UM_OK;
    /* attach may initialise CUDA, whose driver may call InitializeInjection on this very thread. */
    if (atomic_load(&phase) == STARTING && atomic_load(&starter) == thread_id())
        return UM_OK;
    pthread_mutex_lock(&lock);
    if (atomic_load(&phase) == ASLEEP)
        start_once(&config);
    pthread_mutex_unlock(&lock);
    return UM_OK;
}

int InitializeInjection(void)
{
    /* Called inside cuInit: never wait here for a starter, which may itself be waiting for cuInit. */
    if (atomic_load(&phase) == ASLEEP && pthread_mutex_trylock(&lock) == 0) {
        if (atomic_load(&phase) == ASLEEP)
            start_once(&(um_config_t){0});
        pthread_mutex_unlock(&lock);
    }
    return 1;
}

/* ---- end ---- */

static void summarise(char *line, size_t bytes)
{
    um_summary_t summary = {.state = state, .reason = reason};
    um_hinter_stats_t hints;

    um_runtime_stats(&summary.stats);
    if (recorder)
        summary.trace_path = um_recorder_path(recorder);
    if (hinter) {
        um_hinter_stats(hinter, &hints);
        summary.hinted_launches = hints.hinted_launches;
        summary.declined = hints.declined;
        summary.processes = hints.gate.processes;
        summary.guard = hints.guard;
        summary.reason = hints.no_hints ? hints.no_hints : reason;
    }
    um_summary_line(&summary, line, bytes);
}

static void write_report(const char *line)
{
    um_outcome_t outcome = {.mode = self.settings.mode == UM_MODE_TRIAL ? "trial" : "hint",
                            .reason = reason,
                            .summary = line,
                            .hinter = hinter};

    um_runtime_stats(&outcome.stats);
    um_hinter_stats(hinter, &outcome.hints);
    if (outcome.hints.no_hints)
        outcome.reason = outcome.hints.no_hints;
    if (learning) {
        outcome.profile = um_learning_path(learning);
        outcome.told = um_learning_told(learning);
    }
    if (um_outcome_write(&outcome, report) != UM_OK)
        um_log(UM_LOG_WARN, "the report '%.200s' is not written: %s", report, strerror(errno));
}

/* The bus has stopped: nothing changes any more. */
static void keep(const char *line)
{
    if (learning)
        um_learning_save(learning, hinter, NULL);
    if (report)
        write_report(line);
}

void um_runtime_shutdown(void)
{
    char line[512], said[sizeof(line) + 8];
    bool stopped = false;

    if (atomic_load(&phase) != RUNNING)
        return;
    pthread_mutex_lock(&lock);
    if (atomic_load(&phase) == RUNNING) {
        if (state != UM_RUNTIME_INERT) {
            atomic_store(&self.hinting, false);
            atomic_store(&self.waiting, false);
            if (backend->detach)
                backend->detach();
            if (executor)
                executor->ops->stop(executor);
            stopped = um_bus_stop(self.bus);
            if (!stopped)
                um_log(UM_LOG_WARN, "gave up waiting for what was under way at the end");
            else if (recorder)
                um_recorder_close(recorder);
        }
        summarise(line, sizeof(line));
        if (stopped && top)
            um_top_end(top);
        if (stopped)
            keep(line);
        if (!leave_note(UM_NOTE_END, line) && self.settings.summary && state != UM_RUNTIME_INERT)
            um_log_write(said, (size_t)snprintf(said, sizeof(said), "umrt: %s\n", line));
        atomic_store(&phase, STOPPED);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- doors for the backend, and for calls.c ---- */

void um_runtime_region_going(um_runtime_t *runtime, uint64_t addr)
{
    (void)runtime;
    if (hinter && atomic_load(&phase) == RUNNING)
        um_hinter_region_going(hinter, addr, now_ns());
}

void um_runtime_context_going(um_runtime_t *runtime, uint32_t context)
{
    (void)runtime;
    if (hinter && atomic_load(&phase) == RUNNING)
        um_hinter_context_going(hinter, context, now_ns());
}

void um_runtime_catch_up(um_runtime_t *runtime, uint32_t context)
{
    if (atomic_load(&phase) != RUNNING || !executor || !executor->ops->catch_up)
        return;
    if (um_bus_sync_for(runtime->bus, CATCH_UP_MS))
        executor->ops->catch_up(executor, context);
}

um_status_t um_runtime_running(um_runtime_t **out)
{
    phase_t now = atomic_load(&phase);

    *out = now == RUNNING && state != UM_RUNTIME_INERT ? &self : NULL;
    return now < RUNNING ? UM_ERR_STATE : UM_OK;
}

void um_runtime_discover(uint64_t addr)
{
    if (backend->discover)
        backend->discover(addr);
}

/* ---- what is asked of it ---- */

void um_runtime_info(um_runtime_info_t *out)
{
    um_hinter_stats_t hints = {0};

    *out = (um_runtime_info_t){.state = UM_RUNTIME_NONE};
    switch (atomic_load(&phase)) {
    case ASLEEP:
    case STARTING:
        break;
    case RUNNING:
        out->state = state;
        memcpy(out->reason, reason, sizeof(reason));
        if (hinter)
            um_hinter_stats(hinter, &hints);
        if (hints.no_hints) {
            out->state = UM_RUNTIME_OBSERVE;
            snprintf(out->reason, sizeof(out->reason), "%s", hints.no_hints);
        }
        break;
    case STOPPED:
        out->state = UM_RUNTIME_INERT;
        strcpy(out->reason, "shut down");
        break;
    case FORKED:
        out->state = UM_RUNTIME_INERT;
        strcpy(out->reason, "child of a fork");
        break;
    }
}

static void add_hints(um_runtime_stats_t *out)
{
    um_hinter_stats_t hints;

    um_hinter_stats(hinter, &hints);
    out->hints_proposed = hints.gate.proposed;
    out->hints_admitted = hints.gate.admitted;
    out->hints_applied = hints.gate.applied;
    out->hints_failed = hints.gate.failed;
    out->hints_cancelled = hints.gate.cancelled;
    out->prefetched_bytes = hints.gate.applied_bytes;
    memcpy(out->hints_refused, hints.gate.refused, sizeof(out->hints_refused));
}

um_status_t um_runtime_stats(um_runtime_stats_t *out)
{
    um_trace_write_stats_t trace;
    phase_t now = atomic_load(&phase);

    if (now != RUNNING && now != STOPPED)
        return UM_ERR_STATE;
    *out = (um_runtime_stats_t){0};
    if (state == UM_RUNTIME_INERT)
        return UM_OK;
    out->launches = atomic_load_explicit(&self.launches, memory_order_relaxed);
    out->launches_managed = atomic_load_explicit(&self.launches_managed, memory_order_relaxed);
    out->regions_live = um_regions_count(self.regions, UM_FAMILY_UNKNOWN);
    out->regions_managed_live = um_regions_count(self.regions, UM_FAMILY_MANAGED);
    out->events = um_bus_posted(self.bus);
    out->events_lost = um_bus_lost(self.bus);
    if (recorder) {
        um_recorder_stats(recorder, &trace);
        out->events = trace.events;
        out->trace_bytes = trace.bytes;
        out->events_lost += trace.dropped;
    }
    if (hinter)
        add_hints(out);
    return UM_OK;
}

um_status_t um_sync_profile(void)
{
    um_runtime_t *runtime;
    um_status_t status = um_runtime_running(&runtime);

    if (!runtime)
        return status;
    return learning ? um_learning_save(learning, hinter, self.bus) : UM_ERR_STATE;
}

um_status_t um_machine_probe(um_event_fn fn, void *ctx)
{
    const um_backend_t *machine = backend ? backend : um_backend();
    um_event_t event = {.type = UM_EV_FACT, .time_ns = now_ns()};
    um_settings_t settings;

    um_trace_host_facts(event.time_ns, fn, ctx);
    if (um_settings_load(&settings) == UM_OK) {
        um_settings_each(&settings, fn, ctx);
        um_settings_free(&settings);
    }
    if (machine->probe)
        machine->probe(fn, ctx);
    event.u.fact.key = "can.read";
    event.u.fact.value = "yes";
    fn(ctx, &event);
    return UM_OK;
}
