// The messages between mpiexec and a standing daemon, as frames of control/control_protocol.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "control/control_protocol.h"
#include "launch/common/job_spec.h"

namespace starling::launch {

/// Kinds of frames. A standing daemon also accepts `stop` and `status` of control::MessageKind.
enum class ClientMessage : uint32_t {
    submit = 20,    ///< client → daemon: a job to start
    started = 21,   ///< daemon → client: whether the job was started (SubmissionReply)
    output = 22,    ///< daemon → client: output of the ranks, as ClientNotice
    written = 23,   ///< client → daemon: number of bytes of one output frame that the client has written
    input = 24,     ///< client → daemon: standard input, empty at its end
    taken = 25,     ///< daemon → client: the last input frame was written to rank 0's pipe
    signal = 26,    ///< client → daemon: a signal for the ranks
    finished = 27,  ///< daemon → client: the exit code
    profile = 28,   ///< daemon → client: lines for the profile file
    /// client → daemon: where the job of a Submission would run. Daemons of wire version 1.0 close the connection.
    preview = 29,
    placement = 30,  ///< daemon → client: reply to preview (PlacementPreview), or `started` if the daemon can't serve the job
    /// client → daemon: a debugger has attached to the client. ClientNotice; number: 1 if later jobs shall be listed, and held until `shown`
    list = 31,
    processes = 32,  ///< daemon → client: the processes of a job (ProcessTable)
    shown = 33,      ///< client → daemon: the debugger has read the last table
};
static_assert(static_cast<uint32_t>(ClientMessage::shown) == static_cast<uint32_t>(control::MessageKind::last));

constexpr control::MessageKind kind_of(ClientMessage message) { return static_cast<control::MessageKind>(message); }

/// Returns the name of the socket on which the user's standing daemon listens on each of its hosts. It depends on STARLING_UNIVERSE.
std::string universe_socket_name();

/// Payload of submit: a job, and everything that its processes would inherit from mpiexec if mpiexec started them.
struct Submission {
    uint32_t version = wire_version();  ///< version and release are the first fields in all future versions
    std::string release = kThisVersion.release;
    JobSpec spec;
    JobStyle style;
    bool verbose = false, quiet = false;
    bool profile = false;  ///< true: the client writes a profile file
    uint32_t timeout_seconds = 0;
    std::string directory;
    std::vector<std::string> environment;  ///< variables NAME=value of mpiexec
    bool is_debugged = false;              ///< true: a debugger has started the client; the processes are listed and held
    bool partial = false;                  ///< true: `environment` has only the variables that ranks on other hosts receive
};

/// Payload of started: whether the job was started.
struct SubmissionReply {
    int32_t error_class = 0;
    bool unknown_host =
        false;  ///< true: a named host is not in this universe or is lost, or all are lost; the client may start the job by other means
    std::string text;
    uint32_t hosts = 0;    ///< number of hosts of the universe in which the job was started
    uint32_t version =
        0;  ///< wire version of the daemon; 0: 1.0. This field and those below are not sent to clients of wire version 1.0
    bool cannot_run = false;  ///< true: the program of command `failed_program` can't be started
    uint32_t failed_program = 0;
};

/// Payload of output, written, signal and finished: a number, and bytes for output.
struct ClientNotice {
    uint32_t number = 0;  ///< descriptor, signal, or exit code
    std::string bytes;    ///< lines of output, in messages of kind output
};

std::string encode(const Submission& message);
std::string encode(const SubmissionReply& message);
std::string encode(const ClientNotice& message);
/// Return false if `payload` is not exactly one such message. For a Submission of an unsupported version, only version and release are set.
bool decode(std::string_view payload, Submission& out);
bool decode(std::string_view payload, SubmissionReply& out);
bool decode(std::string_view payload, ClientNotice& out);

}  // namespace starling::launch
