#include "base/sha256.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/state.h"

namespace starling {

namespace {

constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

void compress_plain(uint32_t* state, const uint8_t* data, size_t blocks) {
    for (; blocks > 0; --blocks, data += 64) {
        uint32_t w[64];
        for (int i = 0; i < 16; ++i) {
            w[i] = uint32_t{data[4 * i]} << 24 | uint32_t{data[4 * i + 1]} << 16 | uint32_t{data[4 * i + 2]} << 8 |
                   data[4 * i + 3];
        }
        for (int i = 16; i < 64; ++i) {
            const uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
            const uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
            w[i] = w[i - 16] + s0 + w[i - 7] + s1;
        }
        uint32_t v[8];
        std::copy(state, state + 8, v);
        for (int i = 0; i < 64; ++i) {
            const uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
            const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
            const uint32_t t1 = v[7] + s1 + choice + kRound[i] + w[i];
            const uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
            const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
            std::copy_backward(v, v + 7, v + 8);
            v[4] += t1;
            v[0] = t1 + s0 + majority;
        }
        for (int i = 0; i < 8; ++i) state[i] += v[i];
    }
}

#if defined(__x86_64__)
// The processor's own rounds: job descriptions of megabytes are authenticated at every hop.
[[gnu::target("sha,sse4.1")]] void compress_sha_ni(uint32_t* state, const uint8_t* data, size_t blocks) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    // The instructions want the state as (a b e f) and (c d g h).
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state)), 0xb1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8);
    __m128i cdgh = _mm_blend_epi16(hgfe, dcba, 0xf0);
    for (; blocks > 0; --blocks, data += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; ++i) {
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i)), swap);
        }
        for (int i = 0; i < 16; ++i) {
            __m128i& now = w[i & 3];
            if (i >= 4) {
                const __m128i last = w[(i + 3) & 3];
                now = _mm_sha256msg1_epu32(now, w[(i + 1) & 3]);
                now = _mm_add_epi32(now, _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
                now = _mm_sha256msg2_epu32(now, last);
            }
            const __m128i k = _mm_add_epi32(now, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kRound + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

using Compress = void (*)(uint32_t*, const uint8_t*, size_t);

Compress choose() {
#if defined(__x86_64__)
    // GCC 12 knows no name for the extension: CPUID leaf 7, EBX bit 29.
    uint32_t a = 0, b = 0, c = 0, d = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.1")) {
        __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
        if (b >> 29 & 1) return compress_sha_ni;
    }
#endif
    return compress_plain;
}

void compress(uint32_t* state, const uint8_t* data, size_t blocks) {
    STARLING_STATE static std::atomic<Compress> chosen = nullptr;
    Compress found = chosen.load(std::memory_order_relaxed);
    if (!found) chosen.store(found = choose(), std::memory_order_relaxed);
    found(state, data, blocks);
}

}  // namespace

Sha256::Sha256() : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::update(std::string_view bytes) {
    auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    size_t left = bytes.size();
    length_ += left;
    if (filled_ > 0) {
        const size_t part = std::min(left, sizeof block_ - filled_);
        std::copy(at, at + part, block_ + filled_);
        filled_ += part;
        at += part;
        left -= part;
        if (filled_ < sizeof block_) return;
        compress(state_, block_, 1);
        filled_ = 0;
    }
    compress(state_, at, left / sizeof block_);
    at += left / sizeof block_ * sizeof block_;
    left %= sizeof block_;
    std::copy(at, at + left, block_);
    filled_ = left;
}

Sha256Digest Sha256::finish() {
    const uint64_t bits = length_ * 8;
    const size_t zeros = (filled_ < 56 ? 56 : 120) - filled_;
    uint8_t padding[72] = {0x80};
    for (int i = 0; i < 8; ++i) padding[zeros + static_cast<size_t>(i)] = static_cast<uint8_t>(bits >> (56 - 8 * i));
    update({reinterpret_cast<const char*>(padding), zeros + 8});
    Sha256Digest digest;
    for (size_t i = 0; i < 32; ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}

HmacSha256::HmacSha256(std::string_view key) {
    uint8_t block[64] = {};
    if (key.size() > sizeof block) {
        Sha256 hash;
        hash.update(key);
        const Sha256Digest digest = hash.finish();
        std::copy(digest.begin(), digest.end(), block);
    } else {
        std::copy(key.begin(), key.end(), reinterpret_cast<char*>(block));
    }
    for (uint8_t& byte : block) byte ^= 0x36;
    inner_.update({reinterpret_cast<const char*>(block), sizeof block});
    for (uint8_t& byte : block) byte ^= 0x36 ^ 0x5c;
    outer_.update({reinterpret_cast<const char*>(block), sizeof block});
}

Sha256Digest HmacSha256::finish() {
    const Sha256Digest inner = inner_.finish();
    outer_.update(bytes_of(inner));
    return outer_.finish();
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view message) {
    HmacSha256 hmac(key);
    hmac.update(message);
    return hmac.finish();
}

bool equal_secret(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    volatile uint8_t difference = 0;
    for (size_t i = 0; i < a.size(); ++i) difference = difference | static_cast<uint8_t>(a[i] ^ b[i]);
    return difference == 0;
}

}  // namespace starling
