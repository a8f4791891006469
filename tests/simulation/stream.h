// TCP in the simulated world: ordered bytes that arrive late, wait for a rail that is down, or break off.
#pragma once

#include <linux/tcp.h>

#include <memory>
#include <string>

#include "network.h"

namespace starling::simulation {

struct StreamLink;

struct StreamSocket final : Descriptor {
    Address local, remote;
    bool listens = false;
    bool abandoned = false;  ///< whether closing the socket resets the connection

    using Descriptor::Descriptor;
    ~StreamSocket() override;
    uint32_t events() const override;
    /// Starts to connect. Returns 0 or errno: EINPROGRESS.
    int connect(const Address& target);
    /// Accepts a connection; returns its descriptor, or -1 with errno.
    int accept();
    ssize_t send(const iovec* parts, size_t count);
    ssize_t receive(const iovec* parts, size_t count);
    /// Ends this side's stream: nothing more will be sent.
    void finish();
    int fetch_error();
    tcp_info info() const;

  private:
    friend struct StreamLink;
    std::shared_ptr<StreamLink> link_;
    int side_ = 0;  ///< number of this side; 0: it connected, 1: it was accepted
    bool established_ = false;
    int error_ = 0;
    std::deque<std::shared_ptr<StreamLink>> waiting_;  ///< connections to be accepted
};

}  // namespace starling::simulation
