// The direct ring: one sender writes straight into the receiver's memory, and the receiver polls one cache line. Lines of 64 bytes hold a
// header and up to 32 bytes of payload. A longer payload is in the ring's bulk area or in the sender's outbox, and the line names the
// location. A stamp in the header shows that a line is valid in this lap. Stamps are at fixed offsets that only headers use, so user data
// cannot be mistaken for one and nothing needs to be cleared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/packet.h"
#include "transport/shm/outbox.h"

namespace starling::shm {

inline constexpr uint32_t kRingLines = 128;
inline constexpr uint32_t kInlineBytes = 32;
inline constexpr uint32_t kBulkBytes = 64 * 1024;
/// The longest payload of a ring, bytes. Credit is returned in quarters of the bulk area, and a payload may have to skip the rest of the
/// area. So twice the payload and one quarter must fit for a drained ring always to have room.
inline constexpr uint32_t kRingPayload = 16 * 1024;
static_assert(2 * kRingPayload + kBulkBytes / 4 <= kBulkBytes);

struct alignas(64) RingLine {
    packet::Header header;
    std::byte payload[kInlineBytes];
};
static_assert(sizeof(RingLine) == 64);

/// A ring in the receiver's region. Its owner (the receiver) resets it before offering the slot to a sender. Line numbers continue from one
/// sender to the next, so that the previous sender's lines always count as consumed.
struct alignas(64) Ring {
    /// Numbers of consumed lines and bulk bytes, written by the receiver, and read by the sender when it runs out of credit.
    struct alignas(64) Consumed {
        std::atomic<uint64_t> lines;
        std::atomic<uint64_t> bulk;
    } consumed;
    alignas(64) RingLine lines[kRingLines];
    alignas(64) std::byte bulk[kBulkBytes];
};

/// The longest payload (bytes) that uses the bulk area while there is room in the outbox.
inline constexpr uint32_t kMostBulk = 1024;
/// Bytes read from a sender's outbox after which the receiver updates the sender's credit.
inline constexpr uint32_t kOutsideMost = 32 * 1024;

/// Gap between payloads longer than two lines, bytes. The processor that reads one payload prefetches some lines beyond it, which the
/// sender of the next payload would have to fetch back. One or two lines don't trigger the prefetch, and with many lines it does not
/// matter.
inline constexpr uint32_t kApart = 512;
inline bool stays_apart(uint32_t bytes) { return bytes > 128 && bytes <= 4096; }

/// The part of the bulk area that a payload occupies: whole lines, never across the end of the area.
struct BulkSpan {
    uint64_t start, end;  ///< running positions in bytes; the offset in the area is position % kBulkBytes
};
inline BulkSpan bulk_span(uint64_t position, uint32_t bytes) {
    const uint64_t room_for = uint64_t{bytes} + (stays_apart(bytes) ? kApart : 0);
    const uint64_t rounded = (room_for + 63) & ~uint64_t{63};
    const uint64_t room = kBulkBytes - position % kBulkBytes;
    const uint64_t start = rounded <= room ? position : position + room;
    return {start, start + rounded};
}

/// The current line of one end of the ring. Address and lap follow from the line's number, but are stored because every poll and every
/// message needs them.
struct LinePosition {
    RingLine* place = nullptr;
    uint32_t lap = 1;  ///< lap of the line, which its stamp must equal
    uint64_t number = 0;
    static LinePosition at(Ring& ring, uint64_t number) {
        return {ring.lines + number % kRingLines, static_cast<uint32_t>(number / kRingLines + 1), number};
    }
    void advance(Ring& ring) {
        ++place;
        if (++number % kRingLines != 0) [[likely]]
            return;
        place = ring.lines;
        ++lap;
    }
};

/// The sender's end of a ring. Not thread-safe.
class RingWriter {
  public:
    RingWriter() = default;
    /// Starts to write to a ring, which must have been reset and not been written to since.
    explicit RingWriter(Ring& ring)
        : ring_(&ring),
          next_(LinePosition::at(ring, ring.consumed.lines.load(std::memory_order_acquire))),
          lines_limit_(next_.number) {}
    explicit operator bool() const { return ring_ != nullptr; }

    /// Returns where to write `bytes` of payload (at most kRingPayload), nullptr if there is no room now. Nothing is visible before
    /// commit(), and reserving again without a commit costs nothing.
    std::byte* reserve(uint32_t bytes) {
        if (!has_line()) return nullptr;
        return bytes <= kInlineBytes ? next_.place->payload : reserve_bulk(bytes);
    }
    /// Returns where to write a payload of at most kMostBulk bytes, null if there is no room. Always null for longer payloads, which belong
    /// in an outbox.
    std::byte* reserve_short(uint32_t bytes) {
        if (!has_line()) return nullptr;
        if (bytes <= kInlineBytes) return next_.place->payload;
        return bytes <= kMostBulk ? reserve_bulk(bytes) : nullptr;
    }
    /// Returns whether a line is free for a packet whose payload is outside the ring.
    bool has_line() { return next_.number - lines_limit_ < kRingLines || refresh_lines(); }
    std::byte* reserve_bulk(uint32_t bytes) {
        const BulkSpan span = bulk_span(bulk_, bytes);
        if (span.end - bulk_limit_ > kBulkBytes && !refresh_bulk(span.end)) return nullptr;
        return ring_->bulk + span.start % kBulkBytes;
    }

    /// Returns the header of the reserved line. Fill all members but stamp and bytes, then commit.
    packet::Header& header() { return next_.place->header; }

    /// Makes the reserved packet visible.
    void commit(uint32_t bytes) {
        packet::Header& head = header();
        head.bytes = bytes;
        if (bytes > kInlineBytes) {
            head.where = packet::PayloadLocation::here;
            bulk_ = bulk_span(bulk_, bytes).end;
        }
        head.stamp.store(next_.lap, std::memory_order_release);
        next_.advance(*ring_);
    }
    /// Makes a packet visible whose payload of more than kInlineBytes is in this process's outbox.
    void commit(uint32_t bytes, OutboxPlace place) {
        packet::Header& head = header();
        head.bytes = bytes;
        head.where = packet::PayloadLocation::outbox;
        __builtin_memcpy(next_.place->payload, &place, sizeof place);
        head.stamp.store(next_.lap, std::memory_order_release);
        next_.advance(*ring_);
    }
    /// Returns the receipt by which the sender learns that the next packet to be written has been read.
    ReadReceipt receipt() const { return {{&ring_->consumed.lines}, next_.number + 1}; }

  private:
    bool refresh_lines();
    bool refresh_bulk(uint64_t end);

    Ring* ring_ = nullptr;
    LinePosition next_;
    uint64_t lines_limit_ = 0;  ///< value of `consumed.lines` when it was last read
    uint64_t bulk_ = 0, bulk_limit_ = 0;
};

/// The receiver's end of a ring. Not thread-safe.
class RingReader {
  public:
    RingReader() = default;
    /// Resets the ring's memory. Precondition: no process writes to the slot. `outbox` is that of the sender.
    void reset(Ring& ring, const std::byte* outbox = nullptr);
    /// Called before the slot is released: publishes to the sender that all lines up to the current one were read.
    void retire() {
        if (ring_) publish_lines();
    }
    explicit operator bool() const { return ring_ != nullptr; }

    /// Returns the next packet's header, nullptr if there is none; its payload is at payload().
    const packet::Header* front() const {
        const packet::Header& head = next_.place->header;
        return head.stamp.load(std::memory_order_acquire) == next_.lap ? &head : nullptr;
    }
    const std::byte* payload() const {
        const uint32_t bytes = next_.place->header.bytes;
        if (bytes <= kInlineBytes) return next_.place->payload;
        if (next_.place->header.where == packet::PayloadLocation::outbox)
            return payload_in(outbox_, next_.place->payload, bytes);
        return ring_->bulk + bulk_span(bulk_, bytes).start % kBulkBytes;
    }
    /// Frees the line of front(). Credit for lines is returned to the sender in batches of a quarter of the ring.
    void pop() {
        const uint32_t bytes = next_.place->header.bytes;
        if (bytes > kInlineBytes) {
            if (next_.place->header.where == packet::PayloadLocation::outbox) return pop_outside(bytes);
            bulk_ = bulk_span(bulk_, bytes).end;
            if (bulk_ - published_bulk_ >= kBulkBytes / 4) publish_bulk();
        }
        next_.advance(*ring_);
        if (next_.number % (kRingLines / 4) == 0) [[unlikely]]
            publish_lines();
    }

  private:
    // Frees the line of front(), whose payload is in an outbox. Unread payloads reduce the outbox's room for all receivers, so credit for
    // them is returned sooner.
    void pop_outside(uint32_t bytes) {
        next_.advance(*ring_);
        outside_ += bytes;
        if (outside_ >= kOutsideMost || next_.number % (kRingLines / 4) == 0) publish_lines();
    }
    void publish_lines() {
        outside_ = 0;
        ring_->consumed.lines.store(next_.number, std::memory_order_release);
    }
    void publish_bulk() { ring_->consumed.bulk.store(published_bulk_ = bulk_, std::memory_order_release); }

    Ring* ring_ = nullptr;
    LinePosition next_;
    uint64_t bulk_ = 0, published_bulk_ = 0;
    const std::byte* outbox_ = nullptr;  ///< outbox of the sender
    uint32_t outside_ = 0;               ///< number of bytes read from the outbox and not yet published to the sender
};

}  // namespace starling::shm
