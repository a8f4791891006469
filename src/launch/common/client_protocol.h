// What mpiexec and a standing daemon say to each other, in frames of control/control_protocol.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "control/control_protocol.h"
#include "launch/common/job_spec.h"

namespace starling::launch {

/// Kinds of frames. `stop` and `status` of control::MessageKind are understood besides.
enum class ClientMessage : uint32_t {
    submit = 20,    ///< client → daemon: a job
    started = 21,   ///< daemon → client
    output = 22,    ///< daemon → client: what ranks print
    written = 23,   ///< client → daemon: so much of it has been written
    input = 24,     ///< client → daemon: standard input, empty at its end
    taken = 25,     ///< daemon → client: the input has gone on
    signal = 26,    ///< client → daemon
    finished = 27,  ///< daemon → client: the exit code
    profile = 28,   ///< daemon → client: lines for the profile's file
};
static_assert(static_cast<uint32_t>(ClientMessage::profile) == static_cast<uint32_t>(control::MessageKind::last));

constexpr control::MessageKind kind_of(ClientMessage message) { return static_cast<control::MessageKind>(message); }

/// The socket of the user's standing daemon on any of its hosts; its name depends on STARLING_UNIVERSE.
std::string universe_socket_name();

/// submit: a job and all that a process started here would have got from mpiexec.
struct Submission {
    uint32_t version = wire_version();  ///< these two are first in all versions to come
    std::string release = kThisVersion.release;
    JobSpec spec;
    JobStyle style;
    bool verbose = false, quiet = false;
    bool profile = false;  ///< the client writes a profile
    uint32_t timeout_seconds = 0;
    std::string directory;
    std::vector<std::string> environment;  ///< NAME=value
    bool partial = false;                  ///< that is what ranks on other hosts get, and not all
};

/// started: what became of it.
struct SubmissionReply {
    int32_t error_class = 0;
    bool unknown_host =
        false;  ///< a host that was named is not one of this universe, or lost, or all are: another way may serve it
    std::string text;
    uint32_t hosts = 0;  ///< of the universe
};

/// output, written, signal, finished: a number and bytes.
struct ClientNotice {
    uint32_t number = 0;  ///< descriptor, signal, or exit code
    std::string bytes;    ///< lines, if it is output
};

std::string encode(const Submission& message);
std::string encode(const SubmissionReply& message);
std::string encode(const ClientNotice& message);
/// False if `payload` is not exactly one such message, or of a version that is not understood: then it has version and release alone.
bool decode(std::string_view payload, Submission& out);
bool decode(std::string_view payload, SubmissionReply& out);
bool decode(std::string_view payload, ClientNotice& out);

}  // namespace starling::launch
