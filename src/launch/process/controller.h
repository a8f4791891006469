// Who decides about jobs: the universe's root, through the deputy that it has on each host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control/control_protocol.h"
#include "launch/process/job.h"

namespace starling::launch {

/// How a rank failed.
struct Failure {
    uint32_t rank = 0;
    int status = 0;        ///< as waitpid gave it
    int exit_code = 1;     ///< what mpiexec's is to be
    bool aborted = false;  ///< by MPI_Abort
    std::string sentence;  ///< which rank, process, host, and what happened to it
};

class Controller {
  public:
    virtual ~Controller() = default;

    /// The first rank of this host's part has failed; the part is being ended.
    virtual void failed(Job& job, const Failure& failure) = 0;
    /// A rank of a job on several hosts has ended well, as the sentence says, and never called MPI_Init: others may wait for it.
    virtual void absent(Job& job, uint32_t rank, const std::string& sentence) = 0;
    /// All ranks of this host are gone, and what they left behind too.
    virtual void all_gone(Job& job) = 0;

    using Answer = std::function<void(std::string payload)>;
    /// A request of a rank. `answer` is called once with the encoded reply: at once, later, or never if the universe
    /// ends before. False if it is not a request.
    virtual bool ask(Job& job, uint32_t rank, control::MessageKind kind, const std::string& payload, Answer answer) = 0;
};

}  // namespace starling::launch
