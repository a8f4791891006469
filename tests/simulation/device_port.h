// A port of a simulated device, as one process has it open.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "devices.h"

namespace starling::simulation {

struct PortChannel;

class SimulatedMembership final : public verbs::PortMembership {
  public:
    SimulatedMembership(SimulatedPort& port, const uint8_t* gid);
    MembershipState state() override { return state_; }
    verbs::WorkStatus send(const iovec* parts, int count) override;
    void leave() override;
    bool is_of(const uint8_t* gid) const;

  private:
    friend class SimulatedPort;
    SimulatedPort& port_;
    uint8_t gid_[16];
    uint32_t number_ = 0;
    MembershipState state_ = MembershipState::joining;
};

class SimulatedPort final : public verbs::Port {
  public:
    SimulatedPort(Devices& devices, Process& owner, uint32_t rail, const verbs::PortFacts& facts);
    ~SimulatedPort();

    const verbs::PortFacts& facts() const override { return facts_; }
    verbs::VerbsAddress address() const override;
    uint32_t datagram_limit() const override { return devices_.weather().mtu; }
    uint32_t frame_limit() const override { return devices_.weather().frame; }
    verbs::WorkStatus send(const verbs::VerbsAddress& to, const iovec* parts, int count) override;
    verbs::Queue* make_queue(void* user) override;
    verbs::PortMembership* join(const uint8_t* group_gid) override;
    bool enroll(void* memory, uint64_t bytes, bool remote, verbs::Memory& out) override;
    void dismiss(verbs::Memory& memory) override;
    int poll(verbs::VerbsEvent* events, int most) override;
    void return_buffer(const verbs::VerbsEvent& event) override;
    int wait_fd() const override { return channel_; }
    bool arm() override;
    verbs::PortCounters counters() const override;
    const char* problem() const override { return problem_.c_str(); }
    void close() override;

    // Interface for the device and its queues:
    Process& owner() const { return owner_; }
    uint32_t host() const { return owner_.host; }
    uint32_t rail() const { return rail_; }
    bool gone() const { return gone_; }
    bool works() const { return !gone_ && network()->is_up(host(), rail_); }
    Devices& devices() const { return devices_; }
    void say(std::string problem) { problem_ = std::move(problem); }
    void tell(const verbs::VerbsEvent& event);
    /// Queues an event with a receive buffer for poll(); returns false if no buffer is free.
    bool bring(verbs::VerbsEvent event, std::string_view bytes, bool to_group = false);
    bool has_buffer() const { return lent_.size() < devices_.weather().receives; }
    /// Drops the queued events of this user's queue, except completions of its transfers.
    void forget(const void* user);
    void end(SimulatedQueue& queue);
    void removed();
    void link_changed(bool up);
    void datagram(std::string_view bytes, const verbs::VerbsAddress& from, uint32_t source_queue, bool to_group);
    /// Sends to all members of the group that the network reaches.
    verbs::WorkStatus send_to_group(const uint8_t* gid, const iovec* parts, int count);
    bool is_member(const uint8_t* gid) const;
    void drop_membership(SimulatedMembership& one);
    bool fired() const { return fired_; }
    verbs::PortCounters count;

  private:
    /// A receive buffer in use.
    struct LentBuffer {
        std::unique_ptr<uint64_t[]> memory;
        bool to_group;  ///< whether it holds a datagram to a group
    };

    void take_datagram_queue();
    void note_most();
    bool takes_datagram(verbs::WorkStatus& status, const std::string& bytes);
    /// Returns the price of decrypting a received datagram to a group, ns.
    uint64_t opening_price(const verbs::VerbsEvent& event) const;
    /// Frees a send slot when the datagram has left the device.
    void free_slot_at(uint64_t when);

    Devices& devices_;
    Process& owner_;
    const uint32_t rail_;
    verbs::PortFacts facts_;
    uint32_t datagram_queue_ = 0;
    int channel_ = -1;
    bool gone_ = false, armed_ = false, fired_ = false;
    bool slept_through_ = false;  ///< whether an event came while the owner slept without having armed the port
    uint32_t sending_ = 0;
    bool refused_busy_ = false;
    std::deque<verbs::VerbsEvent> events_;
    std::vector<LentBuffer> lent_;
    std::vector<std::unique_ptr<SimulatedQueue>> queues_;
    std::vector<std::unique_ptr<SimulatedMembership>> memberships_;
    std::string problem_;
    verbs::PortCounters most_;
};

}  // namespace starling::simulation
