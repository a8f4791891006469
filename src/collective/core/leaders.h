// The processes that represent their hosts in two-level algorithms.
#pragma once

#include <vector>

#include "collective/core/host_map.h"
#include "collective/core/view.h"

namespace starling::collective {

/// One process per host: the root on its own host, the leader on each other host.
struct Tops {
    std::vector<int> list;
    /// Number of the root's host; index, among the participants on this host, of the process that represents it.
    int root_host, place;
    bool is_top;

    Tops(const View& v, const HostMap& hosts, int root)
        : list(hosts.leaders), root_host(hosts.host_of(v.participant(root))), place(0) {
        list[static_cast<size_t>(root_host)] = v.participant(root);
        if (hosts.my_host == root_host) place = hosts.place_of(v.participant(root));
        is_top = hosts.my_place == place;
    }
};

/// Returns the view of one process per host. `error`: this host's error from the step within the host, which the view starts with. `list`
/// must outlive the view.
inline View between(const View& v, const std::vector<int>& list, const HostMap& hosts, int error = MPI_SUCCESS) {
    View view = v.of(list, hosts.my_host);
    view.network = true;
    if (&list == &hosts.leaders) view.cast = v.exchange->cast(v.tag);
    view.note(error);
    return view;
}

}  // namespace starling::collective
