/*
 * watch.c - the CPU's page faults on managed memory: a thread is told of each by userfaultfd, asks the rules, and lets
 * the faulting thread go on.
 */
#include "managed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int sg_fault_fd = -1;

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
    pthread_mutex_lock(&sg_uvm_lock);
    managed_t *m = sg_managed_find(addr);
    if (m) {
        sg_serve(addr, PAGE, pc);
        sg_serve_touch(UM_DEVICE_HOST, addr, PAGE, write ? UM_ACCESS_WRITE : UM_ACCESS_READ);
        sg_served();
        if (!m->mapped[(addr - m->addr) /
                       PAGE]) /* the rules keep it elsewhere: a mapping over the link */
            sg_managed_map(m, (addr - m->addr) / PAGE, false);
    }
    pthread_mutex_unlock(&sg_uvm_lock);
    struct uffdio_range wake = {addr, PAGE};
    ioctl(sg_fault_fd, UFFDIO_WAKE, &wake);
}

static void *watch(void *ctx)
{
    struct pollfd ask = {.fd = sg_fault_fd, .events = POLLIN};
    struct uffd_msg message;

    (void)ctx;
    for (;;) {
        if (poll(&ask, 1, -1) < 0 && errno != EINTR)
            return NULL;
        while (read(sg_fault_fd, &message, sizeof(message)) == sizeof(message))
            if (message.event == UFFD_EVENT_PAGEFAULT)
                cpu_fault(message.arg.pagefault.address, message.arg.pagefault.flags,
                          message.arg.pagefault.feat.ptid);
    }
}

bool sg_managed_watch(void)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM |
                                         UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
                                         UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
    pthread_t thread;
    sigset_t blocked, before;

    if (sg_fault_fd >= 0)
        return true;
    sg_fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (sg_fault_fd < 0) {
        int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        if (device >= 0) {
            sg_fault_fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
            close(device);
        }
    }
    if (sg_fault_fd < 0 || ioctl(sg_fault_fd, UFFDIO_API, &api) != 0)
        return false;
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool started = pthread_create(&thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
