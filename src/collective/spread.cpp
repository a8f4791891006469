#include "collective/spread.h"

#include "collective/binomial.h"
#include "collective/buffers.h"

namespace starling::collective {

namespace {

struct Done {
    progress::Request& request;
    bool await_ready() const { return request.done; }
    void await_suspend(std::coroutine_handle<> waiter) const { request.waiter = waiter; }
    void await_resume() const {}
};

/// A message that comes from the root through the group, or from the parent.
class FromEither {
  public:
    struct What {
        void* data;
        uint64_t bytes;
        int root, parent;
    };
    FromEither(View& view, const What& what) : view_(view), what_(what) {}
    FromEither(const FromEither&) = delete;

    bool await_ready() {
        view_.cast->start_receive(group_, what_.root, static_cast<uint64_t>(view_.tag), what_.data, what_.bytes);
        if (group_.done) return true;
        view_.start(tree_, what_.data, static_cast<int64_t>(what_.bytes), byte_type(), what_.parent);
        in_tree_ = true;
        return tree_.done;
    }
    void await_suspend(std::coroutine_handle<> waiter) {
        // The first of the two schedules the waiter, the second finds that nobody waits any more.
        for (progress::Request* request : {static_cast<progress::Request*>(&group_), static_cast<progress::Request*>(&tree_)}) {
            request->waiter = waiter;
            request->open_in_group = &open_;
        }
    }
    /// Whether it came from the group.
    bool await_resume() {
        const bool by_group = group_.done && !(in_tree_ && tree_.done && group_.outcome.error != MPI_SUCCESS);
        if (!group_.done) view_.cast->withdraw(group_);
        // Matched it can't be: the root uses one way.
        if (in_tree_ && !tree_.done) view_.exchange->withdraw(tree_);
        if (by_group)
            note_group();
        else
            view_.finish(tree_, what_.bytes);
        return by_group;
    }

  private:
    void note_group() {
        if (group_.outcome.error != MPI_SUCCESS)
            view_.note(progress::error_of(group_));
        else if (group_.outcome.bytes != what_.bytes)
            view_.note(view_.wrong_length(group_.outcome.bytes, what_.bytes));
    }

    View& view_;
    const What what_;
    multicast::Receive group_;
    message::ReceiveRequest tree_;
    uint32_t open_ = 1;
    bool in_tree_ = false;
};

}  // namespace

Task spread(View v, void* buffer, int64_t count, const Datatype& type, int root, bool& by_group) {
    PackedBuffer packed(buffer, count, type);
    const Binomial tree(v, root);
    by_group = false;
    if (tree.is_root()) {
        packed.load();
        multicast::Send send;
        // Who had an error tells it by the length of a message.
        by_group =
            v.error == MPI_SUCCESS && v.cast->start_send(send, static_cast<uint64_t>(v.tag), packed.data(), packed.bytes());
        if (by_group) {
            co_await Done{send};
            v.note(progress::error_of(send));
        }
    } else {
        by_group = co_await FromEither(v, {packed.data(), packed.bytes(), root, tree.parent()});
    }
    if (!by_group) {
        Group sends(v, tree.children(), 0);
        tree.each_child(
            [&](int child) { sends.send(packed.data(), static_cast<int64_t>(packed.bytes()), byte_type(), child); });
        co_await sends;
    }
    if (!tree.is_root() && v.error == MPI_SUCCESS) packed.store();
    co_return v.error;
}

}  // namespace starling::collective
