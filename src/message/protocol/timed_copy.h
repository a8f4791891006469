// The choice between fragments (`pieces`) and the kernel's copy (`kernel`, `both`) by their measured times. The rule of copy_choice.h comes
// from a few machines, and processors differ: with cores on a mesh, the kernel's copy takes half the time of fragments at the same cache
// distance (docs/measurements/mesh-2026-11-28.md). So the receiver times these ways with the program's own messages, separately by cache
// distance and length, and prefers the fastest. It begins with the rule's way, and tries the others at first often, then the more seldom the
// slower they are: a way that takes 1.5 times as long, once in 1,024 messages.
#pragma once

#include <cstdint>

#include "base/copy.h"
#include "message/protocol/protocol.h"

namespace starling::message::timed_copy {

enum class TransferWay : uint8_t { pieces, both, kernel };
inline constexpr int kWays = 3;

/// Share of the preferred way's time that another way must stay below to be preferred instead.
inline constexpr float kClearlyLess = 0.9f;

/// The times of the ways for messages of one length class at one cache distance.
class WayTimes {
  public:
    /// Returns the way for the next message. `rule`: the way of copy_choice.h. `possible`: bit 1 << way for each way that can be used, among
    /// them the rule's.
    TransferWay next(TransferWay rule, unsigned possible);
    /// Adds the time of a message; `time` in any unit, proportional to the time per byte.
    void add(TransferWay way, float time);
    /// Returns the way that is preferred now; `rule` before any other was measured to be faster.
    TransferWay preferred(TransferWay rule, unsigned possible) const;

  private:
    uint32_t period(TransferWay way, TransferWay best) const;
    float times_[kWays] = {};      ///< estimate for each way; 0: not measured
    uint8_t samples_[kWays] = {};  ///< number of measured messages, at most kFirstSamples
    uint32_t messages_ = 0;
};

/// Returns whether the message can be transferred in several ways whose times are comparable: the sender waits in the library and has a core,
/// and the kernel can copy.
bool applies(const Matched& message);
/// Starts the transfer in the way that next() returns; returns false if it could not start.
bool start(const Matched& message);
/// Ends the time of a receive that start() began; has no effect for other receives.
void completed(const ReceiveRequest& request);
/// Drops the time of a receive that start() began, because it has failed; has no effect for other receives.
void forget(const ReceiveRequest& request);

}  // namespace starling::message::timed_copy
