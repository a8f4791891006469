#include "run.h"

#include <algorithm>

namespace starling::analysis {

Waits& Waits::add(const Waits& more, double share) {
    late_sender += more.late_sender * share;
    late_receiver += more.late_receiver * share;
    collective += more.collective * share;
    other += more.other * share;
    return *this;
}

void Calls::add(const Calls& more) {
    calls += more.calls;
    bytes += more.bytes;
    seconds += more.seconds;
    squares += more.squares;
}

Amount Span::all() const {
    Amount sum = by_packets;
    for (const Amount& amount : sizes) sum += amount;
    return sum;
}

Amount Span::on_connection() const {
    Amount sum;
    for (const Sent& one : sent) sum += one.on_connection;
    return sum;
}

const Job& Run::job_of(uint32_t process) const {
    const auto after =
        std::upper_bound(jobs.begin(), jobs.end(), process, [](uint32_t p, const Job& job) { return p < job.first; });
    return *std::prev(after);
}

const std::string& Run::host_of(uint32_t process) const {
    static const std::string unknown = "?";
    const Job& job = job_of(process);
    const uint32_t rank = process - job.first;
    return rank < job.host_of_rank.size() && job.host_of_rank[rank] < job.hosts.size() ? job.hosts[job.host_of_rank[rank]]
                                                                                       : unknown;
}

std::string Run::name_of(uint32_t process) const {
    const std::string rank = std::to_string(rank_of(process));
    return jobs.size() == 1 ? rank : std::to_string(job_of(process).number) + "." + rank;
}

}  // namespace starling::analysis
