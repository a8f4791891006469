// The number of processes of commands for which the user has given none.
#include <algorithm>
#include <unordered_set>

#include "control/control_protocol.h"
#include "launch/common/plan.h"
#include "launch/universe/universe_job.h"

namespace starling::launch {

// Returns the commands with a number, then the others, which share the slots that the first ones leave free.
static std::vector<Program*> counted_first(std::vector<Program>& programs) {
    std::vector<Program*> order;
    for (Program& program : programs) order.push_back(&program);
    std::stable_partition(order.begin(), order.end(), [](const Program* one) { return !one->uncounted; });
    return order;
}

// Returns whether commands that name no host may use the slots of several: those of standing daemons. Only their root has hosts that no
// command names.
bool Universe::offers_slots(const JobSpec& spec) const {
    const auto names_no_host = [](const Program& one) { return one.hosts.empty(); };
    return tree_ && offered() > 0 && std::all_of(spec.programs.begin(), spec.programs.end(), names_no_host);
}

// Sets the count of each command without a number: processes per host times hosts, or the slots of its hosts that the other commands of the
// job leave free. The hosts are those of the command, else those of the standing daemons; without either it has one process. Returns false
// with `problem` if the numbers can't be determined.
bool Universe::set_counts(JobSpec& spec, std::string& problem) {
    const std::vector<Program*> order = counted_first(spec.programs);
    if (order.empty() || !order.back()->uncounted) return true;
    const bool offers = offers_slots(spec);
    std::vector<HostCapacity> rooms = capacities();
    for (HostCapacity& room : rooms) room.placed = 0;
    std::unordered_set<uint32_t> taken;  // hosts whose free slots a command has taken
    for (Program* program : order) {
        PlacementRequest request;
        if (!find_rooms(*program, false, request, problem)) return false;
        uint64_t count = program->count;
        if (program->uncounted && program->per_host > 0) {
            count = uint64_t{program->per_host} * std::max(program->hosts.size(), request.hosts.size());
        } else if (program->uncounted && (offers || !program->hosts.empty())) {
            const auto again = std::find_if(request.hosts.begin(), request.hosts.end(),
                                            [&](uint32_t host) { return !taken.insert(host).second; });
            if (again != request.hosts.end()) {
                problem = "several commands without -n would fill the slots of host " + hosts_[*again].name +
                          "; give all of them but one a number with -n";
                return false;
            }
            count = std::max<uint64_t>(free_slots(request, rooms), 1);
        }
        if (count > control::kMaxProcesses) {
            problem = "the job would have " + std::to_string(count) + " processes, and " +
                      std::to_string(control::kMaxProcesses) + " are possible; give a number with -n";
            return false;
        }
        program->count = request.count = static_cast<uint32_t>(count);
        // The last one has its number; place_job() places it.
        if (program->count > 0 && program != order.back()) place(request, rooms);
    }
    for (Program& program : spec.programs) program.uncounted = false;
    // mpiexec has compared the plan with the command's name, which a wrapper may hide here.
    if (!spec.plan || spec.plan->size == spec.size()) return true;
    problem = "the plan is for " + std::to_string(spec.plan->size) + " processes, and the hosts have slots for " +
              std::to_string(spec.size()) + "; -n " + std::to_string(spec.plan->size) + " gives the job the plan's size";
    return false;
}

}  // namespace starling::launch
