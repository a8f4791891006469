// A job segment as read by processes outside the job: by mpiexec, which checks where other jobs' ranks run, by `starling top` and by
// `starling why`. Reading is safe whatever the segment contains and however it changes meanwhile: every offset and count is copied once,
// checked, and never read again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job_segment.h"

namespace starling::job {

class SegmentView {
  public:
    static constexpr uint32_t kMostRanks = 1u << 16;  ///< maximum number of ranks on one host
    static constexpr uint32_t kMostHosts = 1u << 16;
    static constexpr uint64_t kMostRuns = 1u << 20;

    SegmentView() = default;
    SegmentView(SegmentView&& other) noexcept;
    SegmentView& operator=(SegmentView&& other) noexcept;
    ~SegmentView();

    /// Maps the file /proc/<owner_pid>/fd/<owner_fd>; the pid is one of this process's /proc. Returns MPI_ERR_PROC_ABORTED with
    /// failure_text() if the file is not a segment, belongs to another user (unless `of_anybody`), or could be truncated while it is read.
    static int open(int32_t owner_pid, int32_t owner_fd, bool of_anybody, SegmentView& out);

    explicit operator bool() const { return base_ != nullptr; }
    JobId id() const { return id_; }
    uint32_t size() const { return size_; }
    uint32_t hosts() const { return hosts_; }
    JobState state() const;
    /// The job's command and its hosts' names, without characters that control a terminal.
    const std::string& command() const { return command_; }
    const std::string& my_host() const { return my_host_; }  ///< this host's name; empty in a stub
    const std::vector<std::string>& other_hosts() const { return other_hosts_; }

    /// Returns the number of ranks of this host. The functions below take an `index` less than it.
    uint32_t ranks() const { return static_cast<uint32_t>(ranks_.size()); }
    uint32_t rank(uint32_t index) const { return ranks_[index]; }
    const RankCell& cell(uint32_t index) const { return reinterpret_cast<const RankCell*>(base_ + cells_)[index]; }
    uint32_t place(uint32_t index) const;
    /// Returns a region of kRegionStride bytes, which must not be written to.
    std::byte* region(uint32_t index) const { return base_ + regions_ + index * kRegionStride; }

  private:
    bool read(const JobHeader& header);
    bool read_ranks(const JobHeader& header, const std::vector<Placement>& runs);

    std::byte* base_ = nullptr;
    size_t bytes_ = 0;
    JobId id_ = 0;
    uint32_t size_ = 0, hosts_ = 0;
    uint64_t cells_ = 0, places_ = 0, regions_ = 0;  ///< offsets in the segment
    std::vector<uint32_t> ranks_;
    std::string command_, my_host_;
    std::vector<std::string> other_hosts_;
};

/// Returns the text up to its NUL, or `room` characters if it has none, with question marks for control characters.
std::string printable(const char* text, size_t room);

}  // namespace starling::job
