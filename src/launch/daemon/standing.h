// The root of standing daemons: a permanent universe, in which jobs start without ssh.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/daemon/client_server.h"
#include "launch/process/launcher.h"
#include "launch/universe/universe.h"

namespace starling::launch {

/// Runs in `starlingd universe`, on the host where `starling daemon start --hostfile` was called.
class StandingRoot {
  public:
    /// `tell` is called once, with "ready" or with an error, for the process that started this daemon.
    StandingRoot(EventLoop& loop, char** argv, std::function<void(const std::string&)> tell);
    StandingRoot(const StandingRoot&) = delete;
    StandingRoot& operator=(const StandingRoot&) = delete;

    /// Starts daemons on `hosts`, a list as for --host, and serves until the end. `prefix`: where Starling is installed on the other hosts;
    /// empty: as here. Returns the exit code.
    int run(const std::string& hosts, const std::string& prefix);
    /// Ends the daemons, because the process that started them does not wait any longer.
    void give_up() { end(1); }

  private:
    void on_ready(const std::string& problem);
    void end(int code);
    void note(const std::string& sentence);
    std::string status() const;

    EventLoop& loop_;
    std::function<void(const std::string&)> notify_;
    Launcher launcher_;
    std::unique_ptr<Universe> universe_;
    std::unique_ptr<ClientServer> clients_;
    std::deque<std::string> notes_;  ///< the last error messages, which `starling daemon status` prints
    bool ending_ = false;
};

}  // namespace starling::launch
