// The record that the universe's root has of one job. Only the files that implement Universe include it.
#pragma once

#include <unordered_map>

#include "launch/universe/port_collection.h"
#include "launch/universe/universe.h"

namespace starling::launch {

struct Universe::UniverseJob {
    uint32_t number = 0;
    job::JobDescription description;
    JobSpec spec;
    JobClient* patron = nullptr;       ///< job client (such as mpiexec) that the job runs for; null after it has left
    std::vector<uint32_t> tree_hosts;  ///< by index in the job's host table: the host's number in the daemon tree
    std::vector<uint32_t> ranks_on;    ///< by index in the job's host table: number of ranks on the host that take a slot
    Started started;

    HostSet starting;       ///< hosts that have not reported their start yet
    HostSet present;        ///< hosts with ranks that have not ended
    HostSet holders;        ///< hosts that have a segment of the job
    HostSet input_awaited;  ///< hosts whose ranks have not taken the last piece of standard input yet
    HostSet arriving;       ///< hosts whose ranks have not all reached the end of MPI_Init
    PortCollection ports;
    uint64_t lookups = 0;  ///< number of port lookups for single hosts, as reported by the hosts so far
    uint64_t tables = 0;   ///< number of port tables sent to the hosts
    std::unordered_map<uint32_t, ProcessTable> processes;  ///< by number of the host in the tree, while they are being listed
    HostSet listing;                                       ///< hosts that have not listed their processes yet
    enum class ListState { none, requested, shown } list_state = ListState::none;
    bool held = false;    ///< true: the processes are stopped until they have been shown
    StartReport problem;  ///< the first start failure of a host
    uint32_t problem_host = 0;
    bool lost_while_starting = false;  ///< true: a host was lost before it reported the start
    bool connected = true;             ///< true: if the parent fails, this job ends too
    bool failing = false;
    bool asked_to_end = false;  ///< true: the job has got a signal that asks to end
    bool leaving = false;  ///< true: a rank has failed after a signal that asked all to end, and the others have some time left
    bool granted = false;  ///< true: a rank has failed after MPI_Finalize, and the others have some time left
    bool absent_noted = false;  ///< true: a rank ended without MPI_Init, and timed checks look for ranks that wait for it
    RankRuns lost;              ///< lost ranks of a job that recovers, also for hosts that get a stub of the job later

    job::JobId id() const { return description.id; }
    uint32_t lost_ranks() const {
        uint32_t count = 0;
        for (const job::Placement& run : lost) count += run.count;
        return count;
    }
    /// Sets the exit code of the client's first job, unless an earlier failure has set it.
    void note_exit_code(int code) {
        if (patron && number == 0 && patron->exit_code == 0) patron->exit_code = code;
    }
    /// Returns the hosts of the ranks that receive standard input.
    HostSet input_hosts() const {
        std::vector<uint32_t> hosts;
        for (const job::Placement& run : description.placements)
            if (spec.forward_input && spec.input.meets(run.first, run.stride, run.count)) hosts.push_back(tree_hosts[run.host]);
        return HostSet::of(hosts);
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
