#include "launch/common/plan.h"

#include "launch/common/text.h"

namespace starling::launch {

bool Plan::is_for(std::string_view command, uint32_t processes) const {
    return size == processes && size > 0 && base_name(command) == application;
}

control::PlanReply Plan::part_of(uint32_t rank) const {
    control::PlanReply part;
    part.limits = limits;
    for (const PlanPhase& phase : phases) {
        const auto mine = phase.peers.find(rank);
        part.phases.push_back(
            {phase.name, phase.from, phase.to, mine == phase.peers.end() ? std::vector<control::PlannedPeer>() : mine->second});
    }
    return part;
}

void Plan::put_into(std::vector<std::pair<std::string, std::string>>& environment) const {
    environment.emplace(environment.begin(), "STARLING_PLAN_COLLECTIVES", collectives);
    environment.emplace(environment.begin(), "STARLING_PLAN", cached ? "cached" : "file");
}

void write(Writer& writer, const Plan& plan) {
    writer.string(plan.application).number(plan.size);
    write(writer, plan.limits);
    writer.number(static_cast<uint32_t>(plan.phases.size()));
    for (const Plan::PlanPhase& phase : plan.phases) {
        writer.string(phase.name).number(phase.from).number(phase.to).number(static_cast<uint32_t>(phase.peers.size()));
        for (const auto& [rank, peers] : phase.peers) {
            writer.number(rank);
            write(writer, peers);
        }
    }
    writer.string(plan.collectives);
}

bool read(Reader& reader, Plan& out) {
    constexpr size_t kLeastPhase = 24, kLeastRank = 8;
    out.application = reader.string();
    out.size = reader.number<uint32_t>();
    read(reader, out.limits);
    out.phases.resize(reader.count(kLeastPhase));
    for (Plan::PlanPhase& phase : out.phases) {
        phase.name = reader.string();
        phase.from = reader.number<uint64_t>();
        phase.to = reader.number<uint64_t>();
        uint32_t next = 0;
        for (uint32_t ranks = reader.count(kLeastRank); ranks > 0; --ranks) {
            const auto rank = reader.number<uint32_t>();
            if (!reader.ok() || rank < next || rank >= out.size) return false;
            read(reader, phase.peers[rank]);
            next = rank + 1;
        }
    }
    out.collectives = reader.string();
    return reader.ok();
}

}  // namespace starling::launch
