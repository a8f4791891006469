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
    if (hosts.leads()) error = run(collective::barrier(between(v, hosts.leaders, hosts, error)), part.sync().label());
    if (error == MPI_SUCCESS || !hosts.leads()) return first_of(error, node::release(part, hosts.my_place));
    node::give_up(part, 0);
    return error;
}

int bcast(Node& part, View v, void* buffer, int64_t count, const Datatype& type, int root) {
    const HostMap& hosts = *v.exchange->hosts();
    const Tops tops(v, hosts, root);
    if (tops.is_top) {
        const int error =
            run(collective::bcast(between(v, tops.list, hosts), buffer, count, type, tops.root_host), part.sync().label());
        if (error != MPI_SUCCESS) {
            node::give_up(part, tops.place);
            return error;
        }
    }
    return node::bcast(part, tops.place, !tops.is_top, buffer, count, type);
}

int reduce(Node& part, View v, const void* input, void* receive, int64_t count, const Datatype& type, const datatype::Op& op,
           int root) {
    if (count == 0) return MPI_SUCCESS;
    const HostMap& hosts = *v.exchange->hosts();
    const Tops tops(v, hosts, root);
    Temporary partial;
    void* value = receive;
    if (tops.is_top && v.me != root) {
        partial = Temporary(type, count);
        value = partial.data();
    }
    const int error = node::reduce(part, tops.place, everyone(hosts), input, value, count, type, op);
    if (!tops.is_top) return error;
    const void* mine = v.me == root ? MPI_IN_PLACE : value;
    return run(collective::reduce(between(v, tops.list, hosts, error), mine, receive, count, type, op, tops.root_host),
               part.sync().label());
}

int allreduce(Node& part, View v, const void* input, void* receive, int64_t count, const Datatype& type,
              const datatype::Op& op) {
    if (count == 0) return MPI_SUCCESS;
    const HostMap& hosts = *v.exchange->hosts();
    int error = node::reduce(part, 0, everyone(hosts), input, receive, count, type, op);
    if (hosts.leads()) {
        error = run(collective::allreduce(between(v, hosts.leaders, hosts, error), MPI_IN_PLACE, receive, count, type, op),
                    part.sync().label());
        if (error != MPI_SUCCESS) {
            node::give_up(part, 0);
            return error;
        }
    }
    return first_of(error, node::bcast(part, 0, !hosts.leads(), receive, count, type));
}

}  // namespace starling::collective::two_level
