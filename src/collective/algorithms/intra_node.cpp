#include "collective/algorithms/intra_node.h"

#include "collective/collective.h"
#include "collective/core/buffers.h"
#include "collective/shm/operations.h"

namespace starling::collective {

namespace {

bool fits(CollectiveKind kind, int n, uint64_t bytes, bool commutative) {
    CallParameters within{kind, n, bytes, commutative};
    within.node = true;
    return can_serve(*algorithm_of(kind, 0), within);
}

}  // namespace

WithinHost::WithinHost(const View& v, CollectiveKind kind, uint64_t bytes, bool commutative)
    : all_(v),
      hosts_(*v.exchange->hosts()),
      stage_(fits(kind, static_cast<int>(hosts_.mine.size()), bytes, commutative) ? v.stage : nullptr),
      turn_(stage_ ? QueueTurn(stage_->turns()) : QueueTurn()) {}

View WithinHost::view(int error) const {
    View mine = all_.of(hosts_.mine, hosts_.my_place);
    mine.note(error);
    return mine;
}

Task WithinHost::arrive() {
    if (stage_) {
        co_await turn_;
        co_return co_await node::arrive(stage());
    }
    View mine = view(MPI_SUCCESS);
    if (!hosts_.leads()) {
        co_await mine.send(nullptr, 0, byte_type(), 0);
        co_return mine.error;
    }
    RequestGroup all(mine, 0, mine.n);
    for (int i = 1; i < mine.n; ++i) all.receive(nullptr, 0, byte_type(), i);
    co_await all;
    co_return mine.error;
}

Task WithinHost::release(FirstError error) {
    if (stage_) {
        if (hosts_.leads() && error != MPI_SUCCESS)
            co_await node::abandon(stage(), 0, error);
        else
            error.note(co_await node::release(stage()));
        co_return error;
    }
    View mine = view(error);
    if (!hosts_.leads()) {
        co_await mine.receive(nullptr, 0, byte_type(), 0);
        co_return mine.error;
    }
    RequestGroup all(mine, mine.n, 0);
    for (int i = 1; i < mine.n; ++i) all.send(nullptr, 0, byte_type(), i);
    co_await all;
    co_return mine.error;
}

Task WithinHost::bcast(FirstError error, int root, void* buffer, int64_t count, const Datatype& type) {
    if (!stage_) co_return co_await collective::bcast(view(error), buffer, count, type, root);
    const bool is_root = hosts_.my_place == root;
    co_await turn_;
    if (is_root && error != MPI_SUCCESS) {
        co_await node::abandon(stage(), root, error);
        co_return error;
    }
    error.note(co_await node::bcast(stage(), root, !is_root, buffer, count, type));
    co_return error;
}

Task WithinHost::reduce(const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    if (!stage_) co_return co_await collective::reduce(view(MPI_SUCCESS), send, receive, count, type, op, root);
    co_await turn_;
    const node::ParticipantRange everyone{0, static_cast<int>(hosts_.mine.size())};
    co_return co_await node::reduce(stage(), root, everyone, input_of(send, receive), receive, count, type, op);
}

}  // namespace starling::collective
