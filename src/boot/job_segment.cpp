#include "boot/job_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "mpi.h"

namespace starling::boot {

namespace {

constexpr uint64_t kPage = 4096;
// Not in Debian 12's headers: the memfd can't be made executable, and the kernel does not warn about it.
constexpr unsigned kMfdNoexecSeal = 0x0008;

uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

int open_memfd() {
    int fd = static_cast<int>(
        syscall(SYS_memfd_create, "starling-job", MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdNoexecSeal));
    if (fd < 0 && errno == EINVAL)
        fd = static_cast<int>(syscall(SYS_memfd_create, "starling-job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    return fd;
}

int creation_failure(const char* step, uint32_t size) {
    const int error = errno;
    if (error == EMFILE || error == ENFILE) {
        return fail(MPI_ERR_OTHER,
                    "no file descriptor left for the job's shared memory (%s: %s); raise `ulimit -n`", step,
                    std::strerror(error));
    }
    return fail(MPI_ERR_NO_MEM,
                "cannot create the shared memory of a job of %u processes (%s: %s); free memory, or start "
                "fewer processes",
                size, step, std::strerror(error));
}

void draw(void* bytes, size_t size) {
    auto* next = static_cast<char*>(bytes);
    while (size > 0) {
        const ssize_t got = getrandom(next, size, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            panic("getrandom: %s", std::strerror(errno));
        }
        next += got;
        size -= static_cast<size_t>(got);
    }
}

void path_of(const JobAddress& address, char (&path)[64]) {
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", address.owner_pid, address.owner_fd);
}

bool inside(uint64_t offset, uint64_t count, uint64_t unit, uint64_t bytes) {
    return offset <= bytes && (count == 0 || unit <= (bytes - offset) / count);
}

// The owner wrote the header, but it may be a broken or foreign build: nothing in it may lead outside the
// mapping.
bool consistent(const JobHeader& header, uint64_t bytes) {
    return header.size > 0 && header.cells_offset % alignof(RankCell) == 0 &&
           header.regions_offset % kPage == 0 && header.region_stride >= sizeof(uint64_t) &&
           header.region_stride % kPage == 0 &&
           inside(header.cells_offset, header.size, sizeof(RankCell), bytes) &&
           inside(header.blob_offset, 1, header.blob_size, bytes) &&
           inside(header.regions_offset, header.size, header.region_stride, bytes);
}

}  // namespace

JobSegment::JobSegment(JobSegment&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      fd_(std::exchange(other.fd_, -1)),
      inode_(std::exchange(other.inode_, 0)) {}

JobSegment& JobSegment::operator=(JobSegment&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(fd_, other.fd_);
    std::swap(inode_, other.inode_);
    return *this;
}

JobSegment::~JobSegment() {
    if (base_) munmap(base_, bytes_);
    if (fd_ >= 0) close(fd_);
}

int JobSegment::create(uint32_t size, const void* blob, size_t blob_size, JobSegment& out) {
    JobSegment segment;
    const uint64_t cells_offset = sizeof(JobHeader);
    const uint64_t blob_offset = cells_offset + uint64_t{size} * sizeof(RankCell);
    const uint64_t regions_offset = round_up(blob_offset + blob_size, kPage);
    segment.bytes_ = regions_offset + uint64_t{size} * kRegionStride;

    segment.fd_ = open_memfd();
    if (segment.fd_ < 0) return creation_failure("memfd_create", size);
    if (ftruncate(segment.fd_, static_cast<off_t>(segment.bytes_)) != 0)
        return creation_failure("ftruncate", size);
    // Memory that is missing must show here, as an error, not as a SIGBUS at the first store.
    if (posix_fallocate(segment.fd_, 0, static_cast<off_t>(regions_offset)) != 0)
        return creation_failure("fallocate", size);
    fcntl(segment.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    void* base =
        mmap(nullptr, segment.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment.fd_, 0);
    if (base == MAP_FAILED) return creation_failure("mmap", size);
    segment.base_ = static_cast<std::byte*>(base);
    struct stat status;
    if (fstat(segment.fd_, &status) != 0) return creation_failure("fstat", size);
    segment.inode_ = status.st_ino;

    auto* header = new (base) JobHeader();
    header->version = JobHeader::kVersion;
    header->size = size;
    do {
        draw(&header->id, sizeof header->id);
    } while (header->id == 0);
    draw(header->secret, sizeof header->secret);
    header->owner_pid = getpid();
    header->owner_fd = segment.fd_;
    header->universe_size = size;
    header->cells_offset = cells_offset;
    header->blob_offset = blob_offset;
    header->blob_size = blob_size;
    header->regions_offset = regions_offset;
    header->region_stride = kRegionStride;
    header->state.store(JobState::running, std::memory_order_relaxed);
    header->failed_rank.store(-1, std::memory_order_relaxed);
    header->next_context.store(16, std::memory_order_relaxed);
    for (uint32_t rank = 0; rank < size; ++rank) (new (&segment.cell(rank)) RankCell())->cpu = kNotBound;
    if (blob_size > 0) std::memcpy(segment.base_ + blob_offset, blob, blob_size);
    // Last: whoever sees the magic sees all of it.
    __atomic_store_n(&header->magic, JobHeader::kMagic, __ATOMIC_RELEASE);
    out = std::move(segment);
    return MPI_SUCCESS;
}

int JobSegment::open(const JobAddress& address, JobSegment& out) {
    char path[64];
    path_of(address, path);
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        const int error = errno;
        if (error == EMFILE || error == ENFILE) {
            return fail(MPI_ERR_OTHER,
                        "no file descriptor left to open the shared memory of job %llx; raise `ulimit -n`",
                        static_cast<unsigned long long>(address.id));
        }
        return fail(MPI_ERR_PROC_ABORTED,
                    "job %llx is gone, or belongs to another user or container (%s: %s)",
                    static_cast<unsigned long long>(address.id), path, std::strerror(error));
    }
    JobSegment segment;
    struct stat status;
    void* base = MAP_FAILED;
    const bool plausible = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                           static_cast<uint64_t>(status.st_size) >= sizeof(JobHeader);
    if (plausible) {
        base = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    const int map_error = errno;
    close(fd);
    if (plausible && base == MAP_FAILED) {
        return fail(MPI_ERR_NO_MEM, "cannot map the shared memory of job %llx: %s",
                    static_cast<unsigned long long>(address.id), std::strerror(map_error));
    }
    if (base != MAP_FAILED) {
        segment.base_ = static_cast<std::byte*>(base);
        segment.bytes_ = static_cast<size_t>(status.st_size);
        segment.inode_ = status.st_ino;
    }
    if (!segment || __atomic_load_n(&segment.header().magic, __ATOMIC_ACQUIRE) != JobHeader::kMagic) {
        return fail(MPI_ERR_PROC_ABORTED, "job %llx is gone: %s is something else by now",
                    static_cast<unsigned long long>(address.id), path);
    }
    const JobHeader& header = segment.header();
    if (header.version != JobHeader::kVersion) {
        return fail(MPI_ERR_PROC_ABORTED,
                    "job %llx was started by another version of Starling (segment version %u, this "
                    "library speaks %u); use the mpiexec and the library of one installation",
                    static_cast<unsigned long long>(address.id), header.version, JobHeader::kVersion);
    }
    if (header.id != address.id || !consistent(header, segment.bytes_)) {
        return fail(MPI_ERR_PROC_ABORTED, "job %llx is gone: %s belongs to another job by now",
                    static_cast<unsigned long long>(address.id), path);
    }
    out = std::move(segment);
    return MPI_SUCCESS;
}

bool JobSegment::owner_alive() const {
    // The owner's descriptor vanishes when it dies, even while it is a zombie, and a process that got the
    // same pid later does not have this very file there: more than kill(pid, 0) could tell, for the same
    // one call.
    char path[64];
    path_of(address(), path);
    struct stat status;
    return stat(path, &status) == 0 && status.st_ino == inode_;
}

bool job_alive(const JobSegment& segment) {
    return segment.header().state.load(std::memory_order_acquire) == JobState::running &&
           segment.owner_alive();
}

}  // namespace starling::boot
