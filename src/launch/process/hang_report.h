// Runs `starling why` on hanging jobs for --timeout and STARLING_HANG_REPORT. It runs as a separate process, which reads the ranks' wait
// reports and asks other hosts, so the event loop continues meanwhile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/common/event_loop.h"

namespace starling::launch {

class Launcher;

/// Conditions for a report: if one of them is not met, the report is empty.
struct ExplainWhen {
    int quiet = 0;               ///< seconds; the report is empty unless no rank has made progress for that time
    bool ended_awaited = false;  ///< true: the report is empty unless a rank waits for a process that has ended
};

/// Diagnoses all jobs whose id begins with `job` (empty: all jobs of this process). `done` receives the text in whole lines, empty if there
/// is no diagnosis; it is called within half a minute, from the loop or at once. `hosts`: hosts to ask in addition, needed if this process
/// has no part of the job and cannot know its hosts.
void explain(EventLoop& loop, Launcher& launcher, const std::string& job, ExplainWhen when,
             const std::vector<std::string>& hosts, std::function<void(const std::string&)> done);

/// Prints the diagnosis once, when no rank has made progress for `seconds`, and then stops checking.
void report_when_hanging(EventLoop& loop, Launcher& launcher, int seconds, std::function<void(const std::string&)> print);

}  // namespace starling::launch
