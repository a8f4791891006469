// Which parts of an area are in use, when they are handed out in rotation and come back in any order. All of it is the
// sender's own: what a reader does is to move a count of its own past the packet that it has read, which it does anyway.
// So a sender or a reader that dies at any instruction leaves nothing to be repaired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace starling::shm {

/// How a part's return is known: a count in the reader's memory that only grows, and where it has to get to. `Counter`
/// is something like a pointer to an atomic word: copied, compared, and read with value().
template <class Counter>
struct Receipt {
    Counter counter;
    uint64_t until;
    bool operator==(const Receipt&) const = default;
};

/// At most kMost parts of at least `kLeast` bytes each. Not thread-safe.
template <class Counter, uint32_t kMost, uint32_t kLeast = 1>
class Rotation {
  public:
    static constexpr uint32_t kNone = ~0u;
    /// Parts that one find() looks at: one that is not back yet is passed over. The next find() looks on from there.
    static constexpr int kLooks = 32;

    /// Where `bytes` of the area's first `window` bytes are free, kNone if that has not been found. Nothing is handed
    /// out before keep().
    uint32_t find(uint32_t bytes, uint32_t window) {
        if (bytes < kLeast) bytes = kLeast;
        if (bytes > window) return kNone;
        for (int look = 0; look < kLooks; ++look) {
            if (cursor_ + bytes > window) start_over();
            // The oldest part lies at the cursor or behind it, unless nothing does up to the end of the area.
            const bool room = count_ == 0 || oldest().start < cursor_ || oldest().start >= cursor_ + bytes;
            if (room) return count_ < kMost ? cursor_ : kNone;
            drop_or_pass();
        }
        return kNone;
    }

    /// Hands out what find() gave, to `reader`.
    void keep(uint32_t start, uint32_t bytes, const Receipt<Counter>& receipt, const void* reader) {
        if (bytes < kLeast) bytes = kLeast;
        part(count_++) = {start, bytes, receipt, reader};
        cursor_ = start + bytes;
    }

    /// Takes back everything that this reader has: it is gone, or will never look again.
    void forget(const void* reader) {
        seen_ = {};
        uint32_t left = 0;
        for (uint32_t i = 0; i < count_; ++i)
            if (part(i).reader != reader) part(left++) = part(i);
        count_ = left;
    }

    /// Drops what has come back; gives how many parts have not.
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
    /// Visits the parts that are out: visit(start, bytes).
    template <class F>
    void each(F&& visit) {
        for (uint32_t i = 0; i < count_; ++i) visit(part(i).start, part(i).bytes);
    }

  private:
    struct Part {
        uint32_t start, bytes;
        Receipt<Counter> receipt;
        const void* reader;
    };
    static_assert(std::is_trivially_copyable_v<Part>);

    // Parts in the order of their places, the circle beginning at the cursor. Who is passed over goes to the end of it.
    Part& part(uint32_t i) { return reinterpret_cast<Part*>(parts_)[(first_ + i) % kMost]; }
    Part& oldest() { return part(0); }

    bool is_back(const Receipt<Counter>& receipt) {
        // Neighbours most often have the same reader, so its memory is looked at once for many.
        if (!(receipt.counter == seen_.counter) || seen_.until < receipt.until)
            seen_ = {receipt.counter, receipt.counter.value()};
        return seen_.until >= receipt.until;
    }
    void drop_oldest() {
        first_ = (first_ + 1) % kMost;
        --count_;
    }
    /// False if it has not come back: then it is the last of the circle now.
    bool drop_or_keep() {
        const Part oldest_part = oldest();
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

    // Not cleared: a process that lends nothing never touches these pages, and begins without them.
    alignas(Part) std::byte parts_[kMost * sizeof(Part)];
    uint32_t first_ = 0, count_ = 0;
    uint32_t cursor_ = 0;
    Receipt<Counter> seen_{};  ///< the count that was looked at last, and what it was
};

}  // namespace starling::shm
