// What is known of a run, read from one profile file or from several of the same application: the mean of them.
//
// Sparse: memory grows with the partners that talked, not with the square of the ranks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace starling::analysis {

/// Something in a file or on the command line that can't be worked with; what() is the sentence that the user reads.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Job {
    uint32_t number = 0;  ///< as in the file
    int64_t parent = -1;  ///< its number, -1 if there is none
    uint32_t size = 0;
    bool foreign = false;  ///< of another mpiexec, which does not say how many ranks there are: as many as were met
    uint32_t first = 0;    ///< its rank 0 among all processes of the run
    std::vector<std::string> hosts;
    std::vector<uint32_t> host_of_rank;  ///< indices into `hosts`
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

/// Size classes of messages, as the paths see them.
enum Size : uint8_t { small, pool, large };
inline constexpr size_t kSizes = 3;

/// Accesses of other processes' memory: windows', OpenSHMEM's.
enum Access : uint8_t { put, get, update };
inline constexpr size_t kAccesses = 3;

/// What one process sent to another.
struct Sent {
    uint32_t to = 0;            ///< among all processes of the run
    Amount all, on_connection;  ///< messages, and accesses that were carried out by their owner: what a connection may carry
    Amount in_memory;           ///< accesses that took no way: of memory that both have
};

/// Seconds.
struct Waits {
    double late_sender = 0, late_receiver = 0, collective = 0, other = 0;
    double sum() const { return late_sender + late_receiver + collective + other; }
    Waits& add(const Waits& more, double share = 1);
};

struct ConnectionEvent {
    double when = 0;  ///< s since the job's start
    uint32_t at = 0, peer = 0;
    bool opened = false;
};

/// A process's part in occurrences of a phase.
struct Part {
    uint32_t process = 0;
    double began = 0, seconds = 0;
    Waits waits;
    uint32_t first = 0, count = 0;  ///< in Span::sent
};

/// Occurrences from..to of a phase, counted from 1, which the file tells in one sum.
struct Span {
    std::string name, mark;
    uint64_t from = 1, to = 1;
    double began = 0;    ///< of the first process, s since its job's start
    double seconds = 0;  ///< the mean of the processes'; over all occurrences, as all sums here
    std::array<Amount, kSizes> sizes;
    std::array<Amount, kAccesses> accesses;
    Amount by_packets;  ///< of these
    Waits waits;
    std::vector<Part> parts;  ///< at most one per process and file
    std::vector<Sent> sent;   ///< in the order of the first message to each

    double occurrences() const { return static_cast<double>(to - from + 1); }
    Amount all() const;  ///< messages, and accesses by packets
    Amount on_connection() const;
};

/// A call of a collective function somewhere in the program.
struct Site {
    std::string site, communicator, kind, size, algorithm;
    uint32_t members = 0;
    bool tried = false;  ///< the table would have taken another algorithm
    auto operator<=>(const Site&) const = default;
};
struct Calls {
    double calls = 0, bytes = 0, seconds = 0;  ///< over all processes
    double squares = 0;                        ///< of the calls' seconds
};

/// Where the program waits: a call of an MPI function somewhere in it.
struct WaitPlace {
    std::string site, function;
    auto operator<=>(const WaitPlace&) const = default;
};

struct Run {
    std::string application, starling;
    std::vector<std::string> command;
    std::vector<std::string> files;
    std::vector<Job> jobs;
    uint32_t processes = 0;   ///< of all jobs
    std::vector<Span> spans;  ///< in the order in which they began
    std::map<Site, Calls> collectives;
    std::map<WaitPlace, Waits> waiting;        ///< over all processes
    std::vector<ConnectionEvent> connections;  ///< in order; of the first file alone
    uint64_t finalized = 0, ended_early = 0;   ///< processes, over all files

    /// The job of a process, and its rank there.
    const Job& job_of(uint32_t process) const;
    uint32_t rank_of(uint32_t process) const { return process - job_of(process).first; }
    /// Its host, by name; "?" if the file does not say.
    const std::string& host_of(uint32_t process) const;
    /// "3" in a run of one job, else "1.3": job and rank.
    std::string name_of(uint32_t process) const;
};

}  // namespace starling::analysis
