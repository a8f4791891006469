// `starling top`: shows the running jobs live.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct TopOptions {
    double interval = 1;  ///< seconds between two updates
    bool once = false;    ///< true: print one update, then end
    bool json = false;
    bool totals = false;
    std::string sort = "rank";
    bool all_users = false;          ///< true: include jobs of other users, whose memory may hold false values
    bool all_hosts = false;          ///< true: include the other hosts of the jobs found here
    std::vector<std::string> hosts;  ///< additional hosts to show
    std::string job;                 ///< filter of jobs: begin of an id, or part of a command
};

/// Runs until the user ends it; returns the exit code.
int run_top(const TopOptions& options);

}  // namespace starling
