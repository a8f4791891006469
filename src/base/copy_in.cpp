#include "base/copy_in.h"

#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace starling {

#ifdef __x86_64__

namespace {

/// Copies at least 256 bytes with loads and stores of whole cache lines; the stores are aligned.
[[gnu::target("avx512f")]] void copy_lines(std::byte* to, const std::byte* from, size_t bytes) {
    constexpr size_t kLine = 64, kStep = 4 * kLine;
    const auto step = [](std::byte * out, const std::byte* in) __attribute__((target("avx512f"), always_inline)) {
        const __m512i a = _mm512_loadu_si512(in), b = _mm512_loadu_si512(in + kLine), c = _mm512_loadu_si512(in + 2 * kLine),
                      d = _mm512_loadu_si512(in + 3 * kLine);
        _mm512_storeu_si512(out, a);
        _mm512_storeu_si512(out + kLine, b);
        _mm512_storeu_si512(out + 2 * kLine, c);
        _mm512_storeu_si512(out + 3 * kLine, d);
    };
    _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    size_t at = -reinterpret_cast<uintptr_t>(to) % kLine;
    for (; at + kStep <= bytes; at += kStep) step(to + at, from + at);
    step(to + bytes - kStep, from + bytes - kStep);
}

/// Returns whether the processor has AVX-512 of the second generation, whose use does not slow it down.
bool has_lines() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vbmi"); }

}  // namespace

void copy_in(void* to, const void* from, size_t bytes) {
    if (bytes < kCopyInMatters || !has_lines()) return static_cast<void>(std::memcpy(to, from, bytes));
    copy_lines(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

#else

void copy_in(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace starling
