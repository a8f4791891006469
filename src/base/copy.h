// Copies for memory that another core will read next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace starling {

/// From this many bytes on copy_for_another_core() measures better than memcpy between two cores: below, waiting for the
/// stores to leave costs more than the cache lines that they spare.
inline constexpr size_t kCopyForAnotherCore = 4096;

/// memcpy past the caches of this core. Lines that the other core read last time around would first have to be fetched and
/// taken from it, one by one, only to be overwritten; these stores do without. What was stored is visible to whoever sees a
/// store that follows.
inline void copy_for_another_core(void* to, const void* from, size_t bytes) {
#ifdef __SSE2__
    if (reinterpret_cast<uintptr_t>(to) % 16 != 0) {
        std::memcpy(to, from, bytes);
        return;
    }
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
#else
    std::memcpy(to, from, bytes);
#endif
}

/// memcpy of at most 32 bytes, without a call.
inline void copy_few(void* to, const void* from, size_t bytes) {
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

}  // namespace starling
