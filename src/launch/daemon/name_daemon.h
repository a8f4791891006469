// The user's daemon: the published names of all the user's jobs on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>

#include "launch/common/frame_server.h"

namespace starling::launch {

/// Names belong to the connection they came by: when a launcher ends, its names are gone. Unless told to
/// persist, the daemon ends with its last client.
class NameDaemon {
  public:
    NameDaemon(EventLoop& loop, bool persistent);

    /// False with errno; EADDRINUSE if another daemon serves this user already.
    bool start();

  private:
    using ConnectionId = FrameServer::ConnectionId;
    struct Name {
        std::string port;
        job::JobId job;
        ConnectionId owner;
    };

    bool on_frame(ConnectionId id, const control::Frame& frame);
    void on_close(ConnectionId id);
    control::NameReply publish(ConnectionId id, const control::NameRequest& request);
    control::NameReply unpublish(ConnectionId id, const control::NameRequest& request);
    control::NameReply look_up(const control::NameRequest& request) const;
    control::NameReply status() const;

    EventLoop& loop_;
    FrameServer server_;
    bool persistent_;
    std::map<std::string, Name> names_;
    std::unordered_set<ConnectionId> launchers_;  ///< connections that asked about names, for status
};

}  // namespace starling::launch
