#include "launch/process/keeper.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/local_socket.h"
#include "launch/process/launcher.h"

namespace starling::launch {

namespace {
/// More would use up the launcher's descriptors.
constexpr size_t kMostKept = 4096, kMostAskers = 256;
}  // namespace

Keeper::~Keeper() {
    for (const int asker : askers_) {
        launcher_.loop().forget(asker);
        close(asker);
    }
    for (const auto& [inode, kept] : kept_) close(kept.descriptor);
    if (socket_ < 0) return;
    launcher_.loop().forget(socket_);
    close(socket_);
}

bool Keeper::start(const std::string& control_socket) {
    sockaddr_un address;
    const socklen_t length = job::keeper_address(control_socket, address);
    socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return socket_ >= 0 && bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
           listen(socket_, 1024) == 0 && launcher_.loop().watch(socket_, EPOLLIN, [this](uint32_t) { accept(); });
}

void Keeper::accept() {
    const int asker = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (asker < 0) return;
    if (askers_.size() >= kMostAskers || !control::is_trusted_peer(asker) ||
        !launcher_.loop().watch(asker, EPOLLIN, [this, asker](uint32_t) { serve(asker); })) {
        close(asker);
        return;
    }
    askers_.insert(asker);
}

/// One packet, one answer, and the end.
void Keeper::serve(int socket) {
    job::HandoverRequest request{};
    int descriptor = -1, found = -1;
    job::HandoverAnswer answer = 0;
    if (job::receive_with(socket, &request, sizeof request, descriptor) == sizeof request && is_entitled(request)) {
        drop_of_ended_jobs();
        const auto kept = kept_.find(request.inode);
        switch (request.what) {
            case job::Handover::give:
                answer = keep(request, descriptor);
                break;
            case job::Handover::fetch:
                if (kept != kept_.end()) found = kept->second.descriptor;
                answer = found >= 0;
                break;
            case job::Handover::take_back:
                answer = kept != kept_.end() && kept->second.job == request.job;
                if (answer) drop(kept);
                break;
        }
    }
    if (answer && request.what == job::Handover::give) descriptor = -1;  // it is kept
    job::send_with(socket, &answer, sizeof answer, found);
    if (descriptor >= 0) close(descriptor);
    launcher_.loop().forget(socket);
    askers_.erase(socket);
    close(socket);
}

bool Keeper::is_entitled(const job::HandoverRequest& request) const {
    const Job* job = launcher_.find_job(request.job);
    if (!job) return false;
    const uint64_t* secret = job->segment.header().secret;
    return ((request.secret[0] ^ secret[0]) | (request.secret[1] ^ secret[1])) == 0;
}

bool Keeper::keep(const job::HandoverRequest& request, int descriptor) {
    struct stat status;
    if (descriptor < 0 || kept_.size() >= kMostKept || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_ino != request.inode)
        return false;
    return kept_.insert({request.inode, {request.job, descriptor}}).second;
}

void Keeper::drop(std::unordered_map<uint64_t, Kept>::iterator kept) {
    close(kept->second.descriptor);
    kept_.erase(kept);
}

void Keeper::drop_of_ended_jobs() {
    for (auto kept = kept_.begin(); kept != kept_.end();) {
        const auto next = std::next(kept);
        if (!launcher_.find_job(kept->second.job)) drop(kept);
        kept = next;
    }
}

}  // namespace starling::launch
