// The outbox, which holds payloads that are too long for a ring's line or an inbox's cell. It lies in the sender's region of the job
// segment, where every process of the host can read it. Packets contain the offset of their payload. A process has one outbox for all
// receivers. It is allocated in rotation, so that memory is written again only after a while. By then the reader's cache has evicted the
// lines, and the sender need not fetch them from that cache. A copy is thus two to three times as fast as one that reuses a few lines again
// and again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/copy.h"
#include "transport/shm/rotating_allocator.h"

namespace starling::shm {

inline constexpr uint64_t kOutboxBytes = 2u << 20;
/// The longest payload in an outbox, bytes.
inline constexpr uint32_t kOutboxPayload = 64 * 1024;

/// A word in a reader's memory: a ring's count of consumed lines, or an inbox's count of packets taken.
struct ReadCount {
    const std::atomic<uint64_t>* word = nullptr;
    uint64_t value() const { return word->load(std::memory_order_acquire); }
    bool operator==(const ReadCount&) const = default;
};
using ReadReceipt = Receipt<ReadCount>;

/// The offset of a packet's payload in the sender's outbox; stored instead of the payload.
struct OutboxPlace {
    uint32_t offset;
};

/// Returns the payload of `bytes` to which the OutboxPlace at `place` refers. `outbox` is the sender's; an invalid offset from a broken
/// sender results in an address within it.
inline const std::byte* payload_in(const std::byte* outbox, const std::byte* place, uint32_t bytes) {
    OutboxPlace at;
    __builtin_memcpy(&at, place, sizeof at);
    return outbox + (at.offset <= kOutboxBytes - bytes ? at.offset : 0);
}

/// The owner's end of an outbox. Not thread-safe.
class Outbox {
  public:
    /// Creates the owner's end. `memory`: kOutboxBytes of shared memory, page-aligned, that only this process writes.
    explicit Outbox(std::byte* memory) : memory_(memory) {}

    /// Returns where to write `bytes` (at most kOutboxPayload), among the first `window` bytes of the outbox. Null if there is no room
    /// because too much is still unread. Nothing is allocated before commit().
    std::byte* reserve(uint32_t bytes, uint32_t window);
    /// Allocates to a reader the range that reserve() returned last. The range becomes free when the receipt's packet was read. `payload`:
    /// where the payload begins, at most spare(bytes) bytes after the address that reserve() returned.
    OutboxPlace commit(const ReadReceipt& receipt, const void* reader, const std::byte* payload);
    static constexpr uint8_t spare(uint32_t bytes) { return bytes >= CopyPath::kWayMatters ? 64 : 0; }

    /// Frees everything allocated to a reader that will never read again: it is dead, or its memory is about to be unmapped.
    void forget(const void* reader) { rotation_.forget(reader); }
    /// Returns whether the reader has payloads that it has not read yet.
    bool held_by(const void* reader) { return rotation_.held_by(reader); }

    /// Called periodically: returns memory to the system if nothing was sent since the last call but one. Payloads not read yet stay.
    void release_idle();
    /// Returns unused memory to the system at once.
    void release_unused();

  private:
    // Least size of an allocated part, bytes. Smaller parts are not worth an entry. Besides, the reader's processor prefetches beyond a
    // payload, into lines that the sender is about to write.
    static constexpr uint32_t kLeast = 1024;
    Rotation<ReadCount, kOutboxBytes / kLeast, kLeast> rotation_;
    std::byte* memory_;
    uint32_t start_ = 0, bytes_ = 0;  ///< reserved
    uint32_t touched_ = 0;            ///< offset from which on no byte was written since memory was returned to the system
    uint32_t rests_ = 0;              ///< number of calls of release_idle() since a payload was sent
};

}  // namespace starling::shm
