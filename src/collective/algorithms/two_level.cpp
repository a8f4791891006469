// Two-level algorithms, for communicators on several hosts: through shared memory within each host, and over the network between one
// process of each host. So every byte crosses the network once per host. The steps are other algorithms on views of some participants. They
// share one tag: between two processes, the order of the messages is the order of the steps.
#include <numeric>

#include "collective/algorithms.h"
#include "collective/algorithms/intra_node.h"
#include "collective/collective.h"
#include "collective/core/leaders.h"

namespace starling::collective {

namespace {

/// Offsets in one buffer that holds all packed blocks: blocks of a host lie together, hosts in order.
struct PackedByHost {
    std::vector<int64_t> begin, bytes;  ///< offset and size of each host's blocks
    std::vector<int64_t> at;            ///< offset of each rank's block

    PackedByHost(const View& v, const HostMap& hosts, const Blocks& blocks)
        : begin(hosts.leaders.size()), bytes(hosts.leaders.size()), at(static_cast<size_t>(v.n)) {
        for (int i = 0; i < v.n; ++i) {
            int64_t& sum = bytes[static_cast<size_t>(hosts.host_of(v.participant(i)))];
            at[static_cast<size_t>(i)] = sum;
            sum += static_cast<int64_t>(blocks.bytes(i));
        }
        std::exclusive_scan(bytes.begin(), bytes.end(), begin.begin(), int64_t{0});
        for (int i = 0; i < v.n; ++i) at[static_cast<size_t>(i)] += begin[static_cast<size_t>(hosts.host_of(v.participant(i)))];
    }
    int64_t total() const { return begin.back() + bytes.back(); }
};

}  // namespace

Task barrier_two_level(View v) {
    const HostMap& hosts = *v.exchange->hosts();
    WithinHost host(v, CollectiveKind::barrier);
    v.note(co_await host.arrive());
    if (hosts.leads()) v.note(co_await barrier(between(v, hosts.leaders, hosts)));
    v.note(co_await host.release(v.error));
    co_return v.error;
}

Task bcast_two_level(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    const HostMap& hosts = *v.exchange->hosts();
    WithinHost host(v, CollectiveKind::bcast, datatype::packed_size(type, count));
    if (v.exchange->cast(v.tag)) {
        // Only leaders can multicast, so the root first passes the data to its host's leader. The root's host broadcasts before the step
        // between leaders, the other hosts after it.
        const bool mine_has_root = hosts.my_host == hosts.host_of(v.participant(root));
        const int place = mine_has_root ? hosts.place_of(v.participant(root)) : 0;
        const bool handed_over = mine_has_root && place != 0;
        if (handed_over) v.note(co_await host.bcast(v.error, place, buffer, count, type));
        if (hosts.leads())
            v.note(co_await bcast(between(v, hosts.leaders, hosts), buffer, count, type, hosts.host_of(v.participant(root))));
        if (!handed_over) v.note(co_await host.bcast(v.error, place, buffer, count, type));
        co_return v.error;
    }
    const Tops tops(v, hosts, root);
    if (tops.is_top) v.note(co_await bcast(between(v, tops.list, hosts), buffer, count, type, tops.root_host));
    co_return co_await host.bcast(v.error, tops.place, buffer, count, type);
}

Task reduce_two_level(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    const HostMap& hosts = *v.exchange->hosts();
    const Tops tops(v, hosts, root);
    Temporary partial;
    void* value = receive;
    if (tops.is_top && v.me != root) {
        partial = Temporary(type, count);
        value = partial.data();
    }
    {
        WithinHost host(v, CollectiveKind::reduce, datatype::packed_size(type, count), op.commutative);
        v.note(co_await host.reduce(send, value, count, type, op, tops.place));
    }
    if (!tops.is_top) co_return v.error;
    const void* input = v.me == root ? MPI_IN_PLACE : value;
    co_return co_await reduce(between(v, tops.list, hosts), input, receive, count, type, op, tops.root_host);
}

Task allreduce_two_level(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    const HostMap& hosts = *v.exchange->hosts();
    WithinHost host(v, CollectiveKind::allreduce, datatype::packed_size(type, count), op.commutative);
    const void* input = hosts.leads() ? send : input_of(send, receive);
    v.note(co_await host.reduce(input, receive, count, type, op, 0));
    if (hosts.leads()) v.note(co_await allreduce(between(v, hosts.leaders, hosts), MPI_IN_PLACE, receive, count, type, op));
    co_return co_await host.bcast(v.error, 0, receive, count, type);
}

Task allgather_two_level(View v, Blocks blocks) {
    const HostMap& hosts = *v.exchange->hosts();
    const PackedByHost packed(v, hosts, blocks);
    Temporary room(static_cast<uint64_t>(packed.total()));
    const auto place = [&](int rank) { return room.data() + packed.at[static_cast<size_t>(rank)]; };
    const auto bytes = [&](int rank) { return static_cast<int64_t>(blocks.bytes(rank)); };
    datatype::pack(blocks.type(v.me), blocks.count(v.me), blocks.at(v.me), 0, place(v.me), blocks.bytes(v.me));

    View node = v.of(hosts.mine, hosts.my_place);
    if (hosts.leads()) {
        RequestGroup receives(node, 0, node.n);
        for (int i = 1; i < node.n; ++i) {
            const int rank = hosts.mine[static_cast<size_t>(i)] - v.base;
            receives.receive(place(rank), bytes(rank), byte_type(), i);
        }
        co_await receives;
        const View leaders = between(v, hosts.leaders, hosts, node.error);
        const Blocks parts(room.data(), Counts(packed.bytes.data()), Counts(packed.begin.data()), byte_type());
        node.note(co_await allgather(leaders, MPI_IN_PLACE, 0, byte_type(), parts));
    } else {
        co_await node.send(place(v.me), bytes(v.me), byte_type(), 0);
    }
    const int error = co_await bcast(node, room.data(), packed.total(), byte_type(), 0);
    for (int i = 0; i < v.n && error == MPI_SUCCESS; ++i)
        if (i != v.me) datatype::unpack(blocks.type(i), blocks.count(i), blocks.at(i), 0, place(i), blocks.bytes(i));
    co_return error;
}

}  // namespace starling::collective
