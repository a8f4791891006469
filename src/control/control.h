// A rank's way to its launcher: one call is one connection, one request, one reply. Nothing blocks for as
// long as the launcher takes; the caller polls while it keeps its own messages moving.
#pragma once

#include <string>

#include "control/control_protocol.h"
#include "job/job_segment.h"

namespace starling::control {

/// One request on its way. Movable, hangs up when destroyed. Not thread-safe; any number may be open at
/// once.
class ControlCall {
  public:
    ControlCall() = default;
    ControlCall(ControlCall&& other) noexcept;
    ControlCall& operator=(ControlCall&& other) noexcept;
    ~ControlCall();

    /// Sends `payload` (an encoded message of control_protocol.h) to the launcher of `own`, as `rank` of
    /// it. A singleton gets its launcher first, which takes some milliseconds once: `starlingd serve`,
    /// which ends by itself. MPI_SUCCESS, or MPI_ERR_OTHER / MPI_ERR_PROC_ABORTED with failure_text();
    /// for a profile MPI_ERR_PENDING, too, instead of waiting where too many wait for the launcher already.
    static int start(job::JobSegment& own, uint32_t rank, MessageKind kind, std::string_view payload, ControlCall& out);

    /// Sets `done` when reply() is complete. The launcher rings the rank's doorbell after replying; between
    /// replies this costs one load. An error class with failure_text() if the launcher is gone.
    int poll(bool& done);
    const std::string& reply() const { return reply_.payload; }
    /// Readable when the reply comes; -1 when it has.
    int descriptor() const { return fd_; }

  private:
    int fd_ = -1;
    job::RankCell* cell_ = nullptr;  ///< of the asking rank; must outlive the call
    uint32_t replies_seen_ = 0;
    uint32_t polls_ = 0;
    FrameDecoder decoder_{kMaxFrame};
    Frame reply_;
    bool done_ = false;
};

}  // namespace starling::control
