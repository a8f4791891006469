// Matches arriving multicast messages with receives. There is one queue for all groups of a process: a communicator's message may arrive by
// any of them, before or after its receive is posted. No I/O, except that it completes receives.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "multicast/channel.h"
#include "multicast/datagram.h"

namespace starling::multicast {

/// The identity of a message: its sender, context and call.
struct MessageLabel {
    uint64_t job;
    uint64_t context, call;
    uint32_t rank;
    bool operator==(const MessageLabel&) const = default;
};

struct LabelHash {
    size_t operator()(const MessageLabel& label) const {
        return static_cast<size_t>((label.context * 31 + label.call) * 0x9e3779b97f4a7c15u ^ label.job ^ label.rank);
    }
};

/// An arriving message, kept while a group's stream or a receive needs it.
class ArrivingMessage {
  public:
    /// `kept` counts the bytes stored for all messages of one sender that have no receive yet.
    ArrivingMessage(const MessageLabel& label, uint64_t bytes, uint32_t piece, std::shared_ptr<uint64_t> kept);
    ArrivingMessage(const ArrivingMessage&) = delete;
    ArrivingMessage& operator=(const ArrivingMessage&) = delete;
    ~ArrivingMessage() { charge(0); }

    const MessageLabel label;
    const uint64_t bytes;
    const uint32_t fragment_bytes;

    Fragmentation cut() const { return {bytes, fragment_bytes}; }
    uint64_t fragments() const { return fragments_; }
    uint64_t have() const { return have_; }
    bool complete() const { return have_ == fragments_; }
    bool has(uint64_t fragment) const { return fragment < got_.size() && got_[fragment]; }
    /// Returns false for fragments further ahead than any valid sender sends. The memory used must not follow from a message's claimed
    /// length alone, which may be false.
    bool is_near(uint64_t fragment) const { return fragment < first_missing_ + kMostAhead; }
    /// Returns the number of leading fragments that have all arrived.
    uint64_t first_missing() const { return first_missing_; }
    /// Returns whether fragments are accepted: into the receive's memory or, without a receive, into a limited buffer of this object.
    bool takes() const { return receive_ || withdrawn_ || *total_ < kMostKept; }
    bool takes(uint64_t fragment) const {
        return takes() && (receive_ || withdrawn_ || cut().offset(fragment + 1) <= 2 * kMostKept);
    }
    /// Stores a fragment that has not arrived before.
    void handle(uint64_t fragment, const std::byte* data, uint32_t count);
    static constexpr uint64_t kMostKept = 256 * 1024;  ///< limit of the bytes stored for one sender
    static constexpr uint64_t kMostAhead = 64 * 1024;  ///< limit of fragments ahead of the first missing one

  private:
    friend class ReceiveQueue;
    static constexpr uint64_t kLeast = 256;  ///< bytes counted against the limit for each stored message, besides its data
    void put(uint64_t at, const std::byte* data, uint64_t count);
    void charge(uint64_t bytes);
    void discard_rest();

    MulticastReceive* receive_ = nullptr;
    bool withdrawn_ = false;  ///< whether the message's receive was withdrawn, so that its fragments are discarded
    const uint64_t fragments_;
    const std::shared_ptr<uint64_t> total_;
    uint64_t charged_ = 0;
    std::vector<std::byte> stored_bytes_;
    std::vector<bool> got_;  ///< one flag per fragment, set when it has arrived; ends at the highest that has arrived
    uint64_t have_ = 0, first_missing_ = 0;
};

class ReceiveQueue {
  public:
    /// Returns the arriving message of that label. A new one is passed to a posted receive, if there is one; otherwise it waits for a
    /// receive.
    std::shared_ptr<ArrivingMessage> arrive(const MessageLabel& label, uint64_t bytes, uint32_t piece,
                                            const std::shared_ptr<uint64_t>& kept);
    /// Completes the message's receive, if all fragments have arrived.
    void arrived(ArrivingMessage& arrival);

    void post(MulticastReceive& receive, const MessageLabel& label);
    bool withdraw(MulticastReceive& receive, const MessageLabel& label);
    /// Withdraws a receive, and discards the message's fragments when they arrive.
    void refuse(MulticastReceive& receive, const MessageLabel& label);
    bool has_begun(const MessageLabel& label) const { return arrivals_.contains(label); }
    /// Discards all messages of a context, also future ones, until begin() is called for it.
    void forget(uint64_t context);
    void begin(uint64_t context) { closed_.erase(context); }
    bool is_closed(uint64_t context) const { return closed_.contains(context); }
    /// Visits job and rank of every sender from which data is expected, possibly more than once.
    template <class F>
    void each_expected(F&& visit) const {
        for (const auto& [label, receive] : posted_) visit(label.job, label.rank);
        for (const auto& [label, arrival] : arrivals_)
            if (!arrival->complete()) visit(label.job, label.rank);
    }
    /// Fails all receives from a sender that has failed.
    void fail(uint64_t job, uint32_t rank);
    size_t waiting() const { return arrivals_.size(); }

  private:
    void deliver(ArrivingMessage& arrival, MulticastReceive& receive);
    void finish(ArrivingMessage& arrival);

    std::unordered_map<MessageLabel, MulticastReceive*, LabelHash> posted_;
    std::unordered_map<MessageLabel, std::shared_ptr<ArrivingMessage>, LabelHash>
        arrivals_;  ///< arriving messages that no completed receive has taken
    std::unordered_set<MessageLabel, LabelHash> refused_;
    // Number of recently ended contexts that are remembered: after an error, members may free a communicator before all its data has
    // arrived.
    static constexpr size_t kMostClosed = 1024;
    std::unordered_set<uint64_t> closed_;
    std::deque<uint64_t> closed_order_;
};

}  // namespace starling::multicast
