// A reliable queue pair (RC), for frames and RDMA.
#pragma once

#include "plugins/verbs/core.h"

namespace starling::verbs {

class RcQueue final : public Queue {
  public:
    /// Creates a connection; returns null with core.problem on failure.
    static RcQueue* make(VerbsCore& core, void* user);
    ~RcQueue();
    /// Destroys the device's queue pair. Its earlier completions are still in the completion queue.
    void end_pair();

    QueueAddress address() const override { return own_; }
    bool connect(const QueueAddress& peer) override;
    WorkStatus send(const iovec* parts, int count) override;
    WorkStatus write(const Transfer& what) override;
    WorkStatus write_with_note(const Transfer& what, uint32_t word) override;
    WorkStatus read(const Transfer& what) override;
    WorkStatus fetch_add(const Transfer& what, uint64_t operand) override;
    WorkStatus compare_swap(const Transfer& what, uint64_t compare, uint64_t operand) override;
    void close(bool linger) override;

    /// Handles the completion of a work request of this connection.
    void ended(const ibv_wc& completion);
    void received(const ibv_wc& completion, uint32_t buffer);
    /// Reports the connection as broken, once.
    [[gnu::cold]] void broke(const char* why);
    /// Completes all pending work with an error, because the device no longer exists.
    [[gnu::cold]] void lost();
    /// Reports that there is room again, if the connection has refused a request as busy before.
    void report_room();
    /// Posts the chain to the device. Returns false if the device has not accepted all of it; then this connection is broken.
    /// `last_fails_itself`: the caller reports the last request's failure.
    bool post_chain(bool last_fails_itself);
    uint32_t number() const { return own_.queue; }
    bool closed() const { return closed_; }

  private:
    RcQueue(VerbsCore& core, void* user) : core_(core), user_(user) {}
    bool start();
    bool change(ibv_qp_attr& attributes, int mask, const char* state);
    bool ready(WorkStatus& status);
    ibv_send_wr transfer(const Transfer& what, ibv_wr_opcode opcode) const;
    WorkStatus post(ibv_send_wr& work, const ibv_sge& place, const PostedWork& sent, bool more);
    void linger();
    void forget();
    void report(const VerbsEvent& event) {
        if (!closed_) core_.report(event);
    }

    VerbsCore& core_;
    void* user_ = nullptr;
    ibv_qp* pair_ = nullptr;
    QueueAddress own_;
    uint8_t peer_gid_[16] = {};
    SendQueue sends_;
    uint64_t memory_ = 0;  ///< bytes of the queue's memory, as added to PortCounters
    bool reserved_ = false, connected_ = false, broken_ = false, closed_ = false, finished_ = false;
    bool refused_busy_ = false;
};

}  // namespace starling::verbs
