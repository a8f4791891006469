// The part of a collective of two levels that stays within my host: through the host's node stage where that serves it, else
// by messages.
#pragma once

#include "collective/core/view.h"
#include "collective/select.h"
#include "collective/shm/driver.h"

namespace starling::collective {

/// Made when the operation begins, by all members alike; takes its turn with the node stage then, and keeps it. A member that
/// has had an error goes through all the stages: nobody waits for it in vain, and the others hear of it.
class WithinHost {
  public:
    /// `v`: everyone, whose exchange has hosts(). What the operation is decides whether the stage serves it.
    WithinHost(const View& v, Kind kind, uint64_t bytes = 0, bool commutative = true);

    // Roots are places among the participants of my host. Awaited one after the other.

    /// The two halves of a barrier, around the leader.
    Task arrive();
    Task release(FirstError error);
    /// `error`: what the root has had before; the others then get one, too.
    Task bcast(FirstError error, int root, void* buffer, int64_t count, const Datatype& type);
    Task reduce(const void* send, void* receive, int64_t count, const Datatype& type, const datatype::Op& op, int root);

  private:
    View view(int error) const;
    NodeDriver stage() const { return {*stage_, NodeDriver::Mode::has_turn}; }

    const View& all_;
    const HostMap& hosts_;
    NodeOwner* stage_ = nullptr;  ///< null: by messages
    Turn turn_{};
};

}  // namespace starling::collective
