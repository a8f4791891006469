// A group at one member: its life, what it sends, what comes from each of the others, and who has told what up the trees. Pure: the
// world is a GroupEnvironment, so that tests drive many of them through a network of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/counter_start.h"
#include "multicast/datagram.h"
#include "multicast/group_states.h"
#include "multicast/incoming.h"
#include "multicast/outgoing.h"
#include "multicast/receive_queue.h"
#include "multicast/tree.h"

namespace starling::multicast {

/// A member, as the whole universe calls it.
struct Name {
    uint64_t job;
    uint32_t rank;
    bool operator==(const Name&) const = default;
    auto operator<=>(const Name&) const = default;
};

class GroupEnvironment : public Wire {
  public:
    /// Becomes a member of the network's group. False: that is not to be had.
    virtual bool join() = 0;
    virtual void leave() = 0;
    /// To one member, reliably and in order with all else to it.
    virtual void note(uint32_t member, const Note& note) = 0;

  protected:
    ~GroupEnvironment() = default;
};

struct GroupSettings {
    uint64_t key = 0;
    uint64_t epoch = 1;                    ///< later than that of any group of this process with the same key
    uint32_t piece = 1400;                 ///< bytes of a message in a datagram
    uint64_t patience_ns = 5'000'000'000;  ///< until a test that not all have answered is given up
};

class Group {
  public:
    Group(std::vector<Name> members, uint32_t me, const GroupSettings& settings, GroupEnvironment& outside, ReceiveQueue& desk);

    uint32_t size() const { return tree_.members(); }
    uint32_t me() const { return me_; }
    const std::vector<Name>& members() const { return members_; }
    State state() const { return state_; }
    bool may_send(uint64_t bytes) const { return state_ == State::ready && outgoing_.takes(bytes); }
    void start(Send& send, uint64_t context, uint64_t call, const void* data, uint64_t bytes, uint64_t now);
    const Outgoing& outgoing() const { return outgoing_; }
    /// Somebody waits until all that was sent is acknowledged. Whether that changes anything.
    bool request_acks(uint64_t now) { return !outgoing_.drained() && outgoing_.request_acks(now); }
    uint64_t duplicates() const;
    bool is_out(uint32_t member) const { return tree_.is_out(member); }
    /// Others have gone on without this member, so they have been told that the group is not for it.
    bool left_behind() const { return left_behind_; }
    /// The test was given up because not all had answered in time.
    bool was_silent() const { return silent_; }
    bool leads() const { return leader() == me_; }
    /// The group was given up because nothing that is sent to it comes to this process.
    bool is_deaf() const { return deaf_; }
    /// Of members that others than themselves have to count with.
    uint32_t alive() const;

    /// Others need not wait for this process: it takes part in no test now.
    void turn_down() { tell_down(NoteKind::unready, me_, test_, true); }

    // Events.
    void apply(Event event, uint64_t now);
    void on_datagram(const Datagram& datagram, uint64_t now);
    void on_note(uint32_t from, const Note& note, uint64_t now);
    /// A datagram that came from one member to this one alone.
    void on_single(uint32_t from, const Datagram& datagram, uint64_t now);
    /// The member is dead, or done with the group.
    void on_out(uint32_t member, bool dead, uint64_t now);
    /// The group is for some of its members alone from now on.
    void narrow(const std::vector<bool>& in, uint64_t now);
    /// Goes on with all that waits. Whether anything happened.
    bool run(uint64_t now);
    uint64_t deadline() const;

  private:
    static constexpr uint64_t kPingNs = 500'000;  ///< between the first two pings
    static constexpr uint64_t kPingAtMostNs = 250'000'000;
    static constexpr uint64_t kAskAgainNs = 20'000'000;  ///< one that has not acknowledged, by itself
    static constexpr uint32_t kHeartbeatsInVain = 3;     ///< before members are asked one by one
    static constexpr uint64_t kForgetNs = 1'500'000;     ///< who has been told what is missing is told again after
    static constexpr size_t kForwarded = 16;
    /// So many repeats by sessions from one sender, so long after the last that it sent to the group: it is told that it is not heard.
    static constexpr uint32_t kUnheardAfter = 3;
    static constexpr uint64_t kUnheardNs = 20'000'000, kTellAgainNs = 100'000'000;
    /// So often, and for so long, in vain: the network does not bring here what goes to the group.
    static constexpr uint32_t kDeafAfter = 3;
    static constexpr uint64_t kDeafNs = 500'000'000;
    static constexpr uint32_t kPingsAWay = 4;

    /// What was said up the tree of one sender.
    struct Relay {
        std::vector<std::pair<uint32_t, Position>> heard;  ///< from members below
        std::optional<Position> told;
        uint32_t told_to = 0;
        bool urgent = false;
        uint64_t asked_at = 0;
        struct Forwarded {
            Missing missing{};
            uint16_t who = 0;
            uint64_t at = 0;
        } forwarded[kForwarded];
        size_t next = 0;

        void hear(uint32_t member, const Position& position);
        const Position* of(uint32_t member) const;
    };
    struct From {
        Incoming incoming;
        Relay relay;
        uint64_t heard_at = 0;  ///< a datagram to the group
        uint32_t singles = 0;   ///< that came since
        /// How often it was told so since: first and last, and of which message.
        uint32_t told = 0, told_of = 0;
        uint64_t told_first_at = 0, told_at = 0;
        From(ReceiveQueue& desk, const Name& name) : incoming(desk, name.job, name.rank) {}
    };

    From& from(uint32_t sender);
    void take(const Datagram& datagram, uint64_t now);
    void count_single(const Head& head, uint64_t now);
    Note make_note(NoteKind kind, uint32_t sender) const;
    void greet(uint32_t member, uint64_t now);

    // Acknowledgements and what is missing.
    std::optional<Position> below(uint32_t sender, const Relay& relay, std::optional<Position> position) const;
    void report(uint32_t sender, uint64_t now);
    void count_own(uint64_t now);
    void tell_missing(uint32_t sender, const Missing& missing, uint16_t who, uint64_t now);
    void ask_below(uint32_t sender, const Relay& relay, const Head& head);

    // group_lifecycle.cpp
    void act(uint8_t actions, uint64_t now);
    uint32_t leader() const { return tree_.first(); }
    void on_ping(uint32_t test, uint64_t now);
    void on_echo(uint32_t test, uint64_t now);
    void send_test(Word word);
    void answer(uint64_t now);
    void tell_down(NoteKind kind, uint32_t root, uint32_t test, bool any_test = false);
    void run_test(uint64_t now);

    const std::vector<Name> members_;
    const uint32_t me_;
    const GroupSettings settings_;
    GroupEnvironment& outside_;
    ReceiveQueue& desk_;
    Tree tree_;
    std::vector<bool> dead_;  ///< out for good
    State state_ = State::absent;
    bool left_behind_ = false, silent_ = false, deaf_ = false;

    Outgoing outgoing_;
    Relay own_;  ///< of what this process sends
    uint32_t asked_after_ = 0;
    uint32_t other_way_from_ = kCounterStart;  ///< serial of the first message that went as now
    std::vector<std::unique_ptr<From>> from_;

    uint32_t test_ = kCounterStart;  ///< number of the last one that was heard of
    bool pinged_ = false;            ///< its ping has come, to this member; to the leader: its echo
    uint32_t sent_of_it_ = 0;        ///< pings, or echoes
    std::vector<uint32_t> pongs_;
    uint64_t ping_at_ = UINT64_MAX, ping_pause_ = kPingNs, test_ends_ = UINT64_MAX;
};

}  // namespace starling::multicast
