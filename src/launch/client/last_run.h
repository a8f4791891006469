// STARLING_PLAN=auto in mpiexec: looks up what is known of the application's last run, places and connects the new run by it, and keeps the
// new run's traffic for the next one.
#pragma once

#include <string>
#include <vector>

#include "launch/client/cached_run.h"
#include "launch/client/options.h"
#include "launch/client/plan_cache.h"
#include "launch/client/traffic_record.h"

namespace starling::launch {

/// Returns the identity of a run: the programs' paths, their arguments with every number replaced by '#', sizes and hosts. So a run with
/// another number of steps is the same application, and one with other options is not.
std::string run_key(const std::vector<Program>& programs);

class LastRun {
  public:
    explicit LastRun(Options& options) : options_(options) {}

    /// Looks up the last run and applies its plan to the options, if the user wants plans automatically. Problems with the cache are
    /// reported with --verbose only, except for damaged files.
    void apply();
    /// Returns the record of this run's traffic, which gets the lines of its profile; null if it is not needed.
    TrafficRecord* record() { return is_wanted_ && !options_.dry_run ? &record_ : nullptr; }
    /// Keeps the record, if the run was successful.
    void keep(int exit_code);

  private:
    void read();
    void place();
    std::vector<std::string> users_names() const;
    void remark(const std::string& sentence) const;

    Options& options_;
    bool is_wanted_ = false;
    bool placed_ = false;  ///< whether this run has the last run's placement
    std::string key_, name_, command_;
    CachedRun last_;
    PlanCache cache_;
    TrafficRecord record_;
};

}  // namespace starling::launch
