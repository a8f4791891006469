#include "base/delay.h"

#ifdef STARLING_DELAYS

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "base/clock.h"
#include "base/state.h"
#include "base/stop_share.h"

namespace starling {

namespace {

constexpr uint64_t kLeast = 100'000, kMost = StopShare::kLongest;  // ns
/// A thread stops at one in this many visits of marked places.
constexpr uint64_t kVisits = 8;

STARLING_STATE std::atomic<uint64_t> seed{0};  ///< the seed in TEST_DELAYS; 0: not read yet; kNone: there is none
constexpr uint64_t kNone = 1;
STARLING_STATE std::atomic<uint64_t> began{0}, visits{0};
STARLING_STATE StopShare share;

uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t read_seed() {
    const char* text = std::getenv("TEST_DELAYS");
    const char* rank = std::getenv("STARLING_RANK");
    if (!text || !*text) return kNone;
    return mix(std::strtoull(text, nullptr, 10) + 0x9e3779b97f4a7c15u * (rank ? std::strtoull(rank, nullptr, 10) + 1 : 0)) | 2;
}

uint64_t hash_of(const char* place) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *place; ++place) hash = (hash ^ static_cast<unsigned char>(*place)) * 0x100000001b3u;
    return hash;
}

}  // namespace

void delay_at(const char* place) {
    uint64_t own = seed.load(std::memory_order_relaxed);
    if (own == 0) {
        seed.store(own = read_seed());
        began.store(now_ns());
    }
    if (own == kNone) return;
    const uint64_t drawn = mix(own ^ hash_of(place) ^ (visits.fetch_add(1, std::memory_order_relaxed) << 32));
    if (drawn % kVisits != 0) return;
    const uint64_t ns = kLeast + drawn / kVisits % (kMost - kLeast);
    const uint64_t before = now_ns();
    if (!share.begin(ns, began.load(std::memory_order_relaxed), before)) return;
    timespec rest{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    while (nanosleep(&rest, &rest) != 0) {}
    share.end(ns, now_ns() - before);
}

}  // namespace starling

#endif
