// mpiexec as a client of the standing daemons: they start the job; what it prints, reads and is told goes through here.
#pragma once

#include <string>

#include "launch/client/options.h"
#include "launch/client/profile_file.h"

namespace starling::launch {

struct ClientOutcome {
    bool served = false;  ///< false: there is no standing daemon, or it does not have the hosts; `text` tells
    std::string text;
    int exit_code = 0;
};

/// Submits the job and stays until it has ended. `profile`: of the job, if it is open.
ClientOutcome run_as_client(const Options& options, ProfileFile& profile);

}  // namespace starling::launch
