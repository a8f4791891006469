// Chooses between two ways of a long allgather: turns of multicasts, and a ring of messages. The process that decides for all measures both, so
// members cannot disagree. All members record how many further calls use the ring, so that those need no decision.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

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
    /// Calls after which the slower way is tried again; twice as many after each try in which it was slower again, at most kRarely. A way
    /// that is ten times as slow thus costs a seventh of the time at first, and a hundredth part of that after seven tries.
    static constexpr uint32_t kAgain = 64, kRarely = 8192;
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
        const uint32_t calls = std::min(size.again - size.since - 1, kMostCalls);
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
    /// Returns whether the next call uses the ring without a decision, and counts it.
    bool uses_ring(uint64_t bytes) {
        SizeClass& size = of(bytes);
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
        Measured& operator[](GatherWay way) { return ways[static_cast<int>(way)]; }
        GatherWay faster() const { return ways[0].ps_per_byte <= ways[1].ps_per_byte ? GatherWay::turns : GatherWay::ring; }
        /// Counts a call, and returns whether it tries the slower way.
        bool is_due() {
            if (++since < again) return false;
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
