#include "hang/collectives.h"

namespace starling::hang {

CollectiveCalls::CollectiveCalls(const std::vector<RankReport>& ranks) {
    for (const RankReport& rank : ranks) {
        each_collective(rank, [&](const ThreadWait& wait, const Communicator& communicator) {
            inside_[{communicator.context, first_member(communicator)}][rank.process] = wait.number;
        });
    }
}

const std::vector<ProcessName>* CollectiveCalls::missing(const RankReport& rank, const ThreadWait& wait) const {
    if (!wait.collective || wait.communicator < 0 || !rank.report) return nullptr;
    const Communicator& communicator = rank.report->communicators[static_cast<size_t>(wait.communicator)];
    const CommunicatorId id{communicator.context, first_member(communicator)};
    const auto inside = inside_.find(id);
    if (communicator.runs.empty() || communicator.inter || inside == inside_.end()) return nullptr;
    const auto [known, added] = missing_.try_emplace({id, wait.number});
    if (!added) return &known->second;
    communicator.each_member([&](const ProcessName& member) {
        const auto there = inside->second.find(member);
        // Operation numbers wrap around, so compare their difference; a member with a later number has passed this operation.
        if (there == inside->second.end() || static_cast<int32_t>(there->second - wait.number) < 0)
            known->second.push_back(member);
    });
    return &known->second;
}

}  // namespace starling::hang
