// What a node stage's participants read from this process's outbox: rooms for pieces that don't fit into a slot. The
// outbox is one for the whole process and used in rotation, which makes rooms several times as fast as the same few
// lines again and again, however many communicators there are.
#pragma once

#include <vector>

#include "collective/shm/layout.h"
#include "link/job.h"
#include "transport/shm/outbox_readers.h"

namespace starling::collective {

/// A communicator's node stage as a borrower of the outbox. It may outlive the stage, until the last participant has
/// read what it was lent, and so keeps what it looks at.
class NodeLender final : public shm::Borrowers {
  public:
    /// `offset`: of the area in the leader's region, kNoArea for one that lasts as long as the process. `leads`: it is in
    /// this process's region, and handed back when the lender ends.
    NodeLender(const NodeLayout& layout, std::vector<link::Process> participants, int64_t offset, AreaUse use, bool leads);
    ~NodeLender() override;

    /// The next operation is `number`, and all have finished operation `finished`: numbers of 32 bits are taken for those near it.
    void pass(uint64_t number, uint32_t finished) {
        number_ = number;
        set_back(whole(finished));
    }
    /// A room for operation `number`, when all have finished operation `finished`. The header's place, or null.
    std::byte* lend(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place);
    void look() override;

  private:
    /// The whole number of an operation near the last one that it knows of.
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

/// Whether a participant will never read or write again, as far as this process knows.
bool is_gone(const link::Process& process);

}  // namespace starling::collective
