// The description of a job, equal on all its hosts: everything that a host's daemon needs to create its segment of the job.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::job {

using JobId = uint64_t;   ///< random, never 0
using HostId = uint64_t;  ///< constant while the host runs, never 0; two containers on one machine are two hosts

inline constexpr uint32_t kNoHost = ~0u;

/// Returns this host's id, a hash of its boot id and process namespace. The first call reads two files.
HostId this_host();

/// A secret shared by all processes of a job and of the jobs that it connects to. Traffic between their hosts is encrypted with keys
/// derived from it. It leaves a host only in descriptions of the job, over a tree that encrypts. Zeros: there is no secret, and nothing is
/// encrypted.
struct NetworkSecret {
    uint8_t bytes[32] = {};
    explicit operator bool() const;
    bool operator==(const NetworkSecret&) const = default;
};

/// One host of a job. Stored in the segment in this form.
struct HostEntry {
    static constexpr uint32_t kMost = 6;
    HostId id = 0;
    uint64_t key = 0;  ///< key that every datagram and connection to a rank on the host must carry
    char name[64] = {};
    /// Number of valid entries of `ipv4`. 0: the host's addresses are not known yet. Under a foreign process manager, the process that
    /// learns them writes all other members first, then this one with release order.
    uint32_t addresses = 0;
    uint32_t ipv4[kMost] = {};  ///< addresses, network byte order; one per interface that peers may use
    uint32_t reserved = 0;
};

/// A run of `count` ranks on one host: first, first + stride, …. Their indices among the ranks of that host are local, local + 1, …. Stored
/// in the segment in this form.
struct Placement {
    uint32_t first = 0, stride = 1, count = 0;
    uint32_t host = 0;  ///< index of the ranks' host in the host table
    uint32_t local = 0;

    bool operator==(const Placement&) const = default;
    /// Returns whether `rank` is in this run; if so, sets `index` to its position in the run.
    bool holds(uint32_t rank, uint32_t& index) const {
        if (rank < first || (rank - first) % stride != 0) return false;
        index = (rank - first) / stride;
        return index < count;
    }
};

struct JobDescription {
    JobId id = 0;
    uint64_t secret[2] = {};
    uint64_t key = 0;  ///< key of the hosts whose entries have none
    NetworkSecret network_secret;
    uint32_t size = 0;
    uint32_t universe_size = 0;
    bool several_hosts = false;  ///< true: the universe has other hosts than this one
    bool hosts_open = false;     ///< true: hosts become known on demand, to some hosts before others (under a foreign manager)
    bool recovers = false;       ///< true: the job continues when a rank dies, and its peers get errors
    std::vector<HostEntry> hosts;
    std::vector<Placement> placements;  ///< runs of ranks; every rank is in exactly one
    std::string command;                ///< the job's command line, for messages
    std::string blob;                   ///< the parents' description for a spawned job; this layer does not interpret it

    /// Sets id, secret and key to random numbers.
    void draw();
    /// Sets a random network secret, so that the traffic between the job's hosts is encrypted.
    void draw_network_secret();
    uint32_t ranks_on(uint32_t host) const;
    /// Returns an empty text, or what is wrong with the description: counts, hosts out of range, a rank in no run or in two.
    std::string problem() const;
};

std::string encode(const JobDescription& description);
/// Returns false if `bytes` is not exactly one description without a problem(); `out` is then unspecified.
bool decode(std::string_view bytes, JobDescription& out);

/// Returns the runs that place ranks first_rank, first_rank + 1, … one by one on the listed hosts; ranks at a constant stride become one
/// run. `next_local` has one entry per host, its number of ranks so far, and is updated.
std::vector<Placement> fold_placements(const std::vector<uint32_t>& host_of_rank, uint32_t first_rank,
                                       std::vector<uint32_t>& next_local);

}  // namespace starling::job
