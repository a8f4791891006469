// A run of an application, from one profile file, or as the mean of several files. The representation is sparse: memory grows with the
// number of partners that communicated, not with the square of the number of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace starling::analysis {

/// Exception for an unusable file or command line; what() is the sentence for the user.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Job {
    uint32_t number = 0;  ///< number of the job in the file
    int64_t parent = -1;  ///< number of the parent job; -1: none
    uint32_t size = 0;
    bool foreign = false;  ///< true: job of another mpiexec, of unknown size; `size` counts the ranks in the file
    uint32_t first = 0;    ///< index of the job's rank 0 among all processes of the run
    std::vector<std::string> hosts;
    std::vector<uint32_t> host_of_rank;  ///< each rank's host, as an index into `hosts`
};

struct Amount {
    double messages = 0, bytes = 0;
    Amount& operator+=(const Amount& other) {
        messages += other.messages;
        bytes += other.bytes;
        return *this;
    }
    Amount operator*(double weight) const { return {messages * weight, bytes * weight}; }
};

/// Size classes of messages: up to 1 KB, up to the eager limit, and sent by rendezvous.
enum Size : uint8_t { small, pool, large };
inline constexpr size_t kSizes = 3;

/// One-sided accesses to other processes' memory, from windows or OpenSHMEM.
enum Access : uint8_t { put, get, update };
inline constexpr size_t kAccesses = 3;

/// The traffic from one process to another.
struct Sent {
    uint32_t to = 0;            ///< receiver, as an index among all processes of the run
    Amount all, on_connection;  ///< traffic that a connection can carry: messages, and accesses that the target carries out
    Amount in_memory;           ///< accesses to memory that both processes have mapped
};

/// Times that processes waited, in seconds.
struct Waits {
    double late_sender = 0, late_receiver = 0, collective = 0, other = 0;
    double sum() const { return late_sender + late_receiver + collective + other; }
    Waits& add(const Waits& more, double share = 1);
};

struct ConnectionEvent {
    double when = 0;  ///< time of the event in s since the job's start
    uint32_t at = 0, peer = 0;
    bool opened = false;
};

/// One process's part of some occurrences of a phase.
struct Part {
    uint32_t process = 0;
    double began = 0, seconds = 0;
    Waits waits;
    uint32_t first = 0, count = 0;  ///< range of the part's entries in Span::sent
};

/// Occurrences from..to of a phase, counted from 1, which the file reports as one sum. The amounts and times are sums over these
/// occurrences.
struct Span {
    std::string name, mark;
    uint64_t from = 1, to = 1;
    double began = 0;    ///< start of the span in the first process, s since its job's start
    double seconds = 0;  ///< duration, as the mean over the processes
    std::array<Amount, kSizes> sizes;
    std::array<Amount, kAccesses> accesses;
    Amount by_packets;                   ///< accesses that were sent as packets
    std::map<uint64_t, Amount> by_size;  ///< messages by their size: up to this many bytes; empty in older files
    Waits waits;
    std::vector<Part> parts;  ///< parts of the processes; at most one per process and file
    std::vector<Sent> sent;   ///< traffic of all parts; per process in the order of the first message

    double occurrences() const { return static_cast<double>(to - from + 1); }
    Amount all() const;  ///< Returns the sum of messages, and of accesses that were sent as packets.
    Amount on_connection() const;
};

/// A call site of a collective function in the program. `site` is text such as "heat2d.c:118 (exchange)", or "heat2d+0x145a" if its source
/// is not known.
struct Site {
    std::string site, communicator, kind, size, algorithm;
    uint32_t members = 0;
    bool tried = false;  ///< true: the algorithm differs from that of the selection table
    auto operator<=>(const Site&) const = default;
};
struct Calls {
    double calls = 0, bytes = 0, seconds = 0;  ///< sums over all processes of calls, bytes and seconds
    double squares = 0;                        ///< sum of the squares of the calls' seconds
    void add(const Calls& more);
};

/// A call site at which the program waits, with the MPI function.
struct WaitPlace {
    std::string site, function;
    auto operator<=>(const WaitPlace&) const = default;
};

/// A call site at which the program accesses a file, with the MPI function. Its `Calls` have no squares.
struct FilePlace {
    std::string file, site, function;
    auto operator<=>(const FilePlace&) const = default;
};

/// A process's use of its cores between MPI_Init and MPI_Finalize.
struct CoreUse {
    bool known = false;          ///< false: the process ended early, or the file is older
    std::vector<uint32_t> cpus;  ///< processors on which the process may run, in order
    double cpu = 0;              ///< processor time of all threads, s
    double polled = 0;           ///< part of `cpu` that was spent on polling in waits, s
    double core_wait = 0;        ///< time for which the main thread was ready to run and had no core, s
};

struct Run {
    std::string application, starling, started;  ///< program, Starling's version, and time in UTC
    std::vector<std::string> command;
    std::vector<std::string> files;
    std::vector<Job> jobs;
    uint32_t processes = 0;   ///< number of processes in all jobs of the run
    std::vector<Span> spans;  ///< spans of the run, in the order in which they began
    std::map<Site, Calls> collectives;
    std::map<WaitPlace, Waits> waiting;        ///< waits by place, summed over all processes
    std::map<FilePlace, Calls> file_calls;     ///< accesses to files by place, summed over all processes
    std::vector<CoreUse> core_use;             ///< by process; from the first file only
    std::vector<ConnectionEvent> connections;  ///< events of connections, in order; from the first file only
    uint64_t finalized = 0, ended_early = 0;   ///< processes that ended with and without MPI_Finalize, over all files

    /// Return the job of a process, and its rank in that job.
    const Job& job_of(uint32_t process) const;
    uint32_t rank_of(uint32_t process) const { return process - job_of(process).first; }
    /// Returns the name of a process's host; "?" if the file does not have it.
    const std::string& host_of(uint32_t process) const;
    /// Returns job and rank of a process, as "1.3"; in a run of one job only the rank, as "3".
    std::string name_of(uint32_t process) const;
};

}  // namespace starling::analysis
