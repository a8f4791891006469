// What is the same of a job on all its hosts: what a host's daemon needs to make its segment of the job.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::job {

using JobId = uint64_t;   ///< random, never 0
using HostId = uint64_t;  ///< of a host as long as it runs, never 0; two containers of one machine are two hosts

inline constexpr uint32_t kNoHost = ~0u;

/// This host's id: from its boot id and the process namespace. Reads two files the first time.
HostId this_host();

/// What all processes of a job have, and those of the jobs it meets, and nobody else: whatever they tell each other between hosts is
/// sealed by keys made of it. It never leaves a host but in descriptions of the job, over a tree that encrypts. Zeros: none, and
/// nothing is sealed.
struct NetworkSecret {
    uint8_t bytes[32] = {};
    explicit operator bool() const;
    bool operator==(const NetworkSecret&) const = default;
};

/// One host of a job. Lies in the segment as it is.
struct HostEntry {
    static constexpr uint32_t kMost = 6;
    HostId id = 0;
    uint64_t key = 0;  ///< what a datagram or connection to a rank there must show
    char name[64] = {};
    /// How many of the following are valid. 0: nothing is known of this host yet; whoever learns it (under a foreign
    /// process manager, on demand) writes everything else first, then this with release.
    uint32_t addresses = 0;
    uint32_t ipv4[kMost] = {};  ///< network byte order; one per interface that peers may use
    uint32_t reserved = 0;
};

/// A run of ranks on one host: first, first + stride, …, `count` of them, whose places among the ranks of that host are
/// local, local + 1, …. Lies in the segment as it is.
struct Placement {
    uint32_t first = 0, stride = 1, count = 0;
    uint32_t host = 0;  ///< index into the host table
    uint32_t local = 0;

    bool operator==(const Placement&) const = default;
    /// Whether `rank` is in this run; then `index` is which of it.
    bool holds(uint32_t rank, uint32_t& index) const {
        if (rank < first || (rank - first) % stride != 0) return false;
        index = (rank - first) / stride;
        return index < count;
    }
};

struct JobDescription {
    JobId id = 0;
    uint64_t secret[2] = {};
    uint64_t key = 0;  ///< for the hosts whose entries have none
    NetworkSecret network_secret;
    uint32_t size = 0;
    uint32_t universe_size = 0;
    bool several_hosts = false;  ///< the universe has other hosts than this one
    bool hosts_open = false;     ///< hosts become known on demand, to some before others (under a foreign manager)
    bool recovers = false;       ///< goes on when a rank dies: its peers get errors
    std::vector<HostEntry> hosts;
    std::vector<Placement> placements;  ///< every rank in exactly one
    std::string command;                ///< for messages
    std::string blob;                   ///< the parents' description, opaque here

    /// Fills id, secret and key with random numbers.
    void draw();
    /// Has what the job's hosts send to each other sealed.
    void draw_network_secret();
    uint32_t ranks_on(uint32_t host) const;
    /// Empty, or what is wrong with it: counts, hosts out of range, a rank in no run or in two.
    std::string problem() const;
};

std::string encode(const JobDescription& description);
/// False if `bytes` is not exactly one description without a problem(); `out` is then unspecified.
bool decode(std::string_view bytes, JobDescription& out);

/// The runs that place ranks first_rank, first_rank + 1, … one by one on the hosts listed, with equal neighbours folded.
/// `next_local` has an entry per host: its ranks so far, which is updated.
std::vector<Placement> fold_placements(const std::vector<uint32_t>& host_of_rank, uint32_t first_rank,
                                       std::vector<uint32_t>& next_local);

}  // namespace starling::job
