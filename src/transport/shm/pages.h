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
    int32_t pid = 0;
    int32_t descriptor = -1;
    uint64_t inode = 0;  ///< tells the file from one that has come into its place
    bool valid() const { return descriptor >= 0; }
};

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
    bool make(uint64_t bytes);
    /// Makes a mapping of so many bytes of which none is there yet, at a multiple of `alignment` if there is so much address space.
    bool reserve(uint64_t limit, uint64_t alignment);
    /// That many are there from now on, for those who have mapped it, too. False if the system has none left.
    bool grow(uint64_t bytes);
    /// Maps a neighbour's; of one that may still grow, `limit` bytes. False if that is gone, or the kernel does not allow it.
    bool open(const PagesName& name, uint64_t bytes, uint64_t limit = 0);

    std::byte* data() const { return data_; }
    const PagesName& name() const { return name_; }

  private:
    void swap(Pages& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(name_, other.name_);
        std::swap(owned_, other.owned_);
    }
    bool make(uint64_t bytes, uint64_t limit, uint64_t alignment);
    bool map(int descriptor, uint64_t bytes, uint64_t alignment = 0);

    std::byte* data_ = nullptr;
    uint64_t bytes_ = 0;
    PagesName name_;
    bool owned_ = false;  ///< the descriptor is ours to close
};

}  // namespace starling::shm
