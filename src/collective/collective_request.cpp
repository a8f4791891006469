#include "collective/collective_request.h"

#include <new>
#include <utility>

#include "base/kept_memory.h"
#include "collective/core/exchange.h"
#include "collective/shm/stage_owner.h"
#include "message/wait_report.h"
#include "progress/engine.h"

namespace starling::collective {

void start(Task task, CollectiveRequest& request) {
    request.task = std::move(task);
    const Task::TaskHandle handle = request.task.handle();
    if (!handle) {
        request.outcome.error = request.task.result();
        if (request.outcome.error != MPI_SUCCESS) [[unlikely]]
            progress::save_failure(request);
        request.complete();
        return;
    }
    handle.promise().request = &request;
    handle.resume();
}

int run(Task task, const OperationLabel& label) {
    if (!task.handle()) return task.result();
    CollectiveRequest request;
    start(std::move(task), request);
    if (request.done) return progress::error_of(request);
    request.label = label;
    const progress::WaitSite site{
        label.function, progress::Expected::soon, [](const void* r, progress::WaitReporter& teller) {
            report_wait(static_cast<const CollectiveRequest*>(static_cast<const progress::Request*>(r))->label, teller);
        }};
    try {
        progress::wait(request, site);
    } catch (const std::bad_alloc&) {
        // An arriving message did not fit into the reserve. The task still refers to buffers of active operations, so it cannot be left.
        KeptMemory::end();
    }
    return progress::error_of(request);
}

void report_wait(const OperationLabel& label, progress::WaitReporter& teller) {
    if (!label.channel) return;
    if (label.number) teller.in_collective(label.channel->context(), label.number);
    const message::OperationTags tags{label.tag, label.tags, Exchange::second_tag(label.tag_bits)};
    message::report_collective(*label.channel, tags, teller);
    if (label.stage && label.stage->node()) label.stage->node()->sync().report_awaited(teller);
}

}  // namespace starling::collective
