// The jobs that `starling top` sees on other hosts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starling/agents.h"
#include "starling/top/watch.h"

namespace starling::top {

/// The hosts that are looked at. Not thread-safe.
class RemoteHosts {
  public:
    RemoteHosts(double interval, const std::string& filter, bool all_users);

    /// As of Agents.
    void watch(const std::string& host) { agents_.watch(host); }
    /// Reads what has come, without waiting. Adds the jobs to `jobs`: what runs there of a job that is in it becomes part
    /// of that one.
    void add_to(std::vector<JobView>& jobs);
    bool settled() const { return agents_.settled(); }
    std::string trouble() const { return agents_.trouble(true); }

  private:
    Agents agents_;
    std::map<std::string, std::vector<JobView>> jobs_;  ///< by host, as it said last
};

/// The jobs of a line that json() has written; false if it is none.
bool parse(const std::string& line, std::vector<JobView>& jobs);

}  // namespace starling::top
