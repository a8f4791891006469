// Connects a group to peers and the network, and stores its users and its history.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "link/peer.h"
#include "multicast/group.h"
#include "multicast/group_address.h"
#include "transport/multicast_groups.h"

namespace starling::multicast {

class Membership final : public GroupEnvironment, public transport::DatagramHandler {
  public:
    /// `members` are the group's processes, sorted by job and rank; `me` is this process's index among them.
    Membership(std::span<const link::Process> members, uint32_t me, const transport::GroupName& name, ReceiveQueue& desk);

    const transport::GroupName name;
    MulticastGroup group;
    uint32_t users = 0;        ///< number of channels that use the group
    uint64_t value = 0;        ///< number of messages sent and received by the group
    uint64_t rests_until = 0;  ///< earliest time of another try after a failure or an eviction, ns
    uint32_t failures = 0;     ///< number of failures in a row: unanswered tests, and ready groups without arriving multicast
    uint64_t joined_at = 0, ready_at = 0;
    bool taken = false;   ///< whether this is a pool group that may not be assigned any more
    bool pooled = false;  ///< whether this is a pool group, used only by the communicator to which it is assigned
    /// Whether this is a pool group that was left before its assignment was known: the assignment may still arrive.
    bool lost = false;
    /// Notifies the other members that this process has left the group for good.
    void announce_leave();

    link::Process process(uint32_t member) const { return processes_[member]; }
    /// Returns the member's index, or size() if it is not one.
    uint32_t index_of(const MemberName& who) const;
    bool of_own_job() const { return own_job_; }
    /// Marks members that are dead or have finalized.
    void mark_dead(uint64_t now);
    /// Sends `member` a request for a pool group.
    void request_group(uint32_t member, const std::byte* claim, uint32_t bytes);
    /// Makes room for one more group; returns false if this process is in as many groups as it may be. Null: there is no limit.
    bool (*may_join)(Membership& self) = nullptr;
    /// Called when a datagram has arrived, to run the group soon.
    void (*touched)(Membership& self) = nullptr;
    uint64_t due = 0;                      ///< time of the next run, ns
    GroupState seen = GroupState::absent;  ///< state of the group at the last call of GroupManager::settle()

    // Implementation of GroupEnvironment.
    bool to_group(const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) override;
    bool to_member(uint32_t member, const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) override;
    void note(uint32_t member, const Note& note) override;
    bool join() override;
    void leave() override;
    void flush() override;
    void report_unreachable() override;
    // Implementation of DatagramHandler.
    void datagram(const std::byte* data, uint32_t bytes) override;

  private:
    link::Peer* peer(uint32_t member) const;
    bool send_behind_note(uint32_t member, const Note& note, const iovec* parts, int count);

    const std::vector<link::Process> processes_;
    std::vector<link::JobHold> holds_;
    bool own_job_ = true;
    std::unique_ptr<transport::MulticastMembership> network_;
};

}  // namespace starling::multicast
