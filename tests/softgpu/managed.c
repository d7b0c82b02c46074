/*
 * managed.c - managed memory: ordinary host memory whose every first touch by the CPU is seen.
 *
 * A region is a memfd that is mapped twice: for the program, registered with userfaultfd, and for us. What
 * the CPU maps of the program's mapping is at any time what the driver's rules (lib/sim/uvm.h) say that it
 * maps: pages that leave are dropped from the page tables (MADV_DONTNEED; the bytes stay in the memfd), so
 * that the next touch is a minor fault, which the thread here answers after asking the rules. Duplicates
 * of ReadMostly pages are mapped write-protected. So /proc/self/pagemap tells what it tells with the real
 * driver. A child of fork has no managed memory, as with the real one.
 *
 * sg_uvm_lock guards everything here. Nothing of the program's memory is touched with it held.
 */
#include "managed.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef UFFDIO_CONTINUE_MODE_WP /* Linux 6.4 */
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1)
#endif

pthread_mutex_t sg_uvm_lock = PTHREAD_MUTEX_INITIALIZER;
um_uvm_t *sg_uvm;
static managed_t *all;
static uint32_t n_regions;
static bool wholesale; /* what moves moves as a whole, at a launch: of no cause that CUPTI names */

/* What is being served: the records of its events carry these. */
static struct {
    uint64_t start, pc;
    uint64_t block[64]; /* touched by it, to bring the mappings up to date */
    unsigned n_blocks;
    bool everything; /* more than that */
} now_serving;

/* ---- what the rules tell ----------------------------------------------------------------------------- */

/* Every record as it is made, for $SOFTGPU_RECORDS: what a trace must hold. */
static void write_down(const sg_record_t *r)
{
    static _Atomic int file = -2;
    char line[160];

    if (file == -2) {
        const char *path = sg_setting("RECORDS", NULL);
        file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    }
    if (file < 0)
        return;
    const char *form = r->kind == 3 ? "%u 0x%llx 0x%llx %d %d %u\n" : "%u 0x%llx %llu %d %d %u\n";
    int n = r->kind ? snprintf(line, sizeof(line), form, r->kind, (unsigned long long)r->address,
                               (unsigned long long)r->value, (int)r->src, (int)r->dst, r->flags)
                    : snprintf(line, sizeof(line), "0 %s %u %u %u\n", r->name, r->device,
                               r->grid[0], r->block[0]);
    if (write(file, line, (size_t)n) < 0)
        return;
}

void sg_record(sg_record_t *record)
{
    static const char *const keys[] = {"kernels",    "bytes_to_device", "bytes_to_host",
                                       "cpu_faults", "gpu_faults",      "thrashes",
                                       "throttles",  "remote_bytes",    "bytes_peer"};
    bool sum = record->kind == 1 || record->kind == 2 || record->kind >= 7;

    sg_log(keys[record->kind], sum ? record->value : 1);
    write_down(record);
    if (sg_client)
        sg_client->record(record);
}

static uint32_t processor(int32_t device)
{
    return device == UM_DEVICE_HOST ? UINT32_MAX : (uint32_t)device;
}

static void widen(uint64_t addr, uint64_t bytes)
{
    for (uint64_t at = addr / BLOCK * BLOCK; at < addr + bytes && !now_serving.everything;
         at += BLOCK) {
        unsigned i = 0;
        while (i < now_serving.n_blocks && now_serving.block[i] != at)
            i++;
        if (i == 64)
            now_serving.everything = true;
        else if (i == now_serving.n_blocks)
            now_serving.block[now_serving.n_blocks++] = at;
    }
}

managed_t *sg_managed_find(uint64_t addr)
{
    for (managed_t *m = all; m; m = m->next)
        if (addr >= m->addr && addr - m->addr < m->bytes)
            return m;
    return NULL;
}

static void refresh(managed_t *m, uint64_t addr, uint64_t bytes);

static void told(void *ctx, const um_event_t *event)
{
    sg_record_t r = {.start = now_serving.start, .end = sg_now_ns()};

    (void)ctx;
    switch (event->type) {
    case UM_EV_MIGRATE: {
        const um_ev_migrate_t *e = &event->u.migrate;
        r.kind = e->src == UM_DEVICE_HOST ? 1 : e->dst == UM_DEVICE_HOST ? 2 : 8;
        r.address = e->addr;
        r.value = e->bytes;
        r.src = processor(e->src);
        r.dst = processor(e->dst);
        r.flags = wholesale ? 0 : e->cause;
        widen(e->addr, e->bytes);
        break;
    }
    case UM_EV_CPU_FAULT:
        r.kind = 3;
        r.address = event->u.cpu_fault.addr;
        r.value = now_serving.pc;
        r.src = UINT32_MAX;
        r.flags = event->u.cpu_fault.access;
        break;
    case UM_EV_GPU_FAULT:
        r.kind = 4;
        r.address = event->u.gpu_fault.addr;
        r.value = event->u.gpu_fault.groups ? event->u.gpu_fault.groups : 1;
        r.src = processor(event->u.gpu_fault.device);
        r.flags = event->u.gpu_fault.access;
        break;
    case UM_EV_THRASH:
        r.kind = 5;
        r.address = event->u.thrash.addr;
        r.value = event->u.thrash.bytes;
        r.processors = event->u.thrash.processors & ~(1ull << 63);
        r.src = (uint32_t)r.processors;
        break;
    case UM_EV_THROTTLE:
        r.kind = 6;
        r.address = event->u.throttle.addr;
        r.src = processor(event->u.throttle.device);
        r.end = r.start + event->u.throttle.duration_ns;
        break;
    case UM_EV_REMOTE_MAP:
        r.kind = 7;
        r.address = event->u.remote_map.addr;
        r.value = event->u.remote_map.bytes;
        r.src = processor(event->u.remote_map.src);
        r.dst = processor(event->u.remote_map.dst);
        r.flags = event->u.remote_map.cause;
        widen(event->u.remote_map.addr, event->u.remote_map.bytes);
        break;
    default:
        return;
    }
    sg_record(&r);
}

uint64_t sg_serve(uint64_t addr, uint64_t bytes, uint64_t pc)
{
    now_serving.start = sg_now_ns();
    now_serving.pc = pc;
    now_serving.n_blocks = 0;
    now_serving.everything = false;
    widen(addr, bytes);
    return now_serving.start;
}

void sg_served(void)
{
    for (managed_t *m = all; m && now_serving.everything; m = m->next)
        refresh(m, m->addr, m->bytes);
    for (unsigned i = 0; i < now_serving.n_blocks && !now_serving.everything; i++) {
        managed_t *m = sg_managed_find(now_serving.block[i]);
        if (m)
            refresh(m, now_serving.block[i], BLOCK);
    }
}

/* ---- the program's mapping follows ----------------------------------------------------------------------- */

void sg_managed_map(const managed_t *m, uint64_t page, bool protect)
{
    uint64_t addr = m->addr + page * PAGE;
    struct uffdio_continue ask = {.range = {addr, PAGE}, .mode = UFFDIO_CONTINUE_MODE_DONTWAKE};

    if (m->mapped[page] == 2 || (m->mapped[page] == 1 && protect)) {
        struct uffdio_writeprotect change = {.range = {addr, PAGE},
                                             .mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP
                                                             : UFFDIO_WRITEPROTECT_MODE_DONTWAKE};
        ioctl(sg_fault_fd, UFFDIO_WRITEPROTECT, &change);
    } else {
        (void)*(volatile char *)(m->data + page * PAGE); /* in the page cache from now on */
        if (protect)
            ask.mode |= UFFDIO_CONTINUE_MODE_WP;
        ioctl(sg_fault_fd, UFFDIO_CONTINUE, &ask);
    }
    m->mapped[page] = protect ? 2 : 1;
}

static void unmap(const managed_t *m, uint64_t first, uint64_t last)
{
    uint64_t from = first;

    while (from < last) {
        while (from < last && !m->mapped[from])
            from++;
        uint64_t to = from;
        while (to < last && m->mapped[to])
            m->mapped[to++] = 0;
        if (to > from)
            madvise((void *)(uintptr_t)(m->addr + from * PAGE), (to - from) * PAGE, MADV_DONTNEED);
        from = to;
    }
}

/* Makes the page tables of the blocks that [addr, addr+bytes) touches say what the rules say. */
static void refresh(managed_t *m, uint64_t addr, uint64_t bytes)
{
    um_extent_t extent[UM_BLOCK_BYTES / UM_PAGE_BYTES];
    uint64_t low = addr / BLOCK * BLOCK, high = (addr + bytes + BLOCK - 1) / BLOCK * BLOCK;

    if (low < m->addr)
        low = m->addr;
    if (high > m->addr + m->bytes)
        high = m->addr + m->bytes;
    for (uint64_t block = low; block < high; block += BLOCK) {
        uint64_t end = block + BLOCK < high ? block + BLOCK : high;
        uint64_t page = (block - m->addr) / PAGE;
        size_t n = um_uvm_host_mapped(sg_uvm, block, end - block, extent,
                                      sizeof(extent) / sizeof(*extent));
        for (size_t i = 0; i < n; i++) {
            uint64_t first = (extent[i].addr - m->addr) / PAGE;
            uint64_t last = first + extent[i].bytes / PAGE;
            unmap(m, page, first);
            for (page = first; page < last; page++) {
                bool protect = m->read_mostly &&
                               um_uvm_would_fault(sg_uvm, UM_DEVICE_HOST, m->addr + page * PAGE,
                                                  PAGE, UM_ACCESS_WRITE);
                if (!m->mapped[page] || (m->mapped[page] == 2) != protect)
                    sg_managed_map(m, page, protect);
            }
        }
        unmap(m, page, (end - m->addr) / PAGE);
    }
}

/* Until the rules let it be: one that is throttled has waited its time. */
void sg_serve_touch(int32_t who, uint64_t addr, uint64_t bytes, um_access_kind_t kind)
{
    uint64_t slept = 0;

    for (int tries = 0; tries < 1000; tries++) {
        um_uvm_work_t work = {0};
        if (um_uvm_touch(sg_uvm, who, addr, bytes, kind, now_serving.start + slept, &work) !=
                UM_OK ||
            !work.throttles)
            return;
        slept += work.nap_ns ? work.nap_ns : 1000;
    }
}

/* ---- coming and going ------------------------------------------------------------------------------------------ */

static bool start(void)
{
    um_uvm_config_t config = {.n_gpus = (uint32_t)sg_gpus(),
                              .peers = sg_setting_number("PEERS", 1) != 0,
                              .event = told};

    if (sg_uvm)
        return true;
    if (!sg_managed_watch())
        return false;
    um_uvm_params_default(&config.params);
    for (int i = 0; i < sg_gpus(); i++)
        config.capacity_bytes[i] = sg_gpu_bytes(i) - sg_gpu_used(i);
    return um_uvm_new(&config, &sg_uvm) == UM_OK;
}

static bool map_twice(managed_t *m)
{
    int fd = memfd_create("managed", MFD_CLOEXEC);
    char *around =
        mmap(NULL, m->bytes + BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (fd < 0 || around == MAP_FAILED || ftruncate(fd, (off_t)m->bytes) != 0)
        return false;
    m->around = around;
    m->addr = ((uintptr_t)around + BLOCK - 1) / BLOCK * BLOCK;
    void *program = mmap((void *)(uintptr_t)m->addr, m->bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, fd, 0);
    m->data = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    struct uffdio_register watch_it = {.range = {m->addr, m->bytes},
                                       .mode = UFFDIO_REGISTER_MODE_MISSING |
                                               UFFDIO_REGISTER_MODE_MINOR |
                                               UFFDIO_REGISTER_MODE_WP};
    return program != MAP_FAILED && m->data != MAP_FAILED &&
           madvise(program, m->bytes, MADV_DONTFORK) == 0 &&
           madvise(m->data, m->bytes, MADV_DONTFORK) == 0 &&
           ioctl(sg_fault_fd, UFFDIO_REGISTER, &watch_it) == 0;
}

/* Without faults nothing can be evicted: all of it has to fit. Under the lock. */
static bool fits(uint64_t bytes)
{
    for (const managed_t *m = all; m; m = m->next)
        bytes += m->bytes;
    return sg_concurrent(0) || bytes <= sg_gpu_bytes(0);
}

CUresult sg_managed_new(sg_memory_t *memory)
{
    managed_t *m = calloc(1, sizeof(*m));
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;

    m->bytes = (memory->bytes + PAGE - 1) / PAGE * PAGE;
    m->mapped = calloc(m->bytes / PAGE, 1);
    m->asked = calloc(m->bytes / PAGE, sizeof(*m->asked));
    for (uint64_t i = 0; i < m->bytes / PAGE; i++)
        m->asked[i].preferred = m->asked[i].prefetched = CU_DEVICE_INVALID;
    pthread_mutex_lock(&sg_uvm_lock);
    if (!fits(m->bytes)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (sg_setting_number("MANAGED", 1) && start() && map_twice(m)) {
        m->region = ++n_regions;
        result = um_uvm_alloc(sg_uvm, m->region, m->addr, m->bytes) == UM_OK
                     ? CUDA_SUCCESS
                     : CUDA_ERROR_OUT_OF_MEMORY;
        m->next = all;
        all = m;
        sg_log("managed_bytes", memory->bytes);
    }
    pthread_mutex_unlock(&sg_uvm_lock);
    memory->addr = m->addr;
    memory->data = m->data;
    memory->managed = m;
    return result;
}

void sg_managed_free(sg_memory_t *memory)
{
    managed_t *m = memory->managed;

    pthread_mutex_lock(&sg_uvm_lock);
    um_uvm_release(sg_uvm, m->region);
    for (managed_t **at = &all; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    munmap(m->around, m->bytes + BLOCK);
    munmap(m->data, m->bytes);
    pthread_mutex_unlock(&sg_uvm_lock);
    free(m->mapped);
    free(m->asked);
    free(m);
}

uint64_t sg_managed_resident(int device)
{
    uint64_t bytes = 0;

    pthread_mutex_lock(&sg_uvm_lock);
    if (sg_uvm)
        bytes = um_uvm_resident_bytes(sg_uvm, device);
    pthread_mutex_unlock(&sg_uvm_lock);
    return bytes;
}

/* As a sweep's faults come: a batch holds some 30 pages of a block, and the tree prefetcher brings the rest. */
#define BATCH (32 * PAGE)
void sg_managed_touch(const sg_memory_t *memory, int device, uint64_t addr, uint64_t bytes,
                      bool write)
{
    uint64_t end = (addr + bytes + PAGE - 1) / PAGE * PAGE;
    um_access_kind_t kind = write ? UM_ACCESS_WRITE : UM_ACCESS_READ;

    (void)memory;
    for (uint64_t at = addr / PAGE * PAGE, next; at < end; at = next) {
        next = (at / BATCH + 1) * BATCH < end ? (at / BATCH + 1) * BATCH : end;
        pthread_mutex_lock(&sg_uvm_lock);
        if (um_uvm_would_fault(sg_uvm, device, at, next - at, kind)) {
            sg_serve(at, next - at, 0);
            sg_serve_touch(device, at, next - at, kind);
            sg_served();
        }
        pthread_mutex_unlock(&sg_uvm_lock);
    }
}

/* ---- without concurrent access -------------------------------------------------------------------------- */

/*
 * A GPU that cannot fault gets all managed memory at a launch, and the CPU none until the program has waited
 * for it: a touch before that is SIGSEGV.
 */
static unsigned at_work; /* kernels launched and not done */
static bool kept_from_cpu;

void sg_managed_launch(int device)
{
    um_uvm_work_t work = {0};

    if (sg_concurrent(device))
        return;
    pthread_mutex_lock(&sg_uvm_lock);
    at_work++;
    kept_from_cpu = true;
    wholesale = true;
    for (managed_t *m = all; m; m = m->next) {
        uint64_t now = sg_serve(m->addr, m->bytes, 0);
        um_uvm_prefetch(sg_uvm, device, m->addr, m->bytes, now, &work);
        sg_served();
        mprotect((void *)(uintptr_t)m->addr, m->bytes, PROT_NONE);
    }
    wholesale = false;
    pthread_mutex_unlock(&sg_uvm_lock);
}

void sg_managed_done(int device)
{
    if (sg_concurrent(device))
        return;
    pthread_mutex_lock(&sg_uvm_lock);
    at_work--;
    pthread_mutex_unlock(&sg_uvm_lock);
}

void sg_managed_waited(void)
{
    pthread_mutex_lock(&sg_uvm_lock);
    for (managed_t *m = all; m && kept_from_cpu && !at_work; m = m->next)
        mprotect((void *)(uintptr_t)m->addr, m->bytes, PROT_READ | PROT_WRITE);
    kept_from_cpu = kept_from_cpu && at_work;
    pthread_mutex_unlock(&sg_uvm_lock);
}
