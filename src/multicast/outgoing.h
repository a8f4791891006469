// The sender's side of the reliable stream from this process to a group. It keeps messages until all members have acknowledged them, limits
// its window to the slowest member, and repeats fragments on request. No clock, no sockets.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/counter_start.h"
#include "multicast/channel.h"
#include "multicast/datagram.h"
#include "multicast/incoming.h"

namespace starling::multicast {

/// Sends datagrams for a stream.
class GroupTransmitter {
  public:
    /// Sends to the group, unreliably. Returns false if the network has no space for the datagram now.
    virtual bool to_group(const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) = 0;
    /// Sends to one member, reliably. Returns false if the path to the member has no space for the datagram now.
    virtual bool to_member(uint32_t member, const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) = 0;

    /// Sends buffered datagrams to the group now.
    virtual void flush() = 0;
    /// Reports that a member does not receive the group's datagrams, so that the network uses another rail, if there is one.
    virtual void report_unreachable() = 0;

  protected:
    ~GroupTransmitter() = default;
};

class Outgoing {
  public:
    static constexpr uint64_t kMostCopied = 64 * 1024;  ///< longest message that is copied, and so completes at once
    static constexpr uint32_t kMostMessages = 512;      ///< limit of unacknowledged messages
    static constexpr uint64_t kMostKept = 512 * 1024;   ///< limit of the bytes of copies
    static constexpr uint32_t kLeastWindow = 16, kMostWindow = 256;  ///< limits of the window, in datagrams
    static constexpr uint32_t kWiden = 4;  ///< growth of the window with each acknowledgement, in datagrams
    /// Most datagrams between two requests for acknowledgements. Each request costs a packet per member, about 200 bytes on the wire.
    static constexpr uint32_t kUnasked = 128;
    /// The times from the last datagram to the first heartbeat. The shorter one applies if data was lost recently or a process waits for
    /// the acknowledgement.
    static constexpr uint64_t kHeartbeatNs = 1'000'000, kCalmHeartbeatNs = 8'000'000;
    static constexpr uint64_t kHeartbeatAtMostNs = 250'000'000;
    /// If messages follow each other after less than half this time on average, the first heartbeat waits for the next message, which
    /// carries the same information.
    static constexpr uint64_t kSparseHeartbeatNs = 100'000'000;
    static constexpr uint64_t kGatherNs = 50'000;   ///< time to collect requests, in case several members miss a fragment
    static constexpr uint64_t kRepeatNs = 800'000;  ///< minimum interval between repeats of a fragment to the group
    static constexpr uint64_t kSingleAgainNs = 100'000'000;  ///< minimum interval between repeats to one member, by session

    Outgoing(uint16_t me, uint64_t epoch, uint32_t piece) : me_(me), epoch_(epoch), fragment_bytes_(piece) {}

    bool takes(uint64_t bytes) const;
    void start(MulticastSend& send, uint64_t context, uint64_t call, const void* data, uint64_t bytes, uint64_t now);
    /// Sends new datagrams within the window, repeats and heartbeats. Returns whether it sent anything.
    bool run(GroupTransmitter& wire, uint64_t now);
    uint64_t deadline() const;

    /// Makes the next run send a heartbeat, and more soon after, because a process waits for all acknowledgements. Returns false if
    /// heartbeats are already that frequent.
    bool request_acks(uint64_t now);
    /// Handles an acknowledgement: all members have received everything before `position`.
    void acknowledged(const Position& position, uint64_t now);
    void missed(const Missing& missing, uint16_t who, uint64_t now);
    bool drained() const { return messages_.empty(); }
    Position acked() const { return acked_; }
    uint32_t next_serial() const { return first_ + static_cast<uint32_t>(messages_.size()); }
    /// Returns the number of heartbeats since the last acknowledgement.
    uint32_t unanswered() const { return heartbeats_; }
    /// Returns the heartbeat, which carries the end of the stream.
    GroupDatagramHeader heartbeat() const;
    uint64_t repeated() const { return repeated_; }
    uint64_t sent() const { return sent_; }

  private:
    struct OutgoingMessage {
        uint64_t context, call, bytes;
        const std::byte* data;
        std::vector<std::byte> copy;
        MulticastSend* send;  ///< request of the message; null: the send has completed
        uint64_t fragments, sent = 0;
        std::unordered_map<uint64_t, uint64_t> repeated_at;  ///< time of the last repeat, in ns, by fragment and destination
    };
    struct Wish {
        uint32_t serial, fragment;
        uint16_t member;
        bool urgent;
    };
    Fragmentation cut(uint64_t bytes) const { return {bytes, fragment_bytes_}; }
    OutgoingMessage* find(uint32_t serial);
    GroupDatagramHeader head_of(const OutgoingMessage& message, uint32_t serial, uint64_t fragment) const;
    const std::byte* body_of(const OutgoingMessage& message, uint64_t fragment, uint32_t& bytes) const;
    bool repeat(GroupTransmitter& wire, uint64_t now);
    bool repeat(GroupTransmitter& wire, const Wish& wish, uint64_t now);
    bool is_on_its_way(OutgoingMessage& message, const Wish& wish, uint64_t now);
    bool send_new(GroupTransmitter& wire, uint64_t now);
    uint64_t in_flight() const;
    /// calm() returns the time from the last acknowledgement to the first heartbeat; until_next(), the time from a message to the heartbeat
    /// if another message may follow.
    uint64_t calm() const;
    uint64_t until_next() const;

    const uint16_t me_;
    const uint64_t epoch_;
    const uint32_t fragment_bytes_;
    std::deque<OutgoingMessage> messages_;  ///< messages that not all members have acknowledged
    uint32_t first_ = kCounterStart;        ///< serial of messages_.front()
    uint32_t next_ = 0;                     ///< index in messages_ of the message that is sent next, or continued
    Position acked_{kCounterStart, 0};
    uint64_t kept_ = 0;
    /// Counts of fragments: sent, acknowledged, sent since the last request for an acknowledgement, and sent up to and with that request.
    uint64_t sent_ = 0, acked_fragments_ = 0, unasked_ = 0, asked_ = 0;
    uint64_t asked_at_ = 0, answer_ns_ = 0;  ///< time of the last unanswered request, 0: none; average time until an answer, ns
    uint32_t window_ = 48;
    uint64_t shrunk_at_ = 0;
    std::deque<Wish> requests_;
    uint64_t requests_at_ = UINT64_MAX, heartbeat_at_ = UINT64_MAX;
    uint64_t calm_ = kHeartbeatNs, pause_ = kHeartbeatNs;
    uint64_t started_at_ = 0, gap_ = kSparseHeartbeatNs;  ///< start of the last message; average interval between messages, ns
    bool hurried_ = false;
    uint32_t heartbeats_ = 0;
    bool stuck_ = false;  ///< whether a datagram could not be sent for lack of space: try again at the next run
    uint64_t repeated_ = 0;
};

}  // namespace starling::multicast
