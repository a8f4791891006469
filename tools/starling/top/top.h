// `starling top`: the running jobs, live.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct TopOptions {
    double interval = 1;  ///< seconds between two pictures
    bool once = false;    ///< one picture, then end
    bool json = false;
    bool totals = false;
    std::string sort = "rank";
    bool all_users = false;          ///< the jobs of others too, which may show what they like
    bool all_hosts = false;          ///< also the other hosts of the jobs seen here
    std::vector<std::string> hosts;  ///< these hosts too
    std::string job;                 ///< only these: begin of an id, part of a command
};

/// Runs until it is told to end; gives the exit code.
int run_top(const TopOptions& options);

}  // namespace starling
