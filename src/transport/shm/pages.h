// Memory that neighbours, processes on the same host, can map: a file without a name in any file system, which they open
// by way of its maker, as they do job segments. It goes when the last who maps it does.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace starling::shm {

/// Where neighbours find pages. Means the same in all processes of a host.
struct PagesName {
    int32_t pid = 0;  ///< 0: its maker's is unknown here, and the launcher has it
    int32_t descriptor = -1;
    uint64_t inode = 0;  ///< tells the file from one that has come into its place
    bool valid() const { return descriptor >= 0; }
};

/// Mappings begin at a multiple of `alignment`, a power of two, if there is so much address space.
class Pages {
  public:
    Pages() = default;
    ~Pages();
    Pages(Pages&& other) noexcept { swap(other); }
    Pages& operator=(Pages&& other) noexcept {
        swap(other);
        return *this;
    }

    /// Makes so many bytes, zeroed; what is not touched takes no memory. False if the system has none left.
    bool make(uint64_t bytes, uint64_t alignment = 0);
    /// The same, hidden: none of it is handed out yet.
    bool make_hidden(uint64_t bytes);
    /// Makes a mapping of so many bytes of which none is there yet. It is hidden.
    bool reserve(uint64_t limit, uint64_t alignment);
    /// That many are there from now on, for those who have mapped it, too, and are shown. False if the system has none left.
    bool grow(uint64_t bytes);
    /// Maps a neighbour's. False if that is gone, or the kernel does not allow it: then errno says why, if it is the kernel.
    bool open(const PagesName& name, uint64_t bytes) { return open(name, bytes, bytes) && show(bytes); }
    /// The same, of a neighbour's of which `bytes` at least are there, and which may grow to `limit`: hidden.
    bool open(const PagesName& name, uint64_t bytes, uint64_t limit, uint64_t alignment = 0);
    /// The first so many bytes, or some more, can be used. What is hidden nobody finds who looks through this process's memory: a core
    /// dump, a leak checker, a checkpointer or mlockall would make every page of it. False if the kernel has no memory for that.
    bool show(uint64_t bytes) { return bytes <= shown_ || show_more(bytes); }
    /// A neighbour's that is this process's memory as well belongs into this one's core dump, too.
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
    bool owned_ = false;  ///< the descriptor is ours to close
    bool kept_ = false;   ///< the launcher keeps it as well, for neighbours that may not open it here
};

}  // namespace starling::shm
