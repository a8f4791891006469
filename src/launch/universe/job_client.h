// The program that a job runs for: mpiexec at the user's terminal, a client of the standing daemons, or a program that spawned without
// mpiexec.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/common/event_loop.h"
#include "launch/common/job_spec.h"
#include "launch/common/process_table.h"
#include "launch/common/repeated_signal.h"
#include "launch/universe/profile_lines.h"

namespace starling::launch {

inline constexpr int kTimedOut = 124;  ///< exit code of jobs that --timeout has ended

/// Base class of job clients, which the Universe calls on its event loop. It also stores the universe's data about all jobs of the client
/// together.
class JobClient {
  public:
    virtual ~JobClient() = default;

    /// Passes a sentence to the user.
    virtual void print(const std::string& sentence) = 0;
    /// Writes whole lines to standard output (1) or error (2); `written` is called when there is room for more.
    virtual void output(int target, std::string_view lines, std::function<void()> written) = 0;
    /// Reports that rank 0 has received the last piece of standard input.
    virtual void input_read() = 0;
    /// Reports that all jobs have ended.
    virtual void finished(int exit_code) = 0;
    /// Writes lines to the profile, if there is one. Returns false if they can't be written any more.
    virtual bool write_profile(const std::string& lines) { return lines.empty(); }
    /// Shows the processes of a job to the client's debugger, and calls `done` afterwards (Universe::list_processes).
    virtual void show_processes(ProcessTable, std::function<void()> done) { done(); }

    // Members that the job client sets.
    JobStyle style;
    bool verbose = false;
    bool quiet = false;
    std::vector<std::string> environment;  ///< variables NAME=value of the user's environment
    bool whole_environment = true;         ///< true: `environment` is complete, and no variables of a daemon are added
    std::string directory;                 ///< default working directory of programs
    bool lists_processes = false;  ///< true: show_processes() is called for each new job, which is stopped until it is done
    bool has_own_host = false;     ///< true: processes on the root's host inherit the client's environment and streams

    // Members that the universe sets.
    const uint64_t id = next_id();          ///< never used again in this process, unlike the client's address
    std::unique_ptr<ProfileLines> profile;  ///< profile that this client's jobs write; null: none
    uint32_t jobs_started = 0;
    uint32_t jobs_left = 0;
    int exit_code = 0;
    int forwarded_signal = 0;
    EventLoop::Clock::time_point
        end_by{};  ///< until then, a rank that ends does not end the others, because a signal asked all to end
    RepeatedSignal insistence;
    bool timed_out = false;
    bool has_begun_to_end =
        false;  ///< true: a rank has ended after such a signal, and a timer ends the client's jobs at `end_by`

    /// How far the client's jobs are after a signal that asked all to end.
    enum class Ending {
        none,       ///< there was no such signal, or its time is over and no job has ended because of it
        requested,  ///< the jobs may end; a program that handles the signal may also go on, and spawn
        begun,      ///< a rank has ended, so all others will: no job starts any more
    };
    Ending ending() const {
        if (has_begun_to_end) return Ending::begun;
        return EventLoop::Clock::now() < end_by ? Ending::requested : Ending::none;
    }

  private:
    static uint64_t next_id() {
        static uint64_t last = 0;
        return ++last;
    }
};

}  // namespace starling::launch
