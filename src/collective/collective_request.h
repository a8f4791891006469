// Running collective tasks: to the end in a blocking call, or beside the program behind a request.
#pragma once

#include "collective/core/operation_label.h"
#include "collective/core/task.h"
#include "progress/request.h"

namespace starling::collective {

/// A non-blocking collective. Owns the task and what the task refers to.
struct CollectiveRequest : progress::Request {
    CollectiveRequest() : Request(progress::RequestKind::collective) {}
    Task task;
    Label label;
};

/// Starts a task; it is done when `request` is, which may be on return. `request` must not move until then.
void start(Task task, CollectiveRequest& request);

/// Runs a task to its end and gives its result. Other communication goes on meanwhile.
int run(Task task, const Label& label = {});

}  // namespace starling::collective
