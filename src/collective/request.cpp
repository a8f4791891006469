#include "collective/request.h"

#include <utility>

#include "progress/engine.h"

namespace starling::collective {

void start(Task task, CollectiveRequest& request) {
    request.task = std::move(task);
    const Task::Handle handle = request.task.handle();
    handle.promise().request = &request;
    handle.resume();
}

int run(Task task) {
    CollectiveRequest request;
    start(std::move(task), request);
    if (!request.done) progress::wait(request);
    return message::error_of(request);
}

}  // namespace starling::collective
