// PMI-1 and PMI-2: one request and one reply at a time over an inherited socket. The two versions differ in the format and the names of the
// requests; the sequence of requests is the same.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/manager.h"
#include "bootstrap/pmi_wire.h"
#include "bootstrap/process_mapping.h"
#include "mpi.h"

namespace starling::bootstrap {

namespace {

using pmi::PmiMessage;
using pmi::PmiVersion;

constexpr int kMostRanks = 1 << 24;

/// A request's command, and the command of its reply, in one version of PMI.
struct PmiCommand {
    const char* command;
    const char* reply;
};
/// A request in both versions.
struct Calls {
    PmiCommand one, two;
};

constexpr Calls kBarrier = {{"barrier_in", "barrier_out"}, {"kvs-fence", "kvs-fence-response"}};
constexpr Calls kPut = {{"put", "put_result"}, {"kvs-put", "kvs-put-response"}};
constexpr Calls kGet = {{"get", "get_result"}, {"kvs-get", "kvs-get-response"}};
constexpr Calls kFinalize = {{"finalize", "finalize_ack"}, {"finalize", "finalize-response"}};

bool read_number(const char* name, int least, int most, int& out) {
    const char* text = std::getenv(name);
    if (!text || !*text) return false;
    char* end;
    errno = 0;
    const long value = std::strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > most) return false;
    out = static_cast<int>(value);
    return true;
}

class PmiManager final : public Manager {
  public:
    PmiManager(int first, bool insist) : first_(first), insist_(insist) {}
    ~PmiManager() override {
        if (fd_ >= 0) close(fd_);
    }

    const char* protocol() const override { return version_ == PmiVersion::two ? "PMI-2" : "PMI-1"; }
    int start(ManagedJob& out) override;
    int put(std::string_view key, std::string_view value) override;
    int publish() override;
    int lookup(uint32_t rank, std::string_view key, LookupCallback found, void* context, bool& asked) override;
    int leave() override;
    void abort(int code, std::string_view text) override;

  private:
    enum class ReplyWait { none, bounded, for_others };

    int read_environment();
    int agree_on_version();
    int greet(PmiVersion version, PmiMessage& answer);
    int request_facts_v1(ManagedJob& out, std::string& mapping);
    int request_facts_v2(ManagedJob& out, std::string& mapping);
    int get_named(std::string_view key, std::string& value, bool& found);

    int call(const PmiCommand& call, const PmiMessage& request, PmiMessage& answer);
    int expect(const PmiCommand& call, const PmiMessage& answer);
    int call_either(const Calls& calls, const PmiMessage& request, PmiMessage& answer);
    int finish_barrier(ReplyWait wait);
    const PmiCommand& spoken(const Calls& calls) const { return version_ == PmiVersion::two ? calls.two : calls.one; }
    int send(const PmiMessage& request);
    int receive(PmiMessage& answer, ReplyWait wait);
    int lost(const char* how);
    PmiMessage request(const Calls& calls) const { return PmiMessage(spoken(calls).command); }

    int first_;
    bool insist_;
    int fd_ = -1;
    int rank_ = 0, size_ = 0;
    PmiVersion version_ = PmiVersion::one;
    pmi::Decoder decoder_;
    bool in_barrier_ = false;  ///< true: waiting for the reply to the barrier, which is the next message
    std::string store_;        ///< PMI-1: name of the key-value space; PMI-2: the job's id
};

std::string name_of(uint32_t rank, std::string_view key) { return "starling-" + std::string(key) + "-" + std::to_string(rank); }

int PmiManager::read_environment() {
    if (!read_number("PMI_FD", 0, INT_MAX, fd_)) {
        return fail(MPI_ERR_OTHER,
                    "PMI_FD='%s' is not a descriptor; it is set by the process manager, not by hand; unset "
                    "it or set STARLING_PMI=none to run as a job of one process",
                    std::getenv("PMI_FD"));
    }
    if (!read_number("PMI_RANK", 0, kMostRanks - 1, rank_) || !read_number("PMI_SIZE", 1, kMostRanks, size_) ||
        rank_ >= size_) {
        const char *rank = std::getenv("PMI_RANK"), *size = std::getenv("PMI_SIZE");
        return fail(MPI_ERR_OTHER,
                    "PMI_FD is set, but PMI_RANK='%s' is not a valid rank of PMI_SIZE='%s' processes; set "
                    "STARLING_PMI=none to run as a job of one process",
                    rank ? rank : "", size ? size : "");
    }
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(fd_, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
        const int fd = std::exchange(fd_, -1);  // Do not close the descriptor: it is not that of a manager.
        return fail(MPI_ERR_OTHER,
                    "PMI_FD=%d is not an open socket: the program that started this one has not passed on the process "
                    "manager's socket; set STARLING_PMI=none to run as a job of one process",
                    fd);
    }
    fcntl(fd_, F_SETFD, FD_CLOEXEC);
    return MPI_SUCCESS;
}

int PmiManager::lost(const char* how) {
    return fail(MPI_ERR_OTHER, "the process manager that started rank %d (%s on descriptor %d) %s", rank_, protocol(), fd_,
                how);
}

int PmiManager::send(const PmiMessage& request) {
    const std::string bytes = encode(version_, request);
    if (bytes.empty()) {
        return fail(MPI_ERR_OTHER, "the request '%.*s' to the process manager cannot be encoded in %s",
                    static_cast<int>(request.command().size()), request.command().data(), protocol());
    }
    std::string_view rest = bytes;
    while (!rest.empty()) {
        const ssize_t n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return lost("has ended");
        rest.remove_prefix(static_cast<size_t>(n));
    }
    return MPI_SUCCESS;
}

// Receives a message. With ReplyWait::none, a message without a command means that there is none yet.
int PmiManager::receive(PmiMessage& answer, ReplyWait wait) {
    const uint64_t deadline = now_ns() + uint64_t{kAnswerSeconds} * 1'000'000'000u;
    for (;;) {
        const auto result = decoder_.next(answer);
        if (result == pmi::Decoder::PmiReadResult::message) return MPI_SUCCESS;
        if (result == pmi::Decoder::PmiReadResult::garbage) return lost("sent an answer that is not a PMI message");
        pollfd ready{fd_, POLLIN, 0};
        const int n = poll(&ready, 1, wait == ReplyWait::none ? 0 : 1000);
        if (n == 0 && wait == ReplyWait::none) return answer = {}, MPI_SUCCESS;
        if (n == 0 && wait == ReplyWait::bounded && now_ns() > deadline) return lost("does not answer");
        if (n <= 0) continue;
        char buffer[4096];
        const ssize_t got = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return lost("has ended");
        decoder_.feed({buffer, static_cast<size_t>(got)});
    }
}

int PmiManager::call(const PmiCommand& call, const PmiMessage& request, PmiMessage& answer) {
    if (const int error = send(request)) return error;
    if (const int error = receive(answer, ReplyWait::bounded)) return error;
    return expect(call, answer);
}

int PmiManager::expect(const PmiCommand& call, const PmiMessage& answer) {
    if (answer.command() == call.reply) return MPI_SUCCESS;
    return fail(MPI_ERR_OTHER, "the process manager that started rank %d answered '%s' with '%.*s' instead of '%s'", rank_,
                call.command, static_cast<int>(std::min<size_t>(answer.command().size(), 60)), answer.command().data(),
                call.reply);
}

int PmiManager::call_either(const Calls& calls, const PmiMessage& request, PmiMessage& answer) {
    if (const int error = finish_barrier(ReplyWait::for_others)) return error;
    return call(spoken(calls), request, answer);
}

int PmiManager::finish_barrier(ReplyWait wait) {
    if (!in_barrier_) return MPI_SUCCESS;
    PmiMessage answer;
    if (const int error = receive(answer, wait)) return error;
    if (wait == ReplyWait::none && answer.command().empty()) return MPI_SUCCESS;
    in_barrier_ = false;
    if (const int error = expect(spoken(kBarrier), answer)) return error;
    int rc = 0;
    if (answer.has("rc") && (!answer.number("rc", rc) || rc != 0)) return lost("reported a failed barrier of the job");
    return MPI_SUCCESS;
}

// Requests a version; both versions use one format for this.
int PmiManager::greet(PmiVersion version, PmiMessage& answer) {
    PmiMessage hello("init");
    hello.set("pmi_version", static_cast<int>(version)).set("pmi_subversion", version == PmiVersion::one ? 1 : 0);
    return call({"init", "response_to_init"}, hello, answer);
}

int PmiManager::agree_on_version() {
    for (const int number : {first_, 3 - first_}) {
        if (insist_ && number != first_) continue;
        const auto version = static_cast<PmiVersion>(number);
        PmiMessage answer;
        if (const int error = greet(version, answer)) return error;
        int rc = -1, theirs = 0;
        if (answer.number("rc", rc) && rc == 0 && answer.number("pmi_version", theirs) && theirs == number) {
            version_ = version;
            decoder_.set_version(version);
            return MPI_SUCCESS;
        }
    }
    return fail(MPI_ERR_OTHER, "the process manager that started rank %d supports none of the requested versions of PMI (%s)",
                rank_,
                !insist_      ? "1 and 2"
                : first_ == 2 ? "2"
                              : "1");
}

int PmiManager::request_facts_v1(ManagedJob& out, std::string& mapping) {
    PmiMessage answer;
    if (const int error = call({"get_my_kvsname", "my_kvsname"}, PmiMessage("get_my_kvsname"), answer)) return error;
    store_ = answer.get("kvsname");
    if (store_.empty()) return lost("returned no name for the job");
    out.name = store_;
    int number = 0;
    if (const int error = call({"get_appnum", "appnum"}, PmiMessage("get_appnum"), answer)) return error;
    if (answer.number("appnum", number) && number >= 0) out.appnum = static_cast<uint32_t>(number);
    if (const int error = call({"get_universe_size", "universe_size"}, PmiMessage("get_universe_size"), answer)) return error;
    if (answer.number("size", number) && number > 0) out.universe_size = static_cast<uint32_t>(number);
    bool found;
    return get_named("PMI_process_mapping", mapping, found);
}

int PmiManager::request_facts_v2(ManagedJob& out, std::string& mapping) {
    PmiMessage hello("fullinit"), answer;
    if (const char* job = std::getenv("PMI_JOBID")) hello.set("pmijobid", job);
    hello.set("pmirank", rank_).set("threaded", "FALSE");
    if (const int error = call({"fullinit", "fullinit-response"}, hello, answer)) return error;
    int rc = -1, number = 0;
    if (!answer.number("rc", rc) || rc != 0) return lost("rejected this process");
    if (answer.number("appnum", number) && number >= 0) out.appnum = static_cast<uint32_t>(number);
    if (const int error = call({"job-getid", "job-getid-response"}, PmiMessage("job-getid"), answer)) return error;
    store_ = answer.get("jobid");
    if (store_.empty()) return lost("returned no name for the job");
    out.name = store_;
    PmiMessage ask("info-getjobattr");
    ask.set("key", "universeSize");
    if (const int error = call({"info-getjobattr", "info-getjobattr-response"}, ask, answer)) return error;
    if (answer.number("value", number) && number > 0) out.universe_size = static_cast<uint32_t>(number);
    ask = PmiMessage("info-getjobattr");
    ask.set("key", "PMI_process_mapping");
    if (const int error = call({"info-getjobattr", "info-getjobattr-response"}, ask, answer)) return error;
    mapping = answer.get("value");
    return MPI_SUCCESS;
}

int PmiManager::start(ManagedJob& out) {
    if (const int error = read_environment()) return error;
    if (const int error = agree_on_version()) return error;
    out.rank = static_cast<uint32_t>(rank_);
    out.size = static_cast<uint32_t>(size_);
    std::string mapping;
    const int error = version_ == PmiVersion::two ? request_facts_v2(out, mapping) : request_facts_v1(out, mapping);
    if (error) return error;
    uint32_t hosts = 0;
    if (!parse_process_mapping(mapping, out.size, out.placements, hosts)) {
        return fail(MPI_ERR_OTHER,
                    "the process manager that started rank %d does not say which ranks share a host "
                    "(PMI_process_mapping is '%.100s'); start the program with Starling's mpiexec",
                    rank_, mapping.c_str());
    }
    out.hosts.resize(hosts);
    return MPI_SUCCESS;
}

int PmiManager::get_named(std::string_view key, std::string& value, bool& found) {
    PmiMessage ask = request(kGet), answer;
    ask.set(version_ == PmiVersion::two ? "jobid" : "kvsname", store_).set("key", key);
    if (const int error = call_either(kGet, ask, answer)) return error;
    int rc = -1;
    const bool refused = !answer.number("rc", rc) || rc != 0;
    found = !refused && answer.has("value") && answer.get("found") != "FALSE";
    value = found ? answer.get("value") : std::string_view();
    return MPI_SUCCESS;
}

int PmiManager::put(std::string_view key, std::string_view value) {
    PmiMessage ask = request(kPut), answer;
    if (version_ == PmiVersion::one) ask.set("kvsname", store_);
    ask.set("key", name_of(static_cast<uint32_t>(rank_), key)).set("value", value);
    if (const int error = call_either(kPut, ask, answer)) return error;
    int rc = -1;
    if (answer.number("rc", rc) && rc == 0) return MPI_SUCCESS;
    return lost("did not store the address of this process");
}

int PmiManager::publish() {
    if (const int error = send(request(kBarrier))) return error;
    in_barrier_ = true;
    return MPI_SUCCESS;
}

// Answers at once: after the barrier, the manager's process on this host has the value, and one round trip to it takes too little time for
// a callback.
int PmiManager::lookup(uint32_t rank, std::string_view key, LookupCallback found, void* context, bool& asked) {
    if (const int error = finish_barrier(ReplyWait::none)) return error;
    asked = !in_barrier_;
    if (!asked) return MPI_SUCCESS;
    std::string value;
    bool exists = false;
    if (const int error = get_named(name_of(rank, key), value, exists)) return error;
    found(context, rank, exists ? LookupOutcome::found : LookupOutcome::nothing, value);
    return MPI_SUCCESS;
}

int PmiManager::leave() {
    if (fd_ < 0) return MPI_SUCCESS;
    PmiMessage ask = request(kFinalize), answer;
    const int error = call_either(kFinalize, ask, answer);
    close(fd_);
    fd_ = -1;
    return error;
}

void PmiManager::abort(int code, std::string_view text) {
    if (fd_ < 0) return;
    PmiMessage ask("abort");
    if (version_ == PmiVersion::one) {
        ask.set("exitcode", code);
    } else {
        ask.set("isworld", "TRUE").set("msg", text);
    }
    send(ask);
}

}  // namespace

std::unique_ptr<Manager> make_pmi_manager(int first, bool insist) { return std::make_unique<PmiManager>(first, insist); }

}  // namespace starling::bootstrap
