// mpiexec as a client of the standing daemons: they start the job; this client passes on the job's output, input and signals.
#pragma once

#include <string>

#include "launch/client/options.h"
#include "launch/client/profile_file.h"

namespace starling::launch {

constexpr int kCannotStart = 127;  ///< exit code of mpiexec if the job cannot start

struct ClientOutcome {
    bool served = false;  ///< true: the job has run. false: no daemon runs or has the hosts; reason in `text`
    std::string text;
    int exit_code = 0;
};

/// Submits the job and runs until it has ended. `profile`: receives the job's profile, if it is open.
ClientOutcome run_as_client(const Options& options, ProfileFile& profile);

}  // namespace starling::launch
