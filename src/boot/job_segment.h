// The job segment: the one piece of memory that the processes of a job and their launcher share. The
// launcher creates it before it starts the first rank; every rank maps all of it in MPI_Init, which
// costs address space only. Written to by processes that may be killed at any instruction: every field
// that changes after creation is an atomic with a documented owner.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace starling::boot {

using JobId = uint64_t;  ///< random, never 0

/// Where a job segment is found: /proc/<owner_pid>/fd/<owner_fd>, holding a header with this id.
struct JobAddress {
    JobId id = 0;
    int32_t owner_pid = 0;
    int32_t owner_fd = -1;
    bool operator==(const JobAddress&) const = default;
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
    failed = 4,  ///< set by the launcher: gone by signal, abort, non-zero exit, or without MPI_Finalize
    not_started = 5,  ///< set by the launcher: exec failed; `exit_status` holds errno
};

/// One per rank, on a cache line of its own.
struct alignas(64) RankCell {
    std::atomic<RankState> state;
    std::atomic<int32_t> pid;          ///< first the launcher's child, then getpid() of the rank itself
    std::atomic<int32_t> exit_status;  ///< wait status, valid in exited and failed; errno in not_started
    std::atomic<int32_t> abort_code;   ///< MPI_Abort's argument, valid if `aborted`
    std::atomic<uint32_t> aborted;     ///< 1 after MPI_Abort by this rank
    std::atomic<uint32_t> replies;     ///< incremented by the launcher after each reply to this rank
    int32_t appnum;                    ///< MPI_APPNUM: which command of the MPMD list or spawn_multiple
    uint32_t cpu;                      ///< core bound to, kNotBound if none
};
inline constexpr uint32_t kNotBound = ~0u;

struct alignas(4096) JobHeader {
    static constexpr uint64_t kMagic = 0x31676e696c726174;  // "tarling1"
    static constexpr uint32_t kVersion = 1;

    uint64_t magic;
    uint32_t version;
    uint32_t size;  ///< ranks
    JobId id;
    uint64_t secret[2];      ///< proves to the control socket that the sender can read this segment
    int32_t owner_pid;       ///< the process whose death ends the job: mpiexec, or the singleton itself
    int32_t owner_fd;        ///< its descriptor of this memfd
    uint32_t universe_size;  ///< MPI_UNIVERSE_SIZE
    uint64_t cells_offset;   ///< RankCell[size]
    uint64_t blob_offset,
        blob_size;  ///< opaque to boot: the parents' description for a spawned job; size 0 if none
    uint64_t regions_offset,
        region_stride;        ///< rank r's region (doorbell, inbox, rings): offset + r * stride
    char control_socket[64];  ///< abstract Unix socket name without the leading NUL; empty: none (yet)
    char command[192];        ///< for messages: what was started

    alignas(64) std::atomic<JobState> state;
    std::atomic<int32_t> failed_rank;           ///< first rank that failed, -1; valid when state is failed
    alignas(64) std::atomic<uint32_t> arrived;  ///< ranks that have reached the end of MPI_Init
    alignas(64) std::atomic<uint32_t> next_context;  ///< next number of a context id; starts at 16
};

/// Bytes of one rank's region. Virtual: untouched pages cost nothing.
inline constexpr uint64_t kRegionStride = 4u << 20;

/// A mapping of a whole job segment. Movable, unmaps when destroyed. Not thread-safe.
class JobSegment {
  public:
    JobSegment() = default;
    JobSegment(JobSegment&& other) noexcept;
    JobSegment& operator=(JobSegment&& other) noexcept;
    ~JobSegment();

    /// Creates a memfd (close-on-exec) for `size` ranks with a random id and secret, state running, all
    /// cells started, owner = this process. Returns MPI_SUCCESS, or MPI_ERR_NO_MEM / MPI_ERR_OTHER with
    /// failure_text(). `blob` is copied behind the cells. The descriptor stays open in fd().
    static int create(uint32_t size, const void* blob, size_t blob_size, JobSegment& out);

    /// Maps the segment of another process, checks magic, version and id. Returns MPI_ERR_PROC_ABORTED with
    /// failure_text() if its owner is gone or it is not that job. Keeps no descriptor open.
    static int open(const JobAddress& address, JobSegment& out);

    explicit operator bool() const { return base_ != nullptr; }
    JobHeader& header() const { return *reinterpret_cast<JobHeader*>(base_); }
    RankCell& cell(uint32_t rank) const {
        return reinterpret_cast<RankCell*>(base_ + header().cells_offset)[rank];
    }
    std::byte* region(uint32_t rank) const {
        return base_ + header().regions_offset + rank * header().region_stride;
    }
    const std::byte* blob() const { return base_ + header().blob_offset; }
    JobAddress address() const { return {header().id, header().owner_pid, header().owner_fd}; }
    int fd() const { return fd_; }
    size_t bytes() const { return bytes_; }
    /// True while the owner process lives and holds this very segment. One system call.
    bool owner_alive() const;

  private:
    std::byte* base_ = nullptr;
    size_t bytes_ = 0;
    int fd_ = -1;
    uint64_t inode_ = 0;  ///< of the memfd: tells it from one that got the same pid and descriptor later
};

/// True while the job can still make progress: state is running and its owner process lives.
/// Costs a system call; for slow paths.
bool job_alive(const JobSegment& segment);

}  // namespace starling::boot
