// Multicast groups: librdmacm joins them in the network (by the subnet manager, or IGMP), and the datagram queue is attached to them.
#pragma once

#include <rdma/rdma_cma.h>

#include <vector>

#include "plugins/verbs/datagrams.h"

namespace starling::verbs {

class Groups;

class GroupMembership final : public PortMembership {
  public:
    GroupMembership(Groups& groups, const uint8_t* gid);
    ~GroupMembership();
    MembershipState state() override { return state_; }
    WorkStatus send(const iovec* parts, int count) override;
    void leave() override;

    void start();
    void joined(const rdma_ud_param& group);
    [[gnu::cold]] void failed(const char* why);
    void attach();
    void detach();
    void stop();

  private:
    Groups& groups_;
    MembershipState state_ = MembershipState::joining;
    rdma_cm_id* id_ = nullptr;
    sockaddr_storage address_ = {};  ///< address of the group
    uint8_t wanted_[16] = {};
    ibv_gid gid_ = {};
    uint16_t lid_ = 0;
    uint32_t key_ = 0;
    bool in_group_ = false, attached_ = false;
};

class Groups {
  public:
    Groups(VerbsCore& core, Datagrams& datagrams) : core(core), datagrams(datagrams) {}
    ~Groups() { drop(); }

    /// Sets the epoll descriptor that is to signal our events.
    void wait_descriptor(int descriptor) { wait_ = descriptor; }
    PortMembership* join(const uint8_t* gid);
    void check_groups();
    /// Detaches all groups from the datagram queue, before it is destroyed.
    void leave_queue();
    /// Joins all groups again, after the port's address or its datagram queue has changed.
    void join_again();
    void drop();
    void forget(GroupMembership* member);

    VerbsCore& core;
    Datagrams& datagrams;
    rdma_event_channel* channel = nullptr;

  private:
    bool make_channel();

    std::vector<GroupMembership*> members_;
    int wait_ = -1;
};

}  // namespace starling::verbs
