#include "bootstrap/host_join.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/wire.h"
#include "control/control_protocol.h"
#include "control/local_socket.h"
#include "control/start_server.h"
#include "mpi.h"

namespace starling::bootstrap {

namespace {

constexpr uint64_t kJoinSeconds = 30;
constexpr int kHostSockets = 32;
constexpr useconds_t kPause = 1000;

// Ends each part with a separator, so that "ab","c" and "a","bc" have different hashes.
uint64_t mix(uint64_t hash, std::string_view bytes) { return hash_on(hash_on(hash, bytes), 0xff); }

class FileDescriptor {
  public:
    explicit FileDescriptor(int fd = -1) : fd_(fd) {}
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor() {
        if (fd_ >= 0) close(fd_);
    }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

job::JobDescription describe(const ManagedJob& job, job::JobId id) {
    job::JobDescription description;
    description.draw();
    description.id = id;
    description.size = job.size;
    description.universe_size = job.universe_size > job.size ? job.universe_size : job.size;
    description.several_hosts = job.hosts.size() > 1;
    description.hosts_open = description.several_hosts;
    description.hosts.resize(job.hosts.size());
    for (size_t i = 0; i < job.hosts.size(); ++i)
        std::snprintf(description.hosts[i].name, sizeof description.hosts[i].name, "%s", job.hosts[i].c_str());
    description.placements = job.placements;
    for (const job::Placement& run : job.placements) {
        uint32_t index;
        if (!run.holds(job.rank, index)) continue;
        job::HostEntry& mine = description.hosts[run.host];
        mine.id = job::this_host();
        if (mine.name[0] == '\0') gethostname(mine.name, sizeof mine.name - 1);
    }
    description.command = program_invocation_short_name;
    return description;
}

// Starts the helper. The job's description may be too long for an argument, so the helper reads it from a memfd of this process.
int start_helper(const ManagedJob& job, job::JobId id) {
    const std::string program = control::find_starlingd();
    if (program.empty()) {
        return fail(MPI_ERR_OTHER,
                    "a program started by another manager than Starling's mpiexec needs starlingd, which "
                    "is neither beside the MPI library nor in PATH; add Starling's bin directory to PATH");
    }
    const std::string bytes = encode(describe(job, id));
    const FileDescriptor file(memfd_create("starling-description", MFD_CLOEXEC));
    if (!file || ::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        return fail(MPI_ERR_NO_MEM, "cannot describe the job to starlingd: %s", std::strerror(errno));
    char rank[16], path[64];
    std::snprintf(rank, sizeof rank, "%u", job.rank);
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file.get());
    const char* const arguments[] = {"host", rank, path, nullptr};
    std::string problem;
    if (control::start_detached(program, arguments, true, problem)) return MPI_SUCCESS;
    return fail(MPI_ERR_OTHER, "cannot start %s: %s", program.c_str(), problem.c_str());
}

enum class JoinAnswer { welcome, refused, hung_up };

JoinAnswer ask(int fd, const HostJoin& join, uint64_t deadline, HostWelcome& out) {
    const timeval patience{kJoinSeconds, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!control::send_all(fd, control::encode_frame(control::MessageKind::hello, encode(join)))) return JoinAnswer::hung_up;
    control::FrameDecoder decoder(control::kMaxFrame);
    control::ControlFrame frame;
    while (now_ns() < deadline) {
        pollfd ready{fd, POLLIN, 0};
        if (poll(&ready, 1, 100) <= 0) continue;
        char buffer[2048];
        const ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return JoinAnswer::hung_up;
        decoder.feed({buffer, static_cast<size_t>(n)});
        const auto result = decoder.next(frame);
        if (result == control::FrameDecoder::ControlDecodeResult::need_more) continue;
        if (result == control::FrameDecoder::ControlDecodeResult::garbage || frame.kind != control::MessageKind::reply ||
            !decode(frame.payload, out)) {
            out.refusal = "starlingd sent an invalid answer; use the starlingd and the library of one installation";
            return JoinAnswer::refused;
        }
        return out.refusal.empty() ? JoinAnswer::welcome : JoinAnswer::refused;
    }
    return JoinAnswer::hung_up;
}

}  // namespace

std::string encode(const HostJoin& message) {
    Writer writer;
    writer.number(message.version).number(message.job).number(message.size).number(message.rank);
    writer.number(message.pid).number(message.appnum);
    return writer.take();
}

bool decode(std::string_view payload, HostJoin& out) {
    Reader reader(payload);
    out.version = reader.number<uint32_t>();
    out.job = reader.number<job::JobId>();
    out.size = reader.number<uint32_t>();
    out.rank = reader.number<uint32_t>();
    out.pid = reader.number<int32_t>();
    out.appnum = reader.number<uint32_t>();
    return reader.done();
}

std::string encode(const HostWelcome& message) {
    Writer writer;
    writer.string(message.refusal);
    control::write(writer, message.job);
    return writer.take();
}

bool decode(std::string_view payload, HostWelcome& out) {
    Reader reader(payload);
    out.refusal = reader.string();
    out.job = control::read_address(reader);
    return reader.done();
}

job::JobId id_of(const ManagedJob& job, const char* protocol) {
    uint64_t hash = mix(kEmptyHash, protocol);
    hash = mix(hash, job.name);
    hash = mix(hash, std::to_string(geteuid()));
    hash = mix(hash, std::to_string(job.size));
    // Context ids use the low half of a job's id, so every bit of the name must affect it.
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    return hash == 0 ? 1 : hash;
}

control::WellKnownSocket host_meeting(job::JobId job) {
    char name[64];
    std::snprintf(name, sizeof name, "starling-%u-host-%" PRIx64, geteuid(), job);
    return {name, kHostSockets, true};
}

int connect_helper(job::JobId job) { return control::connect_at(host_meeting(job)); }

// Acquires the right to start the helper. It lasts while the listening sockets of `lock` are open, so it ends even if its holder is killed.
// Two processes may get it if other users take and release the abstract names meanwhile, or if only one of the two has a runtime directory.
// Then one of the two helpers ends.
static bool lock_start(job::JobId job, control::WellKnownListener& lock) {
    control::WellKnownSocket start = host_meeting(job);
    start.name += "-start";
    return lock.open(start);
}

int join_host(const ManagedJob& job, job::JobId id, job::JobSegment& out, bool& taken) {
    taken = false;
    HostJoin join;
    join.job = id;
    join.size = job.size;
    join.rank = job.rank;
    join.pid = getpid();
    join.appnum = job.appnum;
    const uint64_t deadline = now_ns() + kJoinSeconds * 1'000'000'000u;
    while (now_ns() < deadline) {
        const FileDescriptor helper(connect_helper(id));
        if (helper) {
            HostWelcome welcome;
            switch (ask(helper.get(), join, deadline, welcome)) {
                case JoinAnswer::welcome:
                    return job::JobSegment::open(welcome.job, out);
                case JoinAnswer::refused:
                    taken = welcome.job.id != 0 && job::JobSegment::open(welcome.job, out) == MPI_SUCCESS;
                    return fail(MPI_ERR_OTHER, "%s", welcome.refusal.c_str());
                case JoinAnswer::hung_up:
                    usleep(kPause);
                    continue;
            }
        }
        // One of the processes that find no helper starts it; the others retry. Check again under the lock, because an earlier holder may
        // have started the helper since. If the holder dies, the lock becomes free.
        control::WellKnownListener lock;
        if (!lock_start(id, lock)) {
            usleep(kPause);
            continue;
        }
        if (FileDescriptor(connect_helper(id))) continue;
        if (const int error = start_helper(job, id)) return error;
    }
    return fail(MPI_ERR_OTHER,
                "the helper of this job on this host (starlingd host) has not answered within %d s; another user may hold the "
                "abstract socket %s or those after it: set XDG_RUNTIME_DIR to a directory of yours with mode 0700",
                static_cast<int>(kJoinSeconds), host_meeting(id).abstract(0).c_str());
}

}  // namespace starling::bootstrap
