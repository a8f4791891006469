// Memory that a port has been told of: what peers may reach, what the device reads into and writes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/list.h"
#include "transport/transport.h"
#include "transport/verbs/device.h"
#include "transport/verbs/registrations.h"

namespace starling::network {

class RcPort;

/// Memory lent to peers, until it is taken back. The port may go before: then it is of none.
struct Loan {
    RcPort* port = nullptr;
    void* to = nullptr;  ///< the user of the connection to the peer
    verbs::Registration* registration = nullptr;
    ListHook hook;
};

/// A port with its memory.
class RcPort {
  public:
    RcPort(uint8_t place, verbs::Port& port);
    RcPort(const RcPort&) = delete;
    RcPort& operator=(const RcPort&) = delete;
    ~RcPort();

    uint8_t place() const { return place_; }
    verbs::Port& port() const { return port_; }
    verbs::Registrations& registrations();
    /// The port is about to be closed: it is asked for nothing any more.
    void forget_memory();
    bool forgotten() const { return forgotten_; }

    /// Lets peers reach the memory: `stays`: until it is taken back nobody unmaps it; else it is kept for the next time as registrations are.
    /// Null: the device does not take it.
    Loan* register_memory(const void* memory, uint64_t bytes, bool stays, transport::Region& region);
    /// `at_once`: nobody may reach it any more, whatever is under way; else no peer will.
    static void deregister(Loan& loan, bool at_once);
    /// What region() has written.
    static uint8_t place_of(const transport::Region& region) { return static_cast<uint8_t>(region.word[1] >> 32); }
    static uint32_t queue_of(const transport::Region& region) { return static_cast<uint32_t>(region.word[1] >> 40); }
    static uint32_t key_of(const transport::Region& region) { return static_cast<uint32_t>(region.word[1]); }

    /// It may be reached by the one queue only that was told of it: of number `queue`.
    static void bind(transport::Region& region, uint32_t queue) {
        region.word[1] = (region.word[1] & 0xff'ffff'ffff) | uint64_t{queue} << 40;
    }
    static constexpr uint32_t kAnyQueue = 1;  ///< none has this number, nor 0

    /// A place for short data on its way; null: all are in use.
    static constexpr uint32_t kSlot = 4096;
    std::byte* take_slot();
    void give_slot(std::byte* slot) { free_slots_.push_back(slot); }
    uint32_t slot_key() const { return slots_registration_->memory.local; }

  private:
    static constexpr uint32_t kSlots = 64;
    const uint8_t place_;
    verbs::Port& port_;
    bool forgotten_ = false;
    std::unique_ptr<verbs::Registrations> registrations_;
    List<Loan, &Loan::hook> loans_;
    std::byte* slots_ = nullptr;  ///< pages of our own
    verbs::Registration* slots_registration_ = nullptr;
    std::vector<std::byte*> free_slots_;
};

}  // namespace starling::network
