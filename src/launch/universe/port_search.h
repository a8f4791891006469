// The strategy by which a host agent finds the ports of a job's ranks on other hosts. It asks single hosts while they are few, and requests
// the whole table when they are many.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace starling::launch {

/// The search for one job. Its functions return what to send, but send nothing. Hosts are indices in the job's host table.
///
/// A lookup costs two frames on each connection between the two daemons, and most lookups pass the root. The table of all ports costs one
/// frame on each connection of the tree, and a few bytes per rank. So a program whose processes communicate with few hosts never causes the
/// table. A program that communicates with all of them looks up a few hosts and then gets the table.
class PortSearch {
  public:
    /// Maximum number of hosts that are looked up one by one. Exceeds the neighbors in a two-dimensional grid.
    static constexpr size_t kFewHosts = 8;

    /// Begins a search in a job of `hosts` hosts.
    explicit PortSearch(uint32_t hosts);

    /// Registers that a rank of this host wants the port of `rank`.
    void want(uint32_t host, uint32_t rank);

    struct SearchStep {
        std::vector<uint32_t> lookups;  ///< one rank of each host to ask
        bool table = false;             ///< true: the table of all ports must be requested from the root
    };
    /// Returns the next messages to send. To be called after any of the other functions.
    SearchStep next();

    /// Records that the host has answered the lookup of this rank.
    void answered(uint32_t host, uint32_t rank);
    /// Records that the table has arrived, perhaps with gaps.
    void on_table();
    /// Remove and return the wanted ranks without an open lookup for which `known` is true; on one host, or on all hosts.
    std::vector<uint32_t> settle(uint32_t host, const std::function<bool(uint32_t)>& known);
    std::vector<uint32_t> settle(const std::function<bool(uint32_t)>& known);
    void forget(uint32_t host, uint32_t rank);
    void forget_all();

    /// Allows further lookups while earlier ones are unanswered. A host answers late if the rank in question has not reached MPI_Init, and
    /// other lookups need not wait for it.
    void start_more();
    /// Returns whether wanted lookups are delayed until start_more() is called.
    bool held_back() const;

    uint32_t lookups() const { return lookups_; }
    uint32_t tables() const { return tables_; }

  private:
    struct Host {
        std::set<uint32_t> wanted;  ///< wanted ranks without an open lookup
        std::set<uint32_t> open;    ///< ranks whose lookup has no answer yet
    };
    size_t idle_hosts() const;
    void drop_if_empty(uint32_t host);

    std::map<uint32_t, Host> hosts_;
    std::set<uint32_t> met_;  ///< hosts of all ranks that were ever wanted; at most kFewHosts + 1 are stored
    uint32_t window_, most_, open_ = 0;
    uint32_t lookups_ = 0, tables_ = 0;
    bool table_wanted_ = false;
};

}  // namespace starling::launch
