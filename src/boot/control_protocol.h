// What ranks and their launcher, and launchers and the daemon, say to each other: frames on an abstract
// Unix stream socket, one request and one reply at a time per connection. Everything that arrives is
// checked: a peer that sends something else is hung up on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boot/job_segment.h"

namespace starling::boot {

enum class MessageKind : uint32_t {
    hello = 1,       ///< rank → launcher, first on every connection: Hello
    spawn = 2,       ///< SpawnRequest → SpawnReply
    publish = 3,     ///< NameRequest → NameReply
    unpublish = 4,   ///< NameRequest → NameReply
    lookup = 5,      ///< NameRequest → NameReply with the port
    disconnect = 6,  ///< DisconnectNotice → NameReply: child and parents part
    reply = 7,
    job_ended = 8,  ///< launcher → daemon, NameRequest with the job only: its names go; no reply
    persist = 9,    ///< tool → daemon: stay when the last client leaves
    stop = 10,      ///< tool → daemon: end
    status = 11,    ///< tool → daemon → NameReply whose text is one line per fact
};

inline constexpr uint32_t kFrameMagic = 0x4c525453;  ///< "STRL"
inline constexpr uint32_t kFrameHeader = 12;         ///< bytes: magic, kind, length, each 32 bits
inline constexpr uint32_t kMaxFrame = 64u << 20;     ///< payload of an authenticated peer
inline constexpr uint32_t kMaxHello = 256;           ///< payload before that
inline constexpr uint32_t kProtocolVersion = 1;

std::string encode_frame(MessageKind kind, std::string_view payload);

struct Frame {
    MessageKind kind = MessageKind::hello;
    std::string payload;
};

/// Cuts a byte stream into frames. Not thread-safe.
class FrameDecoder {
  public:
    enum class Result { need_more, frame, garbage };

    explicit FrameDecoder(uint32_t max_payload = kMaxHello) : max_payload_(max_payload) {}
    void set_max_payload(uint32_t bytes) { max_payload_ = bytes; }

    void feed(std::string_view bytes);
    /// The next whole frame, if there is one. After garbage nothing comes any more.
    Result next(Frame& out);

  private:
    std::string buffer_;
    size_t begin_ = 0;
    uint32_t max_payload_;
    bool garbage_ = false;
};

struct Hello {
    uint32_t version = kProtocolVersion;
    JobId job = 0;
    uint64_t secret[2] = {};
    uint32_t rank = 0;
};

/// One command of MPI_Comm_spawn_multiple. Info keys known: wdir, path, host, hostfile, add-host,
/// add-hostfile, soft ("2,4:8" or "1:9:2"), env ("NAME=VALUE", several separated by newlines). Others are
/// ignored.
struct SpawnCommand {
    std::vector<std::string> argv;  ///< argv[0] is the command
    uint32_t maxprocs = 0;
    std::vector<std::pair<std::string, std::string>> info;
};

struct SpawnRequest {
    std::string blob;                    ///< for the child job's segment, opaque
    std::vector<SpawnCommand> commands;  ///< appnum is the index
};

struct SpawnReply {
    int32_t error_class = 0;
    std::string text;            ///< the sentence, if error_class is not MPI_SUCCESS
    JobAddress job;              ///< of the child, if error_class is MPI_SUCCESS
    std::vector<int32_t> codes;  ///< one per process asked for, in order of the commands
};

struct NameRequest {
    JobId job = 0;  ///< filled in by the launcher
    std::string service, port;
};

struct NameReply {
    int32_t error_class = 0;
    std::string text;  ///< sentence
    std::string port;
};

struct DisconnectNotice {
    JobId child = 0, parent = 0;
};

std::string encode(const Hello& message);
std::string encode(const SpawnRequest& message);
std::string encode(const SpawnReply& message);
std::string encode(const NameRequest& message);
std::string encode(const NameReply& message);
std::string encode(const DisconnectNotice& message);

/// False if `payload` is not exactly one such message; `out` is then unspecified.
bool decode(std::string_view payload, Hello& out);
bool decode(std::string_view payload, SpawnRequest& out);
bool decode(std::string_view payload, SpawnReply& out);
bool decode(std::string_view payload, NameRequest& out);
bool decode(std::string_view payload, NameReply& out);
bool decode(std::string_view payload, DisconnectNotice& out);

}  // namespace starling::boot
