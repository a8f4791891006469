// Which bytes of a block of a file were deposited in an aggregator's buffer, or are wanted from it: one bit per byte, in memory that the
// processes of a host share. Only these bytes are written, so that nothing outside of the views changes.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "file/system/open_file.h"

namespace starling::file {

/// Bits of one block; offsets count from the block's beginning. Several processes may mark bits at the same time. The other functions need
/// the marks of all of them to be visible.
class DepositBits {
  public:
    DepositBits() = default;
    explicit DepositBits(std::byte* memory) : words_(reinterpret_cast<uint64_t*>(memory)) {}
    /// Returns the bytes of memory for a block of that length.
    static uint64_t memory_for(int64_t block) { return (static_cast<uint64_t>(block) + 63) / 64 * sizeof(uint64_t); }

    /// Marks runs in increasing order; the last word is only stored by flush().
    class Marker {
      public:
        explicit Marker(const DepositBits& bits) : words_(bits.words_) {}
        Marker(const Marker&) = delete;
        ~Marker() { flush(); }
        void mark(int64_t offset, int64_t bytes) {
            int64_t word = offset >> 6;
            const int64_t bit = offset & 63;
            if (bit + bytes <= 64) return add(word, (~uint64_t{0} >> (64 - bytes)) << bit);
            add(word++, ~uint64_t{0} << bit);
            bytes -= 64 - bit;
            for (; bytes >= 64; bytes -= 64) add(word++, ~uint64_t{0});
            if (bytes > 0) add(word, ~uint64_t{0} >> (64 - bytes));
        }
        void flush() {
            if (pending_ == 0) return;
            const std::atomic_ref<uint64_t> word(words_[at_]);
            if (pending_ == ~uint64_t{0})
                word.store(pending_, std::memory_order_relaxed);
            else
                word.fetch_or(pending_, std::memory_order_relaxed);
            pending_ = 0;
        }

      private:
        void add(int64_t word, uint64_t mask) {
            if (word != at_) flush();
            at_ = word;
            pending_ |= mask;
        }
        uint64_t* words_;
        int64_t at_ = 0;
        uint64_t pending_ = 0;
    };

    /// Returns the first run of marked bytes in [from, end); one of no bytes if there is none. Gaps of at most `gap` bytes count as marked.
    Extent next_run(int64_t from, int64_t end, int64_t gap = 0) const {
        const int64_t first = find(from, end, 0);
        if (first == end) return {end, 0};
        int64_t last = find(first, end, ~uint64_t{0});
        for (int64_t next = last; gap > 0 && last < end; last = find(next, end, ~uint64_t{0})) {
            next = find(last, end, 0);
            if (next == end || next - last > gap) break;
        }
        return {first, last - first};
    }
    void clear(int64_t block) { std::memset(words_, 0, memory_for(block)); }

  private:
    /// Returns the first position in [from, end) whose bit differs from those of `flip`; `end` if there is none.
    int64_t find(int64_t from, int64_t end, uint64_t flip) const {
        if (from >= end) return end;
        int64_t word = from >> 6;
        uint64_t bits = (words_[word] ^ flip) & ~uint64_t{0} << (from & 63);
        for (const int64_t last = (end - 1) >> 6; bits == 0; bits = words_[word] ^ flip)
            if (++word > last) return end;
        return std::min(end, word * 64 + std::countr_zero(bits));
    }

    uint64_t* words_ = nullptr;
};

}  // namespace starling::file
