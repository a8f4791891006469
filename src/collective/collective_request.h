// Runs collective tasks: to the end in a blocking call, or as a request while the program continues.
#pragma once

#include "collective/core/operation_label.h"
#include "collective/core/task.h"
#include "progress/request.h"

namespace starling::collective {

/// A non-blocking collective operation. Owns the task and everything that the task refers to.
struct CollectiveRequest : progress::Request {
    CollectiveRequest() : Request(progress::RequestKind::collective) {}
    Task task;
    OperationLabel label;
};

/// Starts a task. The request completes with the task, possibly before start() returns, and must not move until then.
void start(Task task, CollectiveRequest& request);

/// Runs a task to its end, with progress on all other communication, and returns its error class.
int run(Task task, const OperationLabel& label = {});

}  // namespace starling::collective
