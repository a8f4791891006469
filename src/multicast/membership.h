// A group of this process in the world: its members as peers, its place in the network, who uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "link/peer.h"
#include "multicast/group.h"
#include "multicast/group_address.h"

namespace starling::multicast {

class Membership final : public GroupEnvironment, public transport::DatagramHandler {
  public:
    /// `members` ascend by name.
    Membership(std::span<const link::Process> members, uint32_t me, const transport::GroupName& name, ReceiveQueue& desk);

    const transport::GroupName name;
    Group group;
    uint32_t users = 0;        ///< channels
    uint64_t value = 0;        ///< messages sent and received, lately more than long ago
    uint64_t rests_until = 0;  ///< ns; it was given up, and is not tried again before
    uint32_t failures = 0;     ///< in a row: tests that were not answered, and times that nothing came though they were
    uint64_t joined_at = 0, ready_at = 0;
    bool taken = false;   ///< of the pool, and given to somebody
    bool pooled = false;  ///< made ahead: only who is given it uses it
    /// Of the pool, and left before it was known for whom it is: word of that may be under way.
    bool lost = false;
    /// Says that this process has let go of the group, and sends nothing to it any more.
    void tell_gone();

    link::Process process(uint32_t member) const { return processes_[member]; }
    /// The member's index, size() if it is none.
    uint32_t index_of(const Name& who) const;
    bool of_own_job() const { return own_job_; }
    /// Marks those who are dead or have finalized.
    void look_for_dead(uint64_t now);
    /// Asks a member of the pool for a group.
    void wish(uint32_t member, const std::byte* claim, uint32_t bytes);
    /// More groups at a time than the network is to have.
    bool (*may_join)(Membership& self) = nullptr;
    /// Something has come: it is to be run soon.
    void (*touched)(Membership& self) = nullptr;
    uint64_t due = 0;            ///< ns; when it is to be run
    State seen = State::absent;  ///< as of the last time that it was

    // Outside
    bool to_group(const Head& head, const std::byte* body, uint32_t bytes) override;
    bool to_member(uint32_t member, const Head& head, const std::byte* body, uint32_t bytes) override;
    void note(uint32_t member, const Note& note) override;
    bool join() override;
    void leave() override;
    void flush() override;
    void report_unreachable() override;
    // Audience
    void datagram(const std::byte* data, uint32_t bytes) override;

  private:
    link::Peer* peer(uint32_t member) const;
    bool send_behind_note(uint32_t member, const Note& note, const iovec* parts, int count);

    const std::vector<link::Process> processes_;
    std::vector<link::JobHold> holds_;
    bool own_job_ = true;
    std::unique_ptr<transport::Group> network_;
};

}  // namespace starling::multicast
