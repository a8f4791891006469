// Requests of a rank to its launcher. A call is one connection, one request and one reply. No function blocks until the launcher replies:
// the caller polls, and meanwhile makes progress on its own messages.
#pragma once

#include <string>
#include <string_view>

#include "control/control_protocol.h"
#include "job/job_segment.h"

namespace starling::control {

/// One pending request. Movable; closes the connection when destroyed. Not thread-safe; any number may be open at once.
class ControlCall {
  public:
    ControlCall() = default;
    ControlCall(ControlCall&& other) noexcept;
    ControlCall& operator=(ControlCall&& other) noexcept;
    ~ControlCall();

    /// Sends `payload` (an encoded message of control_protocol.h) to the launcher of `own`, as `rank` of that job. A singleton first starts
    /// a launcher (`starlingd serve`), which takes some milliseconds once, and repeats a request that a killed launcher has not read. That
    /// launcher ends by itself. `own` must outlive the call. Returns MPI_SUCCESS, or
    /// MPI_ERR_OTHER / MPI_ERR_PROC_ABORTED with failure_text(). A profile is sent without waiting for a free entry in the launcher's
    /// listen queue, with MPI_ERR_PENDING if the queue is full.
    static int start(job::JobSegment& own, uint32_t rank, MessageKind kind, std::string_view payload, ControlCall& out);

    /// Sets `done` when reply() is complete. The launcher rings the rank's doorbell after each reply; until then a call of poll() costs one
    /// load. Returns an error class with failure_text() if the launcher has ended.
    int poll(bool& done);
    const std::string& reply() const { return reply_.payload; }
    /// Returns the connection's descriptor, which is readable when the reply arrives; -1 when the reply is complete.
    int descriptor() const { return fd_; }

  private:
    int send_request(std::string_view payload);
    bool may_repeat();

    int fd_ = -1;
    job::JobSegment* own_ = nullptr;
    uint32_t rank_ = 0;
    MessageKind kind_ = MessageKind::hello;
    std::string payload_;            ///< kept by singletons only, which may have to repeat the request
    job::RankCell* cell_ = nullptr;  ///< cell of the requesting rank; must outlive the call
    uint32_t replies_seen_ = 0;
    uint32_t polls_ = 0;
    FrameDecoder decoder_{kMaxFrame};
    ControlFrame reply_;
    bool done_ = false;
    bool repeated_ = false;
};

}  // namespace starling::control
