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
 * uvm_lock guards everything here. Nothing of the program's memory is touched with it held.
 */
#include "softgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/sim/uvm.h"

#ifndef UFFDIO_CONTINUE_MODE_WP /* Linux 6.4 */
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1)
#endif

#define PAGE  ((uint64_t)UM_PAGE_BYTES)
#define BLOCK ((uint64_t)UM_BLOCK_BYTES)

/* What was last asked for of a page; processors as CUdevices, CU_DEVICE_INVALID: none. Bit n of accessed_by is
 * GPU n, bit SG_GPUS the CPU. */
typedef struct asked {
    int preferred, prefetched;
    unsigned accessed_by;
    bool read_mostly;
} asked_t;

typedef struct managed {
    struct managed *next;
    uint64_t addr, bytes; /* whole pages */
    char *data;
    uint32_t region;
    bool read_mostly; /* ever advised so: mappings may have to be write-protected */
    asked_t *asked;   /* of each page */
    uint8_t *mapped;  /* of each page: 0 not, 1 mapped, 2 write-protected */
} managed_t;

static pthread_mutex_t uvm_lock = PTHREAD_MUTEX_INITIALIZER;
static um_uvm_t *uvm;
static managed_t *all;
static uint32_t n_regions;
static int fault_fd = -1;

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

static managed_t *find(uint64_t addr)
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
        r.flags = e->cause;
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

static void serve(uint64_t addr, uint64_t bytes, uint64_t pc)
{
    now_serving.start = sg_now_ns();
    now_serving.pc = pc;
    now_serving.n_blocks = 0;
    now_serving.everything = false;
    widen(addr, bytes);
}

static void served(void)
{
    for (managed_t *m = all; m && now_serving.everything; m = m->next)
        refresh(m, m->addr, m->bytes);
    for (unsigned i = 0; i < now_serving.n_blocks && !now_serving.everything; i++) {
        managed_t *m = find(now_serving.block[i]);
        if (m)
            refresh(m, now_serving.block[i], BLOCK);
    }
}

/* ---- the program's mapping follows ----------------------------------------------------------------------- */

static void map(const managed_t *m, uint64_t page, bool protect)
{
    uint64_t addr = m->addr + page * PAGE;
    struct uffdio_continue ask = {.range = {addr, PAGE}, .mode = UFFDIO_CONTINUE_MODE_DONTWAKE};

    if (m->mapped[page] == 2 || (m->mapped[page] == 1 && protect)) {
        struct uffdio_writeprotect change = {.range = {addr, PAGE},
                                             .mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP
                                                             : UFFDIO_WRITEPROTECT_MODE_DONTWAKE};
        ioctl(fault_fd, UFFDIO_WRITEPROTECT, &change);
    } else {
        (void)*(volatile char *)(m->data + page * PAGE); /* in the page cache from now on */
        if (protect)
            ask.mode |= UFFDIO_CONTINUE_MODE_WP;
        ioctl(fault_fd, UFFDIO_CONTINUE, &ask);
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
        size_t n =
            um_uvm_host_mapped(uvm, block, end - block, extent, sizeof(extent) / sizeof(*extent));
        for (size_t i = 0; i < n; i++) {
            uint64_t first = (extent[i].addr - m->addr) / PAGE;
            uint64_t last = first + extent[i].bytes / PAGE;
            unmap(m, page, first);
            for (page = first; page < last; page++) {
                bool protect =
                    m->read_mostly && um_uvm_would_fault(uvm, UM_DEVICE_HOST, m->addr + page * PAGE,
                                                         PAGE, UM_ACCESS_WRITE);
                if (!m->mapped[page] || (m->mapped[page] == 2) != protect)
                    map(m, page, protect);
            }
        }
        unmap(m, page, (end - m->addr) / PAGE);
    }
}

/* Until the rules let it be: one that is throttled has waited its time. */
static void touch(int32_t who, uint64_t addr, uint64_t bytes, um_access_kind_t kind)
{
    uint64_t slept = 0;

    for (int tries = 0; tries < 1000; tries++) {
        um_uvm_work_t work = {0};
        if (um_uvm_touch(uvm, who, addr, bytes, kind, now_serving.start + slept, &work) != UM_OK ||
            !work.throttles)
            return;
        slept += work.nap_ns ? work.nap_ns : 1000;
    }
}

/* ---- CPU faults --------------------------------------------------------------------------------------------- */

/* The instruction that a thread waits at in a fault: field three of "-1 SP PC", or of a system call's line
 * the last. */
static uint64_t pc_of(uint32_t thread)
{
    char path[64], text[256] = "";
    unsigned long long pc = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    char *last = n > 0 ? strrchr(text, ' ') : NULL;
    if (last)
        sscanf(last, "%llx", &pc);
    return pc;
}

static void cpu_fault(uint64_t addr, uint64_t flags, uint32_t thread)
{
    bool write = flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP);
    uint64_t pc = pc_of(thread);

    addr = addr / PAGE * PAGE;
    pthread_mutex_lock(&uvm_lock);
    managed_t *m = find(addr);
    if (m) {
        serve(addr, PAGE, pc);
        touch(UM_DEVICE_HOST, addr, PAGE, write ? UM_ACCESS_WRITE : UM_ACCESS_READ);
        served();
        if (!m->mapped[(addr - m->addr) /
                       PAGE]) /* the rules keep it elsewhere: a mapping over the link */
            map(m, (addr - m->addr) / PAGE, false);
    }
    pthread_mutex_unlock(&uvm_lock);
    struct uffdio_range wake = {addr, PAGE};
    ioctl(fault_fd, UFFDIO_WAKE, &wake);
}

static void *watch(void *ctx)
{
    struct pollfd ask = {.fd = fault_fd, .events = POLLIN};
    struct uffd_msg message;

    (void)ctx;
    for (;;) {
        if (poll(&ask, 1, -1) < 0 && errno != EINTR)
            return NULL;
        while (read(fault_fd, &message, sizeof(message)) == sizeof(message))
            if (message.event == UFFD_EVENT_PAGEFAULT)
                cpu_fault(message.arg.pagefault.address, message.arg.pagefault.flags,
                          message.arg.pagefault.feat.ptid);
    }
}

static bool begin_watching(void)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM |
                                         UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
                                         UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
    pthread_t thread;
    sigset_t blocked, before;

    if (fault_fd >= 0)
        return true;
    fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fault_fd < 0) {
        int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        if (device >= 0) {
            fault_fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
            close(device);
        }
    }
    if (fault_fd < 0 || ioctl(fault_fd, UFFDIO_API, &api) != 0)
        return false;
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool started = pthread_create(&thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* ---- coming and going ------------------------------------------------------------------------------------------ */

static bool begin(void)
{
    um_uvm_config_t config = {.n_gpus = (uint32_t)sg_gpus(),
                              .peers = sg_setting_number("PEERS", 1) != 0,
                              .event = told};

    if (uvm)
        return true;
    if (!begin_watching())
        return false;
    um_uvm_params_default(&config.params);
    for (int i = 0; i < sg_gpus(); i++)
        config.capacity_bytes[i] = sg_gpu_bytes(i);
    return um_uvm_new(&config, &uvm) == UM_OK;
}

static bool map_twice(managed_t *m)
{
    int fd = memfd_create("managed", MFD_CLOEXEC);
    char *around =
        mmap(NULL, m->bytes + BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (fd < 0 || around == MAP_FAILED || ftruncate(fd, (off_t)m->bytes) != 0)
        return false;
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
           ioctl(fault_fd, UFFDIO_REGISTER, &watch_it) == 0;
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
    pthread_mutex_lock(&uvm_lock);
    if (begin() && map_twice(m)) {
        m->region = ++n_regions;
        result = um_uvm_alloc(uvm, m->region, m->addr, m->bytes) == UM_OK
                     ? CUDA_SUCCESS
                     : CUDA_ERROR_OUT_OF_MEMORY;
        m->next = all;
        all = m;
        sg_log("managed_bytes", memory->bytes);
    }
    pthread_mutex_unlock(&uvm_lock);
    memory->addr = m->addr;
    memory->data = m->data;
    memory->managed = m;
    return result;
}

void sg_managed_free(sg_memory_t *memory)
{
    managed_t *m = memory->managed;

    pthread_mutex_lock(&uvm_lock);
    um_uvm_release(uvm, m->region);
    for (managed_t **at = &all; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    munmap((void *)(uintptr_t)m->addr, m->bytes);
    munmap(m->data, m->bytes);
    pthread_mutex_unlock(&uvm_lock);
    free(m->mapped);
    free(m->asked);
    free(m);
}

uint64_t sg_managed_resident(int device)
{
    uint64_t bytes = 0;

    pthread_mutex_lock(&uvm_lock);
    if (uvm)
        bytes = um_uvm_resident_bytes(uvm, device);
    pthread_mutex_unlock(&uvm_lock);
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
        pthread_mutex_lock(&uvm_lock);
        if (um_uvm_would_fault(uvm, device, at, next - at, kind)) {
            serve(at, next - at, 0);
            touch(device, at, next - at, kind);
            served();
        }
        pthread_mutex_unlock(&uvm_lock);
    }
}

/* ---- hints -------------------------------------------------------------------------------------------------------- */

/* The region, if [addr, addr+bytes) is managed memory of one allocation. */
static managed_t *range(uint64_t addr, uint64_t bytes)
{
    managed_t *m = find(addr);

    return m && bytes && bytes <= m->bytes - (addr - m->addr) ? m : NULL;
}

CUresult sg_managed_prefetch(uint64_t addr, uint64_t bytes, int device)
{
    um_uvm_work_t work = {0};

    pthread_mutex_lock(&uvm_lock);
    managed_t *m = range(addr, bytes);
    if (m) {
        uint64_t first = addr / PAGE * PAGE, end = (addr + bytes + PAGE - 1) / PAGE * PAGE;
        serve(first, end - first, 0);
        um_uvm_prefetch(uvm, device, first, end - first, now_serving.start, &work);
        served();
    }
    pthread_mutex_unlock(&uvm_lock);
    return CUDA_SUCCESS;
}

static CUresult check_device(int device)
{
    if (device == CU_DEVICE_CPU)
        return CUDA_SUCCESS;
    if (device < 0 || device >= sg_gpus() || !sg_concurrent(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

static int location_device(CUmemLocation where)
{
    return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id
           : (int)where.type >= 2                    ? CU_DEVICE_CPU
                                                     : CU_DEVICE_INVALID;
}

static CUresult prefetch(CUdeviceptr addr, size_t bytes, int device, CUstream handle, bool discard,
                         bool move)
{
    sg_stream_t *stream;
    CUresult result = sg_stream_of(handle, &stream);
    sg_op_t op = {.type = SG_OP_PREFETCH, .u.prefetch = {addr, bytes, device, discard, move}};

    if (result == CUDA_SUCCESS)
        result = check_device(device);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&uvm_lock);
    managed_t *m = range(addr, bytes);
    if (m)
        for (uint64_t i = (addr - m->addr) / PAGE; i <= (addr + bytes - 1 - m->addr) / PAGE; i++)
            m->asked[i].prefetched = device;
    pthread_mutex_unlock(&uvm_lock);
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) {
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return sg_enqueue(stream, &op);
}

CUresult sg_prefetch(CUdeviceptr addr, size_t bytes, CUdevice device, CUstream stream)
{
    return prefetch(addr, bytes, device, stream, false, true);
}

CUresult sg_prefetch_v2(CUdeviceptr addr, size_t bytes, CUmemLocation where, unsigned flags,
                        CUstream stream)
{
    return flags ? CUDA_ERROR_INVALID_VALUE
                 : prefetch(addr, bytes, location_device(where), stream, false, true);
}

static CUresult batch(CUdeviceptr *addr, size_t *bytes, size_t n, CUmemLocation *where,
                      size_t *first, size_t n_where, unsigned long long flags, CUstream stream,
                      bool discard)
{
    bool move = where != NULL;

    if (flags || !n || !addr || !bytes || (move && (!first || !n_where || first[0] != 0)) ||
        !stream || stream == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0, k = 0; i < n; i++) {
        while (move && k + 1 < n_where && first[k + 1] <= i)
            k++;
        CUresult result =
            prefetch(addr[i], bytes[i], move ? location_device(where[k]) : CU_DEVICE_CPU, stream,
                     discard, move);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult sg_prefetch_batch(CUdeviceptr *addr, size_t *bytes, size_t n, CUmemLocation *where,
                           size_t *first, size_t n_where, unsigned long long flags, CUstream stream)
{
    return where ? batch(addr, bytes, n, where, first, n_where, flags, stream, false)
                 : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_discard_batch(CUdeviceptr *addr, size_t *bytes, size_t n, unsigned long long flags,
                          CUstream stream)
{
    return batch(addr, bytes, n, NULL, NULL, 0, flags, stream, true);
}

CUresult sg_discard_prefetch_batch(CUdeviceptr *addr, size_t *bytes, size_t n, CUmemLocation *where,
                                   size_t *first, size_t n_where, unsigned long long flags,
                                   CUstream stream)
{
    return where ? batch(addr, bytes, n, where, first, n_where, flags, stream, true)
                 : CUDA_ERROR_INVALID_VALUE;
}

void sg_managed_discard(uint64_t addr, uint64_t bytes)
{
    um_uvm_work_t work = {0};

    pthread_mutex_lock(&uvm_lock);
    if (range(addr, bytes)) {
        serve(addr, bytes, 0);
        um_uvm_discard(uvm, addr, bytes, &work);
        served();
    }
    pthread_mutex_unlock(&uvm_lock);
}

static void ask(asked_t *asked, CUmem_advise advice, int device)
{
    unsigned bit = 1u << (device < 0 ? SG_GPUS : device);

    if (advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY)
        asked->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
    else if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
        asked->preferred = device;
    else if (advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
        asked->preferred = CU_DEVICE_INVALID;
    else if (advice == CU_MEM_ADVISE_SET_ACCESSED_BY)
        asked->accessed_by |= bit;
    else
        asked->accessed_by &= ~bit;
}

CUresult sg_advise(CUdeviceptr addr, size_t bytes, CUmem_advise advice, CUdevice device)
{
    um_uvm_work_t work = {0};
    bool needs_device = advice != CU_MEM_ADVISE_SET_READ_MOSTLY &&
                        advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                        advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    CUresult result = needs_device ? check_device(device) : CUDA_SUCCESS;

    if (result != CUDA_SUCCESS)
        return result;
    if (advice < 1 || advice > 6)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&uvm_lock);
    managed_t *m = range(addr, bytes);
    if (m) {
        uint64_t first = addr / PAGE * PAGE, end = (addr + bytes + PAGE - 1) / PAGE * PAGE;
        m->read_mostly |= advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        for (uint64_t i = (first - m->addr) / PAGE; i < (end - m->addr) / PAGE; i++)
            ask(&m->asked[i], advice, device);
        serve(first, end - first, 0);
        /* um_hint_kind_t 2..7 are CUmem_advise 1..6. */
        um_uvm_advise(uvm, (um_hint_kind_t)(advice + 1), device, first, end - first, &work);
        served();
    }
    pthread_mutex_unlock(&uvm_lock);
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_advise_v2(CUdeviceptr addr, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
    return sg_advise(addr, bytes, advice, location_device(where));
}

/* What holds for all pages of [addr, addr+bytes): where they differ, nothing does. */
static asked_t asked_of(const managed_t *m, uint64_t addr, uint64_t bytes)
{
    uint64_t first = (addr - m->addr) / PAGE, last = (addr + bytes - 1 - m->addr) / PAGE;
    asked_t all = m->asked[first];

    for (uint64_t i = first + 1; i <= last; i++) {
        const asked_t *page = &m->asked[i];
        all.read_mostly &= page->read_mostly;
        all.accessed_by &= page->accessed_by;
        if (page->preferred != all.preferred)
            all.preferred = CU_DEVICE_INVALID;
        if (page->prefetched != all.prefetched)
            all.prefetched = CU_DEVICE_INVALID;
    }
    return all;
}

static int location_type(int device)
{
    return device >= 0 ? 1 : device == CU_DEVICE_CPU ? 2 : 0; /* CUmemLocationType */
}

/* What was asked for, not where anything is. */
CUresult sg_range_attribute(void *data, size_t data_bytes, CUmem_range_attribute attribute,
                            CUdeviceptr addr, size_t bytes)
{
    CUresult result = CUDA_SUCCESS;
    int *out = data;
    size_t n = data_bytes / sizeof(int);

    if (!data || n == 0 || data_bytes % sizeof(int) ||
        (n > 1 && attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&uvm_lock);
    managed_t *m = range(addr, bytes);
    asked_t all = m ? asked_of(m, addr, bytes) : (asked_t){0};
    if (!m)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY)
        *out = all.read_mostly;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)
        *out = all.preferred;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)
        *out = all.prefetched;
    else if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        for (int gpu = 0; gpu <= SG_GPUS && n; gpu++)
            if (all.accessed_by >> gpu & 1) {
                *out++ = gpu == SG_GPUS ? CU_DEVICE_CPU : gpu;
                n--;
            }
        while (n--)
            *out++ = CU_DEVICE_INVALID;
    } else if ((int)attribute == 5 || (int)attribute == 6) /* the type and the number of the two, */
        *out = attribute % 2 ? location_type(all.preferred) : all.preferred; /* from 12.3 on */
    else if ((int)attribute == 7 || (int)attribute == 8)
        *out = attribute % 2 ? location_type(all.prefetched) : all.prefetched;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&uvm_lock);
    return result;
}

CUresult sg_range_attributes(void **data, size_t *data_bytes, CUmem_range_attribute *attributes,
                             size_t n, CUdeviceptr addr, size_t bytes)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
        result = sg_range_attribute(data[i], data_bytes[i], attributes[i], addr, bytes);
    return result;
}
