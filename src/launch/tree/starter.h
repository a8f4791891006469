// How a daemon brings another one to life.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "launch/tree/messages.h"

namespace starling::launch {

/// One start under way. Destroying it gives it up: what runs on this machine for it is ended.
class NodeStart {
  public:
    virtual ~NodeStart() = default;
    /// Nothing is left to be done or cleaned up for it.
    virtual bool finished() const = 0;
    /// What has been heard so far, if it tells something about a start that takes too long.
    virtual std::string said() const { return {}; }
    /// The status of a child process that somebody else has waited for. False if it is not of this start.
    virtual bool child_exited(pid_t, int) { return false; }
};

class NodeStarter {
  public:
    virtual ~NodeStarter() = default;
    /// Never fails at once: `on_failed` is called from the loop, at most once, with the reason, in words
    /// that go after "host <name>: ".
    virtual std::unique_ptr<NodeStart> start(const Orders& orders, std::function<void(const std::string&)> on_failed) = 0;
};

/// Through the agent of the settings, or directly if the host is this machine.
std::unique_ptr<NodeStarter> make_agent_starter(EventLoop& loop);

}  // namespace starling::launch
