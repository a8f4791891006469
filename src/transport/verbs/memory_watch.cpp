#include "transport/verbs/memory_watch.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/thread.h"
#include "mpi.h"

// A flag of userfaultfd() since Linux 5.11, which some libc headers lack.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace starling::verbs {

std::unique_ptr<MemoryWatch> MemoryWatch::start() {
    const auto refuse = [](const char* what) {
        fail(MPI_ERR_OTHER, "%s: %s", what, std::strerror(errno));
        return nullptr;
    };
    const auto fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
    if (fd < 0) return refuse("userfaultfd");
    uffdio_api api{};
    api.api = UFFD_API;
    api.features =
        UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
    const int end = ioctl(fd, UFFDIO_API, &api) == 0 ? eventfd(0, EFD_CLOEXEC) : -1;
    if (end < 0) {
        refuse("userfaultfd does not report changes of mappings");
        close(fd);
        return nullptr;
    }
    std::unique_ptr<MemoryWatch> made(new MemoryWatch(fd, end));
    errno = start_thread(made->thread_, run, made.get());
    if (errno != 0) {
        made->thread_ = 0;
        return refuse("cannot create a thread");
    }
    return made;
}

MemoryWatch::~MemoryWatch() {
    if (thread_ != 0) {
        const uint64_t one = 1;
        (void)!write(end_, &one, sizeof one);
        pthread_join(thread_, nullptr);
    }
    close(fd_);  // closing the descriptor also ends all watches
    close(end_);
}

void* MemoryWatch::run(void* self) {
    MemoryWatch& me = *static_cast<MemoryWatch*>(self);
    pollfd of[] = {{me.fd_, POLLIN, 0}, {me.end_, POLLIN, 0}};
    while (poll(of, 2, -1) >= 0 || errno == EINTR) {
        if (of[1].revents) break;
        {
            const std::lock_guard lock(me.mutex_);
            me.read_events();
        }
        me.give_way();
    }
    return nullptr;
}

/// Reads and notes the pending events under the lock. The thread that made a change continues as soon as its event is read. take() needs
/// the same lock, so it never misses a change whose system call has returned. Threads that unmap memory all the time could otherwise keep
/// the lock taken, so the number of events is limited.
void MemoryWatch::read_events() {
    uffd_msg message;
    for (int i = 0; i < kMostAtOnce && read(fd_, &message, sizeof message) == sizeof message; ++i) {
        switch (message.event) {
            case UFFD_EVENT_REMOVE:
            case UFFD_EVENT_UNMAP:
                note(message.arg.remove.start, message.arg.remove.end);
                break;
            case UFFD_EVENT_REMAP:
                // The watch moves along with the mapping. Report both ranges as changed: the memory at the new address was never
                // registered.
                note(message.arg.remap.from, message.arg.remap.from + message.arg.remap.len);
                note(message.arg.remap.to, message.arg.remap.to + message.arg.remap.len);
                break;
            default:
                break;
        }
    }
}

/// Waits for the next take() if one has begun: a mutex alone would let this thread, which is running, lock it again and again.
void MemoryWatch::give_way() {
    const uint32_t ended = takes_ended_.load();
    if (takes_begun_.load() == ended) return;
    gives_way_.store(true);
    syscall(SYS_futex, &takes_ended_, FUTEX_WAIT_PRIVATE, ended, nullptr, nullptr,
            0);  // returns at once if a call has ended since
    gives_way_.store(false);
}

void MemoryWatch::note(uint64_t begin, uint64_t end) {
    if (count_ == kMost)
        too_many_ = true;
    else
        changed_[count_++] = {begin, end};
}

bool MemoryWatch::watch(const PageRange& memory) {
    uffdio_register wanted{};
    wanted.range = {memory.begin, memory.end - memory.begin};
    wanted.mode = UFFDIO_REGISTER_MODE_WP;  // write protection is never enabled: the memory is registered only to get events
    return ioctl(fd_, UFFDIO_REGISTER, &wanted) == 0;
}

void MemoryWatch::unwatch(const PageRange& memory) {
    uffdio_range range{memory.begin, memory.end - memory.begin};
    (void)ioctl(fd_, UFFDIO_UNREGISTER, &range);
}

bool MemoryWatch::is_own(const PageRange& memory) const {
    constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62, kFile = uint64_t{1} << 61;
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    uint64_t entries[512];
    bool own = true;
    for (uint64_t at = memory.begin; own && at < memory.end;) {
        const uint64_t count = std::min<uint64_t>((memory.end - at) / page, std::size(entries));
        const auto bytes = static_cast<ssize_t>(count * sizeof *entries);
        own = pread(fd, entries, static_cast<size_t>(bytes), static_cast<off_t>(at / page * sizeof *entries)) == bytes;
        for (uint64_t i = 0; own && i < count; ++i) own = (entries[i] & (kPresent | kSwapped | kFile)) == kPresent;
        at += count * page;
    }
    close(fd);
    return own;
}

int MemoryWatch::take(PageRange (&changed)[kMost], bool& settled) {
    takes_begun_.fetch_add(1);
    const int count = take_locked(changed, settled);
    takes_ended_.fetch_add(1);
    if (gives_way_.load()) syscall(SYS_futex, &takes_ended_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    return count;
}

int MemoryWatch::take_locked(PageRange (&changed)[kMost], bool& settled) {
    const std::lock_guard lock(mutex_);
    // The kernel rejects this copy of zero bytes as invalid. While a change is in progress it returns EAGAIN before it validates the
    // arguments.
    uffdio_copy nothing{};
    settled = ioctl(fd_, UFFDIO_COPY, &nothing) != 0 && errno != EAGAIN;
    const int count = too_many_ ? -1 : count_;
    std::copy_n(changed_, count_, changed);
    count_ = 0;
    too_many_ = false;
    return count;
}

}  // namespace starling::verbs
