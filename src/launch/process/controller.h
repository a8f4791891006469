// The interface through which the launcher reports to the universe's root, which decides about jobs. The host agent implements it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control/control_protocol.h"
#include "launch/process/job.h"

namespace starling::launch {

/// How a rank failed.
struct RankFailure {
    uint32_t rank = 0;
    int status = 0;        ///< status from waitpid
    int exit_code = 1;     ///< the exit code for mpiexec
    bool aborted = false;  ///< by MPI_Abort
    std::string sentence;  ///< names the rank, process and host, and the cause
};

class Controller {
  public:
    virtual ~Controller() = default;

    /// The first rank of this host's part has failed, and the launcher is ending the part.
    virtual void failed(LocalJob& job, const RankFailure& failure) = 0;
    /// A rank of a job on several hosts has exited with 0 without calling MPI_Init, as `sentence` says. Other ranks may be waiting for it.
    virtual void absent(LocalJob& job, uint32_t rank, const std::string& sentence) = 0;
    /// All ranks of the job on this host have ended, and so have the processes that they started.
    virtual void all_gone(LocalJob& job) = 0;

    using ReplyCallback = std::function<void(std::string payload)>;
    /// Handles a rank's request. `answer` is called once with the encoded reply: at once, later, or never if the universe ends first.
    /// Returns false if `kind` is not a request.
    virtual bool ask(LocalJob& job, uint32_t rank, control::MessageKind kind, const std::string& payload,
                     ReplyCallback answer) = 0;
};

}  // namespace starling::launch
