// The socket on which the launcher receives requests of its ranks, and passes them to its Controller.
#pragma once

#include <string>
#include <unordered_map>

#include "control/control_protocol.h"
#include "launch/common/frame_server.h"
#include "launch/process/descriptor_broker.h"
#include "launch/process/job.h"

namespace starling::launch {

class Launcher;

class ControlServer {
  public:
    explicit ControlServer(Launcher& launcher);

    /// Listens on the abstract socket `name`. Returns false and sets failure_text() on failure.
    bool start(const std::string& name);
    /// Returns the name for JobHeader::control_socket.
    const std::string& name() const { return name_; }

    /// Handles the requests that a rank sent before it died. To be called before its death is handled.
    void handle_pending_frames() { server_.handle_pending_frames(); }

  private:
    struct Asker {
        job::JobId job;
        uint32_t rank;
    };

    bool on_frame(FrameServer::ConnectionId id, const control::ControlFrame& frame);
    bool handle_hello(FrameServer::ConnectionId id, const control::ControlFrame& frame);
    void reply(FrameServer::ConnectionId id, std::string_view payload);

    Launcher& launcher_;
    FrameServer server_;
    DescriptorBroker keeper_;
    std::string name_;
    std::unordered_map<FrameServer::ConnectionId, Asker> askers_;
};

}  // namespace starling::launch
