// The steps of a two-level collective within this host. They use the host's shared-memory stage if it serves the call, else messages.
#pragma once

#include "collective/core/view.h"
#include "collective/select.h"
#include "collective/shm/driver.h"

namespace starling::collective {

/// One two-level operation's use of the shared-memory stage. Create it when the operation begins, in the same order on all members; it then
/// queues for the stage, and keeps its turn until it is destroyed. A member with an error takes part in all steps, so that no other member
/// waits forever, and the others receive the error.
class WithinHost {
  public:
    /// `v`: all participants; its exchange has hosts(). The other arguments decide whether the stage serves the call; `commutative` is that
    /// of the reduction operation.
    WithinHost(const View& v, CollectiveKind kind, uint64_t bytes = 0, bool commutative = true);

    // Root arguments are indices among the participants on this host. Await the calls one after the other.

    /// The two halves of a barrier. arrive() comes before the leader's barrier between hosts, release() after it.
    Task arrive();
    Task release(FirstError error);
    /// `error`: this member's earlier error. If the root passes one, the other members on the host return an error, too.
    Task bcast(FirstError error, int root, void* buffer, int64_t count, const Datatype& type);
    Task reduce(const void* send, void* receive, int64_t count, const Datatype& type, const datatype::Op& op, int root);

  private:
    View view(int error) const;
    NodeDriver stage() const { return {*stage_, NodeDriver::DriveMode::has_turn}; }

    const View& all_;
    const HostMap& hosts_;
    NodeOwner* stage_ = nullptr;  ///< shared-memory stage of this host; null: use messages
    QueueTurn turn_{};
};

}  // namespace starling::collective
