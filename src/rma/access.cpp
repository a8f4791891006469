// The origin side of RMA: accesses by packets.
#include "rma/access.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/counter_start.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "link/host_memory.h"
#include "link/job.h"
#include "link/remote_peer.h"
#include "link/transports.h"
#include "message/request_ids.h"
#include "rma/flatten.h"
#include "rma/target_side.h"
#include "transport/batch.h"

namespace starling::rma {

namespace {

using Targets = List<Target, &Target::hook>;
STARLING_STATE Targets* active = nullptr;
STARLING_STATE NoDestroy<message::RequestIds<Access>> serials_storage;
constinit auto& serials = serials_storage.value;
STARLING_STATE uint32_t last_generation = kCounterStart;

bool is_update(AccessOperation operation) {
    return operation >= AccessOperation::update && operation <= AccessOperation::compare_swap;
}
bool carries_data(const Access& access) {
    if (access.operation == AccessOperation::get) return false;
    return access.operation == AccessOperation::put || !access.update.op ||
           access.update.op->operation != datatype::ReductionOperation::no_op;
}

void count(AccessOperation operation) {
    if (operation == AccessOperation::put)
        ++counters.puts;
    else if (operation == AccessOperation::get)
        ++counters.gets;
    else
        ++counters.updates;
}

profile::AccessKind kind_of(AccessOperation operation) {
    if (operation == AccessOperation::put) return profile::AccessKind::put;
    return operation == AccessOperation::get ? profile::AccessKind::get : profile::AccessKind::update;
}

/// Removes packets of an access from the counts of unanswered ones, because they were answered or the access has ended.
void forget_packets(Access& access, uint32_t packets) {
    access.packets -= packets;
    access.target->unanswered -= packets;
    if (is_update(access.operation)) access.target->updates -= packets;
}

}  // namespace

void finish(Access& access, int error) {
    Target& target = *access.target;
    access.hook.unlink();
    serials.remove(access.serial);
    forget_packets(access, access.packets);
    if (--target.open == 0) target.hook.unlink();
    access.copied_operand.reset();
    access.outcome.error = error;
    if (!access.over) {
        if (error) progress::save_failure(access);
        return access.complete();
    }
    if (error && !target.error) {
        target.error = error;
        target.sentence = failure_text();
    }
    clear_failure();
    access.done = true;
    access.over(access);
}

namespace {

/// The runs of one packet and the length of their data.
struct AccessPart {
    BlockRun runs[kMostRuns];
    uint32_t count = 0;
    uint64_t bytes = 0;
};

/// Returns the runs of the next packet. `limit`: the packet's payload limit. Data that is only requested needs no room in the request;
/// within a host, however, the answer must fit into one packet.
AccessPart next_part(const Access& access, uint64_t limit) {
    AccessPart part;
    const uint64_t room = limit - sizeof(AccessPacket);
    const bool is_request_only = access.target->in_order && !carries_data(access);
    const uint64_t most = is_request_only ? kMostBytes : room;
    while (part.count < kMostRuns && access.issued + part.bytes < access.bytes) {
        const uint64_t runs = (part.count + 1) * sizeof(BlockRun), used = part.bytes + (is_request_only ? 0 : runs);
        if (used >= most || runs > room) break;
        BlockRun run;
        if (!next_run(access.remote_block, access.update.element, access.issued + part.bytes, most - used, run)) break;
        part.runs[part.count++] = run;
        part.bytes += run.bytes;
    }
    return part;
}

void write_data(const Access& access, uint64_t bytes, std::byte* out) {
    if (access.operation == AccessOperation::compare_swap)
        std::memcpy(out, access.swap, 2 * bytes);
    else if (access.copied_operand)
        std::memcpy(out, access.copied_operand.get() + access.issued, bytes);
    else
        datatype::pack(*access.origin.type, access.origin.count, access.origin.buffer, access.issued, out, bytes);
}

/// Returns whether the next packet, with `bytes` of data, asks for an answer. If packets keep their order, only every 16th packet and the
/// last one do.
bool requests_answer(Access& access, uint64_t bytes) {
    constexpr uint32_t kPacketsPerAnswer = 16;
    ++access.unsettled_packets;
    access.unsettled_bytes += static_cast<uint32_t>(bytes);
    return !access.target->in_order || access.issued + bytes == access.bytes || access.unsettled_packets == kPacketsPerAnswer;
}

/// Sends one packet. Returns false if the path to the peer has no space for it now.
bool issue(Access& access) {
    Target& target = *access.target;
    link::Peer& peer = *target.peer;
    const uint64_t limit = std::min<uint64_t>(link::payload_limit(peer), kMostCarried);
    const AccessPart part = next_part(access, limit);
    const bool swaps = access.operation == AccessOperation::compare_swap;
    const uint64_t data = carries_data(access) ? part.bytes * (swaps ? 2 : 1) : 0;
    const auto before = static_cast<uint32_t>(sizeof(AccessPacket) + part.count * sizeof(BlockRun));
    const auto payload = before + static_cast<uint32_t>(data);
    link::PacketSlot slot;
    if (!link::reserve(peer, payload, slot)) return false;
    slot.header->kind = packet::PacketKind::access;
    slot.header->operation = static_cast<uint8_t>(access.operation);
    slot.header->access = {access.generation, access.serial, access.issued};
    const Update& u = access.update;
    const bool asks = requests_answer(access, part.bytes);
    const AccessPacket packet{target.key.secret,
                              target.key.id,
                              part.count,
                              static_cast<uint32_t>(part.bytes),
                              static_cast<uint16_t>(u.element ? u.element->pool_index : 0),
                              static_cast<uint16_t>(u.op ? u.op->pool_index : 0x20),
                              asks ? access.unsettled_packets : 0,
                              asks ? access.unsettled_bytes : 0};
    if (asks) access.unsettled_packets = access.unsettled_bytes = 0;
    std::memcpy(slot.payload, &packet, sizeof packet);
    std::memcpy(slot.payload + sizeof packet, part.runs, part.count * sizeof(BlockRun));
    if (data) write_data(access, part.bytes, slot.payload + before);
    link::commit(peer, slot, payload);
    access.issued += part.bytes;
    ++access.packets;
    ++target.unanswered;
    if (is_update(access.operation)) {
        ++target.updates;
        target.by_ring = peer.shm_path.has_ring();
    }
    return true;
}

/// Returns whether the next packet may be sent. Updates must be carried out in order. Packets on one path keep the order; after a change of
/// path the next update waits for the answers to the earlier ones.
bool may_be_issued(const Access& access) {
    const Target& target = *access.target;
    if (target.unanswered >= kMostUnanswered) return false;
    return !is_update(access.operation) || target.updates == 0 || target.by_ring == target.peer->shm_path.has_ring();
}

bool advance(Target& target) {
    bool any = false;
    if (!target.waiting.front()) return false;
    // Send the waiting packets as a batch, because one system call for each would take longer than the work on its data.
    const transport::Batch together(target.waiting.front()->bytes > kMostCarried ? link::network() : nullptr);
    while (Access* access = target.waiting.front()) {
        if (!may_be_issued(*access) || !issue(*access)) break;
        any = true;
        if (access->issued < access->bytes) continue;
        Target::Accesses::remove(access);
        target.issued.push_back(access);
    }
    return any;
}

}  // namespace

int why_ended(const link::Peer& peer) {
    if (peer.dead) return link::why_dead(peer, static_cast<int>(peer.rank));
    return fail(MPI_ERR_PROC_ABORTED, "rank %u has ended while its memory was accessed", peer.rank);
}

namespace {

/// Ends the accesses that use packets with an error and its text.
void end_all(Target& target, int error, const std::string& sentence) {
    for (Target::Accesses* list : {&target.issued, &target.waiting})
        while (Access* access = list->front()) {
            if (access->operation == AccessOperation::request_region) {
                handle_device_region(*access, nullptr);
                continue;
            }
            finish(*access, fail(error, "%s", sentence.c_str()));
        }
}

void end_all_of_ended(Target& target) {
    const int error = why_ended(*target.peer);
    end_all(target, error, std::string(failure_text()));
}

void refused(Access& access) {
    const char* text = "rank %u has refused an access: the accessed memory is not exposed, or is no longer exposed";
    finish(access, fail(MPI_ERR_RMA_RANGE, text, access.target->peer->rank));
}

/// Handles an answer to an access. Returns false if the answer does not fit this access.
bool handle_answer(Access& access, const link::Packet& packet) {
    const auto operation = static_cast<AccessOperation>(packet.header.operation);
    const uint64_t at = packet.header.access.offset, bytes = packet.header.bytes;
    if (operation == AccessOperation::done) {
        const bool takes = access.operation != AccessOperation::put && access.operation != AccessOperation::update;
        const DoneCounts settled = DoneCounts::from(at);
        if (takes || settled.bytes > access.bytes - access.answered || settled.packets > access.packets) return false;
        access.answered += settled.bytes;
        forget_packets(access, static_cast<uint32_t>(settled.packets));
        return true;
    } else {
        if (!access.result.type || at > access.bytes || bytes > std::min(access.bytes - at, access.bytes - access.answered))
            return false;
        datatype::unpack(*access.result.type, access.result.count, access.result.buffer, at, packet.payload, bytes);
        access.answered += bytes;
    }
    if (operation != AccessOperation::some_data && access.packets) forget_packets(access, 1);
    return true;
}

/// Makes the kernel copy a put or a get that is one block on both sides, without the owner. Returns false if that is not possible.
bool copy_by_kernel(const Access& access, Target& target) {
    if ((access.operation != AccessOperation::put && access.operation != AccessOperation::get) || !target.can_copy_by_kernel())
        return false;
    const bool put = access.operation == AccessOperation::put;
    const LocalBuffer& local = put ? access.origin : access.result;
    const RemoteBlock& there = access.remote_block;
    if (!datatype::is_block(*local.type, local.count) || !datatype::is_block(*there.type, there.count)) return false;
    void* here = datatype::block_address(*local.type, local.buffer);
    const uint64_t remote = target.address + there.offset + static_cast<uint64_t>(there.type->true_lb);
    const iovec block{here, access.bytes};
    const int error = put ? link::write_remote(target.pid, remote, here, access.bytes)
                          : link::read_remote(target.pid, remote, &block, 1, access.bytes);
    // The kernel does not permit the copy, or the process has ended. The access then uses packets, whose answers show which is the case.
    if (error) target.pid = 0;
    return error == 0;
}

}  // namespace

void watch(Target& target, const link::Process& process) {
    target.traffic = profile::open_traffic(process.job->address().id, process.rank);
}

void count_in_memory(profile::Traffic& traffic, AccessOperation operation, uint64_t bytes) {
    profile::count_in_memory(traffic, kind_of(operation), bytes);
}

int Target::fetch_error() {
    if (!error) return MPI_SUCCESS;
    const int taken = error;
    error = ended;
    return fail(taken, "%s", sentence.c_str());
}

void end_accesses(Target& target, int error) {
    const std::string sentence(failure_text());
    target.ended = error;
    drop_batch(target);
    end_all(target, error, sentence);
    target.error = error;
    target.sentence = sentence;
}

void start(Access& access, Target& target) {
    access.target = &target;
    if (!target.mapped) count(access.operation);
    access.bytes = access.operation != AccessOperation::compare_swap && carries_data(access) ? access.origin.bytes()
                                                                                             : access.remote_block.bytes();
    access.issued = access.answered = access.packets = access.unsettled_packets = access.unsettled_bytes = 0;
    access.done = false;
    access.outcome = progress::Outcome{};
    const bool copied = !target.mapped && access.bytes > 0 && copy_by_kernel(access, target);
    if (target.mapped || access.bytes == 0 || copied) {
        if (access.bytes && target.mapped) do_in_mapping(access, target);
        if (copied) count_in_memory(target, access.operation, access.bytes);
        access.done = true;
        if (access.over) return access.over(access);
        return access.complete();
    }
    link::count_access(*target.peer, kind_of(access.operation), access.bytes);
    handle_accesses();
    begin(access, target);
    if (access.bytes > link::payload_limit(*target.peer))
        link::count_bytes(*target.peer, access.bytes);
    else
        link::count_short_access(*target.peer);
    if (!start_by_device(access, target)) issue_as_packets(access);
}

void begin(Access& access, Target& target) {
    access.target = &target;
    if (!active) active = new Targets;
    access.serial = serials.add(access);
    access.generation = ++last_generation;
    if (target.open++ == 0) active->push_back(&target);
}

/// Copies the operand of a short update that has to wait. Programs change the operand before the update is complete, which other libraries
/// permit.
void copy_operand(Access& access) {
    constexpr uint64_t kKept = 256;
    const bool is_short = access.operation == AccessOperation::update || access.operation == AccessOperation::fetch_update;
    if (!is_short || access.bytes > kKept || !carries_data(access)) return;
    access.copied_operand.reset(new (std::nothrow) std::byte[access.bytes]);
    if (access.copied_operand)
        datatype::pack(*access.origin.type, access.origin.count, access.origin.buffer, 0, access.copied_operand.get(),
                       access.bytes);
}

void issue_as_packets(Access& access) {
    Target& target = *access.target;
    if (target.ended) return finish(access, fail(target.ended, "%s", target.sentence.c_str()));
    target.waiting.push_back(&access);
    if (!target.peer->dead) advance(target);  // If the peer is dead, the next poll ends the access with an error.
    if (access.issued == 0) copy_operand(access);
}

bool send_question(Access& access) {
    Target& target = *access.target;
    link::PacketSlot slot;
    if (target.peer->dead || !link::reserve(*target.peer, sizeof(AccessPacket), slot)) return false;
    slot.header->kind = packet::PacketKind::access;
    slot.header->operation = static_cast<uint8_t>(AccessOperation::request_region);
    slot.header->access = {access.generation, access.serial, 0};
    const AccessPacket packet{target.key.secret, target.key.id, 0, 0, 0, 0};
    std::memcpy(slot.payload, &packet, sizeof packet);
    link::commit(*target.peer, slot, sizeof packet);
    target.issued.push_back(&access);
    return true;
}

void on_access_packet(link::Peer& peer, const link::Packet& packet) {
    if (static_cast<AccessOperation>(packet.header.operation) < AccessOperation::done) return carry_out(peer, packet);
    const packet::AccessHeader answered = packet.header.access;
    Access* access = serials.find(answered.serial);
    if (!access || access->target->peer != &peer || access->generation != answered.generation) return;
    Target& target = *access->target;
    const bool is_refused = static_cast<AccessOperation>(packet.header.operation) == AccessOperation::refused;
    if (access->operation == AccessOperation::request_region)
        return handle_device_region(*access, is_refused ? nullptr : &packet);
    if (is_refused) return refused(*access);
    if (!handle_answer(*access, packet)) return;
    if (access->answered == access->bytes) finish(*access, MPI_SUCCESS);
    advance(target);
}

bool poll_accesses() {
    bool any = poll_answers();
    if (!active) return any;
    for (Target* target = active->front(); target;) {
        Target* next = active->next(target);
        // After a failure a process may finalize while another one still uses a window; end the accesses to such a process. One that is in
        // shmem_finalize may call shmem_init afterwards, and then serves accesses of those that have called it before.
        if (link::has_finalized_for_good(*target->peer)) {
            end_all_of_ended(*target);
            any = true;
        } else {
            any |= advance(*target);
        }
        target = next;
    }
    return any;
}

void report_access(const Target& target, progress::WaitReporter& teller) {
    if (!target.peer) return;
    WaitReportPage::OperationEntry access{};
    access.kind = WaitReportPage::OperationKind::access;
    access.rank = static_cast<int32_t>(target.peer->rank);
    access.peer = target.peer->rank;
    access.peer_job = target.peer->job.address().id;
    teller.waits_for(access, nullptr);
}

const progress::WaitSite kForAccess{nullptr, progress::Expected::soon, [](const void* access, progress::WaitReporter& teller) {
                                        report_access(*static_cast<const Access*>(access)->target, teller);
                                    }};

void wait_until_complete(Target& target) {
    static constexpr progress::WaitSite kForTarget{
        nullptr, progress::Expected::soon,
        [](const void* its, progress::WaitReporter& teller) { report_access(*static_cast<const Target*>(its), teller); }};
    progress::wait_until([](void* its) { return static_cast<const Target*>(its)->open == 0; }, &target, kForTarget);
}

}  // namespace starling::rma
