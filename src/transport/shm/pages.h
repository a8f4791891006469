// Memory that neighbors (processes on the same host) can map: a file that is in no file system. Neighbors open it through its creator's
// /proc, as they do job segments. The kernel frees the memory with the last mapping.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace starling::shm {

/// The name by which neighbors find pages. Valid in all processes of a host.
struct PagesName {
    int32_t pid = 0;  ///< pid of the creator; 0: unknown in this process, so the launcher provides the descriptor
    int32_t descriptor = -1;
    uint64_t inode = 0;  ///< inode of the file, which distinguishes it from a later one with the same descriptor
    bool valid() const { return descriptor >= 0; }
};

/// A mapping of memory that neighbors can map. It begins at a multiple of `alignment`, a power of two, if there is enough address space.
class Pages {
  public:
    Pages() = default;
    ~Pages();
    Pages(Pages&& other) noexcept { swap(other); }
    Pages& operator=(Pages&& other) noexcept {
        swap(other);
        return *this;
    }

    /// Creates and maps `bytes` of zeroed memory; untouched pages take no memory. Returns false, with errno, if the system has not enough
    /// memory, descriptors (EMFILE) or file size (EFBIG).
    bool make(uint64_t bytes, uint64_t alignment = 0);
    /// Creates and maps memory that is hidden (not accessible) until show().
    bool make_hidden(uint64_t bytes);
    /// Creates a hidden mapping of up to `limit` bytes. No memory exists in it yet; grow() adds some.
    bool reserve(uint64_t limit, uint64_t alignment);
    /// Makes the first `bytes` exist, also for neighbors that have mapped them, and shows them. Returns false if the system has not enough
    /// memory.
    bool grow(uint64_t bytes);
    /// Maps a neighbor's memory. Returns false if it no longer exists or the kernel refuses; in the latter case errno has the reason.
    bool open(const PagesName& name, uint64_t bytes) { return open(name, bytes, bytes) && show(bytes); }
    /// Maps a neighbor's memory, hidden, of which at least `bytes` exist and which may grow to `limit`.
    bool open(const PagesName& name, uint64_t bytes, uint64_t limit, uint64_t alignment = 0);
    /// Makes the first `bytes`, or some more, accessible. Hidden pages have no access rights, so that scans of this process's memory skip
    /// them: a core dump, a leak checker, a checkpointer or mlockall would create every page. Returns false if the kernel has no memory for
    /// that.
    bool show(uint64_t bytes) { return bytes <= shown_ || show_more(bytes); }
    /// Includes a neighbor's memory in this process's core dumps, for memory that this process also uses as its own.
    void put_into_dumps();

    std::byte* data() const { return data_; }
    uint64_t shown() const { return shown_; }
    const PagesName& name() const { return name_; }

  private:
    void swap(Pages& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(shown_, other.shown_);
        std::swap(name_, other.name_);
        std::swap(device_, other.device_);
        std::swap(owned_, other.owned_);
        std::swap(kept_, other.kept_);
    }
    bool make(uint64_t bytes, uint64_t limit, uint64_t alignment);
    bool map(int descriptor, uint64_t bytes, uint64_t alignment = 0);
    bool show_more(uint64_t bytes);

    std::byte* data_ = nullptr;
    uint64_t bytes_ = 0;
    uint64_t shown_ = 0;
    PagesName name_;
    dev_t device_ = 0;
    bool owned_ = false;  ///< whether this object must close the descriptor
    bool kept_ = false;   ///< whether the launcher has a copy of the descriptor, for neighbors that cannot open the file
};

}  // namespace starling::shm
