#include "plan/plan_request.h"

#include <utility>

#include "base/error.h"
#include "link/job.h"
#include "mpi.h"

namespace starling::plan {

bool PlanRequest::start() {
    const link::Process& me = link::self();
    const bool has_launcher = me.job->segment().header().control_socket[0] != '\0';
    const bool asked = has_launcher && control::ControlCall::start(me.job->segment(), me.rank, control::MessageKind::plan, {},
                                                                   call_) == MPI_SUCCESS;
    clear_failure();
    return asked;
}

bool PlanRequest::poll(std::optional<control::PlanReply>& plan) {
    bool done = false;
    const bool failed = call_.poll(done) != MPI_SUCCESS;
    if (!failed && !done) return false;
    if (control::PlanReply reply; !failed && decode(call_.reply(), reply)) plan = std::move(reply);
    call_ = {};
    clear_failure();
    return true;
}

}  // namespace starling::plan
