// What the universe's root and its deputies on the hosts say to each other, through the daemon tree. One form for all; which
// fields an order has depends on the kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"
#include "launch/common/job_spec.h"

namespace starling::launch {

enum class OrderKind : uint32_t {
    // root → deputy
    start = 1,           ///< bytes: StartOrder
    stub = 2,            ///< bytes: StubOrder
    take_back = 3,       ///< the job: as if it had never been
    fail = 4,            ///< the job is to be ended; failed_rank
    over = 5,            ///< the job is over everywhere; state
    kill = 6,            ///< SIGKILL to the job, at once
    signal = 7,          ///< signal: for the job's ranks. Without a job: the root itself is about to be suspended, or goes on
    all_arrived = 8,     ///< all ranks of the job have reached the end of MPI_Init
    ring = 9,            ///< the job's ranks are to look around
    input = 10,          ///< bytes: standard input for rank 0, empty at its end
    written = 11,        ///< descriptor, count: bytes of the job's output that have gone on
    answer = 12,         ///< to an ask; its token and message, bytes: the reply
    stacks = 13,         ///< the stacks of the job's ranks, to its standard error
    serve_clients = 14,  ///< text: the socket's name; this host's mpiexecs may come there
    to_client = 15,      ///< connection, message, bytes: the payload
    ranks_failed = 16,   ///< of a job that goes on; bytes: RankRuns
    gather_ports = 17,   ///< to some of the job's hosts; round, bytes: the set of these
    table = 18,          ///< bytes: PortTable, of the job; who has asked gets it

    // deputy → root. An order that is gathered (Tree::gather) is the topic and has no bytes; they are its pieces.
    started = 32,       ///< gathered; piece: StartReport
    failed = 33,        ///< a rank of the job; bytes: FailureReport
    gone = 34,          ///< gathered, behind the output (bulk): all ranks of the job on this host; piece: GoneReport
    output = 35,        ///< descriptor, bytes: lines (bulk)
    taken = 36,         ///< the input has gone on
    ask = 37,           ///< by a rank: token, message, rank, bytes: the request
    say = 38,           ///< text: for whoever started the daemons
    stacks_shown = 39,  ///< the stacks have all been sent (bulk)
    client = 40,        ///< as to_client, from it
    client_gone = 41,   ///< connection
    arrived = 42,       ///< gathered, or alone: all ranks of the job on this host are at the end of MPI_Init
    want_table = 43,    ///< gathered, eager: of the job's ports
    host_ports = 44,    ///< gathered; round; piece: HostPorts
    absent = 45,        ///< a rank of the job has ended well and never called MPI_Init; text: which, and how

    // deputy → deputy
    want_ports = 64,  ///< rank: which one's port matters; answered when it is known
    ports = 65,       ///< rank: as asked; host; bytes: a word per rank of that host; looks: of the rank asked about
    given_up = 66,    ///< the rank of the job is not waited for any more by `by_rank` of `by_job`, whom it shall not wait for
                      ///< either
};

struct Order {
    OrderKind kind = OrderKind::say;
    job::JobId job = 0;
    uint32_t rank = 0;

    // At most two of these, which then have two places on the wire (order.cpp).
    uint64_t failed_rank = 0;  ///< as uint32_t; ~0u: none
    uint64_t state = 0;        ///< job::JobState
    uint64_t signal = 0;
    uint64_t descriptor = 0;  ///< 1 or 2
    uint64_t count = 0;       ///< bytes
    uint64_t token = 0;       ///< the deputy's, of what it asks
    uint64_t connection = 0;  ///< a client's, at the relay of its host
    uint64_t message = 0;     ///< control::MessageKind
    uint64_t round = 0;       ///< of gathering ports
    uint64_t host = 0;        ///< entry of the job's host table
    uint64_t looks = 0;       ///< RankCell::looks
    uint64_t by_job = 0, by_rank = 0;

    std::string text{};
    std::string bytes{};
};

/// Whether what a deputy says is for the root's Universe, not for its deputy.
inline bool is_for_root(OrderKind kind) { return kind >= OrderKind::started && kind <= OrderKind::absent; }

std::string encode(const Order& order);
/// Of an encoded order; anything of none.
OrderKind kind_of(std::string_view payload);
/// False if `payload` is not exactly one order of a known kind.
bool decode(std::string_view payload, Order& out);

/// A job for the hosts that have ranks of it. JobPart::my_host is found by each of them.
struct StartOrder {
    JobSpec spec;
    JobPart part;
};

struct StartReport {
    int32_t error_class = 0;
    uint32_t failed_program = 0, failed_index = 0;
    std::string text;
};

/// What is left of a host's part of a job.
struct GoneReport {
    bool had_arrived = false;  ///< as `arrived`, which may be on its way still
    uint32_t lookups = 0;      ///< hosts of which this one has asked the ports one by one
    uint32_t tables = 0;       ///< and how often for all
};

/// Where the ranks of one host listen.
struct HostPorts {
    uint32_t host = 0;            ///< entry of the job's host table
    bool complete = false;        ///< of all its ranks; else some had not come so far
    std::vector<uint32_t> words;  ///< job::PortWord by rank of that host
};
using PortTable = std::vector<HostPorts>;

struct StubOrder {
    job::JobDescription description;
    std::vector<uint32_t> tree_hosts;
    uint32_t number = 0;
    bool all_arrived = false;
};

struct FailureReport {
    uint32_t rank = 0;
    int32_t status = 0, exit_code = 0;
    bool aborted = false;
    std::string sentence;
};

/// Some ranks of a job: of each run first, stride and count count.
using RankRuns = std::vector<job::Placement>;

std::string encode(const StartOrder& order);
std::string encode(const StartReport& report);
std::string encode(const StubOrder& order);
std::string encode(const FailureReport& report);
std::string encode(const RankRuns& runs);
std::string encode(const GoneReport& report);
std::string encode(const HostPorts& ports);
std::string encode(const PortTable& table);
/// False on anything that is not exactly one such thing, or contradicts itself; `out` is then unspecified.
bool decode(std::string_view bytes, StartOrder& out);
bool decode(std::string_view bytes, StartReport& out);
bool decode(std::string_view bytes, StubOrder& out);
bool decode(std::string_view bytes, FailureReport& out);
bool decode(std::string_view bytes, RankRuns& out);
bool decode(std::string_view bytes, GoneReport& out);
bool decode(std::string_view bytes, HostPorts& out);
bool decode(std::string_view bytes, PortTable& out);

/// A job as a client submits it: its programs and all that goes with them.
void write(Writer& writer, const JobSpec& spec);
bool read(Reader& reader, JobSpec& out);
void write(Writer& writer, const std::vector<std::string>& strings);
void read(Reader& reader, std::vector<std::string>& out);

}  // namespace starling::launch
