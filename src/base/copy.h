// Copies: few bytes without a call; many bytes into memory that another core will read next.
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
    // Two pieces of one size, which may overlap, make any length between it and its double.
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

/// memcpy of any length. A compiler that knows how few bytes they are, and not how many, writes `rep movs`, which takes 50 ns to begin.
inline void copy_by_call(void* to, const void* from, size_t bytes) {
    asm("" : "+r"(bytes));
    std::memcpy(to, from, bytes);
}

/// memcpy past the caches of this core; `to` is aligned to 16 bytes. What was stored is visible to whoever
/// sees a store that follows.
void copy_past_caches(void* to, const void* from, size_t bytes);

/// Copies into memory that certain other processes have read and will read again, the way that is faster
/// between their cores and this one. Before a line can be written it has to be taken from the reader's
/// cache: next to nothing where the two share it, some ten nanoseconds each where they are far from each
/// other. Stores past the caches do without, but then the reader has to go to memory. Where processes run
/// changes and nobody tells, so ordinary copies are timed, and where they are not used they are tried now
/// and then. Not thread-safe.
class CopyPath {
  public:
    /// What is known of the lines that are copied into.
    enum class Into : uint8_t {
        again,     ///< the readers had them last
        streamed,  ///< the same, and more follows at once, so that what counts is throughput
        rotation,  ///< used in turn with so many others that the readers' own caches have dropped them
    };
    void copy(void* to, const void* from, size_t bytes, Into into) {
        if (bytes >= kWayMatters && reinterpret_cast<uintptr_t>(to) % 16 == 0) return choose(to, from, bytes, into);
        copy_by_call(to, from, bytes);
    }
    /// What a line costs that the reader had last: next to nothing where the two share a core's caches, little where they
    /// share the last one, much elsewhere.
    enum class Reach : uint8_t { close, near, far };
    Reach reach() const { return reach_; }
    /// Has the next copy of kWayMatters or more timed.
    void ask_again() { until_trial_ = 0; }

    /// Below so many bytes a few lines matter less than the way to memory.
    static constexpr size_t kWayMatters = 2048;

  private:
    void choose(void* to, const void* from, size_t bytes, Into into);
    void learn(uint64_t cycles, size_t bytes);

    Reach reach_ = Reach::near;
    bool doubted_ = false;      ///< the last measurement said something else
    uint16_t until_trial_ = 0;  ///< copies until the next one that is timed
};

}  // namespace starling
