// A rank's request to its launcher for the rank's part of a plan. The rank continues without waiting. A process without a launcher has no plan,
// and the request does not start a launcher.
#pragma once

#include <optional>

#include "control/control.h"
#include "control/plan_reply.h"

namespace starling::plan {

class PlanRequest {
  public:
    /// Sends the request. Returns false if no launcher can be asked; then there is nothing to poll for.
    bool start();
    /// Returns whether the request is over. `plan` then has the launcher's reply, or is empty if there is none that can be used. Leaves no
    /// failure text.
    bool poll(std::optional<control::PlanReply>& plan);

  private:
    control::ControlCall call_;
};

}  // namespace starling::plan
