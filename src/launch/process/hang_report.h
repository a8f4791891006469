// What `starling why` says of a job that does not go on, for --timeout and STARLING_HANG_REPORT. It is a process of its own,
// which reads what the ranks tell and asks other hosts; the loop goes on meanwhile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/common/event_loop.h"

namespace starling::launch {

class Launcher;

/// What has to be so, or nothing is said.
struct ExplainWhen {
    int quiet = 0;               ///< nobody has got any further for so many seconds
    bool ended_awaited = false;  ///< somebody waits for a process that has ended
};

/// Asks about all jobs whose id begins with `job` (empty: all jobs of this process). `done` gets the text, of whole lines, empty if there
/// is none; it is called within half a minute, from the loop, or at once. `hosts`: asked too, where this one has no part of the job, and so does not
/// know that they have.
void explain(EventLoop& loop, Launcher& launcher, const std::string& job, ExplainWhen when,
             const std::vector<std::string>& hosts, std::function<void(const std::string&)> done);

/// Prints the explanation once, when nobody has got any further for so many seconds. Asks no more when it has said it.
void report_when_hanging(EventLoop& loop, Launcher& launcher, int seconds, std::function<void(const std::string&)> print);

}  // namespace starling::launch
