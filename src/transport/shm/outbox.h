// The outbox: where a process puts the payloads that are too long for a line or a cell. It lies in the sender's region
// of the job segment, packets name places in it, and every process of the host can read it. One per process, whoever the
// receivers are. It is used in rotation, so that a place is written again only after a while: the lines have left the
// reader's cache by then and need not be taken from there, which makes a copy two to three times as fast as into the
// same few lines again and again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/rotating_allocator.h"

namespace starling::shm {

inline constexpr uint64_t kOutboxBytes = 2u << 20;
/// The longest payload in it.
inline constexpr uint32_t kOutboxPayload = 16 * 1024;

/// A word in a reader's memory: a ring's count of consumed lines, or an inbox's of packets taken.
struct ReadCount {
    const std::atomic<uint64_t>* word = nullptr;
    uint64_t value() const { return word->load(std::memory_order_acquire); }
    bool operator==(const ReadCount&) const = default;
};
using ReadReceipt = Receipt<ReadCount>;

/// Where in its sender's outbox a packet's payload lies: in place of the payload.
struct OutboxPlace {
    uint32_t offset;
};

/// The payload of `bytes` that a packet's place names. `outbox` is the sender's; what a broken sender writes leads
/// nowhere else.
inline const std::byte* payload_in(const std::byte* outbox, const std::byte* place, uint32_t bytes) {
    OutboxPlace at;
    __builtin_memcpy(&at, place, sizeof at);
    return outbox + (at.offset <= kOutboxBytes - bytes ? at.offset : 0);
}

/// The owner's end. Not thread-safe.
class Outbox {
  public:
    /// `memory`: kOutboxBytes of shared memory, page-aligned, that this process alone writes.
    explicit Outbox(std::byte* memory) : memory_(memory) {}

    /// Where to write `bytes` (at most kOutboxPayload), among the first `window` bytes. Null if there is no room: too
    /// much is held by readers that don't look. Nothing is taken before commit().
    std::byte* reserve(uint32_t bytes, uint32_t window);
    /// Gives what was reserved last to a reader.
    OutboxPlace commit(const ReadReceipt& receipt, const void* reader);

    /// The reader will never look again: it is dead, or its memory is about to be unmapped.
    void forget(const void* reader) { rotation_.forget(reader); }
    /// Whether the reader has something that it has not read yet.
    bool held_by(const void* reader) { return rotation_.held_by(reader); }

    /// Gives the memory back to the system if nothing was sent since the last call but one: for now and then. What
    /// readers still have stays.
    void rest();
    /// The same at once.
    void give_back();

  private:
    // Less is not worth the place in the list; and one process reads ahead what another is about to write.
    static constexpr uint32_t kLeast = 1024;
    Rotation<ReadCount, kOutboxBytes / kLeast, kLeast> rotation_;
    std::byte* memory_;
    uint32_t start_ = 0, bytes_ = 0;  ///< reserved
    uint32_t touched_ = 0;            ///< from here on nothing was written since memory was given back
    uint32_t rests_ = 0;              ///< since something was sent
};

}  // namespace starling::shm
