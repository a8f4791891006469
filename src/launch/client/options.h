// mpiexec's command line.
#pragma once

#include <string>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// How a job's daemons come about.
enum class Way {
    automatic,  ///< the fastest that can serve the job
    direct,     ///< mpiexec itself: this host only
    agent,      ///< mpiexec starts daemons through ssh or another agent
    standing,   ///< daemons that run already
};

struct Options {
    std::vector<Program> programs;
    std::string agent;   ///< command that runs another on a host; empty: ssh
    std::string prefix;  ///< where Starling is installed on the hosts; empty: where it is here
    Way way = Way::automatic;
    std::vector<std::string> notes;  ///< what was read and ignored, one sentence each
    bool tag_output = false;
    bool verbose = false;
    bool quiet = false;
    Binding binding = Binding::automatic;
    bool report_bindings = false;
    bool recovers = false;
    uint32_t universe_size = 0;  ///< as JobSpec's
    std::shared_ptr<const Plan> plan;
    int timeout_seconds = 0;
    bool profile = false;
    std::string profile_file;  ///< empty: one with the application's name
    bool help = false;
    bool version = false;
};

/// Parses by hand: options end at each program's name, one or two dashes are the same, and MPMD repeats the
/// whole with ':' between, none of which a general parser takes to. Returns an empty string, or the
/// sentence that tells what is wrong.
std::string parse_options(const std::vector<std::string>& arguments, Options& out);

}  // namespace starling::launch
