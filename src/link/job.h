// Jobs as one process knows them: its own and every other that it has met.
#pragma once

#include <cstdint>
#include <memory>

#include "boot/job_segment.h"
#include "mpi.h"

namespace starling::link {

struct Peer;

/// One job, interned: equal addresses give the same object, which lives until the process ends, so groups hold
/// plain pointers. The segment of another job is mapped at the first message to it.
class Job {
  public:
    explicit Job(const boot::JobAddress& address) : address_(address) {}

    const boot::JobAddress& address() const { return address_; }
    /// Maps the segment if it isn't yet. MPI_ERR_PROC_ABORTED with failure_text() if the job is gone.
    int map();
    bool mapped() const { return static_cast<bool>(segment_); }
    boot::JobSegment& segment() { return segment_; }

    /// Visits every peer object there is.
    template <class F>
    void each_peer(F&& visit) {
        if (!peers_) return;
        for (uint32_t r = 0; r < segment_.header().size; ++r)
            if (peers_[r]) visit(*peers_[r]);
    }
    /// The job's processes can no longer be reached; set once, by check_liveness().
    bool dead() const { return dead_; }
    void mark_dead() { dead_ = true; }

    /// The peer object of a rank, made at first use; nullptr with failure_text() if the job is gone.
    Peer* peer(uint32_t rank);

  private:
    friend Job* adopt_own_job(boot::JobSegment&& segment, uint32_t rank);
    boot::JobAddress address_;
    boot::JobSegment segment_;
    std::unique_ptr<Peer*[]> peers_;  ///< by rank, filled lazily
    bool dead_ = false;
};

/// The interned job of this address.
Job* find_job(const boot::JobAddress& address);

/// Jobs in the order in which they were met; nullptr past the end.
Job* job_at(size_t index);

/// Takes over the already mapped segment of this process's own job (once, in MPI_Init).
Job* adopt_own_job(boot::JobSegment&& segment, uint32_t rank);

/// This process: its job and its rank in it. Null job before MPI_Init.
struct Process {
    Job* job = nullptr;
    uint32_t rank = 0;
    bool operator==(const Process&) const = default;
};
const Process& self();

}  // namespace starling::link
