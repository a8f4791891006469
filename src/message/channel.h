// A channel: one message space (a plane of a communicator) with its matching state. Ranks in a channel are those
// of the communicator's remote group (of its only group in an intra-communicator).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "link/job.h"
#include "progress/request.h"

namespace starling::message {

/// Who is who in a channel; comm::Group implements it. Holds the jobs of all members (link::JobHold).
class Roster {
  public:
    virtual ~Roster() = default;
    virtual int size() const = 0;
    virtual link::Process at(int rank) const = 0;  ///< 0 <= rank < size()
};

struct MatchQueues;

/// Made with the communicator, registered under its context id; messages that arrived before are matched then.
class MatchContext {
  public:
    /// `roster` is who ranks of messages sent and received mean and must outlive the channel; `my_rank` is this
    /// process's rank as the others see it.
    MatchContext(uint64_t context, const Roster& roster, int my_rank);
    ~MatchContext();
    MatchContext(const MatchContext&) = delete;
    MatchContext& operator=(const MatchContext&) = delete;

    uint64_t context() const { return context_; }
    int my_rank() const { return my_rank_; }
    const Roster& roster() const { return roster_; }
    /// The peer behind a rank; nullptr with failure_text() if its job is gone.
    link::Peer* peer(int rank) {
        if (peers_ && peers_[rank]) [[likely]]
            return peers_[rank];
        return find_peer(rank);
    }
    MatchQueues& queues() { return *queues_; }

    /// The comm::Comm it is part of; null: none.
    const void* owner = nullptr;
    /// Whether peers get a connection with the first message, without waiting for traffic; null: no. Not owned.
    const bool* connect_hint = nullptr;
    /// Follows a hint that was given when there had been messages already.
    void connect_known_peers();

  private:
    link::Peer* find_peer(int rank);

    uint64_t context_;
    const Roster& roster_;
    int my_rank_;
    struct Free {
        void operator()(link::Peer** table) const { std::free(table); }
    };
    std::unique_ptr<link::Peer*[], Free> peers_;  ///< filled lazily; from calloc, so that only what is used is touched
    std::unique_ptr<MatchQueues> queues_;
};

}  // namespace starling::message
