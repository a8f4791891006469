// The job segment: the one piece of memory that the processes of a job on one host share with their daemon
// (mpiexec, or starlingd on other hosts). The daemon creates it before it starts the first rank; every rank maps all
// of it in MPI_Init, which costs address space only. Written to by processes that may be killed at any
// instruction: every field that changes after creation is an atomic with a documented owner.
//
// A job on several hosts has one segment on each of them, with cells and regions for the ranks of that host only, and
// with what is known of the whole job: its size, hosts, placement, and a table of addresses that fills up on demand. A
// host that has no rank of a job but talks to it gets a segment of it too, without ranks: a stub.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "job/job_description.h"

namespace starling::job {

/// Where a job segment is found: on host `host`, /proc/<owner_pid>/fd/<owner_fd>, holding a header with this id. On
/// any other host the daemon tells where that host's segment of the job is (MessageKind::resolve).
struct JobAddress {
    JobId id = 0;
    int32_t owner_pid = 0;
    int32_t owner_fd = -1;
    HostId host = 0;  ///< 0: the host where this is read
    /// Ids are unique; the rest says how to get there, which differs from host to host.
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
    exited = 3,       ///< set by the launcher: gone, normally
    failed = 4,       ///< set by the launcher: gone by signal, abort, non-zero exit, or without MPI_Finalize
    not_started = 5,  ///< set by the launcher: exec failed; `exit_status` holds errno
};

/// One per rank of this host, on a cache line of its own.
struct alignas(64) RankCell {
    std::atomic<RankState> state;
    std::atomic<int32_t> pid;  ///< first the launcher's child, then the rank itself, if its PID namespace is the launcher's
    std::atomic<int32_t> exit_status;  ///< wait status, valid in exited and failed; errno in not_started
    std::atomic<int32_t> abort_code;   ///< MPI_Abort's argument, valid if `aborted`
    std::atomic<uint32_t> aborted;     ///< not 0: this rank has ended the job, as kAborted or kEndedForAll
    std::atomic<uint32_t> replies;     ///< incremented by the launcher after each reply to this rank
    int32_t appnum;                    ///< MPI_APPNUM: which command of the MPMD list or spawn_multiple
    uint32_t cpu;                      ///< core bound to, kNotBound if none
    /// How often the rank has looked around (at its sockets, too) while it waited in the library: two answers with different
    /// numbers show that it did in between, so that what has not reached it by then is not on its way any more.
    std::atomic<uint32_t> looks;
    /// A process on another host that has given this rank up: its rank + 1 and job. Written by the daemon, the rank last
    /// and only over 0; taken and set to 0 by the rank.
    std::atomic<uint32_t> given_up_by_rank;
    std::atomic<JobId> given_up_by_job;
    std::atomic<uint64_t>
        started;  ///< when the rank itself did (ProcessOrigin::start): its pid alone may be another's later; 0: not said
    /// Of a rank that has a PID namespace of its own: its getpid(), and which namespace. Else 0. `pid` remains the launcher's child, and
    /// tells whether the rank lives, but nobody can reach its memory by that.
    std::atomic<int32_t> apart_pid;
    uint32_t apart_namespace;
};
static_assert(sizeof(RankCell) == 64);
inline constexpr uint32_t kNotBound = ~0u;
/// How a rank ends its job: MPI_Abort, always a failure; shmem_global_exit, whose code may be 0.
inline constexpr uint32_t kAborted = 1, kEndedForAll = 2;

struct alignas(4096) JobHeader {
    static constexpr uint64_t kMagic = 0x31676e696c726174;  // "tarling1"

    // These three stay where they are in all versions to come.
    uint64_t magic;
    uint32_t version;        ///< of the wire (base/version.h): of what is behind the first three, and of all regions
    char release[28];        ///< of who has made this, with an end
    uint32_t size;           ///< ranks, on all hosts
    uint32_t pid_namespace;  ///< that all pids here are of, the maker's; 0: not known
    JobId id;
    HostId host;             ///< where this segment is
    uint64_t key;            ///< of this host's entry: datagrams and connections to ranks here must show it
    uint32_t local_ranks;    ///< cells and regions in this segment
    uint32_t hosts;          ///< entries of the host table, at least 1
    uint32_t my_host;        ///< this host's entry, kNoHost in a stub
    uint32_t several_hosts;  ///< 1 if the universe has other hosts, whether or not this job uses them
    uint32_t hosts_open;     ///< 1: the host table fills on demand, on some hosts before others
    uint32_t recovers;       ///< 1: the job goes on when a rank dies; `failures` and the ports say which
    uint32_t reserved;
    uint64_t secret[2];            ///< proves to the control socket that the sender can read this segment
    NetworkSecret network_secret;  ///< of the job; what comes from other hosts must be sealed, unless it is zeros
    int32_t owner_pid;             ///< the process whose death ends the job: mpiexec, or the singleton itself
    int32_t owner_fd;              ///< its descriptor of this memfd
    uint32_t universe_size;        ///< MPI_UNIVERSE_SIZE
    uint64_t hosts_offset;         ///< HostEntry[hosts]
    uint64_t runs_offset, runs;    ///< Placement[runs]
    uint64_t ports_offset;         ///< std::atomic<uint32_t>[size], see PortWord; sparse
    uint64_t cells_offset;         ///< RankCell[local_ranks]
    uint64_t places_offset;        ///< std::atomic<uint32_t>[local_ranks], see job/places.h
    uint64_t blob_offset,
        blob_size;  ///< opaque here: the parents' description for a spawned job; size 0 if none
    uint64_t regions_offset,
        region_stride;        ///< region i (doorbell, inbox, rings) of this host: offset + i * stride
    char control_socket[64];  ///< abstract Unix socket name without the leading NUL; empty: none (yet)
    char command[192];        ///< for messages: what was started

    alignas(64) std::atomic<JobState> state;
    std::atomic<int32_t> failed_rank;  ///< first rank that failed, -1; valid when state is failed
    /// If the job recovers: how many of its ranks have failed, on all hosts. The daemon first marks the rank in the
    /// address table (PortWord::failed), then counts it here, then wakes those who sleep on this word, and rings.
    std::atomic<uint32_t> failures;
    /// 1 when a spawned job has parted from its parents, and does not end with them. Where a universe has one host the parents
    /// say so here, else to their daemons.
    std::atomic<uint32_t> parted;
    /// Ranks of this host that have reached the end of MPI_Init.
    alignas(64) std::atomic<uint32_t> arrived;
    /// 1 when all ranks on all hosts have; set by the daemon if there are several hosts, else not used.
    std::atomic<uint32_t> all_arrived;
    alignas(64) std::atomic<uint64_t> next_context;  ///< how many contexts were drawn here, and 16
};

/// Of the numbers of a job's contexts each host has a share of its own: at one in half a microsecond enough for six days of
/// nothing else.
inline constexpr uint64_t kContextsPerHost = uint64_t{1} << 40;
/// A number that is never drawn.
inline constexpr uint64_t kNoNumber = ~uint64_t{0};

/// What is known of where a rank listens and whether it lives, in one word of the address table: it is written by the
/// rank itself in its own host's segment, by the daemon, and by processes that had a datagram from that rank.
struct PortWord {
    enum State : uint32_t { unknown = 0, running = 1, finalized = 2, failed = 3 };
    uint16_t port = 0;  ///< UDP, host byte order; 0: not known
    State state = unknown;

    static PortWord of(uint32_t word) { return {static_cast<uint16_t>(word & 0xffff), static_cast<State>(word >> 16 & 3)}; }
    uint32_t word() const { return port | static_cast<uint32_t>(state) << 16; }
};

/// Cores that this process may use: the slots of a host that nobody has given a number.
uint32_t usable_cores();

/// Bytes of one rank's region. Virtual: untouched pages cost nothing.
inline constexpr uint64_t kRegionStride = 32u << 20;

/// A mapping of a whole job segment. Movable, unmaps when destroyed. Not thread-safe.
class JobSegment {
  public:
    JobSegment() = default;
    JobSegment(JobSegment&& other) noexcept;
    JobSegment& operator=(JobSegment&& other) noexcept;
    ~JobSegment();

    /// Creates a memfd (close-on-exec) for a job of `size` ranks, all on this host, with a random id, secret and key,
    /// state running, all cells started, owner = this process. Returns MPI_SUCCESS, or MPI_ERR_NO_MEM / MPI_ERR_OTHER
    /// with failure_text(). `blob` is copied into it. The descriptor stays open in fd().
    static int create(uint32_t size, const void* blob, size_t blob_size, JobSegment& out);

    /// The same for this host's part of the job described, `my_host` being its entry in the host table; kNoHost makes a
    /// stub. Everything random is taken from the description.
    static int create(const JobDescription& description, uint32_t my_host, JobSegment& out);

    /// Maps the segment of another process, checks magic, version and id. Returns MPI_ERR_PROC_ABORTED with
    /// failure_text() if its owner is gone or it is not that job. Keeps no descriptor open. Where the kernel refuses it the launcher is asked
    /// (job/descriptor_passing.h).
    static int open(const JobAddress& address, JobSegment& out);

    /// The same with its descriptor at hand, which is fd() from then on, or closed.
    static int take(int fd, const JobAddress& address, JobSegment& out);

    static constexpr uint32_t kNotHere = ~0u;  ///< a rank's index, if it is on another host

    explicit operator bool() const { return base_ != nullptr; }
    JobHeader& header() const { return *reinterpret_cast<JobHeader*>(base_); }
    /// Whether the rank is on this host, that is, has a cell and a region here.
    bool is_local(uint32_t rank) const { return local_index(rank) != kNotHere; }
    /// The rank's place among those of this host, kNotHere if it is on another.
    uint32_t local_index(uint32_t rank) const {
        if (header().local_ranks == header().size) [[likely]]
            return rank;
        return look_up_index(rank);
    }
    /// The rank that has this place among those of this host (index < local_ranks).
    uint32_t local_rank(uint32_t index) const;
    /// The rank's host, as an index into the host table.
    uint32_t host_of(uint32_t rank) const;
    HostEntry& host(uint32_t index) const { return reinterpret_cast<HostEntry*>(base_ + header().hosts_offset)[index]; }
    /// Where the ranks are, as JobHeader::runs of them.
    const Placement& run(uint64_t index) const {
        return reinterpret_cast<const Placement*>(base_ + header().runs_offset)[index];
    }
    /// The rank's word in the address table; of any rank, on whatever host.
    std::atomic<uint32_t>& port(uint32_t rank) const {
        return reinterpret_cast<std::atomic<uint32_t>*>(base_ + header().ports_offset)[rank];
    }

    /// Cell and region of a rank that is on this host; panics on others.
    RankCell& cell(uint32_t rank) const { return reinterpret_cast<RankCell*>(base_ + header().cells_offset)[here(rank)]; }
    std::byte* region(uint32_t rank) const { return base_ + header().regions_offset + here(rank) * header().region_stride; }
    /// Where the rank with this place among those of this host runs (index < local_ranks), see Place.
    std::atomic<uint32_t>& place(uint32_t index) const {
        return reinterpret_cast<std::atomic<uint32_t>*>(base_ + header().places_offset)[index];
    }
    /// Whether all ranks on all hosts have reached the end of MPI_Init.
    bool all_arrived() const {
        return header().hosts == 1 ? header().arrived.load() == header().size : header().all_arrived.load() != 0;
    }
    /// Draws the number of a new context id, which no other host of the job draws: kNoNumber when this host's are used up.
    uint64_t draw_context() const {
        const uint64_t drawn = header().next_context.fetch_add(1, std::memory_order_relaxed);
        return drawn < kContextsPerHost ? header().my_host * kContextsPerHost + drawn : kNoNumber;
    }

    const std::byte* blob() const { return base_ + header().blob_offset; }
    JobAddress address() const { return {header().id, header().owner_pid, header().owner_fd, header().host}; }
    /// What another host needs to make its segment of this job.
    JobDescription description() const;
    int fd() const { return fd_; }
    size_t bytes() const { return bytes_; }
    /// True while the owner process lives and holds this very segment. One system call.
    bool owner_alive() const;

  private:
    static int map(int fd, const JobAddress& address, JobSegment& out);
    uint32_t look_up_index(uint32_t rank) const;
    /// The run that holds `rank`, as which of its ranks; null if there is none. Neighbours are found at once.
    const Placement* find_run(uint32_t rank, uint32_t& index) const;
    uint32_t here(uint32_t rank) const;

    std::byte* base_ = nullptr;
    size_t bytes_ = 0;
    int fd_ = -1;
    mutable uint64_t last_run_ = 0;  ///< where find_run() found one
    uint64_t inode_ = 0;             ///< of the memfd: tells it from one that got the same pid and descriptor later
    uint64_t owner_started_ =
        0;  ///< ProcessOrigin::start, where the kernel lets nobody look at the owner's descriptors; else 0
};

/// True while the job can still make progress: state is running and its owner process lives.
/// Costs a system call; for slow paths.
bool job_alive(const JobSegment& segment);

}  // namespace starling::job
