// The slots of a region for agreements in memory: how the members of a communicator find one, and when it becomes free again.
//
// A member looks for a slot of its communicator and, if there is none, claims the first free one. Another member may find other slots free
// meanwhile, so two members may claim different slots, or one of them none. Then no slot gets the votes of all members, and none decides. A
// member that waits for a decision looks for such slots from time to time and closes all of them, so that all vote by messages.
//
// Each member leaves all slots of its communicator before it forgets it, and does not write to them afterwards. When all members have left or
// have ended, nobody writes any more. One of those that see this wins the compare-and-swap that begins the release. A slot stays in use if its
// last member dies before it has released it.
#pragma once

#include <cstdint>

#include "link/host_memory.h"

namespace starling::collective {

/// A communicator's view of one slot. Each function is one step, all_left() one per word; other members may act or die between any two.
class AgreementSlot {
  public:
    AgreementSlot(link::AgreementWords& words, uint64_t context) : words_(words), context_(context) {}

    bool is_ours() const { return words_.context.load() == context_; }
    /// Claims the slot if it is free. Returns whether it is this communicator's now.
    bool claim() {
        uint64_t used = words_.context.load();
        return (used == 0 && words_.context.compare_exchange_strong(used, context_)) || used == context_;
    }

    // The steps of leaving, in this order. This member has no call that uses the slot, and is below kAgreementLeavers.
    void leave(int me) { words_.left[word_of(me)].fetch_or(bit_of(me)); }
    /// Returns whether every member has left or, by `has_ended(member)`, has ended for certain. It stays true until the release.
    template <typename HasEnded>
    bool all_left(int members, const HasEnded& has_ended) const {
        for (int member = 0; member < members; ++member)
            if (!(words_.left[word_of(member)].load() & bit_of(member)) && !has_ended(member)) return false;
        return true;
    }
    /// Returns whether this member releases the slot; then it takes the next steps. Context ids are unique, so a late call has no effect.
    bool begin_release() {
        uint64_t ours = context_;
        return words_.context.compare_exchange_strong(ours, kReleasing);
    }
    /// Nobody else uses the slot now.
    void clear() {
        words_.arrived.store(0);
        words_.cleared.store(0);
        words_.state.store(0);
        words_.result_cleared.store(0);
        words_.result_context.store(0);
        for (auto& word : words_.left) word.store(0);
    }
    void end_release() { words_.context.store(0); }

  private:
    static constexpr uint64_t kReleasing = ~uint64_t{0};  ///< never a context id (comm::kNoContext)
    static size_t word_of(int member) { return static_cast<size_t>(member) / 64; }
    static uint64_t bit_of(int member) { return uint64_t{1} << (member % 64); }

    link::AgreementWords& words_;
    uint64_t context_;
};

/// Calls `use(words)` with the slots of a region, in the order in which a communicator looks for one, until it returns true. Returns the words
/// for which it did; null if there are none.
template <typename Use>
link::AgreementWords* find_slot(const link::SegmentRegion& region, uint64_t context, const Use& use) {
    for (uint32_t i = 0; i < link::kAgreementSlots; ++i) {
        link::AgreementWords& words = region.agreement(static_cast<uint32_t>((context >> 4) + i) % link::kAgreementSlots);
        if (use(words)) return &words;
    }
    return nullptr;
}

/// Returns the words of a communicator in the region of its lowest member; claims a free slot if there are none. Returns null if all slots are
/// used by other communicators.
inline link::AgreementWords* claim_words(const link::SegmentRegion& region, uint64_t context) {
    const auto is_ours = [context](link::AgreementWords& words) { return AgreementSlot(words, context).is_ours(); };
    if (link::AgreementWords* const words = find_slot(region, context, is_ours)) return words;
    return find_slot(region, context, [context](link::AgreementWords& words) { return AgreementSlot(words, context).claim(); });
}

/// Leaves all slots of a communicator for member `me`, and releases those that all members have left.
template <typename HasEnded>
void leave_words(const link::SegmentRegion& region, uint64_t context, int me, int members, const HasEnded& has_ended) {
    if (members > link::kAgreementLeavers) return;
    find_slot(region, context, [&](link::AgreementWords& words) {
        AgreementSlot slot(words, context);
        if (!slot.is_ours()) return false;
        slot.leave(me);
        if (!slot.all_left(members, has_ended) || !slot.begin_release()) return false;
        slot.clear();
        slot.end_release();
        return false;
    });
}

}  // namespace starling::collective
