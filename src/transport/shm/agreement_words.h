// The words by which the members of one communicator agree in memory (collective/survivors/memory_consensus.h). They are in the region of the
// communicator's lowest member, and outlive their writers, each of which may be killed at any instruction.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace starling::shm {

/// A slot for the agreements of one communicator (collective/survivors/agreement_slot.h). All zero when it is free.
struct AgreementWords {
    // The words that all members write in each agreement.
    alignas(64) std::atomic<uint32_t> arrived;  ///< number of members that have voted in the current agreement
    std::atomic<uint32_t> cleared;              ///< the bits that a vote in the current agreement has cleared

    // The words that members poll. Only the last member that votes writes them.
    alignas(64) std::atomic<uint64_t> context;  ///< id of the communicator's collective match context; 0: the slot is free
    /// Twice the number of agreements that have been decided here, plus 1 if no more will be.
    std::atomic<uint64_t> state;
    std::atomic<uint32_t> result_cleared;  ///< the bits that the last decision clears
    std::atomic<uint64_t> result_context;  ///< the context id that the last decision has drawn for a new communicator
    /// A bit for each member that does not use the slot any more, for the first kAgreementLeavers members.
    std::array<std::atomic<uint64_t>, 4> left;
};
static_assert(sizeof(AgreementWords) == 128);

/// Number of members whose leaves a slot can count. A slot of a larger communicator stays in use.
inline constexpr int kAgreementLeavers = 256;
static_assert(sizeof(AgreementWords::left) * 8 == kAgreementLeavers);

/// Number of slots in a region, and so of the communicators that its rank leads and that agree in memory at the same time.
inline constexpr uint32_t kAgreementSlots = 256;

}  // namespace starling::shm
