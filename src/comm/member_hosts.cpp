#include "comm/member_hosts.h"

#include <map>
#include <utility>

#include "link/job.h"
#include "mpi.h"

namespace starling::comm {

// All members must get the same numbers, so these depend only on facts that all of them know. They are the host ids in the job tables or,
// for jobs whose tables fill on demand, the index in the table.
std::vector<int> host_numbers(const message::Roster& roster, int first, int count) {
    std::map<std::pair<const link::Job*, uint64_t>, int> numbers;
    std::vector<int> out;
    for (int i = 0; i < count; ++i) {
        const link::Process process = roster.at(first + i);
        if (process.job->map() != MPI_SUCCESS) return {};
        const auto& segment = process.job->segment();
        const uint32_t host = segment.host_of(process.rank);
        const bool open = segment.header().hosts_open;
        const std::pair key(open ? process.job : nullptr, open ? host : segment.host(host).id);
        out.push_back(numbers.emplace(key, static_cast<int>(numbers.size())).first->second);
    }
    return out;
}

std::string host_name(const message::Roster& roster, int member) {
    const link::Process process = roster.at(member);
    if (process.job->map() != MPI_SUCCESS) return {};
    const auto& segment = process.job->segment();
    return segment.host(segment.host_of(process.rank)).name;
}

}  // namespace starling::comm
