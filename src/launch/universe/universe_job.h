// The root's record of one job. Only for the files of Universe.
#pragma once

#include "launch/universe/port_collection.h"
#include "launch/universe/universe.h"

namespace starling::launch {

struct Universe::UniverseJob {
    uint32_t number = 0;
    job::JobDescription description;
    JobSpec spec;
    JobClient* patron = nullptr;       ///< program that the job runs for; null after it has left
    std::vector<uint32_t> tree_hosts;  ///< number in the tree of each host of the description's host table
    std::vector<uint32_t> ranks_on;    ///< number of ranks of each host of the description's host table
    Started started;

    HostSet starting;  ///< hosts that have not reported their start yet
    HostSet present;   ///< hosts with ranks that have not ended
    HostSet holders;   ///< hosts that have a segment of the job
    HostSet arriving;  ///< hosts whose ranks have not all reached the end of MPI_Init
    PortCollection ports;
    uint64_t lookups = 0;  ///< number of ports looked up host by host, as far as the hosts have reported
    uint64_t tables = 0;   ///< number of port tables sent to the hosts
    StartReport problem;   ///< the first start failure of a host
    uint32_t problem_host = 0;
    bool connected = true;  ///< true: if the parent fails, this job ends too
    bool failing = false;
    bool absent_noted = false;  ///< true: a rank ended without MPI_Init, and checks for ranks that wait for it are scheduled
    uint32_t failures = 0;      ///< number of lost ranks of a job that recovers

    job::JobId id() const { return description.id; }
    /// Returns the number in the tree of the host of rank 0.
    uint32_t host_of_first() const {
        for (const job::Placement& run : description.placements) {
            if (run.first == 0) return tree_hosts[run.host];
        }
        return 0;
    }
    bool all_arrived() const { return arriving.empty(); }
    HostOrder order(OrderKind kind, std::string bytes = {}) const {
        return {.kind = kind, .job = description.id, .bytes = std::move(bytes)};
    }
    /// Returns the order to end the job. `failed_rank`: -1 if no rank of the job has failed.
    HostOrder fail(int failed_rank) const {
        return {.kind = OrderKind::fail, .job = description.id, .failed_rank = static_cast<uint32_t>(failed_rank)};
    }
};

}  // namespace starling::launch
