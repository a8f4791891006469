// The control protocol between ranks and their launcher, and between launchers and the name service. It consists of frames on an abstract
// Unix stream socket, one request and one reply at a time per connection. All input is checked; after an invalid frame the connection is
// closed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/version.h"
#include "base/wire.h"
#include "job/job_segment.h"

namespace starling::control {

enum class MessageKind : uint32_t {
    hello = 1,       ///< rank → launcher, first on every connection: ControlHello
    spawn = 2,       ///< rank → launcher: spawns a job; SpawnRequest → SpawnReply
    publish = 3,     ///< publishes a service name; NameRequest → NameReply
    unpublish = 4,   ///< withdraws a service name; NameRequest → NameReply
    lookup = 5,      ///< looks up a service name; NameRequest → NameReply with the port
    disconnect = 6,  ///< DisconnectNotice → NameReply: child and parents disconnect
    reply = 7,
    job_ended = 8,  ///< launcher → daemon, NameRequest with only the job: removes its names; no reply
    persist = 9,    ///< tool → daemon: keep running after the last client has left
    stop = 10,      ///< tool → daemon: end the daemon
    status = 11,    ///< tool → daemon: asks for its state; → NameReply whose text is one line per fact
    resolve = 12,   ///< JobQuery → JobReply: location of this host's segment of a job, which is created if there is none
    /// JobQuery → JobReply: fill the address table of that job for the host of that rank, in this host's segment. The reply is sent when
    /// the rank's port is known or the rank has ended; the rank's word in the table shows which. A requester that does not want to wait may
    /// close the connection: the table is still filled, and the requester's doorbell rung.
    locate = 13,
    /// JobQuery of the rank's own job → JobReply: all ranks of this host have reached the end of MPI_Init. Sent by the last of them if the
    /// universe has several hosts; it may close the connection without waiting for the reply.
    arrived = 14,
    /// JobQuery → JobReply: the sender has declared that rank, on another host, unreachable, so the rank must not wait for the sender. The
    /// sender may close the connection without waiting for the reply.
    abandoned = 15,
    /// ProfileReport (control/profile_report.h) → NameReply: an error class if no profile is being written. The sender may close the
    /// connection without waiting for the reply.
    profile = 16,
    /// Nothing → PlanReply (control/plan_reply.h): the rank's part of the plan that mpiexec has read; empty if there is no plan for its
    /// job.
    plan = 17,
    /// JobQuery of a job that the sender has spawned → JobReply: not all parents could take part, so the children must end. A launcher that
    /// does not know this kind closes the connection.
    forsake = 18,
    last = 33,  ///< largest kind; kinds from 20 on are in launch/common/client_protocol.h
};

inline constexpr uint32_t kFrameMagic = 0x4c525453;  ///< "STRL"
inline constexpr uint32_t kFrameHeader = 12;         ///< bytes of a frame's header: magic, kind, length, each 32 bits
inline constexpr uint32_t kMaxFrame = 64u << 20;     ///< maximum payload from an authenticated peer, bytes
/// Maximum payload of a rank's request. Smaller than a frame, because forwarding it to another host adds to it.
inline constexpr uint32_t kMaxRequest = kMaxFrame / 2;
inline constexpr uint32_t kMaxHello = 256;          ///< maximum payload before authentication, bytes
inline constexpr uint32_t kMaxProcesses = 1000000;  ///< maximum number of processes of one job

std::string encode_frame(MessageKind kind, std::string_view payload);

struct ControlFrame {
    MessageKind kind = MessageKind::hello;
    std::string payload;
};

/// Splits a byte stream into frames. Not thread-safe.
class FrameDecoder {
  public:
    enum class ControlDecodeResult { need_more, frame, garbage };

    explicit FrameDecoder(uint32_t max_payload = kMaxHello) : max_payload_(max_payload) {}
    void set_max_payload(uint32_t bytes) { max_payload_ = bytes; }

    void feed(std::string_view bytes);
    /// Returns the next whole frame, if there is one. After garbage, always returns garbage.
    ControlDecodeResult next(ControlFrame& out);

  private:
    std::string buffer_;
    size_t begin_ = 0;
    uint32_t max_payload_;
    bool garbage_ = false;
};

struct ControlHello {
    uint32_t version = wire_version();  ///< wire version; the first member in all future versions
    job::JobId job = 0;
    uint64_t secret[2] = {};
    uint32_t rank = 0;
};

/// The info key by which the library passes the caller's working directory, to which relative paths refer. It precedes the user's keys. A
/// launcher that does not know it uses its own directory.
inline constexpr const char* kCallerDirectory = "starling_directory";

/// One command of MPI_Comm_spawn_multiple. Known info keys: wdir, path, host, hostfile, add-host, add-hostfile, soft ("2,4:8" or "1:9:2"),
/// env ("NAME=VALUE", several separated by newlines). Others are ignored.
struct SpawnCommand {
    std::vector<std::string> argv;  ///< argv[0] is the command
    uint32_t maxprocs = 0;
    std::vector<std::pair<std::string, std::string>> info;
};

struct SpawnRequest {
    /// The parents' description for the child job's segment; this layer does not interpret it.
    std::string blob;
    std::vector<SpawnCommand> commands;  ///< the commands; appnum is the index
};

struct SpawnReply {
    int32_t error_class = 0;
    std::string text;            ///< the error text, if error_class is not MPI_SUCCESS
    job::JobAddress job;         ///< the child job, if error_class is MPI_SUCCESS
    std::vector<int32_t> codes;  ///< one error class per requested process, in order of the commands
};

struct NameRequest {
    job::JobId job = 0;  ///< the requesting rank's job, set by the launcher
    std::string service, port;
};

struct NameReply {
    int32_t error_class = 0;
    std::string text;  ///< error text; for `status`, the facts
    std::string port;
};

struct DisconnectNotice {
    job::JobId child = 0, parent = 0;
};

struct JobQuery {
    job::JobId job = 0;
    uint32_t rank = 0;  ///< the rank in question; 0 if the query is about the whole job
};

struct JobReply {
    int32_t error_class = 0;
    std::string text;     ///< the error text, if error_class is not MPI_SUCCESS
    job::JobAddress job;  ///< location of the job's segment on the requester's host
    uint32_t polls = 0;   ///< reply to locate: RankCell::polls of the rank; 0: not known
};

/// Write and read a JobAddress within another message, including its host.
void write(Writer& writer, const job::JobAddress& address);
job::JobAddress read_address(Reader& reader);

std::string encode(const ControlHello& message);
std::string encode(const SpawnRequest& message);
std::string encode(const SpawnReply& message);
std::string encode(const NameRequest& message);
std::string encode(const NameReply& message);
std::string encode(const DisconnectNotice& message);
std::string encode(const JobQuery& message);
std::string encode(const JobReply& message);

/// Return false if `payload` is not exactly one such message; `out` is then unspecified.
bool decode(std::string_view payload, ControlHello& out);
bool decode(std::string_view payload, SpawnRequest& out);
bool decode(std::string_view payload, SpawnReply& out);
bool decode(std::string_view payload, NameRequest& out);
bool decode(std::string_view payload, NameReply& out);
bool decode(std::string_view payload, DisconnectNotice& out);
bool decode(std::string_view payload, JobQuery& out);
bool decode(std::string_view payload, JobReply& out);

}  // namespace starling::control
