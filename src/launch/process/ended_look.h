// Whether others wait for a rank that has ended well: looked at again and again, since they may come to that late, and each time after twice
// as long, since they may never.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "job/job_description.h"
#include "launch/common/event_loop.h"

namespace starling::launch {

class Launcher;

enum class Look : uint8_t {
    now,
    later,  ///< nobody can wait yet
    never,  ///< it does not matter any more
};

struct EndedLook {
    job::JobId job = 0;
    std::chrono::milliseconds longest{};              ///< from one look to the next
    std::function<Look()> state;                      ///< asked before each look and after it
    std::function<std::vector<std::string>()> hosts;  ///< to be asked besides this one; none if there is no function
    std::function<void()> found;                      ///< somebody waits; no more looks after that
};

/// The first look is after a second. Nothing is called once `state` says never.
void look_for_waiting(EventLoop& loop, Launcher& launcher, EndedLook look);

}  // namespace starling::launch
