// The user's daemon, which stores the published names of all the user's jobs on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>

#include "launch/common/frame_server.h"

namespace starling::launch {

/// Each name belongs to the connection that published it: when a launcher ends, its names are removed. Unless it is persistent, the daemon
/// ends with its last client.
class NameDaemon {
  public:
    NameDaemon(EventLoop& loop, bool persistent);

    /// Starts to serve clients. Returns false and sets errno on failure; EADDRINUSE if another daemon already serves this user.
    bool start();

  private:
    using ConnectionId = FrameServer::ConnectionId;
    struct PublishedName {
        std::string port;
        job::JobId job;
        ConnectionId owner;
    };

    bool on_frame(ConnectionId id, const control::ControlFrame& frame);
    void on_close(ConnectionId id);
    control::NameReply publish(ConnectionId id, const control::NameRequest& request);
    control::NameReply unpublish(ConnectionId id, const control::NameRequest& request);
    control::NameReply lookup(const control::NameRequest& request) const;
    control::NameReply status() const;

    EventLoop& loop_;
    FrameServer server_;
    bool persistent_;
    std::map<std::string, PublishedName> names_;
    std::unordered_set<ConnectionId> launchers_;  ///< connections that have requested names; `status` counts them
};

}  // namespace starling::launch
