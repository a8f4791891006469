// The origin side of RMA: puts, gets and updates of another process's region. They use a mapping of the memory, RDMA, or
// packets that the region's owner carries out.
//
// All calls need the library's lock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/copy.h"
#include "base/list.h"
#include "base/long_copy.h"
#include "link/peer.h"
#include "profile/traffic.h"
#include "progress/engine.h"
#include "progress/request.h"
#include "progress/wait_report.h"
#include "rma/memory_order.h"
#include "rma/packets.h"
#include "rma/region.h"
#include "rma/update.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"

namespace starling::rma {

/// Data of the process that starts the access: buffer, count and datatype, as in MPI functions.
struct LocalBuffer {
    void* buffer = nullptr;
    int64_t count = 0;
    const Datatype* type = nullptr;
    uint64_t bytes() const { return type ? datatype::packed_size(*type, count) : 0; }
};

/// Data in a region: `count` elements of `type` at `offset`.
struct RemoteBlock {
    uint64_t offset = 0;
    int64_t count = 0;
    const Datatype* type = nullptr;
    uint64_t bytes() const { return datatype::packed_size(*type, count); }
};

struct Target;
struct CopyBatch;
struct Access;

/// Completion of an access that the network's device carries out.
struct DeviceAccess : transport::Completion {
    Access* access = nullptr;
};

/// Whether a device can access a target's memory by RDMA, and how, as its owner has answered.
struct RdmaState {
    enum class RdmaKeyState : uint8_t { unknown, asked, again, known, never } state = RdmaKeyState::unknown;
    DeviceRegion region;
    uint8_t refusals = 0;            ///< number of refusals by the owner in a row
    uint32_t open = 0;               ///< RDMA accesses in progress
    std::unique_ptr<Access> asking;  ///< request for the owner's region, in state `asked`
};

/// One access, from its start until it has been carried out completely. Until then it must not move, and its types must stay alive.
/// `outcome.error`: MPI_SUCCESS; MPI_ERR_RMA_RANGE if the owner has refused it; MPI_ERR_PROC_ABORTED if the owner has failed.
struct Access : progress::Request {
    Access() : Request(progress::RequestKind::rma) {}
    AccessOperation operation = AccessOperation::put;
    Target* target = nullptr;
    LocalBuffer origin, result;
    RemoteBlock remote_block;
    Update update;
    std::byte swap[2 * 16];  ///< operands of a compare_swap: the new value, then the comparison value
    uint64_t bytes = 0;      ///< packed size of the data
    uint64_t issued = 0, answered = 0;
    uint32_t packets = 0;  ///< number of packets sent and not answered
    /// Packets and bytes sent since the last packet that asks for an answer.
    uint32_t unsettled_packets = 0, unsettled_bytes = 0;
    uint32_t serial = 0;
    uint32_t generation = 0;                      ///< number that distinguishes consecutive accesses with the same serial
    void (*over)(Access&) = nullptr;              ///< function called at the end of an access for which no caller waits
    ListHook hook;                                ///< link in one of its target's lists
    std::unique_ptr<std::byte[]> copied_operand;  ///< packed operand of a short update that has to wait
    DeviceAccess by_device;
};

/// Another process's region, as seen from this process.
struct Target {
    link::Peer* peer = nullptr;  ///< peer that owns the region; null while only its mapping is accessed
    RegionKey key;
    std::byte* mapping = nullptr;  ///< address of offset 0 in this process, if the region is `mapped`
    bool mapped = false;
    const UpdateLock* exclusion = nullptr;  ///< update lock of the mapped memory
    profile::Traffic* traffic = nullptr;    ///< profile's counter of accesses without packets; null: they are not counted
    pid_t pid = 0;                          ///< pid of a neighbour whose memory the kernel copies; 0: none
    uint64_t address = 0;                   ///< address of offset 0 in the target's process
    std::unique_ptr<CopyBatch> batch;       ///< batch of copies that the kernel makes at the next flush
    RdmaState device;
    /// Returns whether accesses may be reordered, because some may use RDMA and others packets.
    bool overtakes() const { return device.state != RdmaState::RdmaKeyState::unknown; }

    uint32_t open = 0;        ///< accesses in progress
    uint32_t unanswered = 0;  ///< number of packets not answered yet
    uint32_t updates = 0;     ///< number of packets of updates not answered yet
    bool by_ring = false;     ///< whether the last update was sent through a shared-memory ring
    bool in_order = false;    ///< whether the target is on another host, to which packets keep their order on every path
    int error = MPI_SUCCESS;  ///< first error of accesses without a waiting caller, until fetch_error()
    int ended = MPI_SUCCESS;  ///< error of all accesses after end_accesses(), which fetch_error() then always returns
    std::string sentence;     ///< failure text that belongs to `error`
    using Accesses = List<Access, &Access::hook>;
    Accesses waiting;  ///< accesses of which packets are still to be sent, in order
    Accesses issued;
    ListHook hook;  ///< link in the list of targets with accesses in progress

    Target();
    ~Target();
    /// Returns whether the kernel can copy from and to the target's memory. Clears `pid` once the process has ended.
    bool can_copy_by_kernel();
    /// Returns and clears the error of accesses that have ended since the last call, with failure_text().
    int fetch_error();
};

/// Starts an access; if the target is mapped, the access is complete on return. The operation determines which members of `access` are
/// used. All use remote_block. A put uses origin; a get, result; an update, origin and update; a fetch_update, result as well. A
/// compare_swap of one element uses swap, result and update.element. Offsets have been checked as far as possible.
void start(Access& access, Target& target);

/// Ends all accesses to the target that use packets or wait for a batch with `error` and failure_text(), and so all later ones. Answers that
/// arrive later are ignored. Accesses by RDMA last until the device has completed them, because it may write to their buffers.
void end_accesses(Target& target, int error);

/// Waits until no access to the target is in progress.
void wait_until_complete(Target& target);
/// Wait site of a wait for one Access; its argument is the Access.
extern const progress::WaitSite kForAccess;
/// Reports, for the wait report, that a wait is for the answer of the target's process.
void report_access(const Target& target, progress::WaitReporter& teller);

/// Records which process owns the region, for the profile. Call it for targets of other processes, before the first access.
void watch(Target& target, const link::Process& process);
/// Counts, for the profile, an access by load and store or by the kernel. The functions below call it.
void count_in_memory(profile::Traffic& traffic, AccessOperation operation, uint64_t bytes);
inline void count_in_memory(const Target& target, AccessOperation operation, uint64_t bytes) {
    if (target.traffic) [[unlikely]]
        count_in_memory(*target.traffic, operation, bytes);
}

/// Carry out one operation in a mapping, without an Access; complete on return. Lengths have been checked.
void put_in_mapping(const Target& target, const LocalBuffer& origin, const RemoteBlock& there);
void get_from_mapping(const Target& target, const RemoteBlock& there, const LocalBuffer& result);
void update_in_mapping(const Target& target, const Update& how, const LocalBuffer& origin, const RemoteBlock& there,
                       const LocalBuffer& result);
void compare_and_swap_in_mapping(const Target& target, const Datatype& element, uint64_t offset, const std::byte* operand,
                                 const std::byte* compare, std::byte* old);
/// Carries out the operation of `access` on mapped memory, by load and store.
void do_in_mapping(const Access& access, const Target& target);

/// Copy between one block of this process's memory and one of the mapping.
inline void store_block(const Target& target, std::byte* memory, const void* from, uint64_t bytes) {
    count_in_memory(target, AccessOperation::put, bytes);
    note_store();
    if (bytes <= kFewBytes) return copy_few(memory, from, bytes);
    copy_long(memory, from, bytes);
}
inline void load_block(const Target& target, void* to, const std::byte* memory, uint64_t bytes) {
    count_in_memory(target, AccessOperation::get, bytes);
    before_load();
    if (bytes <= kFewBytes) return copy_few(to, memory, bytes);
    copy_long(to, memory, bytes);
}

/// Puts or gets one block. If the target is mapped, the copy is made at once. If the kernel copies the target's memory and the block is
/// short, the copy is made by the next flush(). Returns false if the access must be started instead.
bool move_block(Target& target, AccessOperation operation, void* here, uint64_t offset, uint64_t bytes);
/// Starts a put or get by RDMA, if the target's memory is registered with the device; requests the registration if possible. Returns false
/// if the access must use packets.
bool start_by_device(Access& access, Target& target);
/// Handles the owner's answer to the request for its region; null: refused.
void handle_device_region(Access& asked, const link::Packet* answer);
// Used by rdma_access.cpp: why_ended() returns the error of accesses to a process that is dead or has finalized, begin() registers an access
// for answers, finish() ends it, issue_as_packets() sends it, and send_question() requests the region.
int why_ended(const link::Peer& peer);
void begin(Access& access, Target& target);
void finish(Access& access, int error);
void issue_as_packets(Access& access);
bool send_question(Access& access);

/// Discards the blocks of the batch.
void drop_batch(Target& target);
/// Makes the kernel copy the blocks of the batch; starts an access for each block if it cannot.
void copy_batch(Target& target);
inline void flush(Target& target) {
    note_flush();
    if (target.batch) [[unlikely]]
        copy_batch(target);
}

/// on_access_packet() handles the packets of kind `access`; the progress engine polls poll_accesses(), which continues accesses.
void on_access_packet(link::Peer& peer, const link::Packet& packet);
bool poll_accesses();

}  // namespace starling::rma
