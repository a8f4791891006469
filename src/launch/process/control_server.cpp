#include "launch/process/control_server.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/version.h"
#include "job/doorbell.h"
#include "launch/process/launcher.h"
#include "mpi.h"

namespace starling::launch {

using control::MessageKind;

ControlServer::ControlServer(Launcher& launcher)
    : launcher_(launcher),
      server_(
          launcher.loop(), [this](auto id, const control::ControlFrame& frame) { return on_frame(id, frame); },
          [this](auto id) { askers_.erase(id); }),
      keeper_(launcher) {}

bool ControlServer::start(const std::string& name) {
    name_ = name;
    if (server_.listen(name_) && keeper_.start(name_)) return true;
    fail(MPI_ERR_OTHER, "cannot listen for the job's processes: %s%s", std::strerror(errno), limit_remedy(errno));
    return false;
}

bool ControlServer::on_frame(FrameServer::ConnectionId id, const control::ControlFrame& frame) {
    if (frame.kind == MessageKind::hello) return handle_hello(id, frame);
    const auto asker = askers_.find(id);
    if (asker == askers_.end()) return false;
    LocalJob* job = launcher_.find_job(asker->second.job);
    if (!job || frame.payload.size() > control::kMaxRequest) return false;
    return launcher_.superior()->forward_request(*job, asker->second.rank, frame.kind, frame.payload,
                                                 [this, id](const std::string& payload) { reply(id, payload); });
}

bool ControlServer::handle_hello(FrameServer::ConnectionId id, const control::ControlFrame& frame) {
    control::ControlHello hello;
    if (askers_.contains(id) || !decode(frame.payload, hello) || !understands(hello.version)) return false;
    const LocalJob* job = launcher_.find_job(hello.job);
    if (!job || hello.rank >= job->segment.header().size || !job->segment.is_local(hello.rank)) return false;
    const uint64_t* secret = job->segment.header().secret;
    if (((hello.secret[0] ^ secret[0]) | (hello.secret[1] ^ secret[1])) != 0) return false;
    askers_[id] = {hello.job, hello.rank};
    server_.trust(id);
    return true;
}

void ControlServer::reply(FrameServer::ConnectionId id, std::string_view payload) {
    const auto asker = askers_.find(id);
    if (asker == askers_.end()) return;
    const Asker who = asker->second;  // copied, because send() may close the connection and erase the entry
    server_.send(id, MessageKind::reply, payload);
    LocalJob* job = launcher_.find_job(who.job);
    if (!job) return;
    job->segment.cell(who.rank).replies.fetch_add(1, std::memory_order_release);
    job::ring(*reinterpret_cast<job::Doorbell*>(job->segment.region(who.rank)));
}

}  // namespace starling::launch
