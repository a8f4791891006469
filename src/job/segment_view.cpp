#include "job/segment_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/process.h"
#include "base/version.h"
#include "mpi.h"

namespace starling::job {

namespace {

constexpr uint32_t kNobody = ~0u;

bool within(uint64_t offset, uint64_t count, uint64_t unit, uint64_t bytes) {
    return offset <= bytes && count <= (bytes - offset) / unit;
}

/// Copies a table from the mapping.
template <class T>
std::vector<T> copied(const std::byte* base, uint64_t offset, uint64_t count) {
    std::vector<T> table(count);
    if (count > 0) std::memcpy(static_cast<void*>(table.data()), base + offset, count * sizeof(T));
    return table;
}

bool is_sane(const JobHeader& header, uint64_t bytes) {
    return header.size > 0 && header.hosts > 0 && header.hosts <= SegmentView::kMostHosts &&
           header.runs <= SegmentView::kMostRuns && header.local_ranks <= header.size &&
           header.local_ranks <= SegmentView::kMostRanks && (header.my_host < header.hosts || header.local_ranks == 0) &&
           header.region_stride == kRegionStride && header.cells_offset % alignof(RankCell) == 0 &&
           header.places_offset % alignof(uint32_t) == 0 && header.regions_offset % 4096 == 0 &&
           within(header.hosts_offset, header.hosts, sizeof(HostEntry), bytes) &&
           within(header.runs_offset, header.runs, sizeof(Placement), bytes) &&
           within(header.cells_offset, header.local_ranks, sizeof(RankCell), bytes) &&
           within(header.places_offset, header.local_ranks, sizeof(uint32_t), bytes) &&
           within(header.regions_offset, header.local_ranks, kRegionStride, bytes);
}

/// Opens a segment; returns -1 if the file is not one or must not be read.
int open_segment(const char* path, bool of_anybody, uint64_t& bytes) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    if (fd < 0) return -1;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (of_anybody || status.st_uid == geteuid()) && seals >= 0 &&
        (seals & F_SEAL_SHRINK) != 0 && static_cast<uint64_t>(status.st_size) >= sizeof(JobHeader)) {
        bytes = static_cast<uint64_t>(status.st_size);
        return fd;
    }
    close(fd);
    return -1;
}

}  // namespace

std::string printable(const char* text, size_t room) {
    std::string out(text, strnlen(text, room));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
    // Replace C1 control characters, which some terminals obey, in their UTF-8 encoding.
    for (size_t i = 0; i + 1 < out.size(); ++i)
        if (out[i] == '\xc2' && static_cast<unsigned char>(out[i + 1]) < 0xa0) out[i] = out[i + 1] = '?';
    return out;
}

SegmentView::SegmentView(SegmentView&& other) noexcept { *this = std::move(other); }

SegmentView& SegmentView::operator=(SegmentView&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    id_ = other.id_;
    size_ = other.size_;
    hosts_ = other.hosts_;
    cells_ = other.cells_;
    places_ = other.places_;
    regions_ = other.regions_;
    ranks_ = std::move(other.ranks_);
    command_ = std::move(other.command_);
    my_host_ = std::move(other.my_host_);
    other_hosts_ = std::move(other.other_hosts_);
    return *this;
}

SegmentView::~SegmentView() {
    if (base_) munmap(base_, bytes_);
}

int SegmentView::open(int32_t owner_pid, int32_t owner_fd, bool of_anybody, SegmentView& out) {
    DescriptorPath path;
    find_descriptor_path(owner_pid, owner_fd, path);
    uint64_t bytes = 0;
    const int fd = open_segment(path, of_anybody, bytes);
    if (fd < 0) return fail(MPI_ERR_PROC_ABORTED, "%s is not a job's shared memory, or belongs to another user", path);
    void* const base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (base == MAP_FAILED) return fail(MPI_ERR_PROC_ABORTED, "cannot map %s", path);
    SegmentView sight;
    sight.base_ = static_cast<std::byte*>(base);
    sight.bytes_ = bytes;
    // Check a copy, because the original may change after every check.
    alignas(JobHeader) std::byte copy[sizeof(JobHeader)];
    std::memcpy(copy, base, sizeof copy);
    const auto& header = *reinterpret_cast<const JobHeader*>(copy);
    if (header.magic != JobHeader::kMagic || !understands(header.version) || !is_sane(header, bytes) || !sight.read(header))
        return fail(MPI_ERR_PROC_ABORTED, "the job segment %s is damaged, or was created by another version of Starling", path);
    out = std::move(sight);
    return MPI_SUCCESS;
}

bool SegmentView::read(const JobHeader& header) {
    id_ = header.id;
    size_ = header.size;
    hosts_ = header.hosts;
    cells_ = header.cells_offset;
    places_ = header.places_offset;
    regions_ = header.regions_offset;
    command_ = printable(header.command, sizeof header.command);
    const auto entries = copied<HostEntry>(base_, header.hosts_offset, header.hosts);
    for (uint32_t i = 0; i < header.hosts; ++i) {
        std::string name = printable(entries[i].name, sizeof entries[i].name);
        if (i == header.my_host)
            my_host_ = std::move(name);
        else if (!name.empty())
            other_hosts_.push_back(std::move(name));
    }
    return read_ranks(header, copied<Placement>(base_, header.runs_offset, header.runs));
}

/// Reads the ranks of this host. Returns false unless each index belongs to exactly one rank.
bool SegmentView::read_ranks(const JobHeader& header, const std::vector<Placement>& runs) {
    ranks_.assign(header.local_ranks, kNobody);
    uint32_t found = 0;
    for (const Placement& run : runs) {
        if (run.stride == 0 || run.host >= header.hosts) return false;
        if (run.host != header.my_host) continue;
        if (run.local > ranks_.size() || run.count > ranks_.size() - run.local) return false;
        for (uint32_t i = 0; i < run.count; ++i) {
            const uint64_t rank = run.first + uint64_t{i} * run.stride;
            if (rank >= header.size || std::exchange(ranks_[run.local + i], static_cast<uint32_t>(rank)) != kNobody)
                return false;
            ++found;
        }
    }
    return found == ranks_.size();
}

JobState SegmentView::state() const { return reinterpret_cast<const JobHeader*>(base_)->state.load(std::memory_order_acquire); }

uint32_t SegmentView::place(uint32_t index) const {
    return reinterpret_cast<const std::atomic<uint32_t>*>(base_ + places_)[index].load(std::memory_order_relaxed);
}

}  // namespace starling::job
