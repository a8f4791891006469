// What lies in a rank's region of the job segment.
#pragma once

#include "base/counters.h"
#include "base/wait_report_page.h"
#include "job/doorbell.h"
#include "job/job_segment.h"
#include "transport/shm/cooperative_copy.h"
#include "transport/shm/inbox.h"
#include "transport/shm/match_or_cancel.h"
#include "transport/shm/outbox.h"
#include "transport/shm/ring.h"

namespace starling::shm {

/// What others go by when they choose how to move a message from or to this rank. Not in the doorbell's line: everybody who sends
/// looks at that one, and each wait writes here.
struct alignas(64) Presence {
    std::atomic<uint32_t> waiting;  ///< threads inside a wait for something that has not happened yet
    std::atomic<uint32_t> let_go;   ///< sends that MPI_Cancel has completed before they were received
};

/// Where neighbours find a rank's symmetric memory (room shmem); all but `ready` is written once, before that is set.
struct alignas(64) SymmetricMemory {
    static constexpr uint32_t kReady = 1, kGone = 2;
    std::atomic<uint32_t> ready;     ///< 0: not yet; kReady; kGone: not any more
    int32_t descriptor;              ///< of the heap's file, in the rank's process
    uint64_t inode;                  ///< of that file
    uint64_t limit;                  ///< bytes that it may grow to
    uint64_t data, data_bytes;       ///< the program's variables, in the rank's process
    int32_t data_descriptor;         ///< of the file that they are in; -1: neighbours can't map them
    uint64_t data_inode;             ///< of that file
    std::atomic<uint32_t> watching;  ///< threads of the rank that wait for memory of theirs to change: who changes it rings
};

/// Where neighbours find the memory that a rank has for exchange (transport/shm/shared_heap.h); all but `ready` is written once, before
/// that is set.
struct alignas(64) ExchangedMemory {
    std::atomic<uint32_t> ready;  ///< 0: there is none yet
    int32_t pid, descriptor;      ///< of its file, in the rank's process
    uint64_t inode;               ///< of that file
    uint64_t base, bytes;         ///< where it lies in the rank's process
};

inline constexpr uint32_t kRingSlots = 24;
inline constexpr uint64_t kRingStride = 80 * 1024;
inline constexpr uint64_t kPresenceOffset = 256;  ///< away from the doorbell, as processors fetch lines in pairs
inline constexpr uint64_t kSymmetricOffset = 512;
inline constexpr uint64_t kExchangedOffset = 768;
inline constexpr uint64_t kSplitOffset = 1024;
inline constexpr uint64_t kVerdictsOffset = kSplitOffset + kSplitSlots * sizeof(SplitSlot);
inline constexpr uint64_t kInboxOffset = 4096;
inline constexpr uint64_t kCountersOffset = 72 * 1024;
inline constexpr uint64_t kAccountOffset = kCountersOffset + kCounterPage;
inline constexpr uint64_t kRingsOffset = 128 * 1024;
inline constexpr uint64_t kOutboxOffset = kRingsOffset + kRingSlots * kRingStride;
inline constexpr uint64_t kCollectiveOffset = kOutboxOffset + kOutboxBytes;
inline constexpr uint64_t kCollectiveBytes = job::kRegionStride - kCollectiveOffset;
static_assert(sizeof(job::Doorbell) <= kPresenceOffset && kPresenceOffset + sizeof(Presence) <= kSymmetricOffset);
static_assert(kSymmetricOffset + sizeof(SymmetricMemory) <= kExchangedOffset);
static_assert(kExchangedOffset + sizeof(ExchangedMemory) <= kSplitOffset);
static_assert(kVerdictsOffset % alignof(MatchOrCancelWords) == 0 &&
              kVerdictsOffset + sizeof(MatchOrCancelWords) <= kInboxOffset);
static_assert(sizeof(Ring) <= kRingStride);
static_assert(kInboxOffset + sizeof(Inbox) <= kCountersOffset);
static_assert(kCountersOffset % kCounterPage == 0 && kAccountOffset + sizeof(WaitReportPage) <= kRingsOffset);
static_assert(kOutboxOffset % 4096 == 0);
static_assert(kCollectiveOffset + (1u << 20) <= job::kRegionStride);

/// A view of one rank's region; cheap to copy.
class Region {
  public:
    explicit Region(std::byte* base) : base_(base) {}
    job::Doorbell& doorbell() const { return *reinterpret_cast<job::Doorbell*>(base_); }
    Presence& presence() const { return *reinterpret_cast<Presence*>(base_ + kPresenceOffset); }
    SymmetricMemory& symmetric() const { return *reinterpret_cast<SymmetricMemory*>(base_ + kSymmetricOffset); }
    ExchangedMemory& exchanged() const { return *reinterpret_cast<ExchangedMemory*>(base_ + kExchangedOffset); }
    SplitSlot& split(uint32_t slot) const { return reinterpret_cast<SplitSlot*>(base_ + kSplitOffset)[slot]; }
    MatchOrCancelWords& verdicts() const { return *reinterpret_cast<MatchOrCancelWords*>(base_ + kVerdictsOffset); }
    Inbox& inbox() const { return *reinterpret_cast<Inbox*>(base_ + kInboxOffset); }
    /// The page that becomes this rank's counters (share_counters); read-only for others.
    Counters* counters() const { return reinterpret_cast<Counters*>(base_ + kCountersOffset); }
    /// What this rank waits for, as it tells those who look from outside; untouched as long as it has not waited long.
    WaitReportPage& account() const { return *reinterpret_cast<WaitReportPage*>(base_ + kAccountOffset); }
    Ring& ring(uint32_t slot) const { return *reinterpret_cast<Ring*>(base_ + kRingsOffset + slot * kRingStride); }
    /// Where this rank's outgoing payloads lie; kOutboxBytes.
    std::byte* outbox() const { return base_ + kOutboxOffset; }
    /// Memory that this rank hands out to communicators it leads (collective/shm/layout).
    std::byte* collective() const { return base_ + kCollectiveOffset; }

  private:
    std::byte* base_;
};

}  // namespace starling::shm
