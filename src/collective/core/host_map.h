// Which participants of a side share a host, for algorithms of two levels: within hosts, and between them.
#pragma once

#include <vector>

namespace starling::collective {

/// Of all participants of my side of an exchange (all of an intra-communicator), on at least two hosts of which one
/// has several. Hosts are numbered in the order of their lowest participants, which lead them. The same for all
/// participants, but for what is about me.
struct HostMap {
    std::vector<int> leaders;  ///< by host: its lowest participant; ascending
    std::vector<int> mine;     ///< participants on my host, ascending
    int my_host = 0;
    int my_place = 0;        ///< mine[my_place] is me
    bool contiguous = true;  ///< each host's participants are consecutive numbers

    int host_of(int participant) const;
    bool leads() const { return my_place == 0; }
    /// A participant's place among those of my host.
    int place_of(int participant) const;

    std::vector<int> hosts;  ///< by participant, from the side's first; only if not contiguous
    int base = 0;            ///< the side's first participant
};

/// Makes the map of a side from a host identity for each of its participants; `me` counts from `base`. Empty leaders:
/// there are no two levels, since all are on one host or each has its own.
HostMap make_host_map(const std::vector<int>& host_identity, int base, int me);

}  // namespace starling::collective
