// On the other hosts of standing daemons: mpiexec finds them there too. What its clients say goes to the root.
#pragma once

#include <string>

#include "launch/common/frame_server.h"
#include "launch/universe/host_agent.h"

namespace starling::launch {

/// A submission as it crosses the network: of the user's environment no more than ranks on other hosts get, unless he wants all of it to go
/// there (-genvall). False if it is none.
bool submission_for_network(std::string_view payload, std::string& out);

class ClientRelay {
  public:
    ClientRelay(EventLoop& loop, HostAgent::Send send);

    /// Listens; false with errno.
    bool listen(std::string_view name);
    /// A frame of the root for a client here.
    void on_order(const Order& order);

  private:
    FrameServer server_;
    HostAgent::Send send_;
};

}  // namespace starling::launch
