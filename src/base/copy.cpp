#include "base/copy.h"

#ifdef __SSE2__
#include <x86intrin.h>
#endif

namespace starling {

#ifdef __SSE2__

namespace {

// Limits of the cache distances `close` and `near`: cycles of the time stamp counter that an ordinary copy takes per cache line. Measured
// between two cores: 5 with a shared first-level cache, 19 with a shared last-level cache, 85 with none.
constexpr uint64_t kCloseCycles = 10, kNearCycles = 45;
/// Maximum bytes for ordinary stores if the reader is near. Up to this size, the reader's loads from memory would cost more than taking the
/// lines from its cache.
constexpr size_t kShort = 4096;
constexpr uint16_t kPatience = 128;
/// One in this many copies is timed where ordinary copies are always best (CopyDestination::rotation).
constexpr uint16_t kSeldom = 16;

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
    const bool rotates = into == CopyDestination::rotation;
    const bool past = reach_ == CacheDistance::far ||
                      (reach_ == CacheDistance::near && !rotates && (into == CopyDestination::streamed || bytes > kShort));
    if (past && until_trial_ > 0) {
        --until_trial_;
        return copy_past_caches(to, from, bytes);
    }
    // Timing costs more than the copy itself here: without it, the next copy can start before the stores of this one are complete.
    if (rotates && until_trial_ % kSeldom != 0) {
        --until_trial_;
        return static_cast<void>(std::memcpy(to, from, bytes));
    }
    const uint64_t before = __rdtsc();
    std::memcpy(to, from, bytes);
    _mm_mfence();  // a few KB fit into the store buffer; the time shows only when they have left it
    learn(__rdtsc() - before, bytes);
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
