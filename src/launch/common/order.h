// The messages between the universe's root and the host agents, which travel through the daemon tree. All have one format; which fields are
// used depends on the kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"
#include "launch/common/job_spec.h"

namespace starling::launch {

enum class OrderKind : uint32_t {
    // Orders from the root to a host agent.
    start = 1,           ///< start the job here; bytes: StartOrder
    stub = 2,            ///< create a stub of the job; bytes: StubOrder
    undo_start = 3,      ///< undo the start of the job
    fail = 4,            ///< end the job because rank `failed_rank` failed
    over = 5,            ///< the job has ended on all hosts, with `state`
    kill = 6,            ///< send SIGKILL to the job at once
    signal = 7,          ///< forward `signal` to the job's ranks. If the job is 0: the root itself is suspended or continued
    all_arrived = 8,     ///< all ranks of the job have reached the end of MPI_Init
    ring = 9,            ///< wake the job's ranks, so that they check the job's state
    input = 10,          ///< bytes: standard input for rank 0, empty at its end
    written = 11,        ///< `count` bytes of the job's output to `descriptor` were passed on
    answer = 12,         ///< reply to a `rank_request`: its token and message; bytes: the reply
    stacks = 13,         ///< write the stacks of the job's ranks to its standard error
    serve_clients = 14,  ///< start to serve the mpiexecs of this host; text: name of the socket
    to_client = 15,      ///< a frame for a client of this host; connection, message; bytes: the payload
    ranks_failed = 16,   ///< ranks that failed in a job that continues; bytes: RankRuns
    gather_ports = 17,   ///< gather the ports of some hosts of the job; round; bytes: the set of these hosts
    table = 18,          ///< ports of the job's ranks, for the host agents that requested them; bytes: PortTable
    list = 19,           ///< report the job's processes; sent only if a debugger has attached to the client

    // Orders from a host agent to the root. If an order is gathered (Tree::gather), the order itself is the topic and has no bytes; the
    // hosts' pieces have them.
    started = 32,        ///< result of `start`, gathered (Tree::gather); piece: StartReport
    failed = 33,         ///< a rank of the job failed; bytes: FailureReport
    ranks_ended = 34,    ///< all ranks of the job here have ended, gathered, after their output (bulk); piece: GoneReport
    output = 35,         ///< output of ranks (bulk): descriptor; bytes: lines
    taken = 36,          ///< the last piece of input was written to rank 0's pipe
    rank_request = 37,   ///< request of `rank`: token, message; bytes: the request
    print = 38,          ///< `text` is a line for the program that started the daemons
    stacks_shown = 39,   ///< all stacks were sent before this order (bulk)
    client = 40,         ///< a frame of a client of this host; its fields are as in to_client
    client_closed = 41,  ///< a client has disconnected; connection: its number
    arrived = 42,        ///< all ranks of the job here have reached the end of MPI_Init; gathered or single
    want_table = 43,     ///< request for the table of all ports of the job; gathered, the first piece without delay
    host_ports = 44,     ///< ports of this host's ranks in round `round`, gathered; piece: HostPorts
    absent = 45,         ///< a rank of the job exited with 0 without calling MPI_Init; text: which rank, and how it ended
    processes = 46,      ///< the processes of the job here, gathered; piece: ProcessTable

    // Orders from one host agent to another.
    want_ports = 64,  ///< request for the port of `rank`, answered when the port is known
    ports = 65,       ///< reply to want_ports; `host`; `polls` of the rank; bytes: a port word for each rank of that host
    abandoned = 66,   ///< `by_rank` of `by_job` no longer waits for `rank` of `job`, which must stop waiting as well
};

struct HostOrder {
    OrderKind kind = OrderKind::print;
    job::JobId job = 0;
    uint32_t rank = 0;

    // Numbers, of which each kind of order uses at most two. The encoding has only two fields for them (order.cpp).
    uint64_t failed_rank = 0;  ///< first rank that failed, a uint32_t; ~0u: none
    uint64_t state = 0;        ///< job::JobState
    uint64_t signal = 0;
    uint64_t descriptor = 0;  ///< stream of the output: standard output (1) or error (2)
    uint64_t count = 0;       ///< number of bytes of output that `written` acknowledges
    uint64_t token = 0;       ///< number that the host agent gave to its request
    uint64_t connection = 0;  ///< number of a client's connection at its host's relay
    uint64_t message = 0;     ///< control::MessageKind
    uint64_t round = 0;       ///< number of the round in which ports are gathered
    uint64_t host = 0;        ///< index of the host in the job's host table
    uint64_t polls = 0;       ///< number of polls that the asked rank has made (RankCell::polls)
    uint64_t by_job = 0, by_rank = 0;

    std::string text{};
    std::string bytes{};
};

/// Returns whether programs of this wire version know what 1.1 has added: `list` and `processes`, HostFacts::version, StartReport::cannot_run.
bool knows_additions(uint32_t wire);

/// Returns whether the root's Universe handles this order from a host agent. Orders of other kinds are for the root's own host agent.
inline bool is_for_root(OrderKind kind) { return kind >= OrderKind::started && kind <= OrderKind::processes; }

std::string encode(const HostOrder& order);
/// Returns the kind of an encoded order; any value if `payload` is not an order.
OrderKind kind_of(std::string_view payload);
/// Returns false if `payload` is not exactly one order of a known kind.
bool decode(std::string_view payload, HostOrder& out);

/// Starts a job on the hosts that have ranks of it. Each host determines its own JobPart::my_host.
struct StartOrder {
    JobSpec spec;
    JobPart part;
};

/// The result of a start on one host. The reports of hosts without problems are equal, so that Tree::gather merges them.
struct StartReport {
    int32_t error_class = 0;
    uint32_t failed_program = 0, failed_index = 0;
    std::string text;
    bool cannot_run =
        false;  ///< true: the program `failed_program` can't be started there. Set only if JobPart::reads_cannot_run
};

/// The last report about a host's part of a job.
struct GoneReport {
    bool had_arrived = false;  ///< true: all ranks had reached the end of MPI_Init; `arrived` may be on its way
    uint32_t lookups = 0;      ///< number of hosts whose ports this host requested one by one
    uint32_t tables = 0;       ///< number of requests for the whole port table
};

/// The ports on which the ranks of one host listen.
struct HostPorts {
    uint32_t host = 0;            ///< index of the host in the job's host table
    bool complete = false;        ///< false: some ranks of the host had no port yet
    std::vector<uint32_t> words;  ///< ports (job::PortWord), by rank within that host
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
    bool finalized = false;  ///< true: the rank exited after MPI_Finalize, and the launcher there has not ended the others
    uint32_t running = 0;    ///< number of the job's other ranks that still run on that host
};

/// A set of ranks of a job, as runs of first, stride and count.
using RankRuns = std::vector<job::Placement>;

std::string encode(const StartOrder& order);
std::string encode(const StartReport& report);
std::string encode(const StubOrder& order);
std::string encode(const FailureReport& report);
std::string encode(const RankRuns& runs);
std::string encode(const GoneReport& report);
std::string encode(const HostPorts& ports);
std::string encode(const PortTable& table);
/// Return false unless the bytes are exactly one consistent value of that type; `out` is unspecified then.
bool decode(std::string_view bytes, StartOrder& out);
bool decode(std::string_view bytes, StartReport& out);
bool decode(std::string_view bytes, StubOrder& out);
bool decode(std::string_view bytes, FailureReport& out);
bool decode(std::string_view bytes, RankRuns& out);
bool decode(std::string_view bytes, GoneReport& out);
bool decode(std::string_view bytes, HostPorts& out);
bool decode(std::string_view bytes, PortTable& out);

/// Write and read a job as a client submits it, with its programs and their options.
void write(Writer& writer, const JobSpec& spec);
bool read(Reader& reader, JobSpec& out);
void write(Writer& writer, const std::vector<std::string>& strings);
void read(Reader& reader, std::vector<std::string>& out);

}  // namespace starling::launch
