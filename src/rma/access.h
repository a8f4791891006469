// Accesses: puts, gets and updates of another process's region, over packets that its owner carries out, or in a mapping.
//
// All calls need the library's lock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/copy.h"
#include "base/list.h"
#include "link/peer.h"
#include "profile/traffic.h"
#include "progress/engine.h"
#include "progress/request.h"
#include "progress/wait_report.h"
#include "rma/memory_order.h"
#include "rma/packets.h"
#include "rma/region.h"
#include "rma/update.h"
#include "transport/transport.h"

namespace starling::rma {

/// Data of this process: a buffer as MPI functions describe them.
struct LocalBuffer {
    void* buffer = nullptr;
    int64_t count = 0;
    const Datatype* type = nullptr;
    uint64_t bytes() const { return type ? datatype::packed_size(*type, count) : 0; }
};

/// Data in a region: `count` elements of a type that lies at `offset`.
struct RemoteBlock {
    uint64_t offset = 0;
    int64_t count = 0;
    const Datatype* type = nullptr;
    uint64_t bytes() const { return datatype::packed_size(*type, count); }
};

struct Target;
struct Batch;
struct Access;

/// What the network's device carries out of an access.
struct DeviceAccess : transport::Completion {
    Access* access = nullptr;
};

/// How a device reaches a target's memory by itself, once its owner has told.
struct RdmaState {
    enum class State : uint8_t { unknown, asked, again, known, never } state = State::unknown;
    DeviceRegion region;
    uint8_t refusals = 0;            ///< of the owner, in a row
    uint32_t open = 0;               ///< accesses that the device carries out
    std::unique_ptr<Access> asking;  ///< while asked
};

/// One access from its start until everything has been carried out. Must not move meanwhile; types stay alive until then.
/// `outcome.error`: MPI_SUCCESS; MPI_ERR_RMA_RANGE: the owner has refused it; MPI_ERR_PROC_ABORTED: the owner is gone.
struct Access : progress::Request {
    Access() : Request(progress::RequestKind::rma) {}
    Operation operation = Operation::put;
    Target* target = nullptr;
    LocalBuffer origin, result;
    RemoteBlock there;
    Update update;
    std::byte swap[2 * 16];  ///< compare_swap: the new value and the one to compare with
    uint64_t bytes = 0;      ///< of data, packed
    uint64_t issued = 0, answered = 0;
    uint32_t packets = 0;                                 ///< not answered
    uint32_t unsettled_packets = 0, unsettled_bytes = 0;  ///< the last of them, whose answer comes with that of another
    uint32_t serial = 0;
    uint32_t generation = 0;            ///< tells answers to this access from late ones to another with its serial
    void (*over)(Access&) = nullptr;    ///< called at the end, if the access is nobody's request
    ListHook hook;                      ///< of its target
    std::unique_ptr<std::byte[]> kept;  ///< of a short update that has to wait: its data, packed
    DeviceAccess by_device;
};

/// Another process's region as it is seen from here.
struct Target {
    link::Peer* peer = nullptr;  ///< null while the region is only reached in its mapping
    RegionKey key;
    std::byte* mapping = nullptr;  ///< where offset 0 lies in this process, if `mapped`
    bool mapped = false;
    const UpdateLock* exclusion = nullptr;  ///< of a mapping
    profile::Traffic* traffic = nullptr;    ///< counts what goes without packets; null: nobody wants to know
    pid_t pid = 0;                          ///< of a neighbour whose memory the kernel copies; 0: none
    uint64_t address = 0;                   ///< where offset 0 lies there
    std::unique_ptr<Batch> batch;           ///< what it will copy with the next flush
    RdmaState device;
    /// Accesses may overtake each other: some may go by a device, others as packets.
    bool overtakes() const { return device.state != RdmaState::State::unknown; }

    uint32_t open = 0;        ///< accesses under way
    uint32_t unanswered = 0;  ///< packets
    uint32_t updates = 0;     ///< of them updates
    bool by_ring = false;     ///< the way that the last update went
    bool in_order = false;    ///< packets come in their order, whatever way they go: from another host
    int error = MPI_SUCCESS;  ///< the first of those that are nobody's requests, until take_error()
    std::string sentence;     ///< that says what happened
    using Accesses = List<Access, &Access::hook>;
    Accesses waiting;  ///< those not all issued, in their order
    Accesses issued;
    ListHook hook;  ///< of the targets with accesses under way

    Target();
    ~Target();
    /// Whether the kernel can copy from and to its memory: once the process has ended its number is forgotten.
    bool can_copy_by_kernel();
    /// The error of what has ended since the last call, with failure_text().
    int take_error();
};

/// Begin an access of a target that is not mapped, or of one that is: then it is over on return. Which of the members of
/// `access` count: a put: origin and there; a get: result and there; an update: origin, there and update, with a result if `operation`
/// is fetch_update; compare_swap: swap, result, there of one element, and update.element. Offsets have been checked as far as they can be.
void start(Access& access, Target& target);

/// Waits until nothing is under way to the target.
void wait_until_over(Target& target);
/// Of a wait for an Access, which is the argument.
extern const progress::WaitSite kForAccess;
/// Says of a wait that it is for that process's answer.
void tell_access(const Target& target, progress::WaitReporter& teller);

/// Of whom the region is, for the profile. For targets of other processes, before their first access.
void watch(Target& target, const link::Process& process);
/// An access of it that has gone without packets. The functions below do it themselves.
void count_in_memory(profile::Traffic& traffic, Operation operation, uint64_t bytes);
inline void count_in_memory(const Target& target, Operation operation, uint64_t bytes) {
    if (target.traffic) [[unlikely]]
        count_in_memory(*target.traffic, operation, bytes);
}

/// The same in a mapping, where no access is needed for it: all is done on return. Lengths have been checked.
void put_in_mapping(const Target& target, const LocalBuffer& origin, const RemoteBlock& there);
void get_from_mapping(const Target& target, const RemoteBlock& there, const LocalBuffer& result);
void update_in_mapping(const Target& target, const Update& how, const LocalBuffer& origin, const RemoteBlock& there,
                       const LocalBuffer& result);
void compare_and_swap_in_mapping(const Target& target, const Datatype& element, uint64_t offset, const std::byte* operand,
                                 const std::byte* compare, std::byte* old);
/// Any of them, as `access` says.
void do_in_mapping(const Access& access, const Target& target);

/// A block of this process's memory and one of the mapping.
inline void store_block(const Target& target, std::byte* memory, const void* from, uint64_t bytes) {
    count_in_memory(target, Operation::put, bytes);
    note_store();
    if (bytes <= kFewBytes) return copy_few(memory, from, bytes);
    copy_by_call(memory, from, bytes);
}
inline void load_block(const Target& target, void* to, const std::byte* memory, uint64_t bytes) {
    count_in_memory(target, Operation::get, bytes);
    before_load();
    if (bytes <= kFewBytes) return copy_few(to, memory, bytes);
    copy_by_call(to, memory, bytes);
}

/// A put or a get between a block of this process's memory and one of a target that is mapped, or, if it is short, of one whose memory the
/// kernel copies: then it is done with the next flush(). False if it is to be started.
bool move_block(Target& target, Operation operation, void* here, uint64_t offset, uint64_t bytes);
/// A put or get by the network's device, if the target's memory is known to it; asks for that where it may be. False: it goes another way.
bool start_by_device(Access& access, Target& target);
/// The answer to that question has come; null: no.
void take_device_region(Access& asked, const link::Packet* answer);
// For these: begins to wait for answers to an access; ends it; issues it as packets; asks for the region.
void begin(Access& access, Target& target);
void finish(Access& access, int error);
void issue_as_packets(Access& access);
bool send_question(Access& access);

/// Has the kernel copy what waits for it; what it does not is started.
void copy_batch(Target& target);
inline void flush(Target& target) {
    note_flush();
    if (target.batch) [[unlikely]]
        copy_batch(target);
}

/// Where packets of kind `access` come in, and what is polled.
void on_access_packet(link::Peer& peer, const link::Packet& packet);
bool poll_accesses();

}  // namespace starling::rma
