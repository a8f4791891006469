// Awaitables of algorithms that send by multicast: for space in the group, and for a message that arrives by multicast or
// from a participant, as its sender chooses.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "collective/core/buffers.h"
#include "collective/core/multicast_sender.h"
#include "collective/core/view.h"
#include "progress/flag_wait.h"

namespace starling::collective {

using progress::RequestDone;

/// Awaits space in the multicast group, but at most `patience_ns`.
class SpaceAwaiter {
  public:
    SpaceAwaiter(const Cast& cast, uint64_t bytes, uint64_t patience_ns)
        : cast_(cast), bytes_(bytes), patience_ns_(patience_ns) {}
    SpaceAwaiter(const SpaceAwaiter&) = delete;
    bool await_ready() const { return !cast_.is_full(bytes_); }
    void await_suspend(std::coroutine_handle<> waiter) {
        until_ = now_ns() + patience_ns_;
        wait_.waiter = waiter;
        progress::await_flags(wait_);
    }
    void await_resume() const {}

  private:
    static bool is_over(void* self) {
        const auto& room = *static_cast<SpaceAwaiter*>(self);
        return !room.cast_.is_full(room.bytes_) || now_ns() >= room.until_;
    }

    const Cast& cast_;
    const uint64_t bytes_, patience_ns_;
    uint64_t until_ = 0;
    progress::FlagWait wait_{{}, is_over, this};
};

/// Receives a message that its sender sends by multicast, or of which `parent` sends the first `first_bytes` bytes, whichever arrives first.
/// Start it, await it, pass the result to end(). It must not be destroyed between start() and end().
class EitherReceive {
  public:
    struct ReceiveSource {
        int sender, parent;  ///< ranks of the view
        uint64_t call;       ///< number of the multicast message
    };
    EitherReceive(View& view, std::byte* data, uint64_t bytes, uint64_t first_bytes, const ReceiveSource& source)
        : view_(view), data_(data), bytes_(bytes), first_bytes_(first_bytes), source_(source) {}
    EitherReceive(const EitherReceive&) = delete;

    void start() {
        view_.cast->start_receive(group_, source_.sender, source_.call, data_, bytes_);
        if (group_.done) return;
        view_.start(message_, data_, static_cast<int64_t>(first_bytes_), byte_type(), source_.parent);
        has_message_ = true;
    }

    bool await_ready() const { return group_.done || message_.done; }
    void await_suspend(std::coroutine_handle<> waiter) {
        // Both requests share one counter. The request that completes first brings it to 0 and resumes the waiter; the second one wraps it
        // around, which resumes nothing.
        for (progress::Request* request :
             {static_cast<progress::Request*>(&group_), static_cast<progress::Request*>(&message_)}) {
            request->waiter = waiter;
            request->open_in_group = &open_;
        }
    }
    enum class By { group, parent, coming };
    /// Returns how the message arrived. `coming`: the multicast has ended while the parent's message is arriving; await parent(), then
    /// treat the result as `parent`.
    By await_resume() {
        if (has_message_ && message_.done) return By::parent;
        if (!has_message_ || view_.exchange->withdraw(message_)) return By::group;
        message_.waiter = nullptr;
        message_.open_in_group = nullptr;
        return By::coming;
    }
    RequestDone parent() { return {message_}; }

    /// Notes the error of the receive that completed, and ends the other one. Returns whether the data has arrived.
    bool end(By by) {
        if (by == By::group) return end_by_group();
        view_.finish(message_, first_bytes_);
        const bool whole = message_.outcome.error == MPI_SUCCESS && message_.outcome.bytes == first_bytes_;
        if (!group_.done) whole ? (void)view_.cast->withdraw(group_) : view_.cast->refuse(group_);
        return whole;
    }
    /// Returns whether the multicast has failed.
    bool group_failed() const { return group_.done && group_.outcome.error != MPI_SUCCESS; }

  private:
    bool end_by_group() {
        if (group_.outcome.error != MPI_SUCCESS)
            view_.note(progress::error_of(group_));
        else if (group_.outcome.bytes != bytes_)
            view_.note(view_.wrong_length(group_.outcome.bytes, bytes_));
        else
            return true;
        return false;
    }

    View& view_;
    std::byte* const data_;
    const uint64_t bytes_, first_bytes_;
    const ReceiveSource source_;
    multicast::MulticastReceive group_;
    message::ReceiveRequest message_;
    uint32_t open_ = 1;
    bool has_message_ = false;
};

}  // namespace starling::collective
