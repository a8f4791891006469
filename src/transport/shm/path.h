// The path between two processes of one host: the peer's inbox, and rings once traffic has earned them. In link, the path is a member of
// the peer, so that a short message is written to a ring without a call and without touching other memory.
#pragma once

#include <cstdint>

#include "base/counters.h"
#include "transport/shm/pages.h"
#include "transport/shm/region.h"
#include "transport/transport.h"

namespace starling::shm {

class SharedMemory;

class ShmPath final : public transport::Path {
  public:
    ShmPath(SharedMemory& by, const transport::ProcessAddress& to, void* user);

    SegmentRegion
        region;  ///< the peer's region: doorbell, inbox, rings; null if the peer is on another host, and then the path is not used
    RingWriter out;              ///< writer of the ring in the peer's region; set while this process may send on it
    RingReader in;               ///< reader of the ring in our region; set while the peer may send on it
    bool close_pending = false;  ///< whether the ring waits for room for its close packet; packets use the inbox meanwhile

    /// Returns whether packets are sent on a ring now; if so, reserve_in_ring() and commit_in_ring() send a packet.
    bool has_ring() const { return out && !close_pending; }
    bool reserve_in_ring(uint32_t bytes, transport::PacketSlot& slot) {
        slot.payload = out.reserve_short(bytes);
        if (!slot.payload) return reserve_long(bytes, slot);
        slot.header = &out.header();
        return true;
    }
    /// The receiver does not wake for a quiet packet.
    void commit_in_ring(uint32_t bytes, bool quiet = false) {
        out.commit(bytes);
        ++counters.messages_ring;
        counters.bytes_ring += bytes;
        if (!quiet) job::ring(region.doorbell());
    }
    /// Delivers at most `most` packets from our ring. Returns whether anything happened.
    template <class F>
    bool poll_ring(int most, F&& deliver) {
        int taken = 0;
        while (taken < most) {
            const packet::Header* header = in.front();
            if (!header) break;
            if (header->kind == packet::PacketKind::close) return consume_close() || taken > 0;
            deliver(transport::Packet{*header, in.payload()});
            in.pop();
            ++taken;
        }
        return taken > 0;
    }
    /// Writes the pending close packet to the ring and stops using the ring; returns false if there is no room yet.
    bool try_close();

    uint32_t payload_limit() const override;
    bool reserve(uint32_t bytes, transport::PacketSlot& slot) override;
    void commit(transport::PacketSlot& slot, uint32_t bytes) override;
    // Always true: packets are written into the peer's memory, so nothing waits for an acknowledgement.
    bool idle() const override { return true; }
    void close() override;

    /// Returns the local mapping of the peer's memory if it is from the peer's shared heap (shared_heap.h); null if it is not, or cannot be
    /// mapped.
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
    bool reserve_long(uint32_t bytes, transport::PacketSlot& slot);
    bool consume_close();

    Pages exchanged_;  ///< mapping of the peer's shared heap, made at its first use
    bool exchanged_refused_ = false;
    uint32_t in_slot_ = 0;
    bool ready_ = false;    ///< whether the peer has offered a ring since the connection began to open
    bool leaving_ = false;  ///< whether our ring is closing: it keeps its slot, but does not count as open
    bool closed_ = false;
    bool owned_ = false;  ///< whether the transport has allocated this path, and frees it
};

}  // namespace starling::shm
