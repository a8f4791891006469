// The root's part in the table of all ports of a job: who is asked, who wants it, and what has come.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "launch/common/order.h"
#include "launch/tree/host_set.h"

namespace starling::launch {

/// Pure: says what is to be sent, sends nothing. Nothing is collected before somebody wants it; what has been collected
/// is kept, since ports do not change, and a later round asks only those whose ranks had not all come.
class PortCollection {
  public:
    /// `who` want the table; `present` are the hosts that can be asked now. Returns whom to ask, in a new round. If there
    /// is nobody to be asked and no round under way, the table can be taken at once.
    HostSet want(const HostSet& who, const HostSet& present);
    /// A host's answer, of this or an earlier round.
    void add(HostId from, HostPorts ports);
    /// That host will not answer any more.
    void lost(HostId host) { awaited_.remove(host); }
    /// Who is slow is not waited for.
    void close_round() { awaited_ = {}; }
    uint64_t round() const { return round_; }

    /// Whether somebody waits for the table, and nothing else has to come for it.
    bool ready() const { return awaited_.empty() && !wanting_.empty(); }
    /// The table as far as it is known, and who is to get it.
    PortTable take(HostSet& to);

  private:
    std::map<HostId, HostPorts> known_;
    HostSet complete_, wanting_, awaited_;
    uint64_t round_ = 0;
};

}  // namespace starling::launch
