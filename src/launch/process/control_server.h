// The launcher's ear for its ranks: spawn, names, disconnect.
#pragma once

#include <string>
#include <unordered_map>

#include "control/control_protocol.h"
#include "launch/common/frame_server.h"
#include "launch/common/name_client.h"
#include "launch/process/job.h"

namespace starling::launch {

class Launcher;

class ControlServer {
  public:
    explicit ControlServer(Launcher& launcher);

    /// Listens on an abstract name of its own. False with failure_text().
    bool start();
    /// For JobHeader::control_socket.
    const std::string& name() const { return name_; }
    /// The names this job published are withdrawn.
    void job_ended(job::JobId job) { names_.job_ended(job); }

  private:
    struct Asker {
        job::JobId job;
        uint32_t rank;
    };

    bool on_frame(FrameServer::ConnectionId id, const control::Frame& frame);
    bool greet(FrameServer::ConnectionId id, const control::Frame& frame);
    bool spawn(FrameServer::ConnectionId id, Job& job, const control::Frame& frame);
    bool name(FrameServer::ConnectionId id, Job& job, const control::Frame& frame);
    bool disconnect(FrameServer::ConnectionId id, Job& job, const control::Frame& frame);
    bool find(FrameServer::ConnectionId id, const control::Frame& frame);
    void reply(FrameServer::ConnectionId id, std::string_view payload);

    Launcher& launcher_;
    FrameServer server_;
    NameClient names_;
    std::string name_;
    std::unordered_map<FrameServer::ConnectionId, Asker> askers_;
};

/// A spawn request as a job; with `here_only` hosts other than this one are refused. An empty string, or the sentence that tells what can't be done.
std::string job_of(const control::SpawnRequest& request, job::JobId parent, JobSpec& out, bool here_only = true);

/// How many processes a request is for; no more than a job may have, if it asks for more.
size_t processes_asked_for(const control::SpawnRequest& request);

/// The counts of a soft set like "1,4:8" or "2:8:2" that are at most `most`, ascending. False if malformed.
bool parse_soft(std::string_view text, uint32_t most, std::vector<uint32_t>& out);

}  // namespace starling::launch
