// Chooses between two ways of a long allgather: turns of multicasts, and a ring of messages. The process that decides for all measures both, so
// members cannot disagree. All members record how many further calls use the ring, so that those need no decision.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace starling::collective {

class WayMeter {
  public:
    enum class GatherWay : uint8_t { turns, ring };
    struct GatherChoice {
        GatherWay way;
        uint32_t ring_calls;  ///< number of further calls of this size that use the ring
    };
    /// Calls that try each way before the faster one is chosen. The first call of a way is slower than later ones: connections open, and the
    /// group's window is small.
    static constexpr uint32_t kTries = 2;
    /// Blocking calls that use the ring before turns are tried. A program with fewer calls loses nothing. If turns take three times as long, the
    /// two tries cost at most 4 % of all calls.
    static constexpr uint32_t kFirst = 100;
    /// Calls after which the slower way is tried again; twice as many after each try in which it was slower again, at most kRarely.
    static constexpr uint32_t kAgain = 64, kRarely = 8192;
    /// Fewest calls between two tries, for each time that the slower way exceeds the faster one. So a try costs at most a hundredth of the time.
    static constexpr uint64_t kPerExcess = 100;
    /// Most calls without a decision. A decision costs as much as a barrier, which is up to half the time of a ring of short blocks.
    static constexpr uint32_t kMostCalls = 63;

    /// Decides for the next call over `bytes` bytes. `ready`: all members can multicast. `measures`: the faster way is chosen; else turns.
    GatherChoice next(uint64_t bytes, bool ready, bool measures) {
        if (!ready) return {GatherWay::ring, calls_until_ready()};
        unready_ = 0;
        SizeClass& size = of(bytes);
        for (const GatherWay way : {GatherWay::turns, GatherWay::ring})
            if (measures && size[way].tries < kTries) return {way, 0};
        if (!measures || size.faster() == GatherWay::turns)
            return {measures && size.is_due() ? GatherWay::ring : GatherWay::turns, 0};
        if (size.is_due()) return {GatherWay::turns, 0};
        const uint32_t calls = std::min(size.pause() - size.since - 1, kMostCalls);
        size.since += calls;
        return {GatherWay::ring, calls};
    }
    /// Records the time of a call.
    void note(GatherWay way, uint64_t bytes, uint64_t ns) {
        SizeClass& size = of(bytes);
        const GatherWay before = size.faster();
        Measured& measured = size[way];
        const uint64_t ps_per_byte = ns * 1000 / std::max<uint64_t>(bytes, 1);
        // The first time includes preparations, so the second one replaces it.
        measured.ps_per_byte = ++measured.tries <= kTries ? ps_per_byte : (3 * measured.ps_per_byte + ps_per_byte) / 4;
        if (size.faster() != before) size.again = kAgain;
    }

    /// Records the ring calls of a decision, at every member.
    void expect_ring(uint64_t bytes, uint32_t calls) { of(bytes).ring_calls = calls; }
    /// Returns whether the next call uses the ring without a decision, and counts it. `measures`: as for next().
    bool uses_ring(uint64_t bytes, bool measures) {
        SizeClass& size = of(bytes);
        if (!std::exchange(size.begun, true) && measures) size.ring_calls = kFirst;
        if (size.ring_calls == 0) return false;
        --size.ring_calls;
        return true;
    }

    bool lost = false;  ///< whether this member has missed a decision, so that it does not know how many calls use the ring

  private:
    struct Measured {
        uint64_t ps_per_byte = 0;
        uint32_t tries = 0;
    };
    struct SizeClass {
        Measured ways[2];
        uint32_t since = 0, again = kAgain, ring_calls = 0;
        bool begun = false;
        Measured& operator[](GatherWay way) { return ways[static_cast<int>(way)]; }
        GatherWay faster() const { return ways[0].ps_per_byte <= ways[1].ps_per_byte ? GatherWay::turns : GatherWay::ring; }
        /// Returns the number of calls from one try of the slower way to the next.
        uint32_t pause() const {
            const uint64_t fast = std::min(ways[0].ps_per_byte, ways[1].ps_per_byte);
            const uint64_t slow = std::max(ways[0].ps_per_byte, ways[1].ps_per_byte);
            const uint64_t least = (slow - fast) * kPerExcess / std::max<uint64_t>(fast, 1);
            return std::max(again, static_cast<uint32_t>(std::min<uint64_t>(least, kRarely)));
        }
        /// Counts a call, and returns whether it tries the slower way.
        bool is_due() {
            if (++since < pause()) return false;
            since = 0;
            again = std::min(2 * again, kRarely);
            return true;
        }
    };
    /// Returns how many calls use the ring after a decision without a ready group: 0 after the first decisions, because a group is ready within
    /// milliseconds; then 1, 3, 7 and so on.
    uint32_t calls_until_ready() {
        constexpr uint32_t kSoon = 8;
        const uint32_t more = std::min(unready_ > kSoon ? unready_ - kSoon : 0, 6u);
        ++unready_;
        return std::min((1u << more) - 1, kMostCalls);
    }
    /// Returns the class of sizes from one power of two to the next.
    SizeClass& of(uint64_t bytes) { return sizes_[std::bit_width(bytes)]; }

    uint32_t unready_ = 0;  ///< number of decisions in a row without a ready group
    SizeClass sizes_[65];
};

}  // namespace starling::collective
