// Collectives between the groups of an inter-communicator. Rank 0 of each side is its leader where one is needed.
#include <vector>

#include "collective/algorithms.h"
#include "collective/collective.h"

namespace starling::collective::inter {

namespace {

int remote(const View& v, int rank) { return v.exchange->remote_base + rank; }
int remote_leader(const View& v) { return v.exchange->remote_base; }

}  // namespace

// The standard requires that no process leaves before all of the other side have entered. A barrier among all participants satisfies that.
Task barrier(View v) { return barrier_dissemination(v); }

Task bcast(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    if (root == MPI_PROC_NULL) co_return v.error;
    if (root == MPI_ROOT) {
        co_await v.send(buffer, count, type, remote_leader(v));
        co_return v.error;
    }
    View side = v.local();
    if (side.me == 0) co_await v.receive(buffer, count, type, remote(v, root));
    side.error = v.error;
    co_return co_await collective::bcast(side, buffer, count, type, 0);
}

Task reduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    if (root == MPI_PROC_NULL) co_return v.error;
    if (root == MPI_ROOT) {
        co_await v.receive(receive, count, type, remote_leader(v));
        co_return v.error;
    }
    View side = v.local();
    Temporary result;
    if (side.me == 0) result = Temporary(type, count);
    v.note(co_await collective::reduce(side, send, result.data(), count, type, op, 0));
    if (side.me == 0) co_await v.send(result.data(), count, type, remote(v, root));
    co_return v.error;
}

Task allreduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    View side = v.local();
    Temporary result;
    if (side.me == 0) result = Temporary(type, count);
    v.note(co_await collective::reduce(side, send, result.data(), count, type, op, 0));
    if (side.me == 0)
        co_await v.send_receive(result.data(), count, type, remote_leader(v), receive, count, type, remote_leader(v));
    side.error = v.error;
    co_return co_await collective::bcast(side, receive, count, type, 0);
}

Task gather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root) {
    if (root == MPI_PROC_NULL) co_return v.error;
    if (root != MPI_ROOT) {
        co_await v.send(send, count, type, remote(v, root));
        co_return v.error;
    }
    const int n = v.exchange->remote_size;
    RequestGroup receives(v, 0, n);
    for (int i = 0; i < n; ++i) receives.receive(receive.at(i), receive.count(i), receive.type(i), remote(v, i));
    co_await receives;
    co_return v.error;
}

Task scatter(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root) {
    if (root == MPI_PROC_NULL) co_return v.error;
    if (root != MPI_ROOT) {
        co_await v.receive(receive, count, type, remote(v, root));
        co_return v.error;
    }
    const int n = v.exchange->remote_size;
    RequestGroup sends(v, n, 0);
    for (int i = 0; i < n; ++i) sends.send(send.at(i), send.count(i), send.type(i), remote(v, i));
    co_await sends;
    co_return v.error;
}

Task allgather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive) {
    // Every process sends its block to the other side's leader. That leader knows each block's size, and broadcasts them all in packed
    // form.
    View side = v.local();
    const int n = v.exchange->remote_size;
    uint64_t bytes = 0;
    for (int i = 0; i < n; ++i) bytes += receive.bytes(i);
    Temporary room(bytes);
    RequestGroup group(v, 1, side.me == 0 ? n : 0);
    if (side.me == 0) {
        uint64_t at = 0;
        for (int i = 0; i < n; ++i) {
            group.receive(room.data() + at, static_cast<int64_t>(receive.bytes(i)), byte_type(), remote(v, i));
            at += receive.bytes(i);
        }
    }
    group.send(send, count, type, remote_leader(v));
    co_await group;
    side.error = v.error;
    v.note(co_await collective::bcast(side, room.data(), static_cast<int64_t>(bytes), byte_type(), 0));
    uint64_t at = 0;
    for (int i = 0; i < n; ++i) {
        datatype::unpack(receive.type(i), receive.count(i), receive.at(i), 0, room.data() + at, receive.bytes(i));
        at += receive.bytes(i);
    }
    co_return v.error;
}

Task alltoall(View v, Blocks send, Blocks receive) {
    const int n = v.exchange->remote_size;
    RequestGroup group(v, n, n);
    for (int i = 0; i < n; ++i) group.receive(receive.at(i), receive.count(i), receive.type(i), remote(v, i));
    // Start at this rank's own number, so that not all ranks send to rank 0 first.
    const int mine = v.me - v.exchange->local_base;
    for (int i = 0; i < n; ++i) {
        const int to = (mine + i) % n;
        group.send(send.at(to), send.count(to), send.type(to), remote(v, to));
    }
    co_await group;
    co_return v.error;
}

Task reduce_scatter(View v, const void* send, void* receive, Shares shares, const Datatype& type, const Op& op) {
    View side = v.local();
    const int64_t count = shares.total(side.n), share = shares[side.me];
    Temporary result, mine;
    std::vector<int64_t> counts, offsets;
    if (side.me == 0) {
        result = Temporary(type, count);
        mine = Temporary(type, count);
        for (int i = 0; i < side.n; ++i) {
            offsets.push_back(i == 0 ? 0 : offsets.back() + counts.back());
            counts.push_back(shares[i]);
        }
    }
    v.note(co_await collective::reduce(side, send, mine.data(), count, type, op, 0));
    if (side.me == 0)
        co_await v.send_receive(mine.data(), count, type, remote_leader(v), result.data(), count, type, remote_leader(v));
    side.error = v.error;
    const Blocks blocks(result.data(), Counts(counts.data()), Counts(offsets.data()), type);
    co_return co_await scatter_linear(side, blocks, receive, share, type, 0);
}

}  // namespace starling::collective::inter
