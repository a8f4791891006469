// The plan that mpiexec has made from the traffic of the last run (STARLING_PLAN=auto, docs/plan.md). It holds for the whole run, so it
// needs no phases and no counts: the sequence numbers of messages show whether the traffic is the expected one.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

#include <cstdint>

namespace starling::plan {

/// Requests this process's part of the plan from its launcher at the first poll, and then follows it. Call it once, before link::start().
void follow_cached_plan();

/// Returns whether a plan is wrong: its partners got less than half of `messages`, and these are enough to judge.
constexpr bool is_wrong_plan(uint64_t messages, uint64_t with_partners) {
    constexpr uint64_t kEnough = 256;
    return messages >= kEnough && 2 * with_partners < messages;
}

}  // namespace starling::plan
