#include "collective/two_level_node.h"

#include "collective/collective.h"
#include "collective/node_operations.h"
#include "collective/request.h"
#include "collective/tops.h"

namespace starling::collective::two_level {

namespace {

node::Range everyone(const HostMap& hosts) { return {0, static_cast<int>(hosts.mine.size())}; }

int first_of(int error, int next) { return error != MPI_SUCCESS ? error : next; }

}  // namespace

int barrier(Node& part, View v) {
    const HostMap& hosts = *v.exchange->hosts();
    int error = node::arrive(part, everyone(hosts).last);
    if (hosts.leads()) error = first_of(error, run(collective::barrier(between(v, hosts.leaders, hosts))));
    return first_of(error, node::release(part, hosts.my_place));
}

int bcast(Node& part, View v, void* buffer, int64_t count, const Datatype& type, int root) {
    const HostMap& hosts = *v.exchange->hosts();
    const Tops tops(v, hosts, root);
    int error = MPI_SUCCESS;
    if (tops.is_top)
        error = run(collective::bcast(between(v, tops.list, hosts), buffer, count, type, tops.root_host));
    return first_of(error, node::bcast(part, tops.place, !tops.is_top, buffer, count, type));
}

int reduce(Node& part, View v, const void* input, void* receive, int64_t count, const Datatype& type,
           const datatype::Op& op, int root) {
    const HostMap& hosts = *v.exchange->hosts();
    const Tops tops(v, hosts, root);
    Temporary partial;
    void* value = receive;
    if (tops.is_top && v.me != root) {
        partial = Temporary(type, count);
        value = partial.data();
    }
    const int error = count == 0 ? MPI_SUCCESS
                                 : node::reduce(part, tops.place, everyone(hosts), input, value, count, type, op);
    if (!tops.is_top) return error;
    const void* mine = v.me == root ? MPI_IN_PLACE : value;
    return first_of(
        error, run(collective::reduce(between(v, tops.list, hosts), mine, receive, count, type, op, tops.root_host)));
}

int allreduce(Node& part, View v, const void* input, void* receive, int64_t count, const Datatype& type,
              const datatype::Op& op) {
    if (count == 0) return MPI_SUCCESS;
    const HostMap& hosts = *v.exchange->hosts();
    int error = node::reduce(part, 0, everyone(hosts), input, receive, count, type, op);
    if (hosts.leads())
        error = first_of(error, run(collective::allreduce(between(v, hosts.leaders, hosts), MPI_IN_PLACE, receive,
                                                          count, type, op)));
    return first_of(error, node::bcast(part, 0, !hosts.leads(), receive, count, type));
}

}  // namespace starling::collective::two_level
