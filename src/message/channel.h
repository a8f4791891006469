// MatchContext: one message space of a communicator, with its matching state. Point-to-point messages, collective operations and some other
// traffic of a communicator each have their match context. Ranks in it are those of the communicator's remote group; in an
// intra-communicator, those of its only group.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/free_deleter.h"
#include "link/job.h"
#include "progress/request.h"

namespace starling::message {

/// Maps the ranks of a match context to processes; comm::Group implements it. Keeps references to the jobs of all members (link::JobHold).
class Roster {
  public:
    virtual ~Roster() = default;
    virtual int size() const = 0;
    virtual link::Process at(int rank) const = 0;  ///< the process of a member; 0 <= rank < size()
};

/// Returns whether all members are processes of this job on this host. All members get the same answer.
bool share_segment(const Roster& members);

struct MatchQueues;

/// One message space. It is created with its communicator and registered under the context id; messages that arrived before that are then
/// matched.
class MatchContext {
  public:
    /// `roster` maps the ranks of sent and received messages to processes and must outlive this object; `my_rank` is this process's rank in
    /// the view of its peers.
    MatchContext(uint64_t context, const Roster& roster, int my_rank);
    ~MatchContext();
    MatchContext(const MatchContext&) = delete;
    MatchContext& operator=(const MatchContext&) = delete;

    uint64_t context() const { return context_; }
    int my_rank() const { return my_rank_; }
    const Roster& roster() const { return roster_; }
    /// Returns the peer of a rank; nullptr with failure_text() if that rank's job has ended.
    link::Peer* peer(int rank) {
        if (peers_ && peers_[rank]) [[likely]]
            return peers_[rank];
        return find_peer(rank);
    }
    MatchQueues& queues() { return *queues_; }

    /// Returns whether the communicator is revoked (message/revocation.h), so that no operation can start.
    bool revoked() const { return revoked_; }
    /// Marks the context revoked. peer() then returns null for every rank. `announces`: whether this context's roster is notified.
    void set_revoked(bool announces);
    bool announces_revocation() const { return announces_; }
    void end_announcements() { announces_ = false; }
    /// Returns whether the program has acknowledged the failure of a rank, so that receives from MPI_ANY_SOURCE wait for the others only.
    bool acknowledges(int rank) const { return !acknowledged_.empty() && acknowledged_[static_cast<size_t>(rank)]; }
    void acknowledge(int rank);

    /// The comm::Comm that this context belongs to; null: none.
    const void* owner = nullptr;
    /// A context of which this one is a part: it is revoked with that one. Null: none. Not owned.
    const MatchContext* whole = nullptr;
    /// Whether a peer gets a connection at its first message instead of after some traffic; null: no. Not owned.
    const bool* connect_hint = nullptr;
    /// Requests connections to all peers known so far, for a connect_hint that is set after the first messages.
    void connect_recent_peers();

  private:
    link::Peer* find_peer(int rank);

    uint64_t context_;
    const Roster& roster_;
    int my_rank_;
    std::unique_ptr<link::Peer*[], FreeDeleter> peers_;  ///< peers by rank, filled on demand
    std::unique_ptr<MatchQueues> queues_;
    std::vector<bool> acknowledged_;  ///< acknowledged failures by rank; empty: none
    bool revoked_ = false, announces_ = false;
};

}  // namespace starling::message
