// Parses mpiexec's command line.
#pragma once

#include <string>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// The way in which a job is started.
enum class LaunchMethod {
    automatic,  ///< by the fastest method that is able to start the job
    direct,     ///< by mpiexec itself, on this host only
    agent,      ///< by daemons that mpiexec starts through ssh or another agent
    standing,   ///< by daemons that run already
};

struct Options {
    std::vector<Program> programs;
    std::string agent;   ///< command that runs another command on a host; empty: ssh
    std::string prefix;  ///< directory of Starling on the hosts; empty: the same as here
    LaunchMethod way = LaunchMethod::automatic;
    std::vector<std::pair<std::string, std::string>> settings;  ///< variables of --set, which mpiexec obeys too
    std::string allocation;  ///< sentence for --verbose about the batch job whose hosts are used; empty: none
    std::vector<std::string>
        notes;  ///< one sentence for each option that was accepted and has no effect, or another meaning elsewhere
    std::vector<std::string> remarks;  ///< sentences for --verbose: harmless options that were ignored, and translated ones
    bool tag_output = false;
    OutputStyle output;
    InputRanks input = InputRanks::of_rank(0);  ///< ranks that receive standard input
    bool verbose = false;
    bool quiet = false;
    Binding binding = Binding::automatic;
    bool report_bindings = false;
    bool display_map = false;
    bool nolocal = false;  ///< true: no process runs on this host
    bool dry_run = false;  ///< true: print the map, and start nothing
    bool recovers = false;
    uint32_t universe_size = 0;  ///< universe size that the user requested (JobSpec::universe_size)
    std::shared_ptr<const Plan> plan;
    int timeout_seconds = 0;
    std::vector<uint32_t> debugged;  ///< ranks on which a debugger runs; empty: none
    std::string start_hint;          ///< end of a sentence: an option's value was taken as the program
    std::string hinted_program;      ///< that program
    bool profile = false;
    std::string profile_file;  ///< name of the profile; empty: made from the application's name
    bool help = false;
    bool version = false;

    /// Return what is submitted to the root of the job.
    JobSpec spec() const;
    JobStyle style() const;

    /// Returns the reason why a command's program can't be started, with start_hint if it is hinted_program.
    std::string with_start_hint(const std::string& reason, size_t command) const;
};

/// Parses the arguments. A general parser does not fit: options end at each program's name, one and two dashes are equivalent, and MPMD
/// repeats the whole command line after ':'. Returns an empty string, or a sentence that describes the error.
std::string parse_options(const std::vector<std::string>& arguments, Options& out);

}  // namespace starling::launch
