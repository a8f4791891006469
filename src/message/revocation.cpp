#include "message/revocation.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "link/peer.h"
#include "link/retry.h"
#include "message/context_table.h"
#include "message/receive.h"
#include "message/send.h"
#include "mpi-ext.h"

namespace starling::message {

STARLING_STATE decltype(on_revoked) on_revoked = nullptr;

namespace {

/// Context ids that were revoked before this process had created its part of their communicator.
STARLING_STATE NoDestroy<std::vector<uint64_t>> early_storage;
constinit auto& early_revocations = early_storage.value;

bool is_living(const link::Process& process) { return !link::has_failed_or_ended(process); }

void announce_to(const MatchContext& members, int rank) {
    const uint64_t context = members.context();
    link::send_when_possible(members.roster().at(rank), packet::PacketKind::revoke, &context, sizeof context);
}

/// Sends the revocation to the living members that follow this process at the distances 1, 2, 4, ... in the order of ranks.
void announce_to_next(const MatchContext& members) {
    const int n = members.roster().size();
    int distance = 0, next = 1;
    for (int i = 1; i < n; ++i) {
        const int rank = (members.my_rank() + i) % n;
        if (!is_living(members.roster().at(rank)) || ++distance != next) continue;
        announce_to(members, rank);
        next *= 2;
    }
}

bool all_live(const MatchContext& members) {
    for (int r = 0; r < members.roster().size(); ++r)
        if (!is_living(members.roster().at(r))) return false;
    return true;
}

/// Passes a revocation on that has just arrived. Not needed as long as its first sender lives, because that sends to all members. If it dies,
/// repeat_revocations() passes the revocation on at each member that has it and learns of the death, as all do that share a segment.
void pass_on(const MatchContext& members) {
    if (!all_live(members) || !share_segment(members.roster())) announce_to_next(members);
}

/// Ends all operations of the communicator here.
void end_operations(MatchContext& members) {
    std::vector<MatchContext*> parts;
    directory.each([&](MatchContext& channel) {
        const bool part = channel.whole && same_communicator(channel.whole->context(), members.context());
        if (part || same_communicator(channel.context(), members.context())) parts.push_back(&channel);
    });
    for (MatchContext* part : parts) {
        part->set_revoked(part == &members);
        if (on_revoked) on_revoked(*part);
    }
    for (MatchContext* part : parts) end_receives_of(*part);
    revoke_sends(members.context());
}

void on_revoke(link::Peer&, const link::Packet& packet) {
    uint64_t context;
    if (packet.header.bytes != sizeof context) return;
    std::memcpy(&context, packet.payload, sizeof context);
    if (MatchContext* const members = directory.find(context)) {
        if (members->revoked()) return;
        pass_on(*members);
        return end_operations(*members);
    }
    const bool is_new = std::find(early_revocations.begin(), early_revocations.end(), context) == early_revocations.end();
    if (is_new && !is_retired(context)) early_revocations.push_back(context);
}

}  // namespace

void announce_revocation(const MatchContext& members) {
    for (int r = 0; r < members.roster().size(); ++r)
        if (r != members.my_rank() && is_living(members.roster().at(r))) announce_to(members, r);
}

void announce_last_revocations() {
    directory.each([](MatchContext& channel) {
        if (!channel.announces_revocation()) return;
        announce_revocation(channel);
        channel.end_announcements();
    });
}

void notify_of_revocation(link::Peer& peer, uint64_t context) {
    const uint64_t of_members = context >> kPlaneBits << kPlaneBits | kMembersPlane;
    link::send_control(peer, packet::PacketKind::revoke, &of_members, sizeof of_members);
}

void listen_for_revocations() { link::register_handler(packet::PacketKind::revoke, on_revoke); }

void revoke(MatchContext& members) {
    if (members.revoked()) return;
    announce_revocation(members);
    end_operations(members);
}

void repeat_revocations() {
    directory.each([](MatchContext& channel) {
        if (channel.announces_revocation()) announce_to_next(channel);
    });
}

void revoke_if_early(MatchContext& members) {
    if (std::erase(early_revocations, members.context()) == 0) return;
    pass_on(members);
    end_operations(members);
}

int why_revoked() {
    return fail(MPIX_ERR_REVOKED, "the communicator is revoked; MPIX_Comm_shrink creates one of its living members");
}

}  // namespace starling::message
