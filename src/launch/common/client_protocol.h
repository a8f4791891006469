// What mpiexec and a standing daemon say to each other (frames of control/control_protocol.h, from submit on).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// The socket of the user's standing daemon on any of its hosts; its name depends on STARLING_UNIVERSE.
std::string universe_socket_name();

/// submit: a job and all that a process started here would have got from mpiexec.
struct Submission {
    JobSpec spec;
    JobStyle style;
    bool verbose = false, quiet = false;
    uint32_t timeout_seconds = 0;
    std::string directory;
    std::vector<std::string> environment;  ///< NAME=value
};

/// started: what became of it.
struct SubmissionReply {
    int32_t error_class = 0;
    bool unknown_host = false;  ///< a host that was named is not one of this universe: another way may serve it
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
/// False if `payload` is not exactly one such message.
bool decode(std::string_view payload, Submission& out);
bool decode(std::string_view payload, SubmissionReply& out);
bool decode(std::string_view payload, ClientNotice& out);

}  // namespace starling::launch
