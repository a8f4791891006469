// `starling why`: what the processes of a running job wait for, and why that does not end.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct WhyOptions {
    std::string job;                 ///< only these: begin of an id, part of a command
    double interval = 0.3;           ///< seconds between the two looks
    bool all_users = false;          ///< the jobs of others too, which may show what they like
    bool here = false;               ///< this host alone
    std::vector<std::string> hosts;  ///< these hosts too
    bool stacks = false;
    bool json = false;
    bool raw = false;            ///< for the same program on another host
    int launcher = 0;            ///< only the jobs of this process
    double quiet = 0;            ///< nothing is said unless nobody has done anything for so many seconds
    bool ended_awaited = false;  ///< nothing is said unless somebody waits for a process that has ended
};

/// Looks and reports; gives the exit code: 1 if there is no such job.
int run_why(const WhyOptions& options);

}  // namespace starling
