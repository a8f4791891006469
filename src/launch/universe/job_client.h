// Who a job is for: the user at mpiexec's terminal, or at that of a client of the standing daemons.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/common/job_spec.h"
#include "launch/common/repeated_signal.h"
#include "launch/universe/profile_lines.h"

namespace starling::launch {

/// Asked by the Universe, on its loop. What the universe knows of the patron's jobs as a whole is kept here too.
class JobClient {
  public:
    virtual ~JobClient() = default;

    /// A sentence for the user.
    virtual void say(const std::string& sentence) = 0;
    /// Whole lines for standard output (1) or error (2); `written` is called when there is room for more.
    virtual void output(int target, std::string_view lines, std::function<void()> written) = 0;
    /// The last piece of standard input is with rank 0.
    virtual void input_taken() = 0;
    /// All jobs have ended.
    virtual void finished(int exit_code) = 0;
    /// Lines for the profile, if there is one. False if they have nowhere to go any more.
    virtual bool write_profile(const std::string& lines) { return lines.empty(); }

    // Set by the patron.
    JobStyle style;
    bool verbose = false;
    bool quiet = false;
    std::vector<std::string> environment;  ///< the user's: NAME=value
    bool whole_environment = true;         ///< that is all of it, and nothing of a daemon's goes below
    std::string directory;                 ///< where programs run unless they say otherwise
    bool has_own_host = false;  ///< processes on the root's host are the patron's children, with its environment and streams

    // Kept by the universe.
    std::unique_ptr<ProfileLines> profile;  ///< null: none is written
    uint32_t jobs_started = 0;
    uint32_t jobs_left = 0;
    int exit_code = 0;
    int forwarded_signal = 0;
    RepeatedSignal insistence;
    bool timed_out = false;
};

}  // namespace starling::launch
