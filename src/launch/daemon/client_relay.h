// The relay of a host of standing daemons: mpiexec connects to it, and it passes the client's frames to the root.
#pragma once

#include <string>

#include "launch/common/frame_server.h"
#include "launch/universe/host_agent.h"

namespace starling::launch {

/// Converts a submission for the network: removes the user's variables that ranks on other hosts do not receive, unless the user passes on
/// all of them (-genvall). Returns false if `payload` is not a submission.
bool submission_for_network(std::string_view payload, std::string& out);

class ClientRelay {
  public:
    ClientRelay(EventLoop& loop, HostAgent::SendOrder send);

    /// Listens on a socket. Returns false and sets errno on failure.
    bool listen(std::string_view name);
    /// Handles an order of the root with a frame for a client of this host.
    void on_order(const HostOrder& order);

  private:
    FrameServer server_;
    HostAgent::SendOrder send_;
};

}  // namespace starling::launch
