// Whether memory that a device uses is still the memory that the program means by its address: the device holds on to the pages that were
// there when it was told of them, and a program that unmaps, moves or gives back memory has other pages at the address afterwards.
//
// The kernel tells: memory is put under a userfaultfd, for its events alone (no access to it ever faults), and whoever unmaps, moves or
// discards some of it waits within that call until a thread of ours has read the event. So nothing in the program's way of
// getting memory has to be intercepted, no allocator is left out, and what a cache holds is known to be right when it is looked at:
// settled() says whether all changes that have begun were read. What another thread discards (MADV_DONTNEED) at the very moment when it is
// sent is wrong with any network.
//
// Only private memory that is no file's can be watched: a file's pages change without a call in this process. Where a watched stretch ends
// within a mapping that mapping becomes two, so a program's own mremap() across the border fails (realloc() copies then).
// Not to be had where the kernel is older than 5.11, or a container's profile forbids userfaultfd(2).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace starling::verbs {

/// Bytes [begin, end) of the address space; of whole pages.
struct Stretch {
    uint64_t begin = 0, end = 0;
    bool meets(const Stretch& other) const { return begin < other.end && other.begin < end; }
};

/// take() and settled() from any thread; the others under the library's lock. It must not be destroyed while memory is watched and other threads run.
class MemoryWatch {
  public:
    /// Null with failure_text(): the kernel does not let us.
    static std::unique_ptr<MemoryWatch> start();
    MemoryWatch(const MemoryWatch&) = delete;
    MemoryWatch& operator=(const MemoryWatch&) = delete;
    ~MemoryWatch();

    /// From now on changes of it are told. False: it can't be watched.
    bool watch(const Stretch& memory);
    /// Whether that tells of all changes: no page is a file's or shared. They have to be there, as those of memory are that a device
    /// has been told of; what is not counts as no.
    bool is_own(const Stretch& memory) const;
    /// It need not be told any more. Not what else is watched.
    void unwatch(const Stretch& memory);

    /// What has changed since the last call: gives how many, at most kMost, or -1: too much to say, so everything that was watched may have.
    /// Changes that have begun and are not among them may be under way, unless `settled`.
    static constexpr int kMost = 64;
    int take(Stretch (&changed)[kMost], bool& settled);

  private:
    MemoryWatch(int fd, int end) : fd_(fd), end_(end) {}
    static void* run(void* self);
    void read_events();
    void note(uint64_t begin, uint64_t end);

    const int fd_;   ///< userfaultfd
    const int end_;  ///< eventfd: the thread is to end
    unsigned long thread_ = 0;
    std::mutex
        mutex_;  ///< held while an event is read and noted. Nothing is allocated or freed under it, which could wait for that
    Stretch changed_[kMost];
    int count_ = 0;
    bool too_many_ = false;
};

}  // namespace starling::verbs
