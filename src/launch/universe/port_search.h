// How a host's daemon finds the ports of a job's ranks elsewhere: one host after the other while they are few, all at
// once when there are many.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace starling::launch {

/// For one job; pure: says what is to be sent, sends nothing. Hosts are entries of the job's host table.
///
/// A lookup costs two frames on each connection between the two daemons, most of which go by the root; the table of all
/// ports costs one on each connection of the tree, and a few bytes per rank. So a program whose processes talk to few
/// hosts never causes the table, and one that talks to all looks up a few hosts and then has everything.
class PortSearch {
  public:
    /// Hosts that are looked up one by one. More than the neighbours in two dimensions.
    static constexpr size_t kFewHosts = 8;

    /// `hosts`: of the job.
    explicit PortSearch(uint32_t hosts);

    /// A rank here wants to know where this one listens.
    void want(uint32_t host, uint32_t rank);

    struct Step {
        std::vector<uint32_t> lookups;  ///< ranks, one of a host, whose hosts are to be asked
        bool table = false;             ///< the table is to be asked for
    };
    /// What is to be done now. To be called after any of the others.
    Step next();

    /// The host has answered the lookup of this rank.
    void answered(uint32_t host, uint32_t rank);
    /// The table has come, perhaps with gaps.
    void table_came();
    /// Those of this host, or of all, that are wanted, not looked up, and now `known`; they are wanted no more.
    std::vector<uint32_t> settle(uint32_t host, const std::function<bool(uint32_t)>& known);
    std::vector<uint32_t> settle(const std::function<bool(uint32_t)>& known);
    void forget(uint32_t host, uint32_t rank);
    void forget_all();

    /// A host may answer late, since the rank in question has not come to MPI_Init: others need not wait for that.
    void let_more();
    /// Whether anything waits for let_more().
    bool held_back() const;

    uint32_t lookups() const { return lookups_; }
    uint32_t tables() const { return tables_; }

  private:
    struct Host {
        std::set<uint32_t> wanted;  ///< ranks not looked up
        std::set<uint32_t> open;    ///< looked up
    };
    size_t idle_hosts() const;
    void drop_if_empty(uint32_t host);

    std::map<uint32_t, Host> hosts_;
    std::set<uint32_t> met_;  ///< hosts that have been of interest; no more than kFewHosts + 1 are kept
    uint32_t window_, most_, open_ = 0;
    uint32_t lookups_ = 0, tables_ = 0;
    bool table_wanted_ = false;
};

}  // namespace starling::launch
