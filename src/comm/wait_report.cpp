#include "comm/wait_report.h"

#include <algorithm>
#include <cstring>

#include "comm/comm.h"
#include "message/context_table.h"

namespace starling::comm {

void describe_communicator(uint64_t context, WaitReportPage::CommunicatorEntry& out) {
    const message::MatchContext* channel = message::directory.find(context);
    if (!channel || !channel->owner) return;
    const Comm& comm = *static_cast<const Comm*>(channel->owner);
    const Group& group = comm.peers();
    out.size = static_cast<uint32_t>(group.size());
    out.rank = static_cast<uint32_t>(comm.rank);
    out.inter = comm.is_inter;
    out.runs = static_cast<uint32_t>(group.runs().size());
    for (uint32_t i = 0; i < std::min(out.runs, WaitReportPage::kRuns); ++i) {
        const GroupRun& run = group.runs()[i];
        out.run[i] = {run.job->address().id, static_cast<uint32_t>(run.first), static_cast<uint32_t>(run.count), run.stride, 0};
    }
    const size_t length = std::min(comm.name.size(), sizeof out.name - 1);
    std::memcpy(out.name, comm.name.data(), length);
}

}  // namespace starling::comm
