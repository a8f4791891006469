#include "control/plan_reply.h"

namespace starling::control {

void write(Writer& writer, const PlanLimits& limits) {
    writer.number(limits.max_direct).number(limits.max_connections).number(limits.eager_limit);
}

void read(Reader& reader, PlanLimits& out) {
    out.max_direct = reader.number<uint64_t>();
    out.max_connections = reader.number<uint64_t>();
    out.eager_limit = reader.number<uint64_t>();
}

void write(Writer& writer, const std::vector<PlannedPeer>& peers) {
    writer.number(static_cast<uint32_t>(peers.size()));
    for (const PlannedPeer& peer : peers) writer.number(peer.rank).number(peer.priority);
}

void read(Reader& reader, std::vector<PlannedPeer>& out) {
    out.resize(reader.count(8));
    for (PlannedPeer& peer : out) {
        peer.rank = reader.number<uint32_t>();
        peer.priority = reader.number<uint32_t>();
    }
}

std::string encode(const PlanReply& message) {
    Writer writer;
    write(writer, message.limits);
    writer.number(static_cast<uint32_t>(message.phases.size()));
    for (const PlannedPhase& phase : message.phases) {
        writer.string(phase.name).number(phase.from).number(phase.to);
        write(writer, phase.peers);
    }
    return writer.take();
}

bool decode(std::string_view payload, PlanReply& out) {
    constexpr size_t kLeastPhase = 24;
    Reader reader(payload);
    read(reader, out.limits);
    out.phases.resize(reader.count(kLeastPhase));
    for (PlannedPhase& phase : out.phases) {
        phase.name = reader.string();
        phase.from = reader.number<uint64_t>();
        phase.to = reader.number<uint64_t>();
        read(reader, phase.peers);
        if (!reader.ok() || phase.from == 0 || phase.to < phase.from) return false;
        for (const PlannedPeer& peer : phase.peers)
            if (peer.priority == 0) return false;
    }
    return reader.done();
}

}  // namespace starling::control
