// The jobs on other hosts, for `starling top`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starling/agents.h"
#include "starling/top/watch.h"

namespace starling::top {

/// The hosts that are watched. Not thread-safe.
class RemoteHosts {
  public:
    RemoteHosts(double interval, const std::string& filter, bool all_users);

    /// Starts watching another host, as Agents::watch() does.
    void watch(const std::string& host) { agents_.watch(host); }
    /// Reads the reports that have arrived, without waiting, and adds their jobs to `jobs`. Ranks of a job that is in the list already are
    /// added to that job.
    void add_to(std::vector<JobView>& jobs);
    bool settled() const { return agents_.settled(); }
    std::string trouble() const { return agents_.trouble(true); }

  private:
    Agents agents_;
    std::map<std::string, std::vector<JobView>> jobs_;  ///< latest report of each host
};

/// Parses a line that json() has written. Returns false for other lines.
bool parse(const std::string& line, std::vector<JobView>& jobs);

}  // namespace starling::top
