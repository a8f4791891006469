// The datagram queue pair (UD): one for all peers and all multicast groups.
#pragma once

#include "plugins/verbs/addresses.h"
#include "plugins/verbs/core.h"

namespace starling::verbs {

/// Q_Key of all our datagrams and of multicast groups: the one that librdmacm uses for groups. It only keeps other programs out; sessions
/// authenticate the sender.
inline constexpr uint32_t kQueueKey = 0x01234567;
inline constexpr uint32_t kToGroup = 0xffffff;  ///< the queue number of all group members

class Datagrams {
  public:
    explicit Datagrams(VerbsCore& core) : core_(core), addresses_(core) {}
    ~Datagrams() { drop(); }

    bool make();
    void drop();
    ibv_qp* pair() const { return pair_; }
    const VerbsAddress& address() const { return own_; }

    WorkStatus send(const VerbsAddress& to, const iovec* parts, int count);
    void ended(const ibv_wc& completion);
    void received(const ibv_wc& completion, uint32_t buffer);
    void report_room();
    size_t addresses() const { return addresses_.size(); }
    bool broken() const { return broken_; }
    void broke(const char* why);

  private:
    bool create();
    WorkStatus post(ibv_send_wr& work, const ibv_sge& place, const PostedWork& sent);

    VerbsCore& core_;
    Addresses addresses_;
    ibv_qp* pair_ = nullptr;
    VerbsAddress own_;
    SendQueue sends_;
    uint64_t memory_ = 0;  ///< bytes of the queue's memory, as added to PortCounters
    bool broken_ = false, refused_busy_ = false;
};

}  // namespace starling::verbs
