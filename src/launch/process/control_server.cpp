#include "launch/process/control_server.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "job/doorbell.h"
#include "launch/process/launcher.h"
#include "mpi.h"

namespace starling::launch {

using control::MessageKind;

ControlServer::ControlServer(Launcher& launcher)
    : launcher_(launcher),
      server_(
          launcher.loop(), [this](auto id, const control::Frame& frame) { return on_frame(id, frame); },
          [this](auto id) { askers_.erase(id); }),
      names_(launcher.loop()) {}

bool ControlServer::start() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    char name[64];
    std::snprintf(name, sizeof name, "starling-%u-%d-%lx", geteuid(), getpid(), static_cast<unsigned long>(now.tv_nsec));
    name_ = name;
    if (server_.listen(name_)) return true;
    fail(MPI_ERR_OTHER, "cannot listen for the job's processes: %s%s", std::strerror(errno),
         errno == EMFILE || errno == ENFILE ? "; raise `ulimit -n`" : "");
    return false;
}

bool ControlServer::on_frame(FrameServer::ConnectionId id, const control::Frame& frame) {
    if (frame.kind == MessageKind::hello) return greet(id, frame);
    const auto asker = askers_.find(id);
    if (asker == askers_.end()) return false;
    Job* job = launcher_.find_job(asker->second.job);
    if (!job || frame.payload.size() > control::kMaxRequest) return false;
    if (job->is_part) {
        return launcher_.superior()->ask(*job, asker->second.rank, frame.kind, frame.payload,
                                         [this, id](const std::string& payload) { reply(id, payload); });
    }
    switch (frame.kind) {
        case MessageKind::spawn:
            return spawn(id, *job, frame);
        case MessageKind::publish:
        case MessageKind::unpublish:
        case MessageKind::lookup:
            return name(id, *job, frame);
        case MessageKind::disconnect:
            return disconnect(id, *job, frame);
        case MessageKind::resolve:
        case MessageKind::locate:
        case MessageKind::arrived:
            return find(id, frame);
        default:
            return false;
    }
}

bool ControlServer::greet(FrameServer::ConnectionId id, const control::Frame& frame) {
    control::Hello hello;
    if (askers_.contains(id) || !decode(frame.payload, hello) || hello.version != control::kProtocolVersion) return false;
    const Job* job = launcher_.find_job(hello.job);
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
    const Asker who = asker->second;  // sending may end the connection
    server_.send(id, MessageKind::reply, payload);
    Job* job = launcher_.find_job(who.job);
    if (!job) return;
    job->segment.cell(who.rank).replies.fetch_add(1, std::memory_order_release);
    job::ring(*reinterpret_cast<job::Doorbell*>(job->segment.region(who.rank)));
}

bool ControlServer::spawn(FrameServer::ConnectionId id, Job& job, const control::Frame& frame) {
    control::SpawnRequest request;
    if (!decode(frame.payload, request)) return false;
    control::SpawnReply answer;
    JobSpec spec;
    const size_t asked = processes_asked_for(request);
    answer.text = job_of(request, job.id(), spec);
    if (!answer.text.empty()) {
        answer.error_class = MPI_ERR_SPAWN;
    } else if (job.failing) {
        answer.error_class = MPI_ERR_SPAWN;
        answer.text = "the job is being ended";
    } else {
        spec.recovers = job.segment.header().recovers != 0;
        StartOutcome outcome = launcher_.start_soft(std::move(spec));
        answer.error_class = outcome.error_class;
        answer.text = std::move(outcome.text);
        answer.codes = std::move(outcome.codes);
        if (outcome.job) answer.job = outcome.job->segment.address();
    }
    if (answer.codes.size() != asked) answer.codes.assign(asked, answer.error_class);
    reply(id, encode(answer));
    return true;
}

bool ControlServer::name(FrameServer::ConnectionId id, Job& job, const control::Frame& frame) {
    control::NameRequest request;
    if (!decode(frame.payload, request)) return false;
    request.job = job.id();
    names_.request(frame.kind, std::move(request), [this, id](const control::NameReply& answer) { reply(id, encode(answer)); });
    return true;
}

// All is on this host here: what there is needs no asking elsewhere.
bool ControlServer::find(FrameServer::ConnectionId id, const control::Frame& frame) {
    control::JobQuery query;
    if (!decode(frame.payload, query)) return false;
    control::JobReply answer;
    if (!launcher_.find_segment(query.job, answer.job)) {
        answer.error_class = MPI_ERR_PROC_ABORTED;
        answer.text =
            "that job is gone, or was started by another mpiexec on another host: start the daemons of one "
            "universe first (starling daemon start), so that jobs on several hosts can meet";
    }
    reply(id, encode(answer));
    return true;
}

bool ControlServer::disconnect(FrameServer::ConnectionId id, Job& job, const control::Frame& frame) {
    control::DisconnectNotice notice;
    if (!decode(frame.payload, notice) || (notice.child != job.id() && notice.parent != job.id())) return false;
    Job* child = launcher_.find_job(notice.child);
    if (child && child->parent == notice.parent) launcher_.disconnect(*child);
    reply(id, encode(control::NameReply{}));
    return true;
}

}  // namespace starling::launch
