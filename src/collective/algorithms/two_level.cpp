// Two-level algorithms, for communicators on several hosts: through shared memory within each host, and over the network between one
// process of each host. So every byte crosses the network once per host. The steps are other algorithms on views of some participants. They
// share one tag: between two processes, the order of the messages is the order of the steps.
#include "collective/algorithms.h"
#include "collective/algorithms/host_blocks.h"
#include "collective/algorithms/intra_node.h"
#include "collective/collective.h"
#include "collective/core/leaders.h"

namespace starling::collective {

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
    HostBlocks all(v, hosts, blocks);
    View node = v.of(hosts.mine, hosts.my_place);
    node.note(co_await all.collect(node));
    if (hosts.leads())
        node.note(co_await allgather(between(v, hosts.leaders, hosts, node.error), MPI_IN_PLACE, 0, byte_type(), all.parts()));
    co_return co_await all.distribute(node);
}

}  // namespace starling::collective
