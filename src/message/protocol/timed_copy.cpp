#include "message/protocol/timed_copy.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "base/config.h"
#include "base/live.h"
#include "base/state.h"
#include "message/protocol/both_sided.h"
#include "message/protocol/copy_choice.h"
#include "message/protocol/kernel_copy.h"
#include "message/protocol/pieces.h"

namespace starling::message::timed_copy {

namespace {

/// The first measurements of a way, of which the least counts: the first messages touch pages for the first time.
constexpr uint8_t kFirstSamples = 4;
/// Longest time that a measurement counts as, in multiples of the estimate: longer ones are interruptions.
constexpr float kLongest = 4;

constexpr int kDistances = static_cast<int>(CopyPath::CacheDistance::far) + 1;
constexpr int kLengths = 8;  ///< 16 KB and less, 32 KB ... 2 MB and more
STARLING_STATE WayTimes table[kDistances][kLengths];

/// The transfer that is timed: the latest that start() began. A transfer that begins before the end of another makes that one's time
/// meaningless, so it takes its place.
struct Sample {
    const ReceiveRequest* request = nullptr;
    WayTimes* times = nullptr;
    TransferWay way = TransferWay::pieces;
    uint64_t began = 0;  ///< ns
    uint64_t bytes = 0;
};
STARLING_STATE Sample sample;

constexpr unsigned bit(TransferWay way) { return 1u << static_cast<unsigned>(way); }

/// Returns the length class: its messages have at most 16 KB << class bytes; the last class has all longer ones.
int length_class(uint64_t bytes) { return std::clamp(static_cast<int>(std::bit_width((bytes - 1) >> 14)), 0, kLengths - 1); }

/// Returns the ways that the settings and the message's buffers permit, as bits.
unsigned possible_for(const Matched& message) {
    unsigned possible = bit(TransferWay::kernel);
    if (message.bytes <= fragments_up_to(copy_choice(message.offer.reach), live(config().stream_limit)))
        possible |= bit(TransferWay::pieces);
    if (both_sided::is_possible(message) && both_sided::pays(message)) possible |= bit(TransferWay::both);
    return possible;
}

/// Returns the way of copy_choice.h.
TransferWay by_rule(unsigned possible) {
    for (const TransferWay way : {TransferWay::pieces, TransferWay::both})
        if (possible & bit(way)) return way;
    return TransferWay::kernel;
}

}  // namespace

TransferWay WayTimes::preferred(TransferWay rule, unsigned possible) const {
    if (samples_[static_cast<int>(rule)] < kFirstSamples) return rule;
    TransferWay best = rule;
    float least = times_[static_cast<int>(rule)] * kClearlyLess;
    for (int i = 0; i < kWays; ++i) {
        if (!(possible >> i & 1) || samples_[i] < kFirstSamples || times_[i] >= least) continue;
        best = static_cast<TransferWay>(i);
        least = times_[i];
    }
    return best;
}

// The more time a way would lose, the rarer it is tried.
uint32_t WayTimes::period(TransferWay way, TransferWay best) const {
    const int i = static_cast<int>(way);
    if (samples_[i] < kFirstSamples) return 8;
    const float ratio = times_[i] / times_[static_cast<int>(best)];
    return ratio > 1.5f ? 1024 : ratio > 1.15f ? 256 : 64;
}

TransferWay WayTimes::next(TransferWay rule, unsigned possible) {
    const TransferWay best = preferred(rule, possible);
    ++messages_;
    for (int i = 0; i < kWays; ++i) {
        const TransferWay way = static_cast<TransferWay>(i);
        // The ways take their turns at different messages.
        if (way != best && possible & bit(way) && (messages_ + static_cast<uint32_t>(i)) % period(way, best) == 0) return way;
    }
    return best;
}

void WayTimes::add(TransferWay way, float time) {
    const int i = static_cast<int>(way);
    float& estimate = times_[i];
    if (samples_[i] < kFirstSamples) {
        estimate = samples_[i]++ == 0 ? time : std::min(estimate, time);
        return;
    }
    // A shorter time counts at once, since nothing makes a copy faster than it is. A longer one may be an interruption, or a new placement.
    estimate = time < estimate ? time : estimate + (std::min(time, kLongest * estimate) - estimate) / 8;
}

bool applies(const Matched& message) {
    return kernel_copy::is_possible(message) && !kernel_copy::is_mapped(message) &&
           pieces::arrive_without_delay(message.peer(), message.offer);
}

bool start(const Matched& message) {
    const unsigned possible = possible_for(message);
    WayTimes& times = table[static_cast<int>(message.offer.reach)][length_class(message.bytes)];
    const TransferWay way = times.next(by_rule(possible), possible);
    sample = {&message.request, &times, way, now_ns(), message.bytes};
    if (way == TransferWay::pieces) return pieces::start(message);
    if (way == TransferWay::kernel) return kernel_copy::start(message);
    if (both_sided::start(message)) return true;
    forget(message.request);
    return false;
}

void completed(const ReceiveRequest& request) {
    if (sample.request != &request) [[likely]]
        return;
    sample.times->add(sample.way, static_cast<float>(now_ns() - sample.began) / static_cast<float>(sample.bytes));
    sample.request = nullptr;
}

void forget(const ReceiveRequest& request) {
    if (sample.request == &request) sample.request = nullptr;
}

}  // namespace starling::message::timed_copy
