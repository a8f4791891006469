#include "base/copy.h"

#include <algorithm>
#include <atomic>

#include "base/state.h"

#ifdef __SSE2__
#include <x86intrin.h>
#endif

namespace starling {

#ifdef __SSE2__

namespace {

// Limits of the cache distances, in cycles of the time stamp counter. An ordinary copy takes per cache line 2 to 5 cycles with a shared
// first-level cache, 3 to 19 with a shared last-level cache, and up to 85 with none. A processor whose `rep movsb` writes whole lines
// without fetching them takes 5 to 11 even then. The distance still shows in the time to take over a single line: 50 to 130 cycles with a
// shared last-level cache, 310 and more with none.
constexpr uint64_t kCloseCycles = 10, kNearCycles = 45, kNearLine = 220;
/// Maximum bytes for ordinary stores if the reader is near. Up to this size, the reader's loads from memory would cost more than taking the
/// lines from its cache.
constexpr size_t kShort = 4096;
constexpr uint16_t kPatience = 128;
/// One in this many copies is timed where ordinary copies are best at this and the next distance: for CopyDestination::rotation, and to
/// close cores.
constexpr uint16_t kSeldom = 64;

/// Reads the time stamp counter. The simulator replaces this function by a jump (tests/simulation/library.cpp). So it is not inlined, and
/// callers must not rely on the registers that it leaves alone.
#ifdef __clang__
[[gnu::noinline]]
#else
[[gnu::noipa]]
#endif
uint64_t
cycles_now() {
    asm volatile(".byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0");  // one instruction without effect, which makes room for the jump
    return __rdtsc();
}

/// Returns how many cycles it takes to take over a cache line of [to, to + bytes), which will be overwritten: at least kWayMatters bytes.
uint64_t cycles_of_one_line(void* to) {
    auto* const bytes = static_cast<std::byte*>(to);
    // The first exchange also waits for the page's translation and for earlier stores. Both words are beyond a prefetch of each other.
    std::atomic_ref<uint32_t> first(*reinterpret_cast<uint32_t*>(bytes + 64)),
        second(*reinterpret_cast<uint32_t*>(bytes + 1536));
    first.exchange(0);
    _mm_lfence();  // otherwise the processor may read the counter before the exchanges are complete
    const uint64_t before = cycles_now();
    second.exchange(0);
    _mm_lfence();
    return cycles_now() - before;
}

/// Tells how many of the last timed ordinary copies to a far core were slow: +1 for each, -1 for each other, 0 to kSlowMost. They are
/// slow unless `rep movsb` writes whole lines without fetching them first, so this belongs to the processor rather than to one reader.
constexpr uint8_t kSlowMost = 3;
STARLING_STATE uint8_t slow_to_far = 0;

/// Returns whether stores that bypass the caches are faster for this reader.
bool bypasses(CopyPath::CacheDistance reach, size_t bytes, CopyPath::CopyDestination into) {
    if (reach == CopyPath::CacheDistance::far) return slow_to_far > kSlowMost / 2;
    if (reach == CopyPath::CacheDistance::close || into == CopyPath::CopyDestination::rotation) return false;
    return into == CopyPath::CopyDestination::streamed || bytes > kShort;
}

}  // namespace

void copy_past_caches(void* to, const void* from, size_t bytes) {
    auto* out = static_cast<__m128i*>(to);
    const auto* in = static_cast<const __m128i*>(from);
    for (size_t lines = bytes / 64; lines > 0; --lines, out += 4, in += 4) {
        const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1), c = _mm_loadu_si128(in + 2),
                      d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    std::memcpy(out, in, bytes % 64);
    _mm_sfence();
}

void CopyPath::choose(void* to, const void* from, size_t bytes, CopyDestination into) {
    const bool past = bypasses(reach_, bytes, into);
    // Timing costs more than a copy: without it, the next copy can start before the stores of this one are complete. So it is rare where
    // this copy's kind does not depend on it.
    const uint16_t period = past || reach_ == CacheDistance::far                                  ? kPatience
                            : into == CopyDestination::rotation || reach_ == CacheDistance::close ? kSeldom
                                                                                                  : uint16_t{1};
    if (until_trial_ % period != 0) {
        --until_trial_;
        return past ? copy_past_caches(to, from, bytes) : static_cast<void>(std::memcpy(to, from, bytes));
    }
    const bool far = cycles_of_one_line(to) > kNearLine;
    const uint64_t before = cycles_now();
    std::memcpy(to, from, bytes);
    _mm_mfence();  // a few KB fit into the store buffer; the time shows only when they have left it
    const uint64_t cycles = cycles_now() - before;
    learn(far ? std::max((kNearCycles + 2) * bytes / 64, cycles) : cycles, bytes);
    // The time of a shorter copy is mostly the fence's.
    if (!far || reach_ != CacheDistance::far || bytes < 2 * kWayMatters) return;
    if (cycles * 64 / bytes > kNearCycles)
        slow_to_far = std::min<uint8_t>(slow_to_far + 1, kSlowMost);
    else if (slow_to_far > 0)
        --slow_to_far;
}

// Records a measurement. A single one may be wrong (an interrupt, the first access to a page), so two consecutive ones must agree.
void CopyPath::learn(uint64_t cycles, size_t bytes) {
    const uint64_t per_line = cycles * 64 / bytes;
    const CacheDistance seen = per_line <= kCloseCycles  ? CacheDistance::close
                               : per_line <= kNearCycles ? CacheDistance::near
                                                         : CacheDistance::far;
    if (seen == reach_) {
        doubted_ = false;
    } else if (doubted_) {
        reach_ = seen;
        doubted_ = false;
    } else {
        doubted_ = true;
    }
    until_trial_ = doubted_ ? 0 : kPatience - 1;
}

#else

void copy_past_caches(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
void CopyPath::choose(void* to, const void* from, size_t bytes, CopyDestination) { std::memcpy(to, from, bytes); }

#endif

}  // namespace starling
