// The job segment: the one piece of memory that the processes of a job on one host share with their daemon (mpiexec, or starlingd on other
// hosts). The daemon creates it before it starts the first rank. Every rank maps all of it in MPI_Init, which costs address space only. Its
// writers may be killed at any instruction, so every field that changes after creation is an atomic with a documented owner.
//
// A job on several hosts has one segment on each of them, with cells and regions for the ranks of that host only. Besides, each segment
// describes the whole job: its size, hosts, placement, and a table of addresses that fills on demand. A host that runs no rank of a job but
// communicates with it gets a segment of the job without ranks, called a stub.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "job/job_description.h"

namespace starling::job {

/// The location of a job segment: on host `host`, /proc/<owner_pid>/fd/<owner_fd>, with this id in its header. On any other host, the
/// daemon returns the location of that host's segment of the job (MessageKind::resolve).
struct JobAddress {
    JobId id = 0;
    int32_t owner_pid = 0;
    int32_t owner_fd = -1;
    HostId host = 0;  ///< host of the segment; 0: the host where the address is read
    /// Ids are unique. The other members locate the segment, and differ between hosts.
    bool operator==(const JobAddress& other) const { return id == other.id; }
};

enum class JobState : uint32_t {
    running = 1,
    ended = 2,   ///< every rank has exited after MPI_Finalize (or never called MPI_Init)
    failed = 3,  ///< a rank crashed, aborted or was killed; the launcher is ending the rest
};

enum class RankState : uint32_t {
    started = 0,      ///< exec'ed or about to be; has not called MPI_Init
    initialized = 1,  ///< set by the rank at the end of MPI_Init
    finalized = 2,    ///< set by the rank in MPI_Finalize
    exited = 3,       ///< set by the launcher: ended normally
    failed = 4,       ///< set by the launcher: ended by a signal, an abort, with a non-zero exit status or without MPI_Finalize
    not_started = 5,  ///< set by the launcher: exec failed; `exit_status` holds errno
};

/// The state of one rank of this host, on a separate cache line.
struct alignas(64) RankCell {
    std::atomic<RankState> state;
    /// Process id: that of the launcher's child at first, then that of the rank itself if it shares the launcher's PID namespace.
    std::atomic<int32_t> pid;
    std::atomic<int32_t> exit_status;  ///< wait status, valid in states exited and failed; errno in not_started
    std::atomic<int32_t> abort_code;   ///< code with which this rank has ended the job, valid if `aborted` is not 0
    std::atomic<uint32_t> aborted;     ///< how this rank has ended the job, kAborted and so on; 0: it has not
    std::atomic<uint32_t> replies;     ///< number of replies that the launcher has sent to this rank
    int32_t appnum;                    ///< MPI_APPNUM: the number of the command in the MPMD list or spawn_multiple
    uint32_t cpu;                      ///< core to which the rank is bound, kNotBound if none
    /// How often the rank has polled, its sockets included, while it waited in the library. If the number has changed between two replies,
    /// the rank polled in between, so a packet that it has not received by then is not in transit any more.
    std::atomic<uint32_t> polls;
    /// A process on another host that has declared this rank unreachable: its rank + 1 and its job. The daemon writes both, the rank last
    /// and only if it was 0. This rank reads it and resets it to 0.
    std::atomic<uint32_t> abandoned_by_rank;
    std::atomic<JobId> abandoned_by_job;
    std::atomic<uint64_t>
        started;  ///< start time of the rank itself (ProcessOrigin::start), since its pid may be reused later; 0: not set
    /// Process id (getpid()) and PID namespace of a rank that has a private PID namespace, else 0. `pid` remains that of the launcher's
    /// child and shows whether the rank lives, but no process can access the rank's memory with it.
    std::atomic<int32_t> apart_pid;
    uint32_t apart_namespace;
};
static_assert(sizeof(RankCell) == 64);
inline constexpr uint32_t kNotBound = ~0u;
/// How a rank ends its job: kAborted by MPI_Abort, always a failure; kEndedForAll by shmem_global_exit, whose code may be 0; kEndedByError by
/// an MPI error that the program does not handle, always a failure. Launchers that do not know kEndedByError report MPI_Abort.
inline constexpr uint32_t kAborted = 1, kEndedForAll = 2, kEndedByError = 3;

struct alignas(4096) JobHeader {
    static constexpr uint64_t kMagic = 0x31676e696c726174;  // "tarling1"

    // `magic`, `version` and `release` stay at their offsets in all future versions.
    uint64_t magic;
    uint32_t version;        ///< wire version (base/version.h) of everything after the first three members, and of all regions
    char release[28];        ///< release of the segment's creator, NUL-terminated
    uint32_t size;           ///< number of ranks, on all hosts
    uint32_t pid_namespace;  ///< PID namespace of all pids here, the creator's; 0: not known
    JobId id;
    HostId host;             ///< the host of this segment
    uint64_t key;            ///< key of this host's entry: datagrams and connections to ranks here must carry it
    uint32_t local_ranks;    ///< number of ranks on this host, which have a cell and a region here
    uint32_t hosts;          ///< number of entries of the host table, at least 1
    uint32_t my_host;        ///< index of this host's entry in the host table; kNoHost in a stub
    uint32_t several_hosts;  ///< 1 if the universe has other hosts, whether or not this job uses them
    uint32_t hosts_open;     ///< 1: the host table fills on demand, on some hosts before others
    uint32_t recovers;       ///< 1: the job continues when a rank dies; `failures` and the address table show the dead ranks
    /// Number of ranks of this host that hold their life locks (job/life_lock.h). A futex word, on which the launcher sleeps.
    std::atomic<uint32_t> lives;
    uint64_t secret[2];            ///< secret that proves to the launcher that a sender can read this segment
    NetworkSecret network_secret;  ///< secret of the job; unless zeros, packets from other hosts must be encrypted with it
    int32_t owner_pid;             ///< the process whose death ends the job: mpiexec, or the singleton itself
    int32_t owner_fd;              ///< the owner's descriptor of this memfd
    uint32_t universe_size;        ///< MPI_UNIVERSE_SIZE
    uint64_t hosts_offset;         ///< offset of HostEntry[hosts]
    uint64_t runs_offset, runs;    ///< offset and number of the Placement runs
    uint64_t ports_offset;         ///< offset of the address table, a PortWord per rank; sparse
    uint64_t cells_offset;         ///< offset of RankCell[local_ranks]
    uint64_t places_offset;        ///< offset of the table of cores, a CpuLocation per local rank (job/places.h)
    uint64_t blob_offset,
        blob_size;  ///< the parents' description of a spawned job; this layer does not interpret it; size 0 if none
    uint64_t regions_offset,
        region_stride;        ///< region i (doorbell, inbox, rings) of this host: offset + i * stride
    char control_socket[64];  ///< abstract Unix socket name without the leading NUL; empty: none (yet)
    char command[192];        ///< the program's command line, for messages

    alignas(64) std::atomic<JobState> state;
    std::atomic<int32_t> failed_rank;  ///< first rank that failed, or -1; valid when state is failed
    /// Number of ranks that have failed, on all hosts, if the job recovers. The daemon first marks the rank in the address table
    /// (PortWord::failed), then increments this word, then wakes the threads that sleep on it, and rings the doorbells.
    std::atomic<uint32_t> failures;
    /// 1 when a spawned job has disconnected from its parents and no longer ends with them. The parents set it here if the universe has one
    /// host; otherwise they notify their daemons.
    std::atomic<uint32_t> parted;
    /// Number of ranks of this host that have reached the end of MPI_Init.
    alignas(64) std::atomic<uint32_t> arrived;
    /// 1 when all ranks on all hosts have reached the end of MPI_Init. Set by the daemon if there are several hosts, else not used.
    std::atomic<uint32_t> all_arrived;
    alignas(64) std::atomic<uint64_t> next_context;  ///< number of contexts drawn on this host so far, plus 16
};

/// Each host draws context numbers from a range of this size. At one every half microsecond, the range lasts six days.
inline constexpr uint64_t kContextsPerHost = uint64_t{1} << 40;
/// Result of draw_context() when there is no number left; never the number of a context.
inline constexpr uint64_t kNoNumber = ~uint64_t{0};

/// One word of the address table: a rank's UDP port and whether it lives. Written by the rank itself in its host's segment, by the daemon,
/// and by processes that have received a datagram from the rank.
struct PortWord {
    enum RankLiveness : uint32_t { unknown = 0, running = 1, finalized = 2, failed = 3 };
    uint16_t port = 0;  ///< UDP port, host byte order; 0: not known
    RankLiveness state = unknown;
    /// Whether a finalized rank stays so: it has called MPI_Finalize or has exited. Without this it may open another session.
    bool is_final = false;

    static PortWord of(uint32_t word) {
        return {static_cast<uint16_t>(word & 0xffff), static_cast<RankLiveness>(word >> 16 & 3), (word >> 18 & 1) != 0};
    }
    uint32_t word() const { return port | static_cast<uint32_t>(state) << 16 | static_cast<uint32_t>(is_final) << 18; }
};

/// Merges news about a rank into its entry of the address table, which other processes may change meanwhile. Entries only gain information: a
/// port may have arrived earlier in a datagram, and a rank that has ended stays so. One that has closed its last session may run again.
void learn(std::atomic<uint32_t>& entry, PortWord news);

/// Returns the number of cores that this process may use: the default number of slots of a host.
uint32_t usable_cores();

/// Bytes of one rank's region. Virtual: untouched pages take no memory.
inline constexpr uint64_t kRegionStride = 32u << 20;

/// A mapping of a whole job segment. Movable; unmaps when destroyed. Not thread-safe.
class JobSegment {
  public:
    JobSegment() = default;
    JobSegment(JobSegment&& other) noexcept;
    JobSegment& operator=(JobSegment&& other) noexcept;
    ~JobSegment();

    /// Creates a memfd (close-on-exec) for a job of `size` ranks, all on this host, with a random id, secret and key, state running, all
    /// cells started, owner = this process. `blob` is copied into it. The descriptor stays open in fd(). Returns MPI_SUCCESS, or
    /// MPI_ERR_NO_MEM / MPI_ERR_OTHER with failure_text().
    static int create(uint32_t size, const void* blob, size_t blob_size, JobSegment& out);

    /// Creates this host's segment of the described job. `my_host` is its entry in the host table; kNoHost makes a stub. All random values
    /// are taken from the description.
    static int create(const JobDescription& description, uint32_t my_host, JobSegment& out);

    /// Maps the segment of another process, and checks magic, version and id. Keeps no descriptor open. If the kernel refuses access, asks
    /// the launcher (job/descriptor_passing.h). Returns MPI_ERR_PROC_ABORTED with failure_text() if the owner has ended or this is not its
    /// job.
    static int open(const JobAddress& address, JobSegment& out);

    /// Maps a segment as open() does, from a descriptor, which becomes fd() or is closed on failure.
    static int adopt_descriptor(int fd, const JobAddress& address, JobSegment& out);

    static constexpr uint32_t kNotHere = ~0u;  ///< index of a rank that is on another host

    explicit operator bool() const { return base_ != nullptr; }
    JobHeader& header() const { return *reinterpret_cast<JobHeader*>(base_); }
    /// Returns whether the rank is on this host, that is, has a cell and a region here.
    bool is_local(uint32_t rank) const { return local_index(rank) != kNotHere; }
    /// Returns the rank's index among those of this host, or kNotHere if it is on another.
    uint32_t local_index(uint32_t rank) const {
        if (header().local_ranks == header().size) [[likely]]
            return rank;
        return find_index(rank);
    }
    /// Returns the rank with this index among those of this host (index < local_ranks).
    uint32_t local_rank(uint32_t index) const;
    /// Returns the rank's host as an index into the host table.
    uint32_t host_of(uint32_t rank) const;
    HostEntry& host(uint32_t index) const { return reinterpret_cast<HostEntry*>(base_ + header().hosts_offset)[index]; }
    /// Returns one of the JobHeader::runs runs that place the ranks.
    const Placement& run(uint64_t index) const {
        return reinterpret_cast<const Placement*>(base_ + header().runs_offset)[index];
    }
    /// Returns the rank's word in the address table, for ranks of all hosts.
    std::atomic<uint32_t>& port(uint32_t rank) const {
        return reinterpret_cast<std::atomic<uint32_t>*>(base_ + header().ports_offset)[rank];
    }

    /// Return the cell and the region of a rank on this host; panic for other ranks.
    RankCell& cell(uint32_t rank) const { return reinterpret_cast<RankCell*>(base_ + header().cells_offset)[here(rank)]; }
    std::byte* region(uint32_t rank) const { return base_ + header().regions_offset + here(rank) * header().region_stride; }
    /// Returns the CpuLocation word of the rank with this index among those of this host (index < local_ranks).
    std::atomic<uint32_t>& place(uint32_t index) const {
        return reinterpret_cast<std::atomic<uint32_t>*>(base_ + header().places_offset)[index];
    }
    /// Returns whether all ranks on all hosts have reached the end of MPI_Init.
    bool all_arrived() const {
        return header().hosts == 1 ? header().arrived.load() == header().size : header().all_arrived.load() != 0;
    }
    /// Draws the number of a new context id, which no other host of the job draws. Returns kNoNumber when this host's range is exhausted.
    uint64_t draw_context() const {
        const uint64_t drawn = header().next_context.fetch_add(1, std::memory_order_relaxed);
        return drawn < kContextsPerHost ? header().my_host * kContextsPerHost + drawn : kNoNumber;
    }

    const std::byte* blob() const { return base_ + header().blob_offset; }
    JobAddress address() const { return {header().id, header().owner_pid, header().owner_fd, header().host}; }
    /// Returns the description from which another host creates its segment of this job.
    JobDescription description() const;
    int fd() const { return fd_; }
    size_t bytes() const { return bytes_; }
    /// Returns whether the owner process lives and still has this very segment open. One system call.
    bool owner_alive() const;

  private:
    static int map(int fd, const JobAddress& address, JobSegment& out);
    uint32_t find_index(uint32_t rank) const;
    /// Returns the run that holds `rank`, and the rank's position in it as `index`; null if there is none. The search starts at the run
    /// found last, so neighboring ranks are found at once.
    const Placement* find_run(uint32_t rank, uint32_t& index) const;
    uint32_t here(uint32_t rank) const;

    std::byte* base_ = nullptr;
    size_t bytes_ = 0;
    int fd_ = -1;
    mutable uint64_t last_run_ = 0;  ///< the run that find_run() found last; several threads access it atomically
    uint64_t inode_ = 0;             ///< inode of the memfd: distinguishes it from a later one with the same pid and descriptor
    uint64_t owner_started_ = 0;     ///< owner's ProcessOrigin::start if the kernel hides the owner's descriptors; else 0
};

/// Returns whether the job can still make progress: its state is running and its owner process lives. Costs a system call; for slow paths.
bool job_alive(const JobSegment& segment);

}  // namespace starling::job
