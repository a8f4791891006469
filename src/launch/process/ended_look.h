// Checks repeatedly whether other ranks wait for a rank that exited successfully. They may begin to wait late, so one check is not enough.
// They may never wait, so the interval doubles each time.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "job/job_description.h"
#include "launch/common/event_loop.h"

namespace starling::launch {

class Launcher;

enum class NextCheck : uint8_t {
    now,
    later,  ///< check later: no rank can wait yet
    never,  ///< no more checks are needed
};

struct EndedLook {
    job::JobId job = 0;
    std::chrono::milliseconds longest{};              ///< upper limit of the interval between two checks
    std::function<NextCheck()> state;                 ///< called before and after each check; returns when to check next
    std::function<std::vector<std::string>()> hosts;  ///< returns other hosts to check, too; null: checks this host only
    std::function<void()> found;                      ///< called when a rank waits for the ended one; no more checks follow
};

/// Starts the checks; the first is made after one second. After `look.state` has returned `never`, no function of `look` is called.
void start_wait_checks(EventLoop& loop, Launcher& launcher, EndedLook look);

}  // namespace starling::launch
