// Where messages and those who expect them meet. One desk for all groups of a process: what a communicator receives may come by
// any of them, before its receive is posted or after. Pure, but for the completion of receives.
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

namespace starling::multicast {

/// Who sends, and which of his messages it is.
struct Label {
    uint64_t job;
    uint64_t context, call;
    uint32_t rank;
    bool operator==(const Label&) const = default;
};

struct LabelHash {
    size_t operator()(const Label& label) const {
        return static_cast<size_t>((label.context * 31 + label.call) * 0x9e3779b97f4a7c15u ^ label.job ^ label.rank);
    }
};

/// A message that comes in, while it is wanted by a group's stream or by a receive.
class ArrivingMessage {
  public:
    /// `kept` counts what its sender's messages for which no receive is posted take, in bytes.
    ArrivingMessage(const Label& label, uint64_t bytes, uint32_t piece, std::shared_ptr<uint64_t> kept);
    ArrivingMessage(const ArrivingMessage&) = delete;
    ArrivingMessage& operator=(const ArrivingMessage&) = delete;
    ~ArrivingMessage() { charge(0); }

    const Label label;
    const uint64_t bytes;
    const uint32_t piece;

    uint64_t fragments() const { return fragments_; }
    uint64_t have() const { return have_; }
    bool complete() const { return have_ == fragments_; }
    bool has(uint64_t fragment) const { return fragment < got_.size() && got_[fragment]; }
    /// No sender is so far ahead of what has come: the length of a message alone, which may be any, costs no memory.
    bool is_near(uint64_t fragment) const { return fragment < first_missing_ + kMostAhead; }
    /// All fragments below have come.
    uint64_t first_missing() const { return first_missing_; }
    /// Whether fragments are taken: into the receive's memory or, while there is room for what nobody has asked for, into some of its own.
    bool takes() const { return receive_ || taken_back_ || *total_ < kMostKept; }
    bool takes(uint64_t fragment) const {
        return takes() && (receive_ || taken_back_ || (fragment + 1) * piece <= 2 * kMostKept);
    }
    /// Takes one that it has not.
    void take(uint64_t fragment, const std::byte* data, uint32_t count);
    static constexpr uint64_t kMostKept = 256 * 1024;  ///< of one sender
    static constexpr uint64_t kMostAhead = 64 * 1024;  ///< fragments; windows have a few hundred

  private:
    friend class ReceiveQueue;
    static constexpr uint64_t kLeast = 256;  ///< what one of no bytes takes
    void put(uint64_t at, const std::byte* data, uint64_t count);
    void charge(uint64_t bytes);
    void want_nothing();

    Receive* receive_ = nullptr;
    bool taken_back_ = false;  ///< its receive was withdrawn: what comes is thrown away
    const uint64_t fragments_;
    const std::shared_ptr<uint64_t> total_;
    uint64_t charged_ = 0;
    std::vector<std::byte> kept_;
    std::vector<bool> got_;  ///< of fragments up to the last that has come
    uint64_t have_ = 0, first_missing_ = 0;
};

class ReceiveQueue {
  public:
    /// Somebody has begun to send this: a receive that is posted takes it, else it waits for one.
    std::shared_ptr<ArrivingMessage> arrive(const Label& label, uint64_t bytes, uint32_t piece,
                                            const std::shared_ptr<uint64_t>& kept);
    /// Some of it has come: completes its receive, if that was the last.
    void came(ArrivingMessage& arrival);

    void post(Receive& receive, const Label& label);
    bool withdraw(Receive& receive, const Label& label);
    /// The same, and for good: what comes of it is thrown away.
    void refuse(Receive& receive, const Label& label);
    bool has_begun(const Label& label) const { return arrivals_.contains(label); }
    /// Nothing of the context is wanted any more, whenever it comes; until it is begun again.
    void forget(uint64_t context);
    void begin(uint64_t context) { closed_.erase(context); }
    bool is_closed(uint64_t context) const { return closed_.contains(context); }
    /// Visits job and rank of all from whom something is expected, perhaps more than once.
    template <class F>
    void each_expected(F&& visit) const {
        for (const auto& [label, receive] : posted_) visit(label.job, label.rank);
        for (const auto& [label, arrival] : arrivals_)
            if (!arrival->complete()) visit(label.job, label.rank);
    }
    /// Nothing more comes from there.
    void fail(uint64_t job, uint32_t rank);
    size_t waiting() const { return arrivals_.size(); }

  private:
    void give(ArrivingMessage& arrival, Receive& receive);
    void finish(ArrivingMessage& arrival);

    std::unordered_map<Label, Receive*, LabelHash> posted_;
    std::unordered_map<Label, std::shared_ptr<ArrivingMessage>, LabelHash> arrivals_;  ///< that no completed receive has had
    std::unordered_set<Label, LabelHash> refused_;
    // Contexts that came to their end, the last ones: members that had errors may free a communicator before all of it has come.
    static constexpr size_t kMostClosed = 1024;
    std::unordered_set<uint64_t> closed_;
    std::deque<uint64_t> closed_order_;
};

}  // namespace starling::multicast
