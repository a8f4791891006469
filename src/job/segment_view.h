// A job's segment as strangers to the job see it: mpiexec, which looks where others' ranks are, `starling top` and `starling why`. Whatever lies in
// it, and however it changes meanwhile, a look at it ends well: what says where things are is copied once and checked, and is never read again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job_segment.h"

namespace starling::job {

class SegmentView {
  public:
    static constexpr uint32_t kMostRanks = 1u << 16;  ///< on one host
    static constexpr uint32_t kMostHosts = 1u << 16;
    static constexpr uint64_t kMostRuns = 1u << 20;

    SegmentView() = default;
    SegmentView(SegmentView&& other) noexcept;
    SegmentView& operator=(SegmentView&& other) noexcept;
    ~SegmentView();

    /// Looks at whatever /proc/<owner_pid>/fd/<owner_fd> is; the pid is one of this process's /proc. MPI_ERR_PROC_ABORTED with failure_text()
    /// if that is no segment, is another user's (unless `of_anybody`), or may become shorter while it is looked at.
    static int open(int32_t owner_pid, int32_t owner_fd, bool of_anybody, SegmentView& out);

    explicit operator bool() const { return base_ != nullptr; }
    JobId id() const { return id_; }
    uint32_t size() const { return size_; }
    uint32_t hosts() const { return hosts_; }
    JobState state() const;
    /// What was started, and hosts' names: without what a terminal would obey.
    const std::string& command() const { return command_; }
    const std::string& my_host() const { return my_host_; }  ///< empty in a stub
    const std::vector<std::string>& other_hosts() const { return other_hosts_; }

    /// Ranks here, `index` being less than their number.
    uint32_t ranks() const { return static_cast<uint32_t>(ranks_.size()); }
    uint32_t rank(uint32_t index) const { return ranks_[index]; }
    const RankCell& cell(uint32_t index) const { return reinterpret_cast<const RankCell*>(base_ + cells_)[index]; }
    uint32_t place(uint32_t index) const;
    /// Of kRegionStride bytes, not to be written to.
    std::byte* region(uint32_t index) const { return base_ + regions_ + index * kRegionStride; }

  private:
    bool read(const JobHeader& header);
    bool read_ranks(const JobHeader& header, const std::vector<Placement>& runs);

    std::byte* base_ = nullptr;
    size_t bytes_ = 0;
    JobId id_ = 0;
    uint32_t size_ = 0, hosts_ = 0;
    uint64_t cells_ = 0, places_ = 0, regions_ = 0;  ///< where they are
    std::vector<uint32_t> ranks_;
    std::string command_, my_host_;
    std::vector<std::string> other_hosts_;
};

/// The text up to its end, which there need not be, with question marks for what is not printed.
std::string printable(const char* text, size_t room);

}  // namespace starling::job
