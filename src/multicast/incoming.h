// The receiver's side of the reliable stream from one member of a group: determines which fragments are missing and when to request them.
// No clock, no sockets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "multicast/datagram.h"
#include "multicast/receive_queue.h"

namespace starling::multicast {

/// A position in a stream: all messages before `serial`, and `fragment` fragments of that message.
struct Position {
    uint32_t serial = 0;
    uint64_t fragment = 0;

    bool operator==(const Position&) const = default;
    /// Compares modulo 2^32: serials wrap.
    bool operator<(const Position& other) const {
        const auto ahead = static_cast<int32_t>(other.serial - serial);
        return ahead > 0 || (ahead == 0 && fragment < other.fragment);
    }
};

/// Fragments to be requested.
struct Missing {
    uint32_t serial;
    uint32_t fragment;
    uint64_t mask;  ///< fragments that are missing: bit i stands for fragment number `fragment` + i
    bool urgent;    ///< whether earlier requests had no effect: the group does not deliver the fragments
};

class Incoming {
  public:
    static constexpr uint32_t kMostAhead = 4096;        ///< limit of messages after the first incomplete one
    static constexpr uint64_t kReorderNs = 300'000;     ///< age at which a gap counts as lost data; a younger one may be due to
                                                        ///< datagrams that overtake each other
    static constexpr uint64_t kAskAgainNs = 2'000'000;  ///< first interval between requests
    static constexpr uint64_t kAskAtMostNs = 200'000'000;  ///< longest interval between requests
    static constexpr uint64_t kMostNotes = 4;              ///< limit of requests at a time, each for 64 fragments

    Incoming(ReceiveQueue& desk, uint64_t job, uint32_t rank) : desk_(desk), job_(job), rank_(rank) {}

    /// Handles a datagram of kind data or heartbeat. Returns false if it belongs to an older stream or is too far ahead.
    bool handle(const GroupDatagram& datagram, uint64_t now);
    /// Handles the sender's report that its stream extends up to this position: missing data is requested at once.
    void expect(uint32_t serial, uint64_t fragment, uint64_t now);
    /// Returns the position up to which everything has arrived.
    Position position() const;
    /// Returns the position at which the sender wants an acknowledgement.
    Position wanted() const { return wanted_; }
    /// Returns, once, whether the sender has continued without waiting for this member's acknowledgements.
    bool fetch_left_behind() { return std::exchange(left_behind_, false); }
    bool begun() const { return epoch_ != 0; }
    uint64_t epoch() const { return epoch_; }
    uint64_t duplicates() const { return duplicates_; }

    /// Returns the time of the next request; UINT64_MAX: none.
    uint64_t deadline() const { return deadline_; }
    /// Visits the fragments that are to be requested now.
    template <class F>
    void request(uint64_t now, F&& visit);

  private:
    struct IncomingMessage {
        std::shared_ptr<ArrivingMessage> arrival;  ///< the arrived part of the message; null: no fragment has arrived
        bool done = false;
        uint64_t seen = 0;                 ///< number of fragments known to have been sent
        uint64_t requested_to = 0;         ///< index before which all missing fragments were requested
        uint64_t request_at = UINT64_MAX;  ///< time to request newly missing fragments
        uint64_t repeat_at = UINT64_MAX;   ///< time to repeat earlier requests
        uint64_t pause = kAskAgainNs;
        uint32_t asked = 0;  ///< number of repeated requests without success

        /// misses(): whether fragments are missing that have not been requested; waits(): whether requested fragments are missing
        bool misses() const;
        bool waits() const;
    };
    IncomingMessage* find(uint32_t serial);
    bool reach(uint32_t serial, uint64_t now);
    void miss(IncomingMessage& message, uint64_t at);
    template <class F>
    void request_missing(IncomingMessage& message, uint32_t serial, uint64_t from, uint64_t now, F&& visit);
    static bool is_of(const ArrivingMessage& arrival, const GroupDatagram& datagram);
    void handle_data(const GroupDatagram& datagram, IncomingMessage& message, uint64_t now);
    void note_progress(IncomingMessage& message, uint64_t fragment, uint64_t now);
    void settle();

    ReceiveQueue& desk_;
    const uint64_t job_;
    const uint32_t rank_;
    uint64_t epoch_ = 0;                    ///< number of the current stream; 0: no datagram has arrived yet
    uint32_t first_ = 0;                    ///< serial of messages_.front()
    std::deque<IncomingMessage> messages_;  ///< messages from the first incomplete one on
    Position wanted_;
    uint64_t deadline_ = UINT64_MAX;
    bool left_behind_ = false;
    const std::shared_ptr<uint64_t> kept_ = std::make_shared<uint64_t>(0);
    uint64_t duplicates_ = 0;
};

/// Requests the missing fragments of a message from fragment number `from` on, by at most kMostNotes requests. If no fragment has arrived
/// yet, requests the first 64.
template <class F>
void Incoming::request_missing(IncomingMessage& message, uint32_t serial, uint64_t from, uint64_t now, F&& visit) {
    const bool urgent = message.asked > 1;
    if (!message.arrival) {
        visit(Missing{serial, 0, ~uint64_t{0}, urgent});
        message.requested_to = 64;
    } else {
        const ArrivingMessage& arrival = *message.arrival;
        uint64_t at = std::max(from, arrival.first_missing());
        for (uint64_t notes = 0; at < message.seen && notes < kMostNotes; ++notes, at += 64) {
            Missing missing{serial, static_cast<uint32_t>(at), 0, urgent};
            for (uint64_t bit = 0; bit < 64 && at + bit < message.seen; ++bit)
                if (!arrival.has(at + bit)) missing.mask |= uint64_t{1} << bit;
            if (missing.mask) visit(missing);
        }
        message.requested_to = std::max(message.requested_to, std::min(at, message.seen));
    }
    message.repeat_at = message.waits() ? now + message.pause : UINT64_MAX;
}

// A request is repeated only after a pause, even if a part of its fragments has arrived or some arrived twice. Otherwise repeats would
// cause requests, and these more repeats than a congested network can carry.
template <class F>
void Incoming::request(uint64_t now, F&& visit) {
    deadline_ = UINT64_MAX;
    for (uint32_t i = 0; i < messages_.size(); ++i) {
        IncomingMessage& message = messages_[i];
        if (message.done) continue;
        if (message.arrival && !message.arrival->takes()) {
            if (message.request_at <= now) message.request_at = now + kAskAgainNs;
            if (message.repeat_at <= now) message.repeat_at = now + kAskAgainNs;
        } else if (message.repeat_at <= now) {
            ++message.asked;
            message.pause = std::min(message.pause * 2, kAskAtMostNs);
            request_missing(message, first_ + i, 0, now, visit);
            message.request_at = message.misses() ? now : UINT64_MAX;
        } else if (message.request_at <= now) {
            request_missing(message, first_ + i, message.requested_to, now, visit);
            message.request_at = message.misses() ? now + kReorderNs : UINT64_MAX;
        }
        deadline_ = std::min({deadline_, message.request_at, message.repeat_at});
    }
}

}  // namespace starling::multicast
