// An open port: polls its completion queue and distributes the completions.
#pragma once

#include <vector>

#include "plugins/verbs/core.h"
#include "plugins/verbs/datagrams.h"
#include "plugins/verbs/groups.h"

namespace starling::verbs {

class VerbsPort final : public Port {
  public:
    /// Opens a port; returns null with an error text on failure.
    static VerbsPort* open(const PortFacts& which, const DeviceOptions& options, char* problem, size_t size);

    const PortFacts& facts() const override { return core_.facts; }
    VerbsAddress address() const override { return datagrams_.address(); }
    uint32_t datagram_limit() const override { return core_.facts.mtu; }
    uint32_t frame_limit() const override { return core_.frame_bytes; }
    WorkStatus send(const VerbsAddress& to, const iovec* parts, int count) override {
        return datagrams_.send(to, parts, count);
    }
    Queue* make_queue(void* user) override;
    PortMembership* join(const uint8_t* group_gid) override;
    bool enroll(void* memory, uint64_t bytes, bool remote, Memory& out) override;
    void dismiss(Memory& memory) override;
    int poll(VerbsEvent* events, int most) override;
    void return_buffer(const VerbsEvent& event) override;
    int wait_fd() const override { return wait_; }
    bool arm() override;
    PortCounters counters() const override;
    const char* problem() const override { return core_.problem.text(); }
    void close() override { delete this; }

    /// Destroys the connection and drains its completions.
    void end_connection(RcQueue* connection);

  private:
    VerbsPort();
    ~VerbsPort();
    bool start(const PortFacts& which, const DeviceOptions& options);
    bool watch(int descriptor);

    int poll_queue(int most);
    void drain() {
        while (poll_queue(kTogether) == kTogether) {}
    }
    void handle_completion(const ibv_wc& completion);
    void after_taking();
    bool drain_channel();

    void check_state();
    void happened(const ibv_async_event& event);
    void address_may_have_changed();
    void went_down(const char* why);
    void on_up();
    void lost_device();

    static constexpr int kTogether = 16;
    static constexpr uint64_t kLookEvery = 4'000'000;  ///< ns between two polls of the device's asynchronous events
    /// ns between two checks whether the device still exists. A driver that cannot revoke the device from us (Soft-RoCE) sends no event,
    /// and waits until we close it.
    static constexpr uint64_t kFindEvery = 250'000'000;
    static constexpr uint64_t kAgain = 1'000'000'000;

    VerbsCore core_;
    Datagrams datagrams_;
    Groups groups_;
    int wait_ = -1;
    bool down_ = false;
    bool armed_ = false;  ///< whether the device writes to the channel at the next completion
    /// Whether the device has written to the channel, or is about to, for completions that poll() has already taken.
    bool fired_ = false;
    uint64_t checked_at_ = 0;
    uint64_t found_ = 0;
    uint64_t again_ = 0;  ///< time of the next attempt to bring the port up after a failure, ns; 0: there was no failure
};

}  // namespace starling::verbs
