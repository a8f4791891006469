// Detects when an address no longer refers to the memory that a device has registered there. The device keeps the pages that were there at
// registration. A program that unmaps, moves or discards memory has other pages at that address afterwards.
//
// The kernel reports such changes: memory is registered with a userfaultfd for its events only, so no access ever faults. A thread that
// unmaps, moves or discards watched memory blocks in that call until a thread of this class has read the event. So no allocation function
// needs to be intercepted and no allocator is missed. take() also reports whether all changes that have begun were read, so a lookup in the
// cache is exact. A discard (MADV_DONTNEED) that races with the send of the same memory is an error of the program on any network.
//
// Only private anonymous memory can be watched: the pages of a file change without a call in this process. At the end of a watched stretch
// the kernel splits the mapping in two, so the program's own mremap() across that border fails (realloc() copies instead). Not available
// before Linux 5.11, or where a container's seccomp profile forbids userfaultfd(2).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/counter_start.h"

namespace starling::verbs {

/// Address range [begin, end) in bytes, of whole pages.
struct PageRange {
    uint64_t begin = 0, end = 0;
    bool meets(const PageRange& other) const { return begin < other.end && other.begin < end; }
};

/// The watch over memory of this process. take() may be called from any thread, the other functions under the library's lock. The object
/// must not be destroyed while memory is watched and other threads run.
class MemoryWatch {
  public:
    /// Creates a watch with its thread. Returns null with failure_text() if the kernel does not permit it.
    static std::unique_ptr<MemoryWatch> start();
    MemoryWatch(const MemoryWatch&) = delete;
    MemoryWatch& operator=(const MemoryWatch&) = delete;
    ~MemoryWatch();

    /// Starts to watch the memory. Returns false if it can't be watched.
    bool watch(const PageRange& memory);
    /// Returns whether events report all changes of the memory: no page belongs to a file or is shared. The result is false if pages are
    /// not present; those of registered memory are.
    bool is_own(const PageRange& memory) const;
    /// Stops watching the memory. Does not affect other watched memory.
    void unwatch(const PageRange& memory);

    /// Returns the number of stretches that have changed since the last call, at most kMost, or -1 if there were more: then any watched
    /// memory may have changed. If `settled` is false, further changes may be in progress.
    static constexpr int kMost = 64;
    int take(PageRange (&changed)[kMost], bool& settled);

  private:
    MemoryWatch(int fd, int end) : fd_(fd), end_(end) {}
    static void* run(void* self);
    void read_events();
    void give_way();
    int take_locked(PageRange (&changed)[kMost], bool& settled);
    void note(uint64_t begin, uint64_t end);

    const int fd_;   ///< userfaultfd
    const int end_;  ///< eventfd that stops the thread
    unsigned long thread_ = 0;
    static constexpr int kMostAtOnce = 64;  ///< limit of events that are read without a release of the lock
    /// Numbers of calls of take() that have begun and ended.
    std::atomic<uint32_t> takes_begun_{kCounterStart}, takes_ended_{kCounterStart};
    std::atomic<bool> gives_way_ = false;  ///< whether the thread waits for the end of a call of take()
    std::mutex mutex_;  ///< held while an event is read and noted; allocating under it could block on an unread event
    PageRange changed_[kMost];
    int count_ = 0;
    bool too_many_ = false;
};

}  // namespace starling::verbs
