#include "multicast/membership.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/state.h"
#include "link/remote_peer.h"
#include "link/transports.h"
#include "transport/multicast_groups.h"

namespace starling::multicast {

namespace {

std::vector<MemberName> names_of(std::span<const link::Process> members) {
    std::vector<MemberName> all;
    for (const link::Process& member : members) all.push_back({member.job->address().id, member.rank});
    return all;
}

/// Returns the message bytes per datagram with a short header: as many as the transport's datagrams hold, in multiples of 8. Members with other
/// limits need not agree, because each datagram carries its message's fragment size.
uint32_t fragment_size() {
    const uint32_t most = link::network()->groups()->payload();
    return (most - GroupDatagramHeader::kShort) / 8 * 8;
}

/// Reports, once per process, why a group cannot be joined. An invalid setting concerns all processes, so only rank 0 reports it; any other
/// error is due to this host, and is reported if the job is verbose.
void report_refusal(int error) {
    STARLING_STATE static bool told = false;
    const bool setting = error == MPI_ERR_ARG;
    if (std::exchange(told, true) || (setting ? link::self().rank != 0 : config().verbose < 1)) return;
    std::fprintf(stderr, "starling: rank %u cannot join multicast groups: %s\n", link::self().rank, failure_text().data());
}

}  // namespace

Membership::Membership(std::span<const link::Process> members, uint32_t me, const transport::GroupName& its_name,
                       ReceiveQueue& desk)
    : name(its_name),
      group(names_of(members), me,
            {its_name.key, now_ns(), fragment_size(), static_cast<uint64_t>(config().multicast_patience) * 1'000'000}, *this,
            desk),
      processes_(members.begin(), members.end()) {
    std::vector<link::Job*> jobs;
    for (const link::Process& member : members) {
        if (std::find(jobs.begin(), jobs.end(), member.job) != jobs.end()) continue;
        jobs.push_back(member.job);
        holds_.emplace_back(member.job);
        own_job_ = own_job_ && member.job == link::self().job;
    }
}

uint32_t Membership::index_of(const MemberName& who) const {
    const auto& all = group.members();
    const auto at = std::lower_bound(all.begin(), all.end(), who);
    return at != all.end() && *at == who ? static_cast<uint32_t>(at - all.begin()) : group.size();
}

link::Peer* Membership::peer(uint32_t member) const {
    const link::Process& who = processes_[member];
    link::Peer* const peer = who.job->dead() ? nullptr : who.job->peer(who.rank);
    return peer && !peer->dead ? peer : nullptr;
}

void Membership::mark_dead(uint64_t now) {
    for (uint32_t member = 0; member < group.size(); ++member) {
        if (member == group.me()) continue;
        const link::Process& who = processes_[member];
        const link::Peer* const met = who.job->find_peer(who.rank);
        if (link::has_failed(who))
            group.on_out(member, true, now);
        else if (who.job->dead() || (met && link::has_finalized(*met)))
            group.on_out(member, false, now);
    }
}

bool Membership::to_group(const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) {
    if (!network_) return true;  // the group was left meanwhile; members that miss the datagram request it
    const iovec parts[2] = {{const_cast<GroupDatagramHeader*>(&head), header_bytes(head)}, {const_cast<std::byte*>(body), bytes}};
    return network_->send(parts, bytes > 0 ? 2 : 1);
}

bool Membership::send_behind_note(uint32_t member, const Note& note, const iovec* parts, int count) {
    link::Peer* const to = peer(member);
    size_t whole = sizeof note;
    for (int i = 0; i < count; ++i) whole += parts[i].iov_len;
    if (!to || whole > to->base->payload_limit()) return true;
    link::PacketSlot slot;
    if (!link::reserve(*to, static_cast<uint32_t>(whole), slot)) return false;
    slot.header->kind = packet::PacketKind::multicast;
    std::memcpy(slot.payload, &note, sizeof note);
    std::byte* at = slot.payload + sizeof note;
    for (int i = 0; i < count; at += parts[i++].iov_len)
        if (parts[i].iov_len > 0) std::memcpy(at, parts[i].iov_base, parts[i].iov_len);
    link::commit(*to, slot, static_cast<uint32_t>(whole));
    return true;
}

bool Membership::to_member(uint32_t member, const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) {
    Note note{};
    note.group = name.key;
    note.kind = NoteKind::datagram;
    note.sender = head.sender;
    note.member = static_cast<uint16_t>(group.me());
    const iovec parts[2] = {{const_cast<GroupDatagramHeader*>(&head), header_bytes(head)}, {const_cast<std::byte*>(body), bytes}};
    if (!send_behind_note(member, note, parts, 2)) return false;
    ++counters.group_singles;
    return true;
}

void Membership::request_group(uint32_t member, const std::byte* claim, uint32_t bytes) {
    Note note{};
    note.group = name.key;
    note.kind = NoteKind::group_request;
    note.member = static_cast<uint16_t>(group.me());
    const iovec part{const_cast<std::byte*>(claim), bytes};
    send_behind_note(member, note, &part, 1);  // without space the request is lost, and the communicator gets no pool group
}

void Membership::note(uint32_t member, const Note& note) {
    static_assert(sizeof note <= link::PendingControl::kMost);
    if (link::Peer* const to = peer(member)) link::send_control(*to, packet::PacketKind::multicast, &note, sizeof note);
}

void Membership::announce_leave() {
    Note gone{};
    gone.group = name.key;
    gone.kind = NoteKind::left;
    for (uint32_t member = 0; member < group.size(); ++member)
        if (member != group.me() && !group.is_out(member)) note(member, gone);
}

bool Membership::join() {
    if (may_join && !may_join(*this)) return false;
    if (const int error = link::network()->groups()->join(name, *this, network_)) {
        report_refusal(error);
        clear_failure();
        return false;
    }
    joined_at = now_ns();
    ++counters.groups_joined;
    counters.groups += 1;
    return true;
}

void Membership::leave() {
    if (!network_) return;
    network_.reset();
    counters.groups -= 1;
}

void Membership::flush() {
    if (network_) network_->flush();
}

void Membership::report_unreachable() {
    if (network_) network_->report_unreachable();
}

void Membership::datagram(const std::byte* data, uint32_t bytes) {
    GroupDatagram taken;
    if (!decode(data, bytes, group.size(), taken)) {
        ++counters.strangers_group;
        return;
    }
    group.on_datagram(taken, now_ns());
    if (touched) touched(*this);
}

}  // namespace starling::multicast
