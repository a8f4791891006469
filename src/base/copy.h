// Copy functions: for few bytes, without a call; for many bytes, into memory that another core will read next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace starling {

inline constexpr size_t kFewBytes = 32;

/// memcpy of at most kFewBytes, without a call.
[[gnu::always_inline]] inline void copy_few(void* to, const void* from, size_t bytes) {
    auto* out = static_cast<std::byte*>(to);
    const auto* in = static_cast<const std::byte*>(from);
    // Two loads of n bytes, which may overlap, cover any length from n to 2n.
    const auto twice = [&](auto piece) {
        auto last = piece;
        std::memcpy(&piece, in, sizeof piece);
        std::memcpy(&last, in + bytes - sizeof last, sizeof last);
        std::memcpy(out, &piece, sizeof piece);
        std::memcpy(out + bytes - sizeof last, &last, sizeof last);
    };
    struct Sixteen {
        uint64_t words[2];
    };
    if (bytes >= 16) return twice(Sixteen{});
    if (bytes >= 8) return twice(uint64_t{});
    if (bytes >= 4) return twice(uint32_t{});
    for (size_t i = 0; i < bytes; ++i) out[i] = in[i];
}

/// memcpy of any length, always by a call. A compiler that knows an upper bound of `bytes`, but not the value, writes `rep movs`, which
/// takes 50 ns to start.
inline void copy_by_call(void* to, const void* from, size_t bytes) {
    asm("" : "+r"(bytes));
    std::memcpy(to, from, bytes);
}

/// memcpy with stores that bypass this core's caches; `to` is aligned to 16 bytes. A thread that sees a later store of this thread sees the
/// copied bytes too.
void copy_past_caches(void* to, const void* from, size_t bytes);

/// Copies into memory that certain other processes have read and will read again. Chooses between ordinary stores and stores that bypass
/// the caches, whichever is faster between their cores and this one. An ordinary store must first take the line from the reader's cache.
/// That costs almost nothing where the two cores share the cache, and some ten nanoseconds per line where they are far apart. Stores that
/// bypass the caches avoid this, but then the reader must load from memory. Processes migrate between cores without notice. So ordinary
/// copies are timed, and while this object uses the other kind, it tries an ordinary one now and then. Not thread-safe.
class CopyPath {
  public:
    /// The readers' recent use of the lines that are overwritten.
    enum class CopyDestination : uint8_t {
        again,     ///< the readers accessed these lines last
        streamed,  ///< the readers accessed these lines last, and more data follows at once, so throughput counts
        rotation,  ///< the destination rotates through much memory, so the readers' own caches have dropped these lines
    };
    void copy(void* to, const void* from, size_t bytes, CopyDestination into) {
        if (bytes >= kWayMatters && reinterpret_cast<uintptr_t>(to) % 16 == 0) return choose(to, from, bytes, into);
        copy_by_call(to, from, bytes);
    }
    /// The cost of writing a line that the reader has in its cache: almost none if both cores share all caches, little if they share the
    /// last level, much otherwise.
    enum class CacheDistance : uint8_t { close, near, far };
    CacheDistance reach() const { return reach_; }

    /// Minimum bytes for a choice between the two kinds of stores. Below it the cost of a few lines matters less than the reader's access
    /// to memory.
    static constexpr size_t kWayMatters = 2048;

  private:
    void choose(void* to, const void* from, size_t bytes, CopyDestination into);
    void learn(uint64_t cycles, size_t bytes);

    CacheDistance reach_ = CacheDistance::near;
    bool doubted_ = false;      ///< the last measurement contradicted reach_
    uint16_t until_trial_ = 0;  ///< copies until the next timed one
};

}  // namespace starling
