#include "job/job_segment.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/page_size.h"
#include "base/process.h"
#include "base/version.h"
#include "job/descriptor_passing.h"
#include "mpi.h"

namespace starling::job {

namespace {

// Missing in Debian 12's headers: makes the memfd non-executable, so that the kernel does not warn about it.
constexpr unsigned kMfdNoexecSeal = 0x0008;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

int open_memfd() {
    int fd = static_cast<int>(syscall(SYS_memfd_create, "starling-job", MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdNoexecSeal));
    if (fd < 0 && errno == EINVAL)
        fd = static_cast<int>(syscall(SYS_memfd_create, "starling-job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    return fd;
}

// Sets the file's size. Checks the limit of file sizes first, which applies to a memfd too: beyond it, ftruncate not only fails but raises
// SIGXFSZ.
int set_size(int fd, uint64_t bytes) {
    rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
        errno = EFBIG;
        return -1;
    }
    int result;
    do { result = ftruncate(fd, static_cast<off_t>(bytes)); } while (result != 0 && errno == EINTR);
    return result;
}

// Allocates memory. Returns 0, or -1 with errno as other system calls do; posix_fallocate returns the error instead.
int allocate(int fd, uint64_t bytes) {
    int error;
    do { error = posix_fallocate(fd, 0, static_cast<off_t>(bytes)); } while (error == EINTR);
    errno = error;
    return error == 0 ? 0 : -1;
}

int creation_failure(const char* step, uint32_t size) {
    const int error = errno;
    if (error == EFBIG) {
        return fail(MPI_ERR_NO_MEM,
                    "the shared memory of a job of %u processes takes 32 MB for each of them, which exceeds the limit of the "
                    "size of a file: raise `ulimit -f`",
                    size);
    }
    if (error == EMFILE || error == ENFILE) {
        return fail(MPI_ERR_OTHER, "no file descriptor left for the job's shared memory (%s: %s); raise `ulimit -n`", step,
                    std::strerror(error));
    }
    if (error == EPERM || error == EACCES || error == ENOSYS) {
        return fail(MPI_ERR_OTHER,
                    "cannot create the job's shared memory: %s is refused (%s), perhaps by a seccomp filter of the container; "
                    "allow that system call",
                    step, std::strerror(error));
    }
    return fail(MPI_ERR_NO_MEM,
                "cannot create the shared memory of a job of %u processes (%s: %s); free memory, or start "
                "fewer processes",
                size, step, std::strerror(error));
}

/// Excludes communication memory from core dumps, because it is useless to a reader, and a dump would fill all its holes, 32 MB per rank.
void keep_out_of_dumps(std::byte* base, uint64_t from, uint64_t bytes) {
    if (from < bytes) madvise(base + from, bytes - from, MADV_DONTDUMP);
}

bool inside(uint64_t offset, uint64_t count, uint64_t unit, uint64_t bytes) {
    return offset <= bytes && (count == 0 || unit <= (bytes - offset) / count);
}

/// Returns the release and wire version that created a segment, whatever the text in it.
std::string made_by(const JobHeader& header) {
    std::string_view release(header.release, strnlen(header.release, sizeof header.release));
    const auto strange = [](char c) { return c < ' ' || c > '~'; };
    if (release.empty() || std::any_of(release.begin(), release.end(), strange)) release = "of an unknown release";
    return version_text(release, header.version);
}

bool runs_consistent(const JobHeader& header, const std::byte* base) {
    const auto* runs = reinterpret_cast<const Placement*>(base + header.runs_offset);
    for (uint64_t i = 0; i < header.runs; ++i) {
        if (runs[i].stride == 0 || runs[i].host >= header.hosts) return false;
        if (runs[i].host == header.my_host && runs[i].local + uint64_t{runs[i].count} > header.local_ranks) return false;
    }
    return true;
}

// Returns whether all offsets in the header are inside the mapping. The owner wrote the header, but the owner may be a broken or foreign
// build.
bool consistent(const JobHeader& header, uint64_t bytes) {
    return header.size > 0 && header.hosts > 0 && header.local_ranks <= header.size &&
           (header.my_host < header.hosts || header.local_ranks == 0) && header.cells_offset % alignof(RankCell) == 0 &&
           header.hosts_offset % alignof(HostEntry) == 0 && header.runs_offset % alignof(Placement) == 0 &&
           header.ports_offset % alignof(uint32_t) == 0 && header.regions_offset % kPage == 0 &&
           header.region_stride >= sizeof(uint64_t) && header.region_stride % kPage == 0 &&
           inside(header.hosts_offset, header.hosts, sizeof(HostEntry), bytes) &&
           inside(header.runs_offset, header.runs, sizeof(Placement), bytes) &&
           inside(header.ports_offset, header.size, sizeof(uint32_t), bytes) &&
           inside(header.cells_offset, header.local_ranks, sizeof(RankCell), bytes) &&
           header.places_offset % alignof(uint32_t) == 0 &&
           inside(header.places_offset, header.local_ranks, sizeof(uint32_t), bytes) &&
           inside(header.blob_offset, 1, header.blob_size, bytes) &&
           inside(header.regions_offset, header.local_ranks, header.region_stride, bytes) &&
           runs_consistent(header, reinterpret_cast<const std::byte*>(&header));
}

}  // namespace

void learn(std::atomic<uint32_t>& entry, PortWord news) {
    uint32_t known = entry.load(std::memory_order_relaxed);
    uint32_t merged = 0;
    do {
        const PortWord before = PortWord::of(known);
        const bool returns = before.state == PortWord::finalized && !before.is_final && news.state == PortWord::running;
        const PortWord after{.port = news.port != 0 ? news.port : before.port,
                             .state = returns ? news.state : std::max(before.state, news.state),
                             .is_final = before.is_final || news.is_final};
        merged = after.word();
    } while (merged != known && !entry.compare_exchange_weak(known, merged, std::memory_order_release));
}

uint32_t usable_cores() {
    cpu_set_t usable;
    return sched_getaffinity(0, sizeof usable, &usable) == 0 ? static_cast<uint32_t>(CPU_COUNT(&usable)) : 1;
}

JobSegment::JobSegment(JobSegment&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      fd_(std::exchange(other.fd_, -1)),
      inode_(std::exchange(other.inode_, 0)),
      owner_started_(std::exchange(other.owner_started_, 0)) {}

JobSegment& JobSegment::operator=(JobSegment&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(fd_, other.fd_);
    std::swap(inode_, other.inode_);
    std::swap(owner_started_, other.owner_started_);
    return *this;
}

// The lifetime of a segment: the processes of the job, its daemon and all processes that communicate with the job map it. Each writes only
// through its own mapping. The kernel frees the memory with the last mapping and descriptor, so no process can write to memory that has
// been freed and reused. A process unmaps the segment when none of its objects refer to it any more; link/job_reclaim.h has the rules.
JobSegment::~JobSegment() {
    if (base_) munmap(base_, bytes_);
    if (fd_ >= 0) close(fd_);
}

int JobSegment::create(uint32_t size, const void* blob, size_t blob_size, JobSegment& out) {
    JobDescription description;
    description.draw();
    description.size = size;
    description.universe_size = std::max(size, usable_cores());
    description.hosts.resize(1);
    description.hosts[0].id = this_host();
    gethostname(description.hosts[0].name, sizeof description.hosts[0].name - 1);
    description.placements.push_back({0, 1, size, 0, 0});
    if (blob_size > 0) description.blob.assign(static_cast<const char*>(blob), blob_size);
    return create(description, 0, out);
}

int JobSegment::create(const JobDescription& description, uint32_t my_host, JobSegment& out) {
    JobSegment segment;
    const uint32_t local_ranks = my_host == kNoHost ? 0 : description.ranks_on(my_host);
    const auto hosts = static_cast<uint32_t>(description.hosts.size());
    const uint64_t hosts_offset = sizeof(JobHeader);
    const uint64_t runs_offset = hosts_offset + hosts * sizeof(HostEntry);
    const uint64_t cells_offset = round_up(runs_offset + description.placements.size() * sizeof(Placement), 64);
    const uint64_t places_offset = cells_offset + uint64_t{local_ranks} * sizeof(RankCell);
    const uint64_t blob_offset = round_up(places_offset + uint64_t{local_ranks} * sizeof(uint32_t), 64);
    // Pages from here on are touched only when needed, so that unused ones take no memory.
    const uint64_t ports_offset = round_up(blob_offset + description.blob.size(), kPage);
    const uint64_t regions_offset = round_up(ports_offset + uint64_t{description.size} * sizeof(uint32_t), kPage);
    segment.bytes_ = regions_offset + uint64_t{local_ranks} * kRegionStride;

    segment.fd_ = open_memfd();
    if (segment.fd_ < 0) return creation_failure("memfd_create", local_ranks);
    if (set_size(segment.fd_, segment.bytes_) != 0) return creation_failure("ftruncate", local_ranks);
    // A lack of memory must show here as an error, not later as a SIGBUS at the first store.
    if (allocate(segment.fd_, ports_offset) != 0) return creation_failure("fallocate", local_ranks);
    fcntl(segment.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    void* base = mmap(nullptr, segment.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment.fd_, 0);
    if (base == MAP_FAILED) return creation_failure("mmap", local_ranks);
    segment.base_ = static_cast<std::byte*>(base);
    keep_out_of_dumps(segment.base_, regions_offset, segment.bytes_);
    struct stat status;
    if (fstat(segment.fd_, &status) != 0) return creation_failure("fstat", local_ranks);
    segment.inode_ = status.st_ino;

    auto* header = new (base) JobHeader();
    header->version = wire_version();
    std::memcpy(header->release, kThisVersion.release, sizeof header->release);
    header->size = description.size;
    header->pid_namespace = find_pid_namespace();
    header->id = description.id;
    header->host = this_host();
    header->local_ranks = local_ranks;
    header->hosts = hosts;
    header->my_host = my_host;
    header->recovers = description.recovers;
    header->hosts_open = description.hosts_open;
    header->several_hosts = description.several_hosts || hosts > 1;
    std::memcpy(header->secret, description.secret, sizeof header->secret);
    header->network_secret = description.network_secret;
    header->owner_pid = getpid();
    header->owner_fd = segment.fd_;
    header->universe_size = description.universe_size;
    header->hosts_offset = hosts_offset;
    header->runs_offset = runs_offset;
    header->runs = description.placements.size();
    header->ports_offset = ports_offset;
    header->cells_offset = cells_offset;
    header->places_offset = places_offset;
    header->blob_offset = blob_offset;
    header->blob_size = description.blob.size();
    header->regions_offset = regions_offset;
    header->region_stride = kRegionStride;
    std::snprintf(header->command, sizeof header->command, "%s", description.command.c_str());
    header->state.store(JobState::running, std::memory_order_relaxed);
    header->failed_rank.store(-1, std::memory_order_relaxed);
    header->next_context.store(16, std::memory_order_relaxed);
    auto* entries = reinterpret_cast<HostEntry*>(segment.base_ + hosts_offset);
    for (uint32_t i = 0; i < hosts; ++i) {
        entries[i] = description.hosts[i];
        if (entries[i].key == 0) entries[i].key = description.key;
        if (i == my_host) header->key = entries[i].key;
    }
    std::copy(description.placements.begin(), description.placements.end(),
              reinterpret_cast<Placement*>(segment.base_ + runs_offset));
    auto* cells = reinterpret_cast<RankCell*>(segment.base_ + cells_offset);
    for (uint32_t i = 0; i < local_ranks; ++i) (new (cells + i) RankCell())->cpu = kNotBound;
    description.blob.copy(reinterpret_cast<char*>(segment.base_ + blob_offset), description.blob.size());
    // The magic is stored last, so that a process that sees it sees the whole header.
    __atomic_store_n(&header->magic, JobHeader::kMagic, __ATOMIC_RELEASE);
    out = std::move(segment);
    return MPI_SUCCESS;
}

const Placement* JobSegment::find_run(uint32_t rank, uint32_t& index) const {
    const uint64_t runs = header().runs, last = __atomic_load_n(&last_run_, __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < runs; ++i) {
        const uint64_t at = last + i < runs ? last + i : last + i - runs;
        if (!run(at).holds(rank, index)) continue;
        if (at != last) __atomic_store_n(&last_run_, at, __ATOMIC_RELAXED);
        return &run(at);
    }
    return nullptr;
}

uint32_t JobSegment::find_index(uint32_t rank) const {
    uint32_t index = 0;
    const Placement* at = find_run(rank, index);
    return at && at->host == header().my_host ? at->local + index : kNotHere;
}

uint32_t JobSegment::here(uint32_t rank) const {
    const uint32_t index = local_index(rank);
    if (index >= header().local_ranks) [[unlikely]]
        panic("rank %u of job %llx does not run on this host, so the job's segment here has no memory for it", rank,
              static_cast<unsigned long long>(header().id));
    return index;
}

uint32_t JobSegment::local_rank(uint32_t index) const {
    for (uint64_t i = 0; i < header().runs; ++i) {
        const Placement& at = run(i);
        if (at.host == header().my_host && index - at.local < at.count) return at.first + (index - at.local) * at.stride;
    }
    panic("job %llx has no rank number %u on this host", static_cast<unsigned long long>(header().id), index);
}

uint32_t JobSegment::host_of(uint32_t rank) const {
    uint32_t index = 0;
    const Placement* at = find_run(rank, index);
    return at ? at->host : kNoHost;
}

JobDescription JobSegment::description() const {
    const JobHeader& from = header();
    JobDescription to;
    to.id = from.id;
    std::memcpy(to.secret, from.secret, sizeof to.secret);
    to.network_secret = from.network_secret;
    to.size = from.size;
    to.universe_size = from.universe_size;
    to.several_hosts = from.several_hosts != 0;
    to.recovers = from.recovers != 0;
    to.hosts_open = from.hosts_open != 0;
    to.hosts.assign(&host(0), &host(0) + from.hosts);
    to.placements.assign(&run(0), &run(0) + from.runs);
    to.command.assign(from.command, strnlen(from.command, sizeof from.command));
    to.blob.assign(reinterpret_cast<const char*>(blob()), from.blob_size);
    return to;
}

int JobSegment::open(const JobAddress& address, JobSegment& out) {
    DescriptorPath path;
    find_descriptor_path(address.owner_pid, address.owner_fd, path);
    int fd = ::open(path, O_RDWR | O_CLOEXEC);
    int error = errno;
    // Ask the launcher if this process cannot open the owner's descriptor, for example because the owner is in another PID namespace.
    bool asked = fd < 0 && (error == EACCES || error == EPERM || error == ENOENT);
    if (asked) fd = fetch_segment(address);
    if (fd < 0) {
        if (error == EMFILE || error == ENFILE) {
            return fail(MPI_ERR_OTHER, "no file descriptor left to open the shared memory of job %llx; raise `ulimit -n`",
                        static_cast<unsigned long long>(address.id));
        }
        if (access("/proc/thread-self/fd", F_OK) != 0)
            return fail(
                MPI_ERR_OTHER,
                "/proc is not mounted, so the shared memory of job %llx cannot be opened; mount it (mount -t proc proc /proc)",
                static_cast<unsigned long long>(address.id));
        return fail(MPI_ERR_PROC_ABORTED,
                    "job %llx has ended, or belongs to another user or container (%s: %s); a process in a container needs the "
                    "process ids of its launcher (docker run --pid=host)",
                    static_cast<unsigned long long>(address.id), path, std::strerror(error));
    }
    error = map(fd, address, out);
    close(fd);
    if (error == MPI_ERR_PROC_ABORTED && !asked && (fd = fetch_segment(address)) >= 0) {
        asked = true;
        error = map(fd, address, out);
        close(fd);
    }
    ProcessOrigin owner;
    if (error == MPI_SUCCESS && asked && knows_pids() && find_origin(address.owner_pid, owner))
        out.owner_started_ = owner.start;
    return error;
}

int JobSegment::adopt_descriptor(int fd, const JobAddress& address, JobSegment& out) {
    const int error = map(fd, address, out);
    if (error)
        close(fd);
    else
        out.fd_ = fd;
    ProcessOrigin owner;
    if (error == MPI_SUCCESS && find_origin(address.owner_pid, owner)) out.owner_started_ = owner.start;
    return error;
}

int JobSegment::map(int fd, const JobAddress& address, JobSegment& out) {
    JobSegment segment;
    struct stat status;
    void* base = MAP_FAILED;
    const bool plausible =
        fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && static_cast<uint64_t>(status.st_size) >= sizeof(JobHeader);
    if (plausible) {
        base = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    const int map_error = errno;
    if (plausible && base == MAP_FAILED) {
        return fail(MPI_ERR_NO_MEM, "cannot map the shared memory of job %llx: %s", static_cast<unsigned long long>(address.id),
                    std::strerror(map_error));
    }
    if (base != MAP_FAILED) {
        segment.base_ = static_cast<std::byte*>(base);
        segment.bytes_ = static_cast<size_t>(status.st_size);
        segment.inode_ = status.st_ino;
    }
    if (!segment || __atomic_load_n(&segment.header().magic, __ATOMIC_ACQUIRE) != JobHeader::kMagic) {
        return fail(MPI_ERR_PROC_ABORTED, "job %llx has ended: /proc/%d/fd/%d is not a job's shared memory any more",
                    static_cast<unsigned long long>(address.id), address.owner_pid, address.owner_fd);
    }
    const JobHeader& header = segment.header();
    if (!understands(header.version)) {
        return fail(MPI_ERR_PROC_ABORTED, "job %llx was started by Starling %s, and this is Starling %s; %s",
                    static_cast<unsigned long long>(address.id), made_by(header).c_str(), version_text().c_str(),
                    kVersionRemedy);
    }
    if (header.id != address.id || !consistent(header, segment.bytes_)) {
        return fail(MPI_ERR_PROC_ABORTED, "job %llx has ended: /proc/%d/fd/%d now belongs to another job",
                    static_cast<unsigned long long>(address.id), address.owner_pid, address.owner_fd);
    }
    keep_out_of_dumps(segment.base_, header.regions_offset, segment.bytes_);
    out = std::move(segment);
    return MPI_SUCCESS;
}

namespace {
/// Returns whether the process exists although /proc does not show it. /proc may be missing, or was mounted with hidepid=2 and the process
/// is not dumpable.
bool is_hidden(pid_t pid) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d", pid);
    struct stat status;
    return stat(path, &status) != 0 && errno == ENOENT && kill(pid, 0) == 0;
}
}  // namespace

bool JobSegment::owner_alive() const {
    // /proc shows the owner's descriptor only until the owner dies, not while it is a zombie. A process that later gets the same pid has
    // another file, or none, under the descriptor's number. kill(pid, 0) would succeed in both cases.
    if (!knows_pids()) return launcher_listens(header());
    if (!proc_shows_pids()) return !process_ended(address().owner_pid);
    DescriptorPath path;
    find_descriptor_path(address().owner_pid, address().owner_fd, path);
    struct stat status;
    if (stat(path, &status) == 0) return status.st_ino == inode_;
    if (errno == ENOENT && is_hidden(address().owner_pid)) return true;
    if (errno != EACCES && errno != EPERM) return false;
    // The kernel hides the owner's descriptors, but its start time is public.
    ProcessOrigin owner;
    if (process_ended(address().owner_pid) || !find_origin(address().owner_pid, owner)) return false;
    return owner_started_ == 0 || owner_started_ == owner.start;
}

bool job_alive(const JobSegment& segment) {
    return segment.header().state.load(std::memory_order_acquire) == JobState::running && segment.owner_alive();
}

}  // namespace starling::job
