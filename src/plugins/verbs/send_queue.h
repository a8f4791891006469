// Work requests posted to a queue pair and not yet completed. A queue's work completes in order, so one completion stands for all before
// it. Therefore most requests are unsignaled. A request is signaled if a caller waits for it, if it holds a buffer, or if kUntold - 1
// unsignaled ones precede it.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace starling::verbs {

inline constexpr uint32_t kNoBuffer = ~0u;

/// One posted work request. An entry takes 16 bytes.
struct PostedWork {
    uint64_t token = 0;
    uint32_t buffer = kNoBuffer;
    bool transfer = false;  ///< RDMA or an atomic operation, not a frame or datagram
    bool quiet = false;
};

class SendQueue {
  public:
    static constexpr uint32_t kUntold = 16;

    /// `depth`: a power of two, more than 2 * kUntold.
    bool make(uint32_t depth) {
        entries_.reset(new (std::nothrow) PostedWork[depth]);
        depth_ = depth;
        return entries_ != nullptr;
    }
    uint32_t depth() const { return depth_; }
    bool full() const { return next_ - ended_ == depth_; }
    bool empty() const { return next_ == ended_; }
    uint32_t next() const { return next_; }
    /// Returns whether the last pending request is unsignaled.
    bool ends_unsignaled() const { return unsignaled_ > 0; }

    /// Adds an entry; returns whether its request must be signaled.
    bool push(const PostedWork& sent) {
        entries_[next_++ & (depth_ - 1)] = sent;
        const bool told = sent.buffer != kNoBuffer || (sent.transfer && !sent.quiet) || unsignaled_ + 1 >= kUntold;
        unsignaled_ = told ? 0 : unsignaled_ + 1;
        return told;
    }
    /// Completes the entry at `position` and all before it. Calls each(entry, whether it is the one at `position`).
    template <class Each>
    void end(uint32_t position, Each each) {
        if (position - ended_ >= next_ - ended_) return;  // the completion belongs to an earlier queue pair
        while (ended_ != position + 1) {
            const PostedWork sent = entries_[ended_ & (depth_ - 1)];
            const bool last = ended_++ == position;
            each(sent, last);
        }
        if (unsignaled_ > next_ - ended_) unsignaled_ = next_ - ended_;
    }
    /// Completes all entries, because the device will report no completions for them.
    template <class Each>
    void end_all(Each each) {
        while (ended_ != next_) each(entries_[ended_++ & (depth_ - 1)]);
        unsignaled_ = 0;
    }
    /// Removes the entries from `position` on, which the device has not accepted.
    template <class Each>
    void remove_from(uint32_t position, Each each) {
        while (next_ != position) each(entries_[--next_ & (depth_ - 1)]);
        unsignaled_ = 0;
    }

  private:
    std::unique_ptr<PostedWork[]> entries_;
    uint32_t depth_ = 0, next_ = 0, ended_ = 0, unsignaled_ = 0;
};

}  // namespace starling::verbs
