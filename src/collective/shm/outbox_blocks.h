// Buffers in this process's outbox for pieces of a stage's operations that do not fit into a slot. A process has one outbox for all
// communicators and uses it in rotation, which is several times as fast as reusing the same few lines.
#pragma once

#include <vector>

#include "collective/shm/layout.h"
#include "link/host_memory.h"
#include "link/job.h"

namespace starling::collective {

/// A communicator's use of the outbox: it keeps buffers until their readers have finished. It may outlive the stage, until the last
/// participant has read its data, and so owns all that it accesses.
class NodeLender final : public link::Borrowers {
  public:
    /// `offset`: offset of the area in the leader's region; kNoArea for an area that lasts as long as the process. `leads`: the area is in
    /// this process's region; the destructor retires it.
    NodeLender(const NodeLayout& layout, std::vector<link::Process> participants, int64_t offset, AreaUse use, bool leads);
    ~NodeLender() override;

    /// Records that the next operation is `number`, and that all have finished operation `finished`. 32-bit numbers are extended to the
    /// nearest 64-bit number.
    void pass(uint64_t number, uint32_t finished) {
        number_ = number;
        set_back(whole(finished));
    }
    /// Allocates a buffer for operation `number`. `finished`: number of the last operation that all participants have finished. Sets
    /// `place` for the header; null if there is no space.
    std::byte* allocate(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place);
    void update_back() override;

  private:
    /// Extends a 32-bit operation number to the 64-bit number that is nearest to the last known one.
    uint64_t whole(uint32_t sequence) const {
        return number_ + static_cast<uint64_t>(int64_t{static_cast<int32_t>(sequence - static_cast<uint32_t>(number_))});
    }

    NodeLayout layout_;
    std::vector<link::Process> participants_;
    std::vector<link::JobHold> holds_;
    int64_t offset_;
    AreaUse use_;
    bool leads_;
    uint64_t number_ = 0;
};

/// Returns whether a participant is known never to read or write again.
bool has_terminated(const link::Process& process);

}  // namespace starling::collective
