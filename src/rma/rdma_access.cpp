// RDMA accesses: puts and gets that the network's device carries out without the owner, if a connection reaches the region
// (transport::RemoteMemory::can_access).
//
//   which     Data that is contiguous on both sides. Updates stay with the owner, which carries out all updates from other hosts and
//             shares a lock with its neighbours' updates. A device's atomics are not atomic with a processor's (IBV_ATOMIC_HCA), so
//             otherwise every process would have to use the device, neighbours too.
//   begin     At the first access to a target over a path with such a connection, the owner is asked for its region. Accesses use packets
//             until it has answered.
//   order     RDMA and packets are not ordered: RDMA starts only when all packets to the target are answered. Once the owner was asked,
//             a caller that guarantees an order among accesses waits for each (Target::overtakes). Packets sent before the question are
//             carried out before it is answered.
//   failure   If the connection fails, the access is repeated as packets. If the owner has died, the access fails.
#include <cstring>

#include "base/counters.h"
#include "base/error.h"
#include "rma/access.h"
#include "transport/remote_memory.h"

namespace starling::rma {

namespace {

using RdmaKeyState = RdmaState::RdmaKeyState;
constexpr uint8_t kMostRefusals = 4;

void request_region(Target& target) {
    auto asking = std::make_unique<Access>();
    asking->operation = AccessOperation::request_region;
    asking->over = [](Access&) {};
    begin(*asking, target);
    if (!send_question(*asking)) return finish(*asking, MPI_SUCCESS);  // The next access will request the region again.
    target.device.asking = std::move(asking);
    target.device.state = RdmaKeyState::asked;
}

void settle(transport::Completion& completion) {
    Access& access = *static_cast<DeviceAccess&>(completion).access;
    Target& target = *access.target;
    --target.device.open;
    if (!completion.error) return finish(access, MPI_SUCCESS);
    clear_failure();
    if (target.peer->dead) return finish(access, why_ended(*target.peer));
    issue_as_packets(access);
}

}  // namespace

bool start_by_device(Access& access, Target& target) {
    const bool puts = access.operation == AccessOperation::put;
    if (!puts && access.operation != AccessOperation::get) return false;
    transport::Path& path = *target.peer->base;
    transport::RemoteMemory* const memory = path.by.remote_memory();
    if (!memory) return false;
    RdmaState& way = target.device;
    // Ask for the region again if the connection is a new one, at another port.
    const bool lost = way.state == RdmaKeyState::known && !memory->can_access(path, way.region.region);
    if ((way.state == RdmaKeyState::unknown || way.state == RdmaKeyState::again || lost) && memory->can_register(path))
        request_region(target);
    if (way.state != RdmaKeyState::known || target.unanswered > 0 || !memory->can_access(path, way.region.region)) return false;
    const LocalBuffer& local = puts ? access.origin : access.result;
    const RemoteBlock& there = access.remote_block;
    if (!datatype::is_block(*local.type, local.count) || !datatype::is_block(*there.type, there.count)) return false;
    const uint64_t offset = there.offset + static_cast<uint64_t>(there.type->true_lb) - way.region.offset;
    if (offset > way.region.bytes || access.bytes > way.region.bytes - offset) return false;
    void* const here = datatype::block_address(*local.type, local.buffer);
    access.by_device.access = &access;
    access.by_device.then = settle;
    const int error = puts ? memory->put(path, way.region.region, offset, here, access.bytes, access.by_device)
                           : memory->get(path, way.region.region, offset, here, access.bytes, access.by_device);
    if (error) {
        clear_failure();
        return false;
    }
    ++counters.accesses_device;
    ++way.open;
    return true;
}

void handle_device_region(Access& asked, const link::Packet* answer) {
    RdmaState& way = asked.target->device;
    const bool told = answer && answer->header.bytes == sizeof way.region &&
                      static_cast<AccessOperation>(answer->header.operation) == AccessOperation::region;
    if (told) std::memcpy(&way.region, answer->payload, sizeof way.region);
    // After a refusal ask again later: the owner may have been about to close the connection, or not have known yet that it is open.
    if (told) way.refusals = 0;
    way.state = told ? RdmaKeyState::known : ++way.refusals < kMostRefusals ? RdmaKeyState::again : RdmaKeyState::never;
    const std::unique_ptr<Access> asking = std::move(way.asking);
    finish(asked, MPI_SUCCESS);
}

}  // namespace starling::rma
