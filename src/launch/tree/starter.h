// The interface for starting daemons on other hosts.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "launch/tree/messages.h"

namespace starling::launch {

/// A start in progress. Its destruction cancels the start and ends its processes on this machine.
class NodeStart {
  public:
    virtual ~NodeStart() = default;
    /// Returns whether the start is complete: its process has ended, and its pipes are closed.
    virtual bool finished() const = 0;
    /// Returns output of the agent that may explain why a start takes too long.
    virtual std::string greeting_text() const { return {}; }
    /// Takes the status of a child process that another part of this program has reaped. Returns false if the child is not of this start.
    virtual bool child_exited(pid_t, int) { return false; }
};

class NodeStarter {
  public:
    virtual ~NodeStarter() = default;
    /// Starts a node. `on_failed` is called at most once, from the loop and not within start(), with the reason as text that fits after
    /// "host <name>: ".
    virtual std::unique_ptr<NodeStart> start(const Orders& orders, std::function<void(const std::string&)> on_failed) = 0;
};

/// Returns a starter that uses the agent of the settings, or starts directly if the host is this machine.
std::unique_ptr<NodeStarter> make_agent_starter(EventLoop& loop);

}  // namespace starling::launch
