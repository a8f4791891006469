// The path between two processes of one host: the other's inbox, and rings once they are earned. In link it is a member of the
// peer, so that a short message is put on a ring without a call and without a look elsewhere.
#pragma once

#include <cstdint>

#include "base/counters.h"
#include "transport/shm/pages.h"
#include "transport/shm/region.h"
#include "transport/transport.h"

namespace starling::shm {

class SharedMemory;

class Path final : public transport::Path {
  public:
    Path(SharedMemory& by, const transport::Process& to, void* user);

    Region region;   ///< theirs: doorbell, inbox, rings; null if they are on another host, and then the path is not used
    RingWriter out;  ///< set while we may send on a ring of theirs
    RingReader in;   ///< set while they may send on a ring of ours
    bool close_pending = false;  ///< the ring waits for room for its close; packets take the inbox meanwhile

    /// Whether packets go on a ring now; then the next two are reserve() and commit().
    bool has_ring() const { return out && !close_pending; }
    bool reserve_in_ring(uint32_t bytes, transport::Slot& slot) {
        slot.payload = out.reserve_short(bytes);
        if (!slot.payload) return reserve_long(bytes, slot);
        slot.header = &out.header();
        return true;
    }
    void commit_in_ring(uint32_t bytes) {
        out.commit(bytes);
        ++counters.messages_ring;
        counters.bytes_ring += bytes;
        job::ring(region.doorbell());
    }
    /// Delivers what has come on our ring, at most so many packets. Whether anything had.
    template <class F>
    bool poll_ring(int most, F&& deliver) {
        int taken = 0;
        while (taken < most) {
            const packet::Header* header = in.front();
            if (!header) break;
            if (header->kind == packet::Kind::close) return take_close() || taken > 0;
            deliver(transport::Packet{*header, in.payload()});
            in.pop();
            ++taken;
        }
        return taken > 0;
    }
    /// Writes the pending close to the ring and leaves it; false if there is no room yet.
    bool try_close();

    uint32_t payload_limit() const override;
    bool reserve(uint32_t bytes, transport::Slot& slot) override;
    void commit(transport::Slot& slot, uint32_t bytes) override;
    bool idle() const override { return true; }  // it lies in the other's memory from the first
    void close() override;

    /// Where memory of theirs is that lies in what they have for exchange (shared_heap.h); null if it does not, or can't be mapped.
    std::byte* exchanged(uint64_t address, uint64_t bytes) {
        const ExchangedMemory& shown = region.exchanged();
        if (shown.ready.load(std::memory_order_acquire) == 0) [[likely]]
            return nullptr;
        const uint64_t into = address - shown.base;
        if (into >= shown.bytes || bytes > shown.bytes - into) return nullptr;
        if (into + bytes > exchanged_.shown() && !show_exchanged(into + bytes)) return nullptr;
        return exchanged_.data() + into;
    }

  private:
    friend class SharedMemory;
    SharedMemory& memory() const;
    bool show_exchanged(uint64_t bytes);
    bool reserve_long(uint32_t bytes, transport::Slot& slot);
    bool take_close();

    Pages exchanged_;  ///< theirs, from the first use on
    bool exchanged_refused_ = false;
    uint32_t in_slot_ = 0;
    bool ready_ = false;    ///< they have named a ring of theirs since the connection began to open
    bool leaving_ = false;  ///< our ring is wanted back: it has its slot, but no place among the open ones
    bool closed_ = false;
    bool owned_ = false;  ///< by the transport, which made it
};

}  // namespace starling::shm
