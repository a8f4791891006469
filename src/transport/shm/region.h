// The layout of a rank's region in the job segment.
#pragma once

#include "base/counters.h"
#include "base/wait_report_page.h"
#include "job/doorbell.h"
#include "job/job_segment.h"
#include "job/life_lock.h"
#include "transport/shm/agreement_words.h"
#include "transport/shm/cooperative_copy.h"
#include "transport/shm/inbox.h"
#include "transport/shm/match_or_cancel.h"
#include "transport/shm/outbox.h"
#include "transport/shm/ring.h"

namespace starling::shm {

/// State by which peers choose the protocol for a message from or to this rank. It is not in the doorbell's cache line, since all senders
/// read that line, and each wait writes here.
struct alignas(64) Presence {
    std::atomic<uint32_t> waiting;          ///< number of threads inside a wait for an event that has not happened yet
    std::atomic<uint32_t> abandoned_sends;  ///< number of sends that MPI_Cancel has completed before they were received
};

/// Location of a rank's symmetric memory, for neighbors (room shmem). All members but `ready` and `watching` are written once, before
/// `ready` is set.
struct alignas(64) SymmetricMemory {
    static constexpr uint32_t kReady = 1, kGone = 2;
    std::atomic<uint32_t> ready;  ///< state of the memory. 0: not ready yet; kReady; kGone: it no longer exists
    int32_t descriptor;           ///< descriptor of the heap's file, in the rank's process
    uint64_t inode;               ///< inode of the heap's file
    uint64_t limit;               ///< bytes to which the heap may grow
    uint64_t data, data_bytes;    ///< address and bytes of the program's variables, in the rank's process
    int32_t data_descriptor;      ///< descriptor of the variables' file; -1: neighbors cannot map them
    uint64_t data_inode;          ///< inode of the variables' file
    /// Number of threads of the rank that wait for a word of its memory to change. A process that changes the word rings the doorbell.
    std::atomic<uint32_t> watching;
};

/// Location of a rank's shared heap, for neighbors (transport/shm/shared_heap.h). All members but `ready` are written once, before `ready`
/// is set.
struct alignas(64) ExchangedMemory {
    std::atomic<uint32_t> ready;  ///< whether the heap exists; 0: not yet
    int32_t pid, descriptor;      ///< pid of the rank; descriptor of the heap's file in its process
    uint64_t inode;               ///< inode of the heap's file
    uint64_t base, bytes;         ///< address of the heap in the rank's process, and its bytes
};

inline constexpr uint32_t kRingSlots = 24;
inline constexpr uint64_t kRingStride = 80 * 1024;
/// Offset of Presence in a region: away from the doorbell, as processors fetch cache lines in pairs.
inline constexpr uint64_t kPresenceOffset = 256;
inline constexpr uint64_t kSymmetricOffset = 512;
inline constexpr uint64_t kExchangedOffset = 768;
inline constexpr uint64_t kSplitOffset = 1024;
inline constexpr uint64_t kVerdictsOffset = kSplitOffset + kSplitSlots * sizeof(SplitSlot);
inline constexpr uint64_t kInboxOffset = 4096;
inline constexpr uint64_t kCountersOffset = 72 * 1024;
inline constexpr uint64_t kAccountOffset = kCountersOffset + kCounterPage;
inline constexpr uint64_t kAgreementsOffset = kAccountOffset + sizeof(WaitReportPage);
inline constexpr uint64_t kRingsOffset = 128 * 1024;
inline constexpr uint64_t kOutboxOffset = kRingsOffset + kRingSlots * kRingStride;
inline constexpr uint64_t kCollectiveOffset = kOutboxOffset + kOutboxBytes;
inline constexpr uint64_t kCollectiveBytes = job::kRegionStride - kCollectiveOffset;
static_assert(sizeof(job::Doorbell) <= job::kLifeLockOffset && job::kLifeLockOffset + job::kLifeLockBytes <= kPresenceOffset);
static_assert(kPresenceOffset + sizeof(Presence) <= kSymmetricOffset);
static_assert(kSymmetricOffset + sizeof(SymmetricMemory) <= kExchangedOffset);
static_assert(kExchangedOffset + sizeof(ExchangedMemory) <= kSplitOffset);
static_assert(kVerdictsOffset % alignof(MatchOrCancelWords) == 0 &&
              kVerdictsOffset + sizeof(MatchOrCancelWords) <= kInboxOffset);
static_assert(sizeof(Ring) <= kRingStride);
static_assert(kInboxOffset + sizeof(Inbox) <= kCountersOffset);
static_assert(kCountersOffset % kCounterPage == 0 && kAgreementsOffset % alignof(AgreementWords) == 0);
static_assert(kAgreementsOffset + kAgreementSlots * sizeof(AgreementWords) <= kRingsOffset);
static_assert(kOutboxOffset % 4096 == 0);
static_assert(kCollectiveOffset + (1u << 20) <= job::kRegionStride);

/// A view of one rank's region; cheap to copy.
class SegmentRegion {
  public:
    explicit SegmentRegion(std::byte* base) : base_(base) {}
    job::Doorbell& doorbell() const { return *reinterpret_cast<job::Doorbell*>(base_); }
    Presence& presence() const { return *reinterpret_cast<Presence*>(base_ + kPresenceOffset); }
    SymmetricMemory& symmetric() const { return *reinterpret_cast<SymmetricMemory*>(base_ + kSymmetricOffset); }
    ExchangedMemory& exchanged() const { return *reinterpret_cast<ExchangedMemory*>(base_ + kExchangedOffset); }
    SplitSlot& split(uint32_t slot) const { return reinterpret_cast<SplitSlot*>(base_ + kSplitOffset)[slot]; }
    MatchOrCancelWords& verdicts() const { return *reinterpret_cast<MatchOrCancelWords*>(base_ + kVerdictsOffset); }
    Inbox& inbox() const { return *reinterpret_cast<Inbox*>(base_ + kInboxOffset); }
    /// Returns the page that becomes this rank's counters (share_counters); read-only for other processes.
    Counters* counters() const { return reinterpret_cast<Counters*>(base_ + kCountersOffset); }
    /// Returns this rank's wait report for tools; untouched as long as the rank has not waited long.
    WaitReportPage& account() const { return *reinterpret_cast<WaitReportPage*>(base_ + kAccountOffset); }
    /// Returns a slot for the agreements of a communicator whose lowest member is this rank.
    AgreementWords& agreement(uint32_t slot) const {
        return reinterpret_cast<AgreementWords*>(base_ + kAgreementsOffset)[slot];
    }
    Ring& ring(uint32_t slot) const { return *reinterpret_cast<Ring*>(base_ + kRingsOffset + slot * kRingStride); }
    /// Returns this rank's outbox of kOutboxBytes.
    std::byte* outbox() const { return base_ + kOutboxOffset; }
    /// Returns the memory that this rank allocates to communicators it leads (collective/shm/layout).
    std::byte* collective() const { return base_ + kCollectiveOffset; }

  private:
    std::byte* base_;
};

}  // namespace starling::shm
