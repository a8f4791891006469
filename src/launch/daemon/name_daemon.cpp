#include "launch/daemon/name_daemon.h"

#include <unistd.h>

#include "control/well_known_socket.h"
#include "mpi.h"

namespace starling::launch {

using control::MessageKind;
using control::NameReply;
using control::NameRequest;

namespace {
constexpr std::chrono::seconds kFirstClient{5};
constexpr size_t kMaxNames = 100000;
}  // namespace

NameDaemon::NameDaemon(EventLoop& loop, bool persistent)
    : loop_(loop),
      server_(
          loop, [this](auto id, const control::ControlFrame& frame) { return on_frame(id, frame); },
          [this](auto id) { on_close(id); }),
      persistent_(persistent) {}

bool NameDaemon::start() {
    if (!server_.listen_at({control::daemon_socket_name()})) return false;
    loop_.after(kFirstClient, [this] {
        if (!persistent_ && server_.connections() == 0) loop_.stop(0);
    });
    return true;
}

bool NameDaemon::on_frame(ConnectionId id, const control::ControlFrame& frame) {
    NameRequest request;
    if (!decode(frame.payload, request)) return false;
    server_.trust(id);  // the kernel has confirmed that the peer runs as this user
    NameReply answer;
    switch (frame.kind) {
        case MessageKind::publish:
            answer = publish(id, request);
            break;
        case MessageKind::unpublish:
            answer = unpublish(id, request);
            break;
        case MessageKind::lookup:
            answer = lookup(request);
            break;
        case MessageKind::job_ended:
            std::erase_if(names_, [&](const auto& n) { return n.second.owner == id && n.second.job == request.job; });
            return true;
        case MessageKind::persist:
            persistent_ = true;
            break;
        case MessageKind::status:
            answer = status();
            break;
        case MessageKind::stop:
            loop_.stop(0);
            break;
        default:
            return false;
    }
    if (frame.kind <= MessageKind::lookup) launchers_.insert(id);
    server_.send(id, MessageKind::reply, encode(answer));
    return true;
}

void NameDaemon::on_close(ConnectionId id) {
    launchers_.erase(id);
    std::erase_if(names_, [id](const auto& n) { return n.second.owner == id; });
    if (!persistent_ && server_.connections() == 0) loop_.stop(0);
}

NameReply NameDaemon::publish(ConnectionId id, const NameRequest& request) {
    if (request.service.empty()) return {MPI_ERR_ARG, "an empty service name can't be published", {}};
    if (names_.contains(request.service)) {
        return {MPI_ERR_SERVICE, "the service name '" + request.service + "' is published already; unpublish it first", {}};
    }
    if (names_.size() >= kMaxNames) return {MPI_ERR_NO_SPACE, "the daemon cannot store more names; unpublish some", {}};
    names_[request.service] = {request.port, request.job, id};
    return {};
}

NameReply NameDaemon::unpublish(ConnectionId id, const NameRequest& request) {
    const auto found = names_.find(request.service);
    if (found == names_.end() || found->second.owner != id) {
        return {MPI_ERR_SERVICE,
                "the service name '" + request.service +
                    "' has not been published by this job; only the job that published a name can unpublish it",
                {}};
    }
    names_.erase(found);
    return {};
}

NameReply NameDaemon::lookup(const NameRequest& request) const {
    const auto found = names_.find(request.service);
    if (found == names_.end()) return {MPI_ERR_NAME, "the service name is not published: '" + request.service + "'", {}};
    return {MPI_SUCCESS, {}, found->second.port};
}

NameReply NameDaemon::status() const {
    NameReply reply;
    reply.text = "process " + std::to_string(getpid()) + "\n" +
                 (persistent_ ? "stays until stopped\n" : "ends with its last job\n") + "launchers " +
                 std::to_string(launchers_.size()) + "\n" + "names " + std::to_string(names_.size()) + "\n";
    for (const auto& [service, name] : names_) reply.text += "  " + service + "\n";
    return reply;
}

}  // namespace starling::launch
