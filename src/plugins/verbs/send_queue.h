// What was posted to a queue pair and has not ended. A queue's work ends in order, so what ends tells for all before it:
// the device reports each kUntold-th only, besides what somebody waits for and what holds a buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace starling::verbs {

inline constexpr uint32_t kNoBuffer = ~0u;

/// 16 bytes for each place.
struct Sent {
    uint64_t token = 0;
    uint32_t buffer = kNoBuffer;
    bool transfer = false;  ///< a write, read or update, not a frame or datagram
    bool quiet = false;
};

class SendQueue {
  public:
    static constexpr uint32_t kUntold = 16;

    /// A power of two, more than 2 * kUntold.
    bool make(uint32_t depth) {
        entries_.reset(new (std::nothrow) Sent[depth]);
        depth_ = depth;
        return entries_ != nullptr;
    }
    uint32_t depth() const { return depth_; }
    bool full() const { return next_ - ended_ == depth_; }
    bool empty() const { return next_ == ended_; }
    uint32_t next() const { return next_; }
    /// The last of what is under way will not be told.
    bool ends_untold() const { return untold_ > 0; }

    /// Takes a place; `told`: whether the device has to report it.
    bool push(const Sent& sent) {
        entries_[next_++ & (depth_ - 1)] = sent;
        const bool told = sent.buffer != kNoBuffer || (sent.transfer && !sent.quiet) || untold_ + 1 >= kUntold;
        untold_ = told ? 0 : untold_ + 1;
        return told;
    }
    /// `position` and all before it have ended: each(sent, whether it is that one).
    template <class Each>
    void end(uint32_t position, Each each) {
        if (position - ended_ >= next_ - ended_) return;  // of an earlier life
        while (ended_ != position + 1) {
            const Sent sent = entries_[ended_ & (depth_ - 1)];
            const bool last = ended_++ == position;
            each(sent, last);
        }
        if (untold_ > next_ - ended_) untold_ = next_ - ended_;
    }
    /// Nothing of it will be told.
    template <class Each>
    void end_all(Each each) {
        while (ended_ != next_) each(entries_[ended_++ & (depth_ - 1)]);
        untold_ = 0;
    }
    /// What was pushed from `position` on has not reached the device.
    template <class Each>
    void take_back(uint32_t position, Each each) {
        while (next_ != position) each(entries_[--next_ & (depth_ - 1)]);
        untold_ = 0;
    }

  private:
    std::unique_ptr<Sent[]> entries_;
    uint32_t depth_ = 0, next_ = 0, ended_ = 0, untold_ = 0;
};

}  // namespace starling::verbs
