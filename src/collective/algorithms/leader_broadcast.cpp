#include "collective/algorithms/leader_broadcast.h"

#include <algorithm>

#include "base/clock.h"
#include "collective/core/binomial.h"
#include "collective/core/buffers.h"
#include "progress/flag_wait.h"

namespace starling::collective {

namespace {

/// Messages longer than kWhole bytes are sent down the tree in segments of kSegment bytes.
constexpr uint64_t kWhole = 128 * 1024, kSegment = kWhole / 2;

struct Done {
    progress::Request& request;
    bool await_ready() const { return request.done; }
    void await_suspend(std::coroutine_handle<> waiter) const { request.waiter = waiter; }
    void await_resume() const {}
};

/// Awaits space in the multicast group, but at most 5 ms. Members that do not poll acknowledge nothing, and may not poll before this
/// operation has completed, so a longer wait is unlikely to pay.
class SpaceAwaiter {
  public:
    SpaceAwaiter(const Cast& cast, uint64_t bytes) : cast_(cast), bytes_(bytes) {}
    SpaceAwaiter(const SpaceAwaiter&) = delete;
    bool await_ready() const { return !cast_.is_full(bytes_); }
    void await_suspend(std::coroutine_handle<> waiter) {
        until_ = now_ns() + kPatienceNs;
        wait_.waiter = waiter;
        progress::await_flags(wait_);
    }
    void await_resume() const {}

  private:
    static constexpr uint64_t kPatienceNs = 5'000'000;
    static bool is_over(void* self) {
        const auto& room = *static_cast<SpaceAwaiter*>(self);
        return !room.cast_.is_full(room.bytes_) || now_ns() >= room.until_;
    }

    const Cast& cast_;
    const uint64_t bytes_;
    uint64_t until_ = 0;
    progress::FlagWait wait_{{}, is_over, this};
};

/// The tree by which the message is sent if multicast is not used.
class BroadcastDown {
  public:
    BroadcastDown(const View& v, int root, uint64_t bytes) : binomial_(v, root), bytes_(bytes) {
        if (segments() > 1)
            for (int child = 2 * binomial_.relative + 1; child <= 2 * binomial_.relative + 2 && child < v.n; ++child)
                children_[count_++] = (child + root) % v.n;
        else
            binomial_.each_child([&](int child) { children_[count_++] = child; });
        parent_ = segments() > 1 ? ((binomial_.relative - 1) / 2 + root) % v.n : binomial_.parent();
    }
    bool is_root() const { return binomial_.is_root(); }
    int parent() const { return parent_; }
    int children() const { return count_; }
    int child(int i) const { return children_[i]; }
    uint64_t segments() const { return bytes_ <= kWhole ? 1 : (bytes_ + kSegment - 1) / kSegment; }
    uint64_t begin(uint64_t segment) const { return segment * kSegment; }
    uint64_t length(uint64_t segment) const { return segments() == 1 ? bytes_ : std::min(kSegment, bytes_ - begin(segment)); }

  private:
    const Binomial binomial_;
    const uint64_t bytes_;
    int parent_ = 0, count_ = 0;
    int children_[32];
};

/// Waits for the message from the root by multicast and for its first segment from the parent in the tree, whichever arrives first.
class FromEither {
  public:
    FromEither(View& view, const BroadcastDown& way, std::byte* data, uint64_t bytes, int root)
        : view_(view), way_(way), data_(data), bytes_(bytes), root_(root) {}
    FromEither(const FromEither&) = delete;

    bool await_ready() {
        view_.cast->start_receive(group_, root_, static_cast<uint64_t>(view_.tag), data_, bytes_);
        if (group_.done) return true;
        view_.start(tree_, data_, static_cast<int64_t>(way_.length(0)), byte_type(), way_.parent());
        in_tree_ = true;
        return tree_.done;
    }
    void await_suspend(std::coroutine_handle<> waiter) {
        // Both requests share one counter. The request that completes first brings it to 0 and resumes the waiter; the second one wraps it
        // around, which resumes nothing.
        for (progress::Request* request : {static_cast<progress::Request*>(&group_), static_cast<progress::Request*>(&tree_)}) {
            request->waiter = waiter;
            request->open_in_group = &open_;
        }
    }
    enum class By { group, parent, coming };
    /// Returns how the message arrived. `coming`: the multicast has failed while the parent's message is arriving; await parent(), then
    /// treat the result as `parent`.
    By await_resume() {
        if (in_tree_ && tree_.done) return By::parent;
        if (!in_tree_ || view_.exchange->withdraw(tree_)) return By::group;
        tree_.waiter = nullptr;
        tree_.open_in_group = nullptr;
        return By::coming;
    }
    Done parent() { return {tree_}; }

    /// Notes the error of the receive that completed and, if that was the parent's message, withdraws the multicast receive. Returns
    /// whether later segments follow from the parent.
    bool end(By by) {
        if (by == By::group) return end_by_group(), false;
        view_.finish(tree_, way_.length(0));
        const bool whole = tree_.outcome.error == MPI_SUCCESS && tree_.outcome.bytes == way_.length(0);
        if (!group_.done) whole ? (void)view_.cast->withdraw(group_) : view_.cast->refuse(group_);
        return whole;
    }

  private:
    /// Ends a receive by multicast. After a failed multicast the parent may still send its segments, which are then discarded.
    void end_by_group() {
        if (group_.outcome.error != MPI_SUCCESS) {
            view_.note(progress::error_of(group_));
            for (uint64_t i = 0; i < way_.segments(); ++i)
                view_.exchange->throw_away(way_.length(i), view_.participant(way_.parent()), view_.tag);
        } else if (group_.outcome.bytes != bytes_) {
            view_.note(view_.wrong_length(group_.outcome.bytes, bytes_));
        }
    }

    View& view_;
    const BroadcastDown& way_;
    std::byte* const data_;
    const uint64_t bytes_;
    const int root_;
    multicast::MulticastReceive group_;
    message::ReceiveRequest tree_;
    uint32_t open_ = 1;
    bool in_tree_ = false;
};

/// Sends a message down the tree, beginning with the first segment, which has arrived; later segments come from the parent. With an error,
/// sends error markers in place of the first segment, and nothing afterwards.
Task descend(View v, const BroadcastDown& way, std::byte* data, bool receives) {
    const bool sends = v.error == MPI_SUCCESS;
    for (uint64_t i = 0; i < way.segments(); ++i) {
        const bool more = receives && i + 1 < way.segments();
        RequestGroup both(v, way.children(), more);
        if (sends || i == 0)
            for (int child = 0; child < way.children(); ++child)
                both.send(data + way.begin(i), static_cast<int64_t>(way.length(i)), byte_type(), way.child(child));
        if (more) both.receive(data + way.begin(i + 1), static_cast<int64_t>(way.length(i + 1)), byte_type(), way.parent());
        co_await both;
    }
    co_return v.error;
}

}  // namespace

Task leader_broadcast(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    PackedBuffer packed(buffer, count, type);
    const BroadcastDown way(v, root, packed.bytes());
    if (way.is_root()) {
        packed.load();
        multicast::MulticastSend send;
        if (v.error == MPI_SUCCESS) co_await SpaceAwaiter(*v.cast, packed.bytes());
        // If this rank has an error, it skips the multicast, because only the tree carries error markers.
        if (v.error == MPI_SUCCESS && v.cast->start_send(send, static_cast<uint64_t>(v.tag), packed.data(), packed.bytes())) {
            co_await Done{send};
            v.note(progress::error_of(send));
            co_return v.error;
        }
        co_return co_await descend(v, way, packed.data(), false);
    }
    const bool had_error = v.error != MPI_SUCCESS;
    FromEither either(v, way, packed.data(), packed.bytes(), root);
    const FromEither::By by = co_await either;
    if (by == FromEither::By::coming) co_await either.parent();
    const bool more = either.end(by);
    if (by != FromEither::By::group || v.error != MPI_SUCCESS) v.note(co_await descend(v, way, packed.data(), more));
    if (v.error == MPI_SUCCESS && !had_error) packed.store();
    co_return v.error;
}

}  // namespace starling::collective
