#include "launch/process/descriptor_broker.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/process.h"
#include "control/local_socket.h"
#include "launch/process/launcher.h"

namespace starling::launch {

namespace {
/// Limits, because the stored descriptors and connections use up the launcher's descriptors.
constexpr size_t kMostKept = 4096, kMostAskers = 256;

/// Opens memory of this user that a process of this host has open. Returns -1 for any other kind of file. `name`: prefix of the memfd's
/// name.
int open_memory(const job::DescriptorRequest& request, std::string_view name) {
    DescriptorPath path;
    char target[64];
    find_descriptor_path(request.pid, request.descriptor, path);
    const ssize_t length = readlink(path, target, sizeof target);
    if (length <= 0 || !std::string_view(target, static_cast<size_t>(length)).starts_with(name)) return -1;
    const int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    if (descriptor < 0) return -1;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        fcntl(descriptor, F_GET_SEALS) >= 0 && (request.inode == 0 || request.inode == status.st_ino))
        return descriptor;
    close(descriptor);
    return -1;
}
}  // namespace

DescriptorBroker::~DescriptorBroker() {
    for (const int asker : askers_) {
        launcher_.loop().forget(asker);
        close(asker);
    }
    for (const auto& [inode, kept] : stored_) close(kept.descriptor);
    if (socket_ < 0) return;
    launcher_.loop().forget(socket_);
    close(socket_);
}

bool DescriptorBroker::start(const std::string& control_socket) {
    sockaddr_un address;
    const socklen_t length = job::keeper_address(control_socket, address);
    socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return socket_ >= 0 && bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
           listen(socket_, 1024) == 0 && launcher_.loop().watch(socket_, EPOLLIN, [this](uint32_t) { accept(); });
}

void DescriptorBroker::accept() {
    const int asker = launcher_.loop().accept(socket_);
    if (asker < 0) return;
    if (askers_.size() >= kMostAskers || !control::is_trusted_peer(asker) ||
        !launcher_.loop().watch(asker, EPOLLIN, [this, asker](uint32_t) { serve(asker); })) {
        close(asker);
        return;
    }
    askers_.insert(asker);
}

/// Handles one request and closes the connection. Processes that are not entitled, even of this user, get no answer.
void DescriptorBroker::serve(int socket) {
    job::DescriptorRequest request{};
    int descriptor = -1, found = -1;
    if (job::receive_with(socket, &request, sizeof request, descriptor) == sizeof request && is_entitled(request)) {
        drop_of_ended_jobs();
        const job::DescriptorReply done = answer(request, descriptor, found);
        job::send_with(socket, &done, sizeof done, found);
    }
    for (const int each : {descriptor, found})
        if (each >= 0) close(each);
    launcher_.loop().forget(socket);
    askers_.erase(socket);
    close(socket);
}

/// Handles `request`. `descriptor`, which came with it, is set to -1 if it is stored; `found` is set to the descriptor to return.
bool DescriptorBroker::answer(const job::DescriptorRequest& request, int& descriptor, int& found) {
    const auto kept = stored_.find(request.inode);
    switch (request.what) {
        case job::DescriptorCall::deposit:
            if (!store(request, descriptor)) return false;
            descriptor = -1;
            return true;
        case job::DescriptorCall::fetch:
            found = kept != stored_.end() ? fcntl(kept->second.descriptor, F_DUPFD_CLOEXEC, 0)
                    : request.inode != 0  ? open_memory(request, "/memfd:starling-window")
                                          : -1;
            return found >= 0;
        case job::DescriptorCall::withdraw_descriptor:
            if (kept == stored_.end() || kept->second.job != request.job) return false;
            drop(kept);
            return true;
        case job::DescriptorCall::segment:
            found = find_segment(request);
            return found >= 0;
    }
    return false;
}

int DescriptorBroker::find_segment(const job::DescriptorRequest& request) const {
    const LocalJob* job = launcher_.find_job(request.wanted);
    if (job && job->segment.fd() >= 0) return fcntl(job->segment.fd(), F_DUPFD_CLOEXEC, 0);
    return open_memory(request, "/memfd:starling-job");
}

/// A starting process has no segment yet, so it does not know the secret. But it knows its job's random id from its environment, which
/// suffices for its own segment. In jobs of other managers the id proves nothing, because socket names show it.
bool DescriptorBroker::is_entitled(const job::DescriptorRequest& request) const {
    const LocalJob* job = launcher_.find_job(request.job);
    if (!job) return false;
    if (request.what == job::DescriptorCall::segment && request.wanted == request.job && !job->external) return true;
    const uint64_t* secret = job->segment.header().secret;
    return ((request.secret[0] ^ secret[0]) | (request.secret[1] ^ secret[1])) == 0;
}

bool DescriptorBroker::store(const job::DescriptorRequest& request, int descriptor) {
    struct stat status;
    if (descriptor < 0 || stored_.size() >= kMostKept || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_ino != request.inode)
        return false;
    return stored_.insert({request.inode, {request.job, descriptor}}).second;
}

void DescriptorBroker::drop(std::unordered_map<uint64_t, StoredDescriptor>::iterator kept) {
    close(kept->second.descriptor);
    stored_.erase(kept);
}

void DescriptorBroker::drop_of_ended_jobs() {
    for (auto kept = stored_.begin(); kept != stored_.end();) {
        const auto next = std::next(kept);
        if (!launcher_.find_job(kept->second.job)) drop(kept);
        kept = next;
    }
}

}  // namespace starling::launch
