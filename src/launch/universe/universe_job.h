// What the universe's root knows of one job. For the files of Universe only.
#pragma once

#include "launch/universe/port_collection.h"
#include "launch/universe/universe.h"

namespace starling::launch {

struct Universe::Job {
    uint32_t number = 0;
    job::JobDescription description;
    JobSpec spec;
    JobClient* patron = nullptr;       ///< null once it has left
    std::vector<uint32_t> tree_hosts;  ///< by entry of the description's host table
    std::vector<uint32_t> ranks_on;    ///< the same
    Started started;

    HostSet starting;  ///< hosts that have not reported their start
    HostSet present;   ///< hosts with ranks that are not gone
    HostSet holders;   ///< hosts that have a segment of it
    HostSet arriving;  ///< hosts whose ranks have not all come to the end of MPI_Init
    PortCollection ports;
    uint64_t lookups = 0;  ///< of ports, host by host; as far as its hosts have told
    uint64_t tables = 0;   ///< of all ports that were sent to them
    StartReport problem;   ///< the first that a host had with starting its part
    uint32_t problem_host = 0;
    bool connected = true;  ///< to its parent: goes down with it
    bool failing = false;
    bool absent_noted = false;  ///< a rank has ended without MPI_Init, and it is looked whether others wait for it
    uint32_t failures = 0;      ///< ranks that a job which recovers has lost

    job::JobId id() const { return description.id; }
    /// The tree's number of rank 0's host.
    uint32_t host_of_first() const {
        for (const job::Placement& run : description.placements) {
            if (run.first == 0) return tree_hosts[run.host];
        }
        return 0;
    }
    bool all_arrived() const { return arriving.empty(); }
    Order order(OrderKind kind, std::string bytes = {}) const {
        return {.kind = kind, .job = description.id, .bytes = std::move(bytes)};
    }
    /// -1: none of the job's ranks has failed.
    Order fail(int failed_rank) const {
        return {.kind = OrderKind::fail, .job = description.id, .failed_rank = static_cast<uint32_t>(failed_rank)};
    }
};

}  // namespace starling::launch
