// The map of participants to hosts, for two-level algorithms: first within hosts, then between them.
#pragma once

#include <vector>

namespace starling::collective {

/// The hosts of all participants of the local side of an exchange (all of an intra-communicator). There are at least two hosts, one of them
/// with several participants. Hosts are numbered in the order of their lowest participants, which are their leaders. All participants have
/// the same map, except for the members about this process.
struct HostMap {
    std::vector<int> leaders;  ///< lowest participant of each host; ascending
    std::vector<int> mine;     ///< participants on the host of this process, ascending
    int my_host = 0;
    int my_place = 0;        ///< index of this process in `mine`
    bool contiguous = true;  ///< whether each host's participants have consecutive numbers

    int host_of(int participant) const;
    bool leads() const { return my_place == 0; }
    /// Returns a participant's index in `mine`.
    int place_of(int participant) const;

    std::vector<int> hosts;  ///< host numbers by participant, counted from `base`; filled only if not contiguous
    int base = 0;            ///< first participant of the side
};

/// Builds the map of a side from a host identity for each of its participants; `me` counts from `base`. Returns empty `leaders` if two
/// levels make no sense: all are on one host, or each has its own.
HostMap make_host_map(const std::vector<int>& host_identity, int base, int me);

}  // namespace starling::collective
