// A group at one member: its state, its outgoing stream, the incoming streams of the other members, and the acknowledgements passed up the
// trees. No I/O: GroupEnvironment provides it, so that tests connect many groups through a simulated network.
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

/// A member's name, unique in the universe.
struct MemberName {
    uint64_t job;
    uint32_t rank;
    bool operator==(const MemberName&) const = default;
    auto operator<=>(const MemberName&) const = default;
};

class GroupEnvironment : public GroupTransmitter {
  public:
    /// Joins the network's group. Returns false if that fails.
    virtual bool join() = 0;
    virtual void leave() = 0;
    /// Sends a note to one member, reliably and in order with all other packets to it.
    virtual void note(uint32_t member, const Note& note) = 0;

  protected:
    ~GroupEnvironment() = default;
};

struct GroupSettings {
    uint64_t key = 0;
    uint64_t epoch = 1;  ///< number of the first stream; higher than in earlier groups of this process with the same key
    uint32_t fragment_bytes = 1400;        ///< message bytes per datagram with a short header
    uint64_t patience_ns = 5'000'000'000;  ///< time after which a test with missing answers is abandoned
};

class MulticastGroup {
  public:
    MulticastGroup(std::vector<MemberName> members, uint32_t me, const GroupSettings& settings, GroupEnvironment& outside,
                   ReceiveQueue& desk);

    uint32_t size() const { return tree_.members(); }
    uint32_t me() const { return me_; }
    const std::vector<MemberName>& members() const { return members_; }
    GroupState state() const { return state_; }
    bool may_send(uint64_t bytes) const { return state_ == GroupState::ready && outgoing_.takes(bytes); }
    void start(MulticastSend& send, uint64_t context, uint64_t call, const void* data, uint64_t bytes, uint64_t now);
    const Outgoing& outgoing() const { return outgoing_; }
    /// Requests acknowledgements, for a process that waits until all messages are acknowledged. Returns whether that changes anything.
    bool request_acks(uint64_t now) { return !outgoing_.drained() && outgoing_.request_acks(now); }
    uint64_t duplicates() const;
    bool is_out(uint32_t member) const { return tree_.is_out(member); }
    /// Returns whether this member has been excluded: the others continue the group without it.
    bool left_behind() const { return left_behind_; }
    /// Returns whether the test was abandoned because not all members answered in time.
    bool was_silent() const { return silent_; }
    bool leads() const { return leader() == me_; }
    /// Returns whether the group was abandoned because its multicast does not reach this process.
    bool is_unreachable() const { return unreachable_; }
    /// Returns the number of members that are neither dead nor done with the group.
    uint32_t alive() const;

    /// Reports to the other members that this process takes part in no test now, so that they need not wait for it.
    void decline_test() { send_down(NoteKind::unready, me_, test_, true); }

    // Handlers of events.
    void apply(GroupEvent event, uint64_t now);
    void on_datagram(const GroupDatagram& datagram, uint64_t now);
    void on_note(uint32_t from, const Note& note, uint64_t now);
    /// Handles a datagram that a session brought from one member to this one alone.
    void on_single(uint32_t from, const GroupDatagram& datagram, uint64_t now);
    /// Handles the report that a member is dead, or needs nothing from the group any more.
    void on_out(uint32_t member, bool dead, uint64_t now);
    /// Restricts the group to those of its members for which `in` is true.
    void restrict_to(const std::vector<bool>& in, uint64_t now);
    /// Continues all pending work. Returns whether it did anything.
    bool run(uint64_t now);
    uint64_t deadline() const;

  private:
    static constexpr uint64_t kPingNs = 500'000;  ///< interval between the first two pings
    static constexpr uint64_t kPingAtMostNs = 250'000'000;
    static constexpr uint64_t kAskAgainNs = 20'000'000;  ///< interval between requests to a member that has not acknowledged
    static constexpr uint32_t kHeartbeatsInVain = 3;     ///< unacknowledged heartbeats until members are asked individually
    /// Time after which a repeated request for missing fragments is passed up the tree again.
    static constexpr uint64_t kForgetNs = 1'500'000;
    static constexpr size_t kForwarded = 16;
    /// The thresholds at which a sender is notified that its multicast does not arrive: the number of repeats by sessions, and the time
    /// since its last datagram to the group.
    static constexpr uint32_t kUnheardAfter = 3;
    static constexpr uint64_t kUnheardNs = 20'000'000, kTellAgainNs = 100'000'000;
    /// The thresholds after which this process leaves the group, because the network does not deliver its multicast here: the number of
    /// such notifications, and the time since the first.
    static constexpr uint32_t kDeafAfter = 3;
    static constexpr uint64_t kDeafNs = 500'000'000;
    static constexpr uint32_t kPingsAWay = 4;

    /// The acknowledgements and requests that this member passes up the tree of one sender.
    struct Relay {
        std::vector<std::pair<uint32_t, Position>> positions;  ///< positions that the members below have reported
        std::optional<Position> sent;
        uint32_t sent_to = 0;
        bool urgent = false;
        uint64_t requested_at = 0;
        struct Forwarded {
            Missing missing{};
            uint16_t member = 0;
            uint64_t at = 0;
        } forwarded[kForwarded];
        size_t next = 0;

        void record(uint32_t member, const Position& position);
        const Position* of(uint32_t member) const;
    };
    struct From {
        Incoming incoming;
        Relay relay;
        uint64_t received_at = 0;  ///< time of the sender's last datagram to the group
        uint32_t singles = 0;      ///< number of datagrams that a session delivered since received_at, in place of the group
        /// Notifications that the sender's multicast does not arrive, since received_at: their number, the serial of the last, and the
        /// times of the first and the last.
        uint32_t sent = 0, reported_serial = 0;
        uint64_t first_reported_at = 0, reported_at = 0;
        From(ReceiveQueue& desk, const MemberName& name) : incoming(desk, name.job, name.rank) {}
    };

    From& from(uint32_t sender);
    void handle(const GroupDatagram& datagram, uint64_t now);
    void count_single(const GroupDatagramHeader& head, uint64_t now);
    Note make_note(NoteKind kind, uint32_t sender) const;
    void rejoin(uint32_t member, uint64_t now);

    // Functions for acknowledgements and requests for missing fragments.
    std::optional<Position> below(uint32_t sender, const Relay& relay, std::optional<Position> position) const;
    void report(uint32_t sender, uint64_t now);
    void count_completed(uint64_t now);
    void request_missing(uint32_t sender, const Missing& missing, uint16_t who, uint64_t now);
    void request_below(uint32_t sender, const Relay& relay, const GroupDatagramHeader& head);

    // Functions for joining, testing and leaving the group; defined in group_lifecycle.cpp.
    void act(uint8_t actions, uint64_t now);
    uint32_t leader() const { return tree_.first(); }
    void on_ping(uint32_t test, uint64_t now);
    void on_echo(uint32_t test, uint64_t now);
    void send_test(Word word);
    void answer(uint64_t now);
    void send_down(NoteKind kind, uint32_t root, uint32_t test, bool any_test = false);
    void run_test(uint64_t now);

    const std::vector<MemberName> members_;
    const uint32_t me_;
    const GroupSettings settings_;
    GroupEnvironment& outside_;
    ReceiveQueue& desk_;
    MulticastTree tree_;
    std::vector<bool> dead_;  ///< flags of the members that have died or were never assigned to the group
    GroupState state_ = GroupState::absent;
    bool left_behind_ = false, silent_ = false, unreachable_ = false;

    Outgoing outgoing_;
    Relay own_;  ///< acknowledgements of this process's stream
    uint32_t reported_unanswered_ = 0;
    uint32_t other_way_from_ = kCounterStart;  ///< serial of the first message since the last change of the network rail
    std::vector<std::unique_ptr<From>> from_;

    uint32_t test_ = kCounterStart;  ///< number of the last known test
    bool pinged_ = false;            ///< whether the test's ping (at the leader: its echo) has arrived here
    uint32_t sent_of_it_ = 0;        ///< number of pings or echoes sent in the current test
    std::vector<uint32_t> pongs_;
    uint64_t ping_at_ = UINT64_MAX, ping_pause_ = kPingNs, test_ends_ = UINT64_MAX;
};

}  // namespace starling::multicast
