// Parses mpiexec's command line.
#pragma once

#include <string>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// The way in which a job is started.
enum class LaunchMethod {
    automatic,  ///< the fastest that can serve the job
    direct,     ///< by mpiexec itself: this host only
    agent,      ///< mpiexec starts daemons through ssh or another agent
    standing,   ///< by daemons that run already
};

struct Options {
    std::vector<Program> programs;
    std::string agent;   ///< command that runs another command on a host; empty: ssh
    std::string prefix;  ///< where Starling is installed on the hosts; empty: in the same place as here
    LaunchMethod way = LaunchMethod::automatic;
    std::vector<std::string> notes;  ///< options that were accepted and ignored, one sentence each
    bool tag_output = false;
    bool verbose = false;
    bool quiet = false;
    Binding binding = Binding::automatic;
    bool report_bindings = false;
    bool recovers = false;
    uint32_t universe_size = 0;  ///< same as JobSpec::universe_size
    std::shared_ptr<const Plan> plan;
    int timeout_seconds = 0;
    bool profile = false;
    std::string profile_file;  ///< empty: a name with the application's name
    bool help = false;
    bool version = false;
};

/// Parses the arguments. A general parser does not fit: options end at each program's name, one and two dashes are equivalent, and MPMD
/// repeats the whole command line after ':'. Returns an empty string, or a sentence that describes the error.
std::string parse_options(const std::vector<std::string>& arguments, Options& out);

}  // namespace starling::launch
