// The root's state while it gathers the port table of a job: the hosts that were asked, the hosts that want the table, and the hosts'
// answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "launch/common/order.h"
#include "launch/tree/host_set.h"

namespace starling::launch {

/// The state for one job. Its functions return what to send, but send nothing. It collects only on demand, and stores the answers, since
/// ports do not change: a later round asks only the hosts whose ranks did not all have ports.
class PortCollection {
  public:
    /// Registers that hosts `who` want the table; `present` are the hosts that can be asked now. Returns the hosts to ask in a new round.
    /// If it returns none and no round is in progress, the table can be taken at once.
    HostSet want(const HostSet& who, const HostSet& present);
    /// Stores a host's answer, of this or an earlier round.
    void add(TreeHostId from, HostPorts ports);
    /// Stops waiting for a host that will not answer any more.
    void lost(TreeHostId host) { awaited_.remove(host); }
    /// Stops waiting for the hosts that have not answered in this round.
    void close_round() { awaited_ = {}; }
    uint64_t round() const { return round_; }

    /// Returns whether a host wants the table and no answer is missing.
    bool ready() const { return awaited_.empty() && !wanting_.empty(); }
    /// Returns the table as far as it is known; `to` is set to the hosts that want it.
    PortTable extract(HostSet& to);

  private:
    std::map<TreeHostId, HostPorts> known_;
    HostSet complete_, wanting_, awaited_;
    uint64_t round_ = 0;
};

}  // namespace starling::launch
