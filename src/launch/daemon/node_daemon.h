// The service of `starlingd node`: the launcher of its host, which carries out the orders of the universe's root.
#pragma once

#include "launch/daemon/client_relay.h"
#include "launch/process/launcher.h"
#include "launch/tree/tree.h"
#include "launch/universe/host_agent.h"

namespace starling::launch {

class NodeDaemon {
  public:
    /// Sets up the launcher; `argv` is main's. If the host can't start processes, reports it on standard error and stops the loop.
    NodeDaemon(EventLoop& loop, Tree& tree, char** argv);
    NodeDaemon(const NodeDaemon&) = delete;
    NodeDaemon& operator=(const NodeDaemon&) = delete;
    ~NodeDaemon();

  private:
    void on_message(const TreeMessage& message);
    bool on_client_order(std::string_view payload);
    bool on_word_of_root(std::string_view payload);
    void end(int result);
    void on_signal(int signal);

    EventLoop& loop_;
    Tree& tree_;
    Launcher launcher_;
    std::unique_ptr<HostAgent> deputy_;
    std::unique_ptr<ClientRelay> relay_;  ///< relay for mpiexec on this host; only with standing daemons
    bool ending_ = false;
};

}  // namespace starling::launch
