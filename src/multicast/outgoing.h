// What this process sends to a group: the reliable side of a sender. It keeps messages until all members have them, sends no more at
// a time than the slowest takes, and repeats what is asked for. Pure: no clock, no sockets.
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

/// What the stream has sent.
class Wire {
  public:
    /// To the group; may get lost. False: there is no room now.
    virtual bool to_group(const Head& head, const std::byte* body, uint32_t bytes) = 0;
    /// To one member, reliably. False: there is no room now.
    virtual bool to_member(uint32_t member, const Head& head, const std::byte* body, uint32_t bytes) = 0;

    /// What was given to the group goes now.
    virtual void flush() = 0;
    /// Somebody hears nothing of what goes to the group: another way, if there is one.
    virtual void report_unreachable() = 0;

  protected:
    ~Wire() = default;
};

class Outgoing {
  public:
    static constexpr uint64_t kMostCopied = 64 * 1024;               ///< a message up to here is copied, and done at once
    static constexpr uint32_t kMostMessages = 512;                   ///< that are not acknowledged
    static constexpr uint64_t kMostKept = 512 * 1024;                ///< bytes of copies
    static constexpr uint32_t kLeastWindow = 16, kMostWindow = 256;  ///< datagrams
    /// After the last datagram, at first: soon where something was lost of late, or somebody waits for the acknowledgement.
    static constexpr uint64_t kHeartbeatNs = 1'000'000, kCalmHeartbeatNs = 8'000'000;
    static constexpr uint64_t kHeartbeatAtMostNs = 250'000'000;
    /// The first heartbeat leaves room for a next message, which tells as much, where messages come more often than half this.
    static constexpr uint64_t kSparseHeartbeatNs = 100'000'000;
    static constexpr uint64_t kGatherNs = 50'000;            ///< what is missed elsewhere, too
    static constexpr uint64_t kRepeatNs = 800'000;           ///< a fragment does not go to the group again before
    static constexpr uint64_t kSingleAgainNs = 100'000'000;  ///< nor to one member, whom a session brings it

    Outgoing(uint16_t me, uint64_t epoch, uint32_t piece) : me_(me), epoch_(epoch), piece_(piece) {}

    bool takes(uint64_t bytes) const;
    void start(Send& send, uint64_t context, uint64_t call, const void* data, uint64_t bytes, uint64_t now);
    /// Sends what the window allows, what was missed, and heartbeats. Whether anything was sent.
    bool run(Wire& wire, uint64_t now);
    uint64_t deadline() const;

    /// Somebody waits until all is acknowledged: a heartbeat goes at the next run, and soon again. False: it is so already.
    bool request_acks(uint64_t now);
    /// All members have all before it.
    void acknowledged(const Position& position, uint64_t now);
    void missed(const Missing& missing, uint16_t who, uint64_t now);
    bool drained() const { return messages_.empty(); }
    Position acked() const { return acked_; }
    uint32_t next_serial() const { return first_ + static_cast<uint32_t>(messages_.size()); }
    /// Heartbeats since anything was acknowledged.
    uint32_t unanswered() const { return heartbeats_; }
    /// What a heartbeat says: how far the stream goes.
    Head heartbeat() const;
    uint64_t repeated() const { return repeated_; }
    uint64_t sent() const { return sent_; }

  private:
    struct Message {
        uint64_t context, call, bytes;
        const std::byte* data;
        std::vector<std::byte> copy;
        Send* send;  ///< null: it is done
        uint64_t fragments, sent = 0;
        std::unordered_map<uint64_t, uint64_t> repeated_at;  ///< ns, by fragment and to whom
    };
    struct Wish {
        uint32_t serial, fragment;
        uint16_t who;
        bool urgent;
    };
    Message* find(uint32_t serial);
    Head head_of(const Message& message, uint32_t serial, uint64_t fragment) const;
    const std::byte* body_of(const Message& message, uint64_t fragment, uint32_t& bytes) const;
    bool repeat(Wire& wire, uint64_t now);
    bool repeat(Wire& wire, const Wish& wish, uint64_t now);
    bool is_on_its_way(Message& message, const Wish& wish, uint64_t now);
    bool send_new(Wire& wire, uint64_t now);
    uint64_t in_flight() const;
    /// Until the first heartbeat; where a message has just been sent, and another may come.
    uint64_t calm() const;
    uint64_t until_next() const;

    const uint16_t me_;
    const uint64_t epoch_;
    const uint32_t piece_;
    std::deque<Message> messages_;    ///< not acknowledged by all
    uint32_t first_ = kCounterStart;  ///< serial of the first
    uint32_t next_ = 0;               ///< of messages_ is to be sent (on)
    Position acked_{kCounterStart, 0};
    uint64_t kept_ = 0;
    uint64_t sent_ = 0, acked_fragments_ = 0, unasked_ = 0;
    uint32_t window_ = 48;
    uint64_t shrunk_at_ = 0;
    std::deque<Wish> wishes_;
    uint64_t wishes_at_ = UINT64_MAX, heartbeat_at_ = UINT64_MAX;
    uint64_t calm_ = kHeartbeatNs, pause_ = kHeartbeatNs;
    uint64_t started_at_ = 0, gap_ = kSparseHeartbeatNs;  ///< the last message, and from one to the next of late
    bool hurried_ = false;
    uint32_t heartbeats_ = 0;
    bool stuck_ = false;  ///< no room below: again at the next run
    uint64_t repeated_ = 0;
};

}  // namespace starling::multicast
