// Registered memory of one port: regions that peers may access, and buffers for the device's own transfers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/list.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"
#include "transport/verbs/device.h"
#include "transport/verbs/registrations.h"

namespace starling::network {

class RcPort;

/// Memory registered for a peer, until deregister(). The port may be closed earlier.
struct RegisteredMemory {
    RcPort* port = nullptr;
    void* to = nullptr;  ///< `user` of the connection to the peer
    verbs::Registration* registration = nullptr;
    ListHook hook;
};

/// A port and its registered memory.
class RcPort {
  public:
    RcPort(uint8_t place, verbs::Port& port);
    RcPort(const RcPort&) = delete;
    RcPort& operator=(const RcPort&) = delete;
    ~RcPort();

    uint8_t place() const { return place_; }
    verbs::Port& port() const { return port_; }
    verbs::Registrations& registrations();
    /// Drops all registrations, because the port is about to be closed.
    void forget_memory();
    bool forgotten() const { return forgotten_; }

    /// Registers memory for access by peers. `stays`: the owner keeps it mapped until deregister(). Otherwise it may be unmapped
    /// afterwards, and the registration is cached. Returns null if the device refuses.
    RegisteredMemory* register_memory(const void* memory, uint64_t bytes, bool stays, transport::RemoteKey& region);
    /// Withdraws the memory. With `at_once`, no peer can access it afterwards, not even by an operation in flight. Without it, the caller
    /// ensures that no peer is accessing the memory.
    static void deregister(RegisteredMemory& loan, bool at_once);
    /// Return fields of a region that register_memory() has filled in.
    static uint8_t place_of(const transport::RemoteKey& region) { return static_cast<uint8_t>(region.word[1] >> 32); }
    static uint32_t queue_of(const transport::RemoteKey& region) { return static_cast<uint32_t>(region.word[1] >> 40); }
    static uint32_t key_of(const transport::RemoteKey& region) { return static_cast<uint32_t>(region.word[1]); }

    /// Restricts the region to one connection, which is named by its queue number.
    static void bind(transport::RemoteKey& region, uint32_t queue) {
        region.word[1] = (region.word[1] & 0xff'ffff'ffff) | uint64_t{queue} << 40;
    }
    static constexpr uint32_t kAnyQueue = 1;  ///< queue number of an unrestricted region; no queue has the number 0 or 1

    /// Returns a registered buffer for a short transfer; null if all are in use.
    static constexpr uint32_t kSlot = 4096;
    std::byte* acquire_slot();
    void release_slot(std::byte* slot) { free_slots_.push_back(slot); }
    uint32_t slot_key() const { return slots_registration_->memory.local; }

  private:
    static constexpr uint32_t kSlots = 64;
    const uint8_t place_;
    verbs::Port& port_;
    bool forgotten_ = false;
    std::unique_ptr<verbs::Registrations> registrations_;
    List<RegisteredMemory, &RegisteredMemory::hook> loans_;
    std::byte* slots_ = nullptr;  ///< memory of all slots, in pages mapped for this purpose
    verbs::Registration* slots_registration_ = nullptr;
    std::vector<std::byte*> free_slots_;
};

}  // namespace starling::network
