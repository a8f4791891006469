// One end of an RC connection between simulated devices.
#pragma once

#include <deque>
#include <string>

#include "device_port.h"

namespace starling::simulation {

class SimulatedQueue final : public verbs::Queue {
  public:
    SimulatedQueue(SimulatedPort& port, void* user);
    ~SimulatedQueue();

    verbs::QueueAddress address() const override;
    bool connect(const verbs::QueueAddress& peer) override;
    verbs::WorkStatus send(const iovec* parts, int count) override;
    verbs::WorkStatus write(const Transfer& what) override;
    verbs::WorkStatus write_with_note(const Transfer& what, uint32_t word) override;
    verbs::WorkStatus read(const Transfer& what) override;
    verbs::WorkStatus fetch_add(const Transfer& what, uint64_t operand) override;
    verbs::WorkStatus compare_swap(const Transfer& what, uint64_t compare, uint64_t operand) override;
    void close(bool linger) override;

    uint32_t number() const { return number_; }
    /// Puts the queue into the error state; its work in transit fails.
    void fail(const char* why);

  private:
    enum class Kind : uint8_t { frame, write, note, read, add, swap };
    struct Work {
        Kind kind = Kind::frame;
        Transfer what = {};
        std::string bytes = {};  ///< contents of a frame, inline data, or read data
        bool inlined = false;
        uint32_t word = 0;
        uint64_t operand = 0, compare = 0, arrives = 0;
    };
    enum class Outcome : uint8_t { done, not_ready, refused };

    verbs::WorkStatus post(Work work);
    /// Returns whether the work request writes into a ring of the peer (transport/network/rdma/rdma_ring.h).
    bool is_ring_write(const Work& work) const;
    /// Returns the number of bytes that the work request sends to the peer.
    static uint64_t bytes_to_peer(const Work& work);
    uint64_t price_of(const Work& work) const;
    /// Returns the transit time of the work request.
    uint64_t transit(const Work& work);
    /// Returns the transit time of its acknowledgement, with the data of a read.
    uint64_t transit_back(const Work& work);
    verbs::WorkStatus transfer(Work work);
    /// Executes at the peer all work that has arrived, in order.
    void deliver();
    void acknowledge();
    bool gives_up();
    void tell_done(const Work& work, verbs::WorkStatus status);
    /// Returns the other end if it exists, is connected with this one, and the network between them works.
    SimulatedQueue* reachable_peer() const;
    Outcome carry_out(Work& work, SimulatedQueue& at);
    Outcome write_there(Work& work, SimulatedQueue& at);
    Outcome read_there(Work& work, SimulatedQueue& at);
    /// Ends the run if the memory of a transfer in this process is not registered.
    void check_own(const Work& work) const;
    void later(uint64_t when, void (SimulatedQueue::*what)());
    void end();

    SimulatedPort& port_;
    void* const user_;
    const uint32_t number_;
    uint32_t peer_ = 0;  ///< number of the peer's queue; 0: not connected
    std::deque<Work> works_;
    size_t delivered_ = 0;  ///< number of requests, from the front, executed at the peer but not acknowledged yet
    uint64_t last_arrival_ = 0, last_acknowledged_ = 0, next_try_ = 0;
    uint32_t tries_ = 0;
    bool broken_ = false, closed_ = false, refused_busy_ = false;
};

}  // namespace starling::simulation
