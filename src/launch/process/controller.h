// The interface through which the launcher reports to the universe's root, which decides about jobs. The host agent implements it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control/control_protocol.h"
#include "launch/process/job.h"

namespace starling::launch {

/// The rank that failed, and the way in which it failed.
struct RankFailure {
    uint32_t rank = 0;
    int status = 0;               ///< status that waitpid returned for the process
    int exit_code = 1;            ///< exit code that mpiexec returns for this failure
    bool aborted = false;         ///< true: the rank called MPI_Abort
    std::string sentence;         ///< sentence that names the rank, process and host, and the cause
    bool finalized = false;       ///< true: the rank exited after MPI_Finalize; the root decides when the others end
    uint32_t running = 0;         ///< number of the job's other ranks that still run on this host
    bool before_arrival = false;  ///< true: the rank had not reached the end of MPI_Init
};

class Controller {
  public:
    virtual ~Controller() = default;

    /// Reports that the first rank of this host's part of the job has failed, and that the launcher is ending the part. After a signal that
    /// asks the ranks to end, it reports each rank that fails, and ends none.
    virtual void failed(LocalJob& job, const RankFailure& failure) = 0;
    /// Reports that a rank of a job on several hosts has exited with 0 without calling MPI_Init, as `sentence` describes. Other ranks may
    /// be waiting for it.
    virtual void absent(LocalJob& job, uint32_t rank, const std::string& sentence) = 0;
    /// Reports that all ranks of the job on this host have ended, as have the processes that they started.
    virtual void on_all_ended(LocalJob& job) = 0;

    using ReplyCallback = std::function<void(std::string payload)>;
    /// Handles a rank's request. `answer` is called once with the encoded reply: at once, later, or never if the universe ends first.
    /// Returns false if `kind` is not a request.
    virtual bool forward_request(LocalJob& job, uint32_t rank, control::MessageKind kind, const std::string& payload,
                                 ReplyCallback answer) = 0;
};

}  // namespace starling::launch
