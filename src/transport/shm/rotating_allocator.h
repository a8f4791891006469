// An allocator for parts of an area that are allocated in rotation and become free in any order. All of its state is private to the sender.
// A reader only advances its own count past the packet that it has read, which it does anyway. So a sender or a reader that dies at any
// instruction leaves nothing to be repaired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace starling::shm {

/// The condition under which a part is free: a count in the reader's memory that only grows has reached `until`. `Counter` is similar to a
/// pointer to an atomic word: copied, compared, and read with value().
template <class Counter>
struct Receipt {
    Counter counter;
    uint64_t until;
    bool operator==(const Receipt&) const = default;
};

/// The allocator, for at most kMost parts of at least `kLeast` bytes each. Not thread-safe.
template <class Counter, uint32_t kMost, uint32_t kLeast = 1>
class Rotation {
  public:
    static constexpr uint32_t kNone = ~0u;
    /// Most parts that one find() checks. A part that is still in use is skipped, and the next find() continues after it.
    static constexpr int kLooks = 32;

    /// Returns where `bytes` of the area's first `window` bytes are free, or kNone if none were found. Nothing is allocated before hold().
    uint32_t find(uint32_t bytes, uint32_t window) {
        if (bytes < kLeast) bytes = kLeast;
        if (bytes > window) return kNone;
        for (int look = 0; look < kLooks; ++look) {
            if (cursor_ + bytes > window) start_over();
            // The oldest part is at or after the cursor, unless there is no part between the cursor and the end of the area.
            const bool room = count_ == 0 || oldest().start < cursor_ || oldest().start >= cursor_ + bytes;
            if (room) return count_ < kMost ? cursor_ : kNone;
            drop_or_pass();
        }
        return kNone;
    }

    /// Allocates to `reader` the range that find() returned.
    void hold(uint32_t start, uint32_t bytes, const Receipt<Counter>& receipt, const void* reader) {
        if (bytes < kLeast) bytes = kLeast;
        part(count_++) = {start, bytes, receipt, reader};
        cursor_ = start + bytes;
    }

    /// Frees all parts of this reader, because it is dead or will never read again.
    void forget(const void* reader) {
        seen_ = {};
        uint32_t left = 0;
        for (uint32_t i = 0; i < count_; ++i)
            if (part(i).reader != reader) part(left++) = part(i);
        count_ = left;
    }

    /// Frees the parts that their readers have read; returns the number of parts that remain.
    uint32_t held() {
        for (uint32_t i = count_; i > 0; --i) drop_or_keep();
        return count_;
    }
    bool held_by(const void* reader) {
        held();
        for (uint32_t i = 0; i < count_; ++i)
            if (part(i).reader == reader) return true;
        return false;
    }
    /// Visits the parts in use: visit(start, bytes).
    template <class F>
    void each(F&& visit) {
        for (uint32_t i = 0; i < count_; ++i) visit(part(i).start, part(i).bytes);
    }

  private:
    struct AllocatedPart {
        uint32_t start, bytes;
        Receipt<Counter> receipt;
        const void* reader;
    };
    static_assert(std::is_trivially_copyable_v<AllocatedPart>);

    // Returns the i-th part in the order of their positions, a circle that begins at the cursor. A part that is skipped moves to the end of
    // the circle.
    AllocatedPart& part(uint32_t i) { return reinterpret_cast<AllocatedPart*>(parts_)[(first_ + i) % kMost]; }
    AllocatedPart& oldest() { return part(0); }

    bool is_back(const Receipt<Counter>& receipt) {
        // Read the count only if it differs from the last one: adjacent parts mostly have the same reader, so one load serves for many.
        if (!(receipt.counter == seen_.counter) || seen_.until < receipt.until)
            seen_ = {receipt.counter, receipt.counter.value()};
        return seen_.until >= receipt.until;
    }
    void drop_oldest() {
        first_ = (first_ + 1) % kMost;
        --count_;
    }
    /// Drops the oldest part if it was read. Otherwise moves it to the end of the circle and returns false.
    bool drop_or_keep() {
        const AllocatedPart oldest_part = oldest();
        drop_oldest();
        if (is_back(oldest_part.receipt)) return true;
        part(count_++) = oldest_part;
        return false;
    }
    void drop_or_pass() {
        const uint32_t end = oldest().start + oldest().bytes;
        if (!drop_or_keep()) cursor_ = end;
    }
    void start_over() {
        for (uint32_t i = count_; i > 0 && oldest().start >= cursor_; --i) drop_or_keep();
        cursor_ = 0;
    }

    // Storage of the parts. Not initialized, so that its pages take no memory in a process that never allocates a part.
    alignas(AllocatedPart) std::byte parts_[kMost * sizeof(AllocatedPart)];
    uint32_t first_ = 0, count_ = 0;
    uint32_t cursor_ = 0;
    Receipt<Counter> seen_{};  ///< the count that was read last, and its value
};

}  // namespace starling::shm
